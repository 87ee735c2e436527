/** Workers from the command line: files that stay as they are, answers that are remembered, a log that many write to. */
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { type CliOptions, cliWords, runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { project } from './support.ts'

const file = (yaml: string) => `---\n${yaml}\n---\nDo it.\n`
const ANY = file('name: w\ntools: Bash')

async function run(cwd: string, words: readonly string[], options: CliOptions = {}) {
  const { status, stdout, stderr } = await runCli(words, { cwd, ...options })
  return { status, out: stdout.toString(), err: stderr.toString() }
}

/** Every file below a directory that holds a word. */
const holding = async (directory: string, word: string): Promise<readonly string[]> => {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => path.join(entry.parentPath, entry.name))
  const texts = await Promise.all(paths.map((found) => readFile(found, 'utf8').catch(() => '')))
  return paths.filter((_, index) => texts[index]?.includes(word)).map((found) => path.relative(directory, found))
}

describeWith(['bwrap', 'userns'], 'the files that decide, in a directory that can be written to', () => {
  const FILES = {
    'workers/w.worker': ANY,
    'shop.yaml': 'workshop: { name: s, workers: [w], sandbox: { workspace: rw } }',
    'mine.yaml': 'sandbox: { workspace: rw }',
    'log/audit': '',
    '.git/config': '[core]\n',
  }
  const NAMES = Object.keys(FILES)
  const USE = ['--profile', './mine.yaml', '--worker', 'w', '--workshop', 'shop.yaml', '--audit', 'log/audit']

  async function texts(cwd: string) {
    return Promise.all(NAMES.map((name) => readFile(path.join(cwd, name), 'utf8')))
  }

  const TRICKS: readonly (readonly [string, string])[] = [
    ['writing', ': > $f; truncate -s 0 $f; dd if=/proc/self/stat of=$f; echo evil >> $f; echo evil > $f'],
    ['removing and making it again', 'rm -f $f; unlink $f; echo evil > $f'],
    ['renaming it', 'mv -f $f gone; echo evil > new; mv -f new $f; mv -fT new $f'],
    [
      'renaming the directory around it',
      'd=$(dirname $f); mv $d old-$d; mkdir -p $d; echo evil > $f; rm -rf $d; mkdir -p $d; echo evil > $f',
    ],
    [
      'exchanging it',
      'echo evil > new; python3 -c "import ctypes,sys; ctypes.CDLL(None).syscall(316,-100,b\\"new\\",-100,sys.argv[1].encode(),2)" $f; mv --exchange new $f',
    ],
    ['a hard link to it', 'ln $f link && echo evil > link; echo evil > new; ln -f new $f'],
    [
      'a symbolic link in its place',
      'echo evil > new; ln -sf $PWD/new $f; ln -sfT new $f; ln -s $f alias; echo evil > alias',
    ],
    ['its mode and times', 'chmod 777 $f; touch -d @1 $f; setfattr -n user.x -v y $f'],
    [
      'another way to the directory',
      'echo evil > /proc/self/cwd/$f; echo evil > /proc/self/root/workspace/$f; cd /proc/self/cwd && echo evil > $f',
    ],
    ['a mount over it', 'mount --bind /tmp $(dirname $f); unshare -r mount --bind /tmp $(dirname $f)'],
  ]

  test.each(TRICKS)('are as they were after %s', async (_title, trick) => {
    const cwd = await project(FILES)
    const before = await texts(cwd)
    const modes = await Promise.all(NAMES.map(async (name) => (await stat(path.join(cwd, name))).mode))
    const script = `touch made; for f in ${NAMES.join(' ')}; do ( cd /workspace; ${trick} ); done 2>/dev/null; exit 0`
    const { status, err } = await run(cwd, [...USE, '--', 'sh', '-c', script])
    expect([status, err, existsSync(path.join(cwd, 'made'))]).toEqual([0, '', true])
    const after = await texts(cwd)
    // The log alone has grown: by one line, of ours.
    expect(after.map((text, index) => (NAMES[index] === 'log/audit' ? text.trim().split('\n').length : text))).toEqual(
      before.map((text, index) => (NAMES[index] === 'log/audit' ? 1 : text)),
    )
    expect(await Promise.all(NAMES.map(async (name) => (await stat(path.join(cwd, name))).mode))).toEqual(modes)
    expect((await run(cwd, ['audit', 'verify', 'log/audit'], { program: 'llm-do' })).status).toBe(0)
  })

  test('are changed by the same tricks where none of them is in use: the control', async () => {
    const changed = await Promise.all(
      TRICKS.slice(0, 3).map(async ([, trick]) => {
        const cwd = await project(FILES)
        const script = `for f in workers/w.worker shop.yaml mine.yaml log/audit; do ( cd /workspace; ${trick} ); done 2>/dev/null; exit 0`
        await run(cwd, ['--rw', '.', '--', 'sh', '-c', script])
        const after = await texts(cwd)
        return after.filter((text, index) => text !== Object.values(FILES)[index]).length
      }),
    )
    expect(changed).toEqual([4, 4, 4])
  })

  test.each(['.git/hooks', '.git/config', '.mcp.json', '.vscode', '.claude'])(
    'cannot be made by the command where they are not there yet: %s',
    async (path) => {
      const cwd = await project({ 'w.worker': ANY })
      const script = `touch made; mkdir -p $(dirname ${path}); echo evil > ${path}; mkdir -p ${path}/x; sleep 20`
      const { status } = await run(cwd, ['--rw', '.', '--worker', 'w', '--', 'sh', '-c', script])
      // What was made before the command was stopped lies next to it, under a name that nothing reads.
      const left = readdirSync(cwd)
        .map((name) => name.replace(/\.set-aside\..*/, '.set-aside'))
        .sort()
      expect([status, left]).toEqual([126, [`${path.split('/')[0]}.set-aside`, 'made', 'w.worker']])
    },
  )

  test('a file that decides cannot be the zone itself', async () => {
    const cwd = await project({ 'w.worker': ANY })
    const { status, err } = await run(cwd, ['--rw', './w.worker', '--worker', 'w', '--', 'true'])
    expect([status, err]).toEqual([125, expect.stringContaining('decides the policy')])
  })
})

