/** How a run ends: by signals to the runner, by the clock, by its own output; and that it never waits in vain. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { until } from '../pool/pool.ts'
import { cliWords, runCli } from '../support/cli.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { callers } from '../support/users.ts'
import { directoryWith, runForText } from './directory.ts'

interface Running {
  /** Where it was started. */
  readonly cwd: string
  /** Resolves when the command has said that it is there. */
  readonly ready: Promise<unknown>
  readonly signal: (name: NodeJS.Signals) => void
  readonly end: Promise<{
    readonly status: number | null
    readonly killedBy: string | null
    readonly out: string
    readonly err: string
  }>
}

/** Starts a script that prints `ready` when it is. */
async function start(script: string, options: readonly string[] = []): Promise<Running> {
  const [file = '', ...words] = cliWords([...options, '-c', script])
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: await directoryWith() }
  const cwd = await directoryWith()
  const child = spawn(file, words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [out, err]: [Buffer[], Buffer[]] = [[], []]
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  return {
    cwd,
    ready: once(child.stdout, 'data'),
    signal: (name) => void child.kill(name),
    end: once(child, 'close').then(([status, killedBy]) => ({
      status,
      killedBy,
      out: Buffer.concat(out).toString(),
      err: Buffer.concat(err).toString(),
    })),
  }
}

/** Everything that tries to stay: a daemon of its own session, a stopped one, one that ignores every signal. */
const STAYERS = (mark: string) =>
  `for i in 1 2 3; do (setsid sh -c 'trap "" HUP INT TERM; sleep 300' ${mark} &) ; done; sh -c 'kill -STOP $$' ${mark} & echo ready; sleep 300`

describeWith(['bwrap', 'userns'], 'a signal to the runner', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s cancels the run, and nothing is left of it', async (name) => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const { ready, signal, end } = await start(STAYERS(mark))
    await ready
    signal(name)
    expect(await end).toMatchObject({
      status: 130,
      killedBy: null,
      err: expect.stringMatching(`^llm-do: cancelled by ${name}(; \\d+ process(es)? killed)?\n$`),
    })
    await expectNothingLeft({ before, mark })
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s reaches a command that wants to tidy up', async (name) => {
    const trap = `trap 'echo tidy; exit 3' ${name.slice(3)}; echo ready; while :; do sleep 0.1; done`
    const { ready, signal, end } = await start(trap)
    await ready
    signal(name)
    expect(await end).toMatchObject({ out: 'ready\ntidy\n', status: 130 })
  })

  test('that cannot be caught leaves nothing either', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const { ready, signal, end } = await start(STAYERS(mark))
    await ready
    signal('SIGKILL')
    expect(await end).toMatchObject({ killedBy: 'SIGKILL' })
    await expectNothingLeft({ before, mark })
  })

  test('gives one JSON result when JSON was asked for', async () => {
    // Captured: nothing is printed before the end, so it says by a file that it is ready.
    const script = 'echo ready; echo more; : >ready; cat /dev/zero > /dev/null'
    const { cwd, signal, end } = await start(script, ['--json', '--rw', '.'])
    await until(async () => existsSync(join(cwd, 'ready')) || undefined, 'the command')
    signal('SIGTERM')
    const { out, status } = await end
    expect(status).toBe(130)
    expect(JSON.parse(out)).toMatchObject({ ok: false, reason: 'cancelled', exitCode: null, stdout: 'ready\nmore\n' })
  })
})

