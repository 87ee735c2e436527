/** Workers from the command line: files that stay as they are, answers that are remembered, one line of the log for each run. */
import { readdirSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { verifyAudit } from '../../src/report/audit-file.ts'
import { cliWords, runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { project } from './support.ts'

const file = (yaml: string) => `---\n${yaml}\n---\nDo it.\n`
const ANY = file('name: w\ntools: Bash')

async function run(cwd: string, words: readonly string[]) {
  const { status, stdout, stderr } = await runCli(words, { cwd })
  return { status, out: stdout.toString(), err: stderr.toString() }
}

describeWith(['userns'], 'the files that decide, in a directory that can be written to', () => {
  const FILES = {
    'workers/w.worker': ANY,
    'shop.yaml': 'workshop: { name: s, workers: [w], sandbox: { workspace: rw } }',
    'mine.yaml': 'sandbox: { workspace: rw }',
    'log/audit': '',
  }
  const NAMES = Object.keys(FILES)
  const USE = ['--profile', './mine.yaml', '--worker', 'w', '--workshop', 'shop.yaml', '--audit', 'log/audit']
  const EXCHANGE = `python3 -c 'import ctypes,sys; ctypes.CDLL(None).syscall(316,-100,b"new",-100,sys.argv[1].encode(),2)' $f`

  const TRICKS: Readonly<Record<string, string>> = {
    writing: ': > $f; truncate -s 0 $f; dd if=/proc/self/stat of=$f; echo evil >> $f; echo evil > $f',
    removing: 'rm -f $f; unlink $f; echo evil > $f',
    renaming: 'mv -f $f gone; echo evil > new; mv -f new $f; mv -fT new $f',
    'renaming the directory':
      'd=$(dirname $f); mv $d old-$d; mkdir -p $d; echo evil > $f; rm -rf $d; mkdir -p $d; echo evil > $f',
    exchanging: `echo evil > new; ${EXCHANGE}; mv --exchange new $f`,
    'a hard link': 'ln $f link-$(basename $f) && echo evil > link-$(basename $f); echo evil > new; ln -f new $f',
    'a symbolic link': 'echo evil > new; ln -sf $PWD/new $f; ln -sfT new $f; ln -s $f alias; echo evil > alias',
    'mode and times': 'chmod 777 $f; touch -d @1 $f; setfattr -n user.x -v y $f',
    'another way to it': 'echo evil > /proc/self/cwd/$f; echo evil > /proc/self/root/workspace/$f',
    'a mount over it': 'mount --bind /tmp $(dirname $f); unshare -r mount --bind /tmp $(dirname $f)',
  }
  /** Prints the tricks that changed a file. */
  const SCRIPT = [
    `looks() { for f in ${NAMES.join(' ')}; do stat -c '%i %h %a %s %y' $f; cat $f; done 2>&1 | cksum; }; before=$(looks); : > made`,
    ...Object.entries(TRICKS).map(
      ([title, trick]) =>
        `for f in ${NAMES.join(' ')}; do ( cd /workspace; ${trick} ); done >/dev/null 2>&1
        after=$(looks); [ "$after" = "$before" ] || echo '${title}'; before=$after`,
    ),
  ].join('\n')

  test('are as they were after every trick', async () => {
    const cwd = await project(FILES)
    const state = () =>
      Promise.all(
        NAMES.map(async (name) => [
          await readFile(path.join(cwd, name), 'utf8'),
          (await stat(path.join(cwd, name))).mode,
        ]),
      )
    const before = await state()
    expect(await run(cwd, [...USE, '--', 'sh', '-c', SCRIPT])).toEqual({ status: 0, out: '', err: '' })
    const after = await state()
    expect(readdirSync(cwd)).toContain('made')
    // The log alone has grown, by one line that is ours.
    expect(after.slice(0, -1)).toEqual(before.slice(0, -1))
    expect(await verifyAudit(path.join(cwd, 'log/audit'))).toMatchObject({ lines: 1, problems: [] })
  })

  test('are changed by the same tricks where none of them is in use: the control', async () => {
    const { out } = await run(await project(FILES), ['--rw', '.', '--', 'sh', '-c', SCRIPT])
    expect(out.trim().split('\n')).toEqual(Object.keys(TRICKS).filter((title) => title !== 'a mount over it'))
  })
})

describeWith(['userns'], 'approvals and records', () => {
  /** Types answers at a terminal of its own; all commands are of one session. */
  async function typed(cwd: string, home: string, commands: readonly string[], replies: string) {
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

  test('an answer for the session holds for these very words and in it alone, and no ends with status 126', async () => {
    const [cwd, home] = [
      await project({ 'w.worker': file('name: w\nshell_default: ask') }),
      await project({ 'runtime/x': '' }),
    ]
    const asking = (word: string) => cliWords(['--worker', 'w', '--', 'echo', word]).join(' ')
    const commands = [asking('first'), asking('first'), asking('other'), 'echo status $?']
    const session = await typed(cwd, home, commands, 's\nn\n')
    // The question shows the word behind `echo`, and does not end its own line.
    const printed = (word: string, text = session) => text.match(new RegExp(`(?<!echo )${word}$`, 'gm'))?.length ?? 0
    expect(session.match(/wants to run:/g)).toHaveLength(2)
    expect([printed('first'), printed('other')]).toEqual([2, 0])
    expect([session.includes('the answer was no'), session.includes('status 126')]).toEqual([true, true])
    const next = await typed(cwd, home, [asking('first')], 'n\n')
    expect([next.match(/wants to run:/g)?.length, printed('first', next)]).toEqual([1, 0])
  })

  test('the audit log has one line for each run, with worker, decision and who made it, in one chain', async () => {
    const cwd = await project({
      'a.worker': file('name: a\ntools: Bash(true)'),
      'b.worker': file('name: b\ntoolsets: { shell: { rules: [{ pattern: "true", approval: ask }] } }'),
    })
    await Promise.all([
      run(cwd, ['--audit', 'log', '--worker', 'a', '--', 'true']),
      run(cwd, ['--audit', 'log', '--worker', 'a', '--', 'ls']),
      run(cwd, ['--audit', 'log', '--worker', 'b', '--approval', 'approve_all', '--', 'true']),
    ])
    const log = path.join(cwd, 'log')
    const lines = (await readFile(log, 'utf8')).trim().split('\n')
    const made = lines.map((line) => {
      const { worker, decision, decidedBy } = JSON.parse(line) as Record<string, string>
      return `${worker} ${decision} ${decidedBy}`
    })
    expect(made.sort()).toEqual(['a blocked no rule', 'a run rule "Bash(true)"', 'b run --approval approve_all'])
    expect(await verifyAudit(log)).toMatchObject({ lines: 3, problems: [] })
    await writeFile(log, `${lines[0]}\n${lines[2]}\n`)
    expect((await runCli(['audit', 'verify', 'log'], { cwd, program: 'llm-do' })).status).toBe(1)
  })
})