describeWith(['bwrap', 'userns'], 'approvals and records', () => {
  const ASKS = file('name: w\nshell_default: ask')

  /** Types answers at a terminal of its own; all commands are of one session. */
  async function typed(
    cwd: string,
    home: string,
    { commands, replies }: { commands: readonly string[]; replies: string },
  ) {
    await writeFile(path.join(home, 'script.sh'), commands.join('\n'))
    const { stdout } = await execa('script', ['-qec', 'sh "$HOME/script.sh"', '/dev/null'], {
      cwd,
      input: replies,
      env: { PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: path.join(home, 'runtime') },
      extendEnv: false,
      timeout: 60_000,
      reject: false,
    })
    return stdout.replaceAll('\r', '')
  }

  /** Lines that the command printed; the question shows it behind `echo`, and does not end its own line. */
  const printed = (output: string, word: string) => output.match(new RegExp(`(?<!echo )${word}$`, 'gm'))?.length ?? 0

  const asking = (words: readonly string[]) => cliWords(['--worker', 'w', '--', ...words]).join(' ')

  test('an answer is for once, for the session by these very words, or no', async () => {
    const [cwd, home] = [await project({ 'w.worker': ASKS }), await project({ 'runtime/x': '' })]
    const session = await typed(cwd, home, {
      commands: [asking(['echo', 'first']), asking(['echo', 'first']), asking(['echo', 'other']), 'echo status $?'],
      replies: 's\nn\n',
    })
    expect(session.match(/wants to run:/g)).toHaveLength(2)
    expect([printed(session, 'first'), printed(session, 'other')]).toEqual([2, 0])
    expect([session.includes('the answer was no'), session.includes('status 126')]).toEqual([true, true])
    const once = await typed(cwd, home, {
      commands: [asking(['echo', 'this']), asking(['echo', 'this'])],
      replies: 'y\nn\n',
    })
    expect([once.match(/wants to run:/g)?.length, printed(once, 'this')]).toEqual([2, 1])
  })

  test('an answer of a session does not count in the next one', async () => {
    const [cwd, home] = [await project({ 'w.worker': ASKS }), await project({ 'runtime/x': '' })]
    const one = { commands: [asking(['echo', 'first'])], replies: 's\n' }
    expect(printed(await typed(cwd, home, one), 'first')).toBe(1)
    expect(printed(await typed(cwd, home, { ...one, replies: 'n\n' }), 'first')).toBe(0)
  })

  test.runIf(process.getuid?.() !== 0)(
    'a command never sees the runtime directory that holds the approvals',
    async () => {
      const cwd = await project({ 'w.worker': ANY })
      await mkdir(path.join(cwd, 'llm-do', 'approvals'), { recursive: true, mode: 0o700 })
      const words = ['--rw', '.', '--worker', 'w', '--', 'sh', '-c', 'touch made; echo evil > llm-do/approvals/x']
      const { status, err } = await run(cwd, words, { env: { XDG_RUNTIME_DIR: cwd } })
      expect([status, err]).toEqual([125, expect.stringContaining("holds the runner's own directory")])
      expect([existsSync(path.join(cwd, 'made')), await holding(cwd, 'evil')]).toEqual([false, []])
    },
  )
})

describe('the audit log', () => {
  const RUNS = 20

  describeWith(['bwrap', 'userns'], 'of many workers at once', () => {
    test('has one line a run, with worker, decision and who made it, in one chain', async () => {
      const cwd = await project({
        'a.worker': file('name: a\ntools: Bash(true), Bash(id:*)'),
        'b.worker': file('name: b\ntoolsets: { shell: { rules: [{ pattern: "true", approval: ask }] } }'),
      })
      const rows = Array.from({ length: RUNS }, (_, index) =>
        index % 2 === 0
          ? {
              words: ['--worker', 'a', '--', index % 4 === 0 ? 'true' : 'ls'],
              made: index % 4 === 0 ? 'a run rule "Bash(true)"' : 'a blocked no rule',
            }
          : {
              words: ['--worker', 'b', '--approval', 'approve_all', '--', 'true'],
              made: 'b run --approval approve_all',
            },
      )
      await Promise.all(rows.map(({ words }) => run(cwd, ['--audit', 'log', ...words])))
      const lines = (await readFile(path.join(cwd, 'log'), 'utf8')).trim().split('\n')
      const made = lines.map((line) => {
        const { worker, decision, decidedBy } = JSON.parse(line) as Record<string, string>
        return `${worker} ${decision} ${decidedBy}`
      })
      expect(made.toSorted()).toEqual(rows.map((row) => row.made).toSorted())
      const verified = await run(cwd, ['audit', 'verify', 'log'], { program: 'llm-do' })
      expect([verified.status, verified.out]).toEqual([0, expect.stringContaining(`ok: ${RUNS} lines`)])
      await writeFile(
        path.join(cwd, 'log'),
        lines
          .filter((_, index) => index !== 7)
          .map((line) => `${line}\n`)
          .join(''),
      )
      expect((await run(cwd, ['audit', 'verify', 'log'], { program: 'llm-do' })).status).toBe(1)
    })
  })
})
