/** The warm way: the same results as the cold one, the same walls, and nothing left of it. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, getPriority } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, unmetNeeds } from '../support/needs.ts'
import { descendantsOf, processesWith } from '../support/processes.ts'
import { startPool, type TestPool, until } from './pool.ts'

const sh = (script: string): readonly string[] => ['sh', '-c', script]

interface Transcript {
  readonly title: string
  readonly command: readonly string[]
  readonly options?: readonly string[]
  readonly stdin?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
}

const JSON_ASKED = { LLM_DO_EXEC_JSON: 'native' }

const TRANSCRIPTS: readonly Transcript[] = [
  { title: 'an exit code, and output on both streams', command: sh('echo out; echo err >&2; exit 137') },
  { title: 'SIGKILL', command: sh('kill -KILL $$') },
  { title: 'a command that is not there', command: ['no-such-command'] },
  { title: 'a file that cannot be executed', command: ['/usr/lib/os-release'] },
  { title: 'eight megabytes', command: sh('head -c 8388608 /dev/zero | tr "\\0" x') },
  { title: 'a megabyte of stdin', command: ['sha256sum'], stdin: Buffer.alloc(1 << 20, 3) },
  { title: 'stdin that is not read', command: ['true'], stdin: Buffer.alloc(1 << 20, 3) },
  { title: 'closed stdout', command: sh('exec >&-; exit 5') },
  { title: 'odd arguments', command: ['printf', '%s|', '', '--bind', 'a\nb', 'x'.repeat(100_000)] },
  {
    title: 'a deadline with SIGTERM ignored',
    command: sh('trap "" TERM; exec sleep 30'),
    options: ['--timeout', '1s'],
  },
  { title: 'orphans', command: sh('(sleep 30 &) ; echo done') },
  {
    title: 'directory, environment, processes, descriptors, privileges, filter, limits and mask',
    command: sh(
      'pwd; env | grep -v SHLVL | sort; set -- /proc/[0-9]*; echo $#; ls /proc/self/fd; grep -E "Cap|NoNewPrivs|Seccomp:" /proc/self/status; ulimit -a; umask',
    ),
    env: { LANG: 'de_DE.UTF-8', SECRET: 'x' },
  },
  { title: 'JSON', command: sh('cat; echo err >&2; exit 3'), stdin: 'in', env: JSON_ASKED },
  { title: 'JSON of eight megabytes', command: sh('head -c 8388608 /dev/zero | tr "\\0" x'), env: JSON_ASKED },
  { title: 'JSON of bytes that are no text', command: ['printf', '\\377'], env: JSON_ASKED },
  {
    title: 'JSON of a deadline',
    command: sh('echo begun; exec sleep 30'),
    options: ['--timeout', '1s'],
    env: JSON_ASKED,
  },
]

/** Another user may change ids, the place of the pool and the end of a run. Root tries the rest, if root runs the tests. */
const OF_EVERY_USER = /^(an exit code|directory, environment|a deadline|JSON$)/
const TRIED =
  unmetNeeds(['one-user']).length === 0 ? TRANSCRIPTS : TRANSCRIPTS.filter(({ title }) => OF_EVERY_USER.test(title))

const optionsOf = ({ options = [] }: Transcript): string => options.join(' ')
const GROUPS = [...new Set(TRIED.map(optionsOf))].map((options) => ({
  options: options === '' ? [] : options.split(' '),
  transcripts: TRIED.filter((transcript) => optionsOf(transcript) === options),
}))

const moreOf = ({ stdin, env }: Transcript) => ({
  ...(stdin === undefined ? {} : { stdin }),
  ...(env === undefined ? {} : { env }),
})

interface Shown {
  readonly title: string
  readonly isWarm: boolean
  readonly status: number | undefined
  readonly stdout: string
  readonly stderr: string
}

/** JSON without what differs from run to run. */
const timeless = (text: string): string =>
  text
    .replaceAll(/"(durationMs|setupMs|cpuMs|peakMemory)":[\d.]+/g, '"$1":_')
    .replace(/,"peakPids":\d+/, '')
    .replace(/,"readBytes":\d+,"writeBytes":\d+/, '')
    .replace(/; \d+ process(es)? killed/, '')

const shownOf = (
  { title }: Transcript,
  { isWarm, status, stdout, stderr }: Awaited<ReturnType<TestPool['run']>>,
): Shown => ({
  title,
  isWarm,
  status,
  stdout: timeless(stdout.toString('latin1')),
  // How many of a tree had already ended of the polite signal is a race without a promised winner.
  stderr: stderr.toString('latin1').replace(/; \d+ process(es)? killed/, ''),
})