describeWith(['bwrap', 'userns'], 'the deadline', () => {
  test('ends the whole tree and keeps what was printed', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const { status, out, err } = await runForText(['--timeout', '3s', '-c', `echo early; ${STAYERS(mark)}`])
    expect({ status, out }).toEqual({ status: 124, out: 'early\nready\n' })
    expect(err).toMatch(/llm-do: stopped after 3s \(resources\.timeout, --timeout\)/)
    await expectNothingLeft({ before, mark })
  })

  test.each(['unshare', 'bwrap'])(
    'kills a command that ignores SIGTERM, and the result says so (%s)',
    async (engine) => {
      // The shell has to be there before the deadline, on a busy machine too.
      const script = 'trap "" TERM; while :; do sleep 1; done'
      const words = ['--json', '--engine', engine, '--timeout', '3s', '-c', script]
      const { status, out } = await runForText(words)
      const end = { ok: false, reason: 'timeout', exitCode: null, signal: 'SIGKILL' }
      expect({ status, ...JSON.parse(out) }).toMatchObject({ status: 124, ...end })
    },
  )

  test('is not held up by an orphan that keeps stdout open, nor by a reader that stopped reading', async () => {
    const [file = '', ...words] = cliWords(['--timeout', '500ms', '--', 'yes'])
    const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: await directoryWith() }
    const child = spawn(file, words, { cwd: await directoryWith(), env, stdio: ['ignore', 'pipe', 'ignore'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    // child.stdout is not read.
    expect(await once(child, 'exit')).toEqual([124, null])
  })

  test('an orphan that holds stdout does not delay the result', async () => {
    const { status, stdout } = await runCli(['--json', '-c', 'echo done; (setsid sleep 300 &)'])
    expect({ status, stdout: JSON.parse(stdout.toString()) }).toMatchObject({
      status: 0,
      stdout: { ok: true, stdout: 'done\n' },
    })
  })
})

describeWith(['userns'], 'the limit of processor time', () => {
  const users = callers()

  test.each(users)('ends a command of %s that uses more, its children counted, and no other', async (as) => {
    const spin = 'i=0; while :; do i=$((i + 1)); done'
    const { status, out } = await runForText(['--json', '--cpu-time', '300ms', '-c', `(${spin}) & ${spin}`], { as })
    expect({ status, ...JSON.parse(out) }).toMatchObject({
      status: 137,
      reason: 'cpu-time',
      // On a busy machine the tenth of a second after SIGTERM may be over first.
      signal: expect.stringMatching(/^SIG(TERM|KILL)$/),
      ok: false,
    })
    expect(await runForText(['--cpu-time', '20s', '-c', 'sleep 1; exit 3'], { as })).toMatchObject({ status: 3 })
  })
})

describeWith(['bwrap', 'userns'], 'the output cap', () => {
  test('keeps head and tail of each stream and counts the rest', async () => {
    const script = 'i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done; seq 5000 >&2'
    const { status, out } = await runForText(['--json', '--output', '1k', '-c', script])
    const result = JSON.parse(out) as { stdout: string; stderr: string; truncated: { stdout: number; stderr: number } }
    expect(status).toBe(0)
    expect(result.stdout).toMatch(/^line 0\n.*line 19999\n$/s)
    expect(result.stderr).toMatch(/^1\n2\n.*5000\n$/s)
    expect(Object.values(result.truncated).map((bytes) => bytes > 20_000)).toEqual([true, true])
  })
})

describeWith(['bwrap', 'userns'], 'stdin', () => {
  test('that is closed is an end of file', async () => {
    const [file = '', ...words] = cliWords(['-c', 'cat; echo $?'])
    const script = '"$0" "$@" <&-'
    const home = await directoryWith()
    const child = spawn('sh', ['-c', script, file, ...words], {
      cwd: home,
      env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: home },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    await once(child, 'close')
    expect(Buffer.concat(chunks).toString()).toMatch(/^[01]\n$/)
  })

  test('without a writer does not keep a command that ignores it', async () => {
    const [file = '', ...words] = cliWords(['--', 'true'])
    const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: await directoryWith() }
    const child = spawn(file, words, { cwd: await directoryWith(), env, stdio: ['pipe', 'ignore', 'ignore'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  test('that the command does not read ends with it, whichever process writes', async () => {
    const home = await directoryWith()
    const script = 'yes | "$0" "$@"; echo $?'
    const child = spawn('bash', ['-c', script, ...cliWords(['--', 'true'])], {
      cwd: home,
      env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: home },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    await once(child, 'close')
    expect(Buffer.concat(chunks).toString()).toBe('0\n')
  })

  test('is a file, too', async () => {
    const directory = await directoryWith({ data: 'from a file\n' })
    const fd = openSync(`${directory}/data`, 'r')
    const [file = '', ...words] = cliWords(['--', 'cat'])
    const child = spawn(file, words, {
      cwd: directory,
      env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: directory },
      stdio: [fd, 'pipe', 'ignore'],
    })
    closeSync(fd)
    onTestFinished(() => void child.kill('SIGKILL'))
    const [chunk] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer]
    expect(chunk.toString()).toBe('from a file\n')
  })
})

describeWith(['bwrap', 'userns'], 'JSON', () => {
  test('tells all about a run in the native form', async () => {
    const { out, err, status } = await runForText(['--json', '-c', 'echo out; echo err >&2; exit 4'])
    expect({ err, status, lines: out.split('\n').length }).toEqual({ err: '', status: 4, lines: 2 })
    expect(JSON.parse(out)).toMatchObject({
      schema: 1,
      ok: false,
      exitCode: 4,
      signal: null,
      reason: 'exit',
      stdout: 'out\n',
      stderr: 'err\n',
      backend: 'namespace',
      isolation: { fs: 'empty-root', pid: true, net: 'none', ipc: true, user: true, seccomp: 'default' },
    })
  })

  test('has a form for shell tools and one for tasks', async () => {
    const script = 'echo out; echo err >&2; exit 4'
    expect(JSON.parse((await runForText(['--json=shell', '-c', script])).out)).toEqual({
      stdout: 'out\n',
      stderr: 'err\n',
      exit_code: 4,
      truncated: false,
    })
    expect(JSON.parse((await runForText(['--json=task', '-c', script])).out)).toMatchObject({
      success: false,
      stdout: 'out\n',
      stderr: 'err\n',
      exitCode: 4,
      timedOut: false,
    })
  })

  test('tells exit 137 from a kill', async () => {
    const of = async (script: string) => JSON.parse((await runForText(['--json', '-c', script])).out) as unknown
    expect(await of('exit 137')).toMatchObject({ exitCode: 137, signal: null, reason: 'exit' })
    expect(await of('kill -9 $$')).toMatchObject({ exitCode: null, signal: 'SIGKILL', reason: 'signal' })
  })

  test('cannot be forged by what a command prints', async () => {
    const { out } = await runForText(['--json', '--', 'printf', '%s\\n', '"}', '{"schema":1,"ok":false}', '\u001b[2J'])
    expect(out.split('\n').filter(Boolean)).toHaveLength(1)
    expect(JSON.parse(out)).toMatchObject({ ok: true, stdout: '"}\n{"schema":1,"ok":false}\n\u001b[2J\n' })
  })
})

describeWith(['userns'], 'a program that runs out of processes', () => {
  /** Starts sleepers until it cannot, or until there are as many as it wants; the shell is one process more. */
  const sleepers = (count: number) => `for i in $(seq ${count}); do sleep 60 & done; exit 3`
  const endOf = async (script: string) => {
    const { out } = await runForText(['--json', '--pids', '8', '-c', script], { cwd: await directoryWith() })
    return JSON.parse(out) as Result
  }
  const hintsAtPids = ({ hints }: Result) => hints.some((hint) => hint.includes('raise --pids or resources.pids'))

  test('is told so: as the reason where the kernel counts refusals, else as a hint', async () => {
    const result = await endOf(sleepers(20))
    expect(result.reason).toBe(result.limits.pids?.by === 'cgroup2' ? 'pids' : 'exit')
    expect(hintsAtPids(result)).toBe(true)
    expect(result.ok).toBe(false)
  })

  test('is told nothing of the kind while it had some left', async () => {
    const result = await endOf(sleepers(3))
    expect({ reason: result.reason, exitCode: result.exitCode, said: hintsAtPids(result) }).toEqual({
      reason: 'exit',
      exitCode: 3,
      said: false,
    })
  })
})