describeWith(['bwrap', 'userns'], 'a run in a warm sandbox', () => {
  // One pool for all that have the same options: a pool costs more than its runs.
  test.each(GROUPS)(
    'is like a cold one (options: $options)',
    async ({ options, transcripts }) => {
      const pool = await startPool({ options, size: 1 })
      const warm: Shown[] = []
      for (const transcript of transcripts) {
        await pool.run(transcript.command, moreOf(transcript)) // Leaves a plan where none serves yet; else it takes a sandbox.
        warm.push(shownOf(transcript, await pool.runWarm(transcript.command, moreOf(transcript))))
      }
      await pool.stop()
      const cold: Shown[] = []
      for (const transcript of transcripts)
        cold.push(shownOf(transcript, await pool.run(transcript.command, moreOf(transcript))))
      expect(warm).toEqual(cold.map((shown) => ({ ...shown, isWarm: true })))
    },
    120_000,
  )

  /** Each is another process than the keeper would start: the sandbox is claimed, refuses, and the run takes the cold way. */
  test('is refused to a caller with other limits, another nice value, or fewer processors', async () => {
    const pool = await startPool()
    for (const { through, script, printed } of [
      { through: ['sh', '-c', 'ulimit -n 77; exec "$@"', 'sh'], script: 'ulimit -Hn', printed: '77\n' },
      { through: ['nice', '-n', '5'], script: 'nice', printed: `${getPriority() + 5}\n` },
      { through: ['taskset', '-c', '0'], script: 'nproc', printed: '1\n' },
    ]) {
      await pool.run(sh(script))
      const same = await pool.runWarm(sh(script))
      expect(same).toMatchObject({ isWarm: true, status: 0 })
      await pool.whenReady()
      const { isWarm, status, stdout } = await pool.run(sh(script), { through })
      expect({ isWarm, status, stdout: stdout.toString() }).toEqual({ isWarm: true, status: 0, stdout: printed })
      if (script !== 'nproc' || availableParallelism() > 1) expect(same.stdout.toString()).not.toBe(printed)
    }
  })

  test('serves every directory, whose place and owner are those of a cold run', async () => {
    const pool = await startPool({ options: ['--rw', '.'] })
    const look = sh(
      'cat name; echo made >made; stat -c "%u %g %a" . name; grep -o " /workspace .*,nodev" /proc/self/mountinfo',
    )
    for (const name of ['one', 'two']) {
      const cwd = await temporaryDirectory({ mode: 0o755 })
      await writeFile(join(cwd, 'name'), name)
      await pool.run(look)
      const warm = await pool.runWarm(look, { cwd })
      const cold = await pool.run(look, { cwd, env: { LLM_DO_EXEC_POOL: 'off' } })
      expect([warm.isWarm, warm.stdout.toString()]).toEqual([true, cold.stdout.toString()])
      expect([warm.stdout.toString().slice(0, name.length), await readFile(join(cwd, 'made'), 'utf8')]).toEqual([
        name,
        'made\n',
      ])
    }
  })

  test('hides files of its directory, and has the network of its plan, as a cold run', async () => {
    const options = ['--rw', '.', '--hide', '.env', '--allow-host', 'example.test']
    const pool = await startPool({ options })
    const cwd = await temporaryDirectory({ mode: 0o755 })
    await mkdir(join(cwd, 'below'))
    for (const path of ['.env', 'below/.env']) await writeFile(join(cwd, path), 'secret\n')
    const look = sh('cat .env below/.env; echo mine >.env || echo closed; wc -l </proc/net/dev; cat /etc/resolv.conf')
    await pool.run(look)
    const cold = await pool.run(look, { cwd, env: { LLM_DO_EXEC_POOL: 'off' } })
    const warm = await pool.runWarm(look, { cwd })
    expect([warm.isWarm, warm.stdout.toString()]).toEqual([true, cold.stdout.toString()])
    expect(warm.stdout.toString()).toMatch(/^closed\n/)
    // The control: without the pattern the files are read.
    const shown = await runCli(['--rw', '.', '--', ...look], { ...pool.call, cwd, program: 'llm-do-exec' })
    expect(shown.stdout.toString()).toMatch(/^secret\nsecret\n/)
  })

  test('keeps the right to mount until its directories are there, and no longer', async () => {
    const pool = await startPool({ options: ['--rw', '.'], size: 1 })
    const rights = (text: string) => new Set(text.match(/(?<=^Cap(Inh|Prm|Eff|Bnd|Amb):\s+)[0-9a-f]+$/gm))
    await pool.whenReady()
    const inits = () =>
      descendantsOf(pool.keeper.pid)
        .map((pid) => readFileSync(`/proc/${pid}/status`, 'utf8'))
        .filter((text) => /^Name:\t\.init$/m.test(text))
        .map((text) => [...rights(text)].sort().join(' '))
    // Of init, then of the process of the command, its child, which begins to give them up as soon as it is there.
    const expected = ['0000000000000000 0000000000200100', '0000000000000000']
    await until(async () => (inits().join() === expected.join() ? true : undefined), 'a sandbox that waits')
    const { isWarm, stdout } = await pool.runWarm(sh('cat /proc/1/status /proc/self/status'))
    expect([isWarm, rights(stdout.toString())]).toEqual([true, new Set(['0000000000000000'])])
  })

  test('protects what does not exist yet, and shows nothing of that while no command runs', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const pool = await startPool({ cwd, options: ['--rw', '.'] })
    await pool.run(sh('true'))
    await pool.whenReady()
    expect(await readdir(cwd)).toEqual([])
    expect(await pool.runWarm(sh('echo mine >file; ls -A'))).toMatchObject({
      isWarm: true,
      status: 0,
      stdout: Buffer.from('file\n'),
    })
    await pool.whenReady()
    expect(await pool.runWarm(sh('mkdir .vscode; sleep 20'))).toMatchObject({ isWarm: true, status: 126 })
    await pool.whenReady()
    expect(await pool.runWarm(sh('mkdir -p a/b/.git'))).toMatchObject({ isWarm: true, status: 126 })
    const names = (await readdir(cwd, { recursive: true })).map((name) => name.replace(/(set-aside).*/, '$1')).sort()
    expect(names).toEqual(['.vscode.set-aside', 'a', 'a/b', 'a/b/.git.set-aside', 'file'])
  })
})

describeWith(['bwrap', 'userns', 'one-user'], 'a warm sandbox', () => {
  test('serves another program with the same plan, but not with the pool off', async () => {
    const pool = await startPool()
    await pool.run(['echo', 'once'])
    expect(await pool.runWarm(['echo', 'twice'])).toMatchObject({ isWarm: true, stdout: Buffer.from('twice\n') })
    await pool.whenReady()
    expect(await pool.run(['true'], { env: { LLM_DO_EXEC_POOL: 'off' } })).toMatchObject({ status: 0, isWarm: false })
  })

  test('gives each command the mask of its own caller, under the narrowest filter', async () => {
    const pool = await startPool({ options: ['--seccomp', 'strict'] })
    await pool.run(sh('umask'))
    for (const mask of ['0077', '0000', '0757']) {
      const through = ['sh', '-c', `umask ${mask}; exec "$@"`, 'sh']
      const { isWarm, stdout } = await pool.runWarm(sh('umask'), { through })
      expect([isWarm, stdout.toString()]).toEqual([true, `${mask}\n`])
    }
  })

  test('is not used where a repository has come since it was made, which it would not cover', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    await mkdir(join(cwd, 'a/b'), { recursive: true })
    const pool = await startPool({ cwd, options: ['--rw', '.'] })
    await pool.run(sh('true'))
    await pool.whenReady()
    await mkdir(join(cwd, 'a/b/.git/hooks'), { recursive: true })
    const attack = await pool.run(sh('echo evil >a/b/.git/hooks/pre-commit; true'))
    expect(attack.status).toBe(0)
    expect(await readdir(join(cwd, 'a/b/.git/hooks'))).toEqual([])
  })

  test('ends within moments when its client is killed', async () => {
    const pool = await startPool()
    await pool.run(['sleep', '0.01'])
    await pool.whenReady()
    const abort = new AbortController()
    const mark = `31.${process.pid}`
    const isThere = async () => processesWith(`sleep\0${mark}`).length > 0
    const run = pool.run(['sleep', mark], { abort: abort.signal, stopSignal: 'SIGKILL' }).catch(() => undefined)
    await until(async () => (await isThere()) || undefined, 'the command')
    abort.abort()
    await run
    await until(async () => !(await isThere()) || undefined, 'its end')
  })

  test('passes signals on', async () => {
    const pool = await startPool({ options: ['--rw', '.'] })
    await pool.run(sh('true'))
    const armed = join(pool.cwd, 'armed')
    const script = sh('trap "rm armed; echo heard; exit 9" TERM; : >armed; sleep 20 & wait')
    const attempt = async () => {
      await pool.whenReady(1)
      const abort = new AbortController()
      const run = pool.run(script, { abort: abort.signal })
      await until(async () => existsSync(armed) || undefined, 'the trap')
      abort.abort()
      return run
    }
    let result = await attempt()
    // Mounts that appear on this machine empty the pool.
    for (let left = 5; left > 0 && !result.isWarm; left -= 1) result = await attempt()
    expect(result).toMatchObject({ isWarm: true, stdout: Buffer.from('heard\n') })
  })
})
