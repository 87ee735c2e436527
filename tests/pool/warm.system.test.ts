/** The warm way: the same results as the cold one, the same walls, and nothing left of it. */
import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { NO_INPUT } from '../../src/backends/input.ts'
import { WarmSandbox } from '../../src/pool/warm-sandbox.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { descendantsOf, isAlive, sandboxesOf, startPool, type TestPool, until, WHICH_SANDBOX } from './pool.ts'

/** A server at a path that everybody can reach; it hangs up at the first byte. */
async function listenAs(path: string) {
  const seen = { connections: 0, bytes: 0 }
  const server = createServer((socket) => {
    seen.connections += 1
    socket.on('error', () => socket.destroy())
    socket.on('data', (data) => {
      seen.bytes += data.length
      socket.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen({ path, writableAll: true, readableAll: true }, resolve))
  return { connections: () => seen.connections, bytes: () => seen.bytes, close: () => void server.close() }
}

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
  { title: 'success', command: ['true'] },
  { title: 'an exit code', command: sh('exit 42') },
  { title: 'an exit code like that of a signal', command: sh('exit 137') },
  { title: 'a signal', command: sh('kill -TERM $$') },
  { title: 'SIGKILL', command: sh('kill -KILL $$') },
  { title: 'a command that is not there', command: ['no-such-command'] },
  { title: 'a file that cannot be executed', command: ['/usr/lib/os-release'] },
  { title: 'output on both streams', command: sh('echo out; echo err >&2') },
  { title: 'eight megabytes', command: sh('head -c 8388608 /dev/zero | tr "\\0" x') },
  { title: 'stdin', command: ['cat'], stdin: 'one\ntwo\n' },
  { title: 'a megabyte of stdin', command: ['sha256sum'], stdin: Buffer.alloc(1 << 20, 3) },
  { title: 'stdin that is not read', command: ['true'], stdin: Buffer.alloc(1 << 20, 3) },
  { title: 'closed stdout', command: sh('exec >&-; exit 5') },
  { title: 'odd arguments', command: ['printf', '%s|', '', '--bind', 'a\nb', 'x'.repeat(100_000)] },
  { title: 'a deadline', command: sh('echo begun; exec sleep 30'), options: ['--timeout', '1s'] },
  {
    title: 'a deadline with SIGTERM ignored',
    command: sh('trap "" TERM; exec sleep 30'),
    options: ['--timeout', '1s'],
  },
  { title: 'orphans', command: sh('(sleep 30 &) ; echo done') },
  { title: 'the directory', command: ['pwd'] },
  { title: 'the environment', command: sh('env | grep -v SHLVL | sort'), env: { LANG: 'de_DE.UTF-8', SECRET: 'x' } },
  {
    title: 'a variable that is inherited',
    command: sh('echo $TOKEN'),
    options: ['--env', 'TOKEN'],
    env: { TOKEN: 'a b' },
  },
  { title: 'the processes inside', command: sh('ls /proc | grep -c "^[0-9]"') },
  { title: 'open descriptors', command: sh('ls /proc/self/fd | tr "\\n" " "') },
  { title: 'capabilities, privileges and filter', command: sh('grep -E "Cap|NoNewPrivs|Seccomp:" /proc/self/status') },
  { title: 'the limits', command: sh('ulimit -a') },
  { title: 'the mask', command: sh('umask') },
  { title: 'JSON', command: sh('cat; echo err >&2; exit 3'), stdin: 'in', env: JSON_ASKED },
  { title: 'JSON of a mebibyte', command: sh('head -c 1048576 /dev/zero | tr "\\0" x'), env: JSON_ASKED },
  { title: 'JSON of eight megabytes', command: sh('head -c 8388608 /dev/zero | tr "\\0" x'), env: JSON_ASKED },
  { title: 'JSON of bytes that are no text', command: ['printf', '\\377'], env: JSON_ASKED },
  { title: 'JSON of a signal', command: sh('echo so far; kill -KILL $$'), env: JSON_ASKED },
  { title: 'JSON of a command that is not there', command: ['no-such-command'], env: JSON_ASKED },
  {
    title: 'JSON of a deadline',
    command: sh('echo begun; exec sleep 30'),
    options: ['--timeout', '1s'],
    env: JSON_ASKED,
  },
]

const optionsOf = ({ options = [] }: Transcript): string => options.join(' ')
const GROUPS = [...new Set(TRANSCRIPTS.map(optionsOf))].map((options) => ({
  options: options === '' ? [] : options.split(' '),
  transcripts: TRANSCRIPTS.filter((transcript) => optionsOf(transcript) === options),
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

  test('sees what a profile on disk says now', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const profile = join(cwd, 'own.yaml')
    await writeFile(profile, 'sandbox:\n  env:\n    inherit: [WORD]\n')
    await sleep(100) // A file that was changed a moment ago is not trusted to stay as it was read.
    const pool = await startPool({ cwd, options: ['--profile', profile] })
    const more = { env: { WORD: 'something' } }
    const script = `${WHICH_SANDBOX}; printenv WORD`
    const look = async () => {
      const [sandbox = '', word] = (await pool.run(['sh', '-c', script], more)).stdout.toString().split('\n')
      return { sandbox, word }
    }
    await look() // Leaves its plan.
    // Tried again when the pool had nothing, like runWarm.
    for (let left = 5, isWarm = false; !isWarm; left -= 1) {
      await pool.whenReady()
      const before = await sandboxesOf(pool.keeper.pid)
      const { sandbox, word } = await look()
      isWarm = before.includes(sandbox)
      expect([word, left]).toEqual(['something', expect.toSatisfy((count: number) => count > 0)])
    }
    await pool.whenReady()
    const ready = await sandboxesOf(pool.keeper.pid)
    await writeFile(profile, 'sandbox:\n  env:\n    inherit: []\n')
    for (const wait of [0, 100, 0]) {
      await sleep(wait)
      const { sandbox, word } = await look()
      expect([ready.includes(sandbox), word]).toEqual([false, ''])
    }
  })

  test('is not had with --pool off', async () => {
    const pool = await startPool()
    await pool.run(['true'], { env: { LLM_DO_EXEC_POOL: 'off' } })
    expect(await pool.run(['true'], { env: { LLM_DO_EXEC_POOL: 'off' } })).toMatchObject({ status: 0, isWarm: false })
  })

  test('serves another program with the same plan', async () => {
    const pool = await startPool()
    await pool.run(['echo', 'once'])
    await pool.whenReady()
    expect(await pool.runWarm(['echo', 'twice'])).toMatchObject({ isWarm: true, stdout: Buffer.from('twice\n') })
  })

  /** Each is another process than the keeper would start: the sandbox is claimed, refuses, and the run takes the cold way. */
  test.each([
    {
      title: 'other limits',
      through: ['sh', '-c', 'ulimit -n 77; exec "$@"', 'sh'],
      script: 'ulimit -Hn',
      says: '77\n',
    },
    { title: 'another nice value', through: ['nice', '-n', '5'], script: 'nice', says: '5\n' },
    { title: 'fewer processors', through: ['taskset', '-c', '0'], script: 'nproc', says: '1\n' },
  ])('is refused to a caller with $title', async ({ through, script, says }) => {
    const pool = await startPool()
    await pool.run(sh(script))
    const same = await pool.runWarm(sh(script))
    expect(same).toMatchObject({ isWarm: true, status: 0 })
    await pool.whenReady()
    const { isWarm: isServedWarm, status, stdout } = await pool.run(sh(script), { through })
    expect({ isServedWarm, status, stdout: stdout.toString() }).toEqual({ isServedWarm: true, status: 0, stdout: says })
    if (script !== 'nproc' || availableParallelism() > 1) expect(same.stdout.toString()).not.toBe(says)
  })

  test('gives each command the mask of its own caller, under the narrowest filter, too', async () => {
    for (const options of [[], ['--seccomp', 'strict']]) {
      const pool = await startPool({ options })
      await pool.run(sh('umask'))
      for (const mask of ['0077', '0000', '0022', '0757']) {
        await pool.whenReady()
        const { isWarm, stdout } = await pool.runWarm(sh('umask'), {
          through: ['sh', '-c', `umask ${mask}; exec "$@"`, 'sh'],
        })
        expect([isWarm, stdout.toString()]).toEqual([true, `${mask}\n`])
      }
      await pool.stop()
    }
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
    const isThere = async () => (await commandLines()).includes(`sleep ${mark}`)
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
    // What others mount on this machine empties the pool.
    for (let left = 5; left > 0 && !result.isWarm; left -= 1) result = await attempt()
    expect(result).toMatchObject({ isWarm: true, stdout: Buffer.from('heard\n') })
  })
})

async function commandLines(): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.map((line) => line.split('\0').join(' ').trim())
}

describeWith(['bwrap', 'userns'], 'a pool', () => {
  test('whose keeper was killed costs a cold start, and leaves nothing', async () => {
    const pool = await startPool()
    await pool.run(['true'])
    await pool.whenReady()
    process.kill(pool.keeper.pid, 'SIGKILL')
    await until(async () => ((await pool.names()).length === 0 ? true : undefined), 'the end of its sandboxes')
    expect(await pool.run(['true'])).toMatchObject({ status: 0, isWarm: false })
  })

  test('whose keeper was killed leaves a directory, which prune takes away, and leaves others alone', async () => {
    const [dead, alive] = [await startPool(), await startPool()]
    await alive.whenReady()
    process.kill(dead.keeper.pid, 'SIGKILL')
    await until(async () => ((await dead.names()).length === 0 ? true : undefined), 'the end of its sandboxes')
    expect(existsSync(dead.directory)).toBe(true)
    const { status, stdout } = await runCli(['prune'], { ...dead.call, program: 'llm-do' })
    expect([status, stdout.toString()]).toEqual([0, expect.stringMatching(/^[1-9]\d* removed\n$/)])
    expect(existsSync(dead.directory)).toBe(false)
    expect(await alive.whenReady()).toHaveLength(2)
  })

  test('runs a command at most once, also when its launcher is killed while it runs', async () => {
    const pool = await startPool({ size: 1, options: ['--rw', '.'] })
    await pool.run(sh('true'))
    const [name = ''] = await pool.whenReady()
    const launch = await launcherOf(pool, name.slice(1))
    const count = join(pool.cwd, 'count')
    const run = pool.run(sh('echo x >>count; sleep 2; exit 7'))
    // The shell makes the file a moment before it writes to it.
    await until(async () => (existsSync(count) && statSync(count).size > 0) || undefined, 'the command')
    process.kill(launch, 'SIGKILL')
    const { status } = await run
    expect(await readFile(count, 'utf8')).toBe('x\n')
    expect(status).not.toBe(7)
  })

  test('counts no sandbox that was killed', async () => {
    const pool = await startPool({ size: 2 })
    const [name = ''] = await pool.whenReady()
    const launch = await launcherOf(pool, name.slice(1))
    process.kill(launch, 'SIGKILL')
    await until(async () => ((await pool.names()).includes(name) ? undefined : true), 'the end of its socket')
    expect(await pool.whenReady()).toHaveLength(2)
  })

  test('costs a cold start when what waited for the command has just been killed', async () => {
    const pool = await startPool({ size: 1 })
    await pool.run(sh('exit 3'))
    const [name = ''] = await pool.whenReady()
    const launch = await launcherOf(pool, name.slice(1))
    const [init = 0, waiting = 0] = (await descendantsOf(launch)).slice(-2)
    process.kill(init, 'SIGSTOP') // So that it cannot report.
    process.kill(waiting, 'SIGKILL')
    const run = pool.run(sh('exit 3'))
    await until(async () => ((await pool.names()).includes(name) ? undefined : true), 'the claim')
    await sleep(100)
    if (isAlive(init)) process.kill(init, 'SIGCONT') // Launch has seen it by itself, or is told now.
    expect(await run).toMatchObject({ status: 3, stderr: Buffer.from('') })
  })

  test.each<[string, (of: { waiting: number; init: number; launch: number }) => number]>([
    ['what waited for the command', ({ waiting }) => waiting],
    ['its init', ({ init }) => init],
    ['its launcher', ({ launch }) => launch],
  ])('costs a cold start when %s is killed before the command starts', async (_, victim) => {
    const pool = await startPool({ size: 1 })
    await pool.run(sh('exit 3'))
    const [name = ''] = await pool.whenReady()
    const launch = await launcherOf(pool, name.slice(1))
    const [init = 0, waiting = 0] = (await descendantsOf(launch)).slice(-2)
    process.kill(waiting, 'SIGSTOP') // So that the command is taken, and the word to start is given.
    const run = pool.run(sh('exit 3'))
    await until(async () => ((await pool.names()).includes(name) ? undefined : true), 'the claim')
    await sleep(100)
    process.kill(victim({ waiting, init, launch }), 'SIGKILL')
    expect(await run).toMatchObject({ status: 3, stderr: Buffer.from('') })
  })

  test('cancels a command that has not started yet, and starts it nowhere else', async () => {
    const pool = await startPool({ size: 1 })
    const command = sh('echo started; exit 3')
    await pool.run(command)
    const [name = ''] = await pool.whenReady()
    const [waiting = 0] = (await descendantsOf(await launcherOf(pool, name.slice(1)))).slice(-1)
    process.kill(waiting, 'SIGSTOP')
    const abort = new AbortController()
    const run = pool.run(command, { abort: abort.signal })
    await until(async () => ((await pool.names()).includes(name) ? undefined : true), 'the claim')
    await sleep(100)
    abort.abort()
    expect(await run).toMatchObject({ isWarm: true, status: 130, stdout: Buffer.from('') })
  })

  test('that is used up costs a cold start', async () => {
    const pool = await startPool({ size: 1 })
    await pool.run(sh('sleep 0.2; echo done'))
    await pool.whenReady()
    const runs = await Promise.all(Array.from({ length: 6 }, () => pool.run(sh('sleep 0.2; echo done'))))
    expect(runs.map(({ status, stdout }) => [status, stdout.toString()])).toEqual(runs.map(() => [0, 'done\n']))
  })

  test('is filled up again', async () => {
    const pool = await startPool({ size: 2 })
    await pool.run(['true'])
    const before = await pool.whenReady()
    await pool.run(['true'])
    const after = await pool.whenReady()
    expect(after.filter((name) => !before.includes(name)).length).toBeGreaterThan(0)
  })

  test('ends by itself when it is idle', async () => {
    const pool = await startPool({ options: ['--idle-timeout', '1s'] })
    await until(
      async () => ((await readdir(pool.directory).catch(() => undefined)) === undefined ? true : undefined),
      'its end',
    )
  })

  testWith(['root', 'plain-user'], 'of one user is never used by another', async () => {
    const mine = await startPool({ as: 'root' })
    const theirs = await startPool({ as: 'plain' })
    await Promise.all([mine.whenReady(), theirs.whenReady()])
    const [a, b] = [await mine.run(['id', '-u']), await theirs.run(['id', '-u'])]
    expect([a.status, b.status]).toEqual([0, 0])
    // Neither can even look at the other's sockets.
    expect(() =>
      execFileSync('setpriv', ['--reuid', '65533', '--regid', '65533', '--clear-groups', 'ls', mine.directory], {
        stdio: 'pipe',
      }),
    ).toThrow(/Permission denied/)
  })

  testWith(
    ['root', 'plain-user'],
    'of one user does not talk to another who reaches its socket, be it root',
    async () => {
      const userSeen = async (pool: TestPool): Promise<string | undefined> => {
        const [name = ''] = await pool.whenReady()
        const warm = await WarmSandbox.open(join(pool.directory, name), () => undefined)
        const outcome = await warm?.run({
          command: ['id', '-u'],
          env: { PATH: '/usr/bin:/bin' },
          stdin: NO_INPUT,
          outputCap: null,
        })
        return outcome === undefined ? undefined : Buffer.from(outcome.stdout.head).toString()
      }
      expect(await userSeen(await startPool({ as: 'plain' }))).toBeUndefined()
      // What is refused there is served to its own user.
      expect(await userSeen(await startPool({ as: 'root' }))).toMatch(/^\d+\n$/)
    },
  )

  testWith(
    ['root', 'plain-user'],
    'of one user gets nothing to read where another one, be it root, sits in the place of a sandbox',
    async () => {
      const sent = async (as: 'plain' | 'root') => {
        const pool = await startPool({ as, size: 1 })
        await pool.runWarm(['id', '-u'])
        const [name = ''] = await pool.whenReady()
        process.kill(pool.keeper.pid, 'SIGSTOP')
        await rename(join(pool.directory, name), join(pool.directory, `away-${name}`))
        const impostor = await listenAs(join(pool.directory, name))
        const { status, stdout } = await runCli(['--', 'id', '-u'], { ...pool.call, program: 'llm-do-exec' })
        impostor.close()
        process.kill(pool.keeper.pid, 'SIGCONT')
        return { status, userSeen: stdout.toString(), asked: impostor.connections(), bytes: impostor.bytes() }
      }
      expect(await sent('plain')).toEqual({ status: 0, userSeen: '1000\n', asked: 1, bytes: 0 })
      // The control: to its own user's listener the run sends all it knows.
      expect((await sent('root')).bytes).toBeGreaterThan(100)
    },
  )

  test('keeps a sandbox in at most so much memory', async () => {
    const pool = await startPool({ size: 4 })
    await pool.whenReady()
    const kilobytes = await memoryOf(pool.keeper.pid)
    expect(kilobytes / 4).toBeLessThan(600)
  })

  testWith('root', 'gives each an id on the host that no other process has as long as it is there', async () => {
    const pool = await startPool({ size: 2, options: ['--engine', 'unshare'] })
    const launches = await Promise.all((await pool.whenReady()).map((name) => launcherOf(pool, name.slice(1))))
    const ids = await Promise.all(launches.map(async (launch) => idsOf(await descendantsOf(launch))))
    // The stager, whose pid would do for bubblewrap, is gone by now; launch is not.
    expect(ids).toEqual(launches.map((launch) => [0x70000000 + launch]))
  })

  test('that waits is never scheduled', async () => {
    const pool = await startPool({ size: 2, options: ['--memory', '64M', '--timeout', '10s'] })
    await pool.whenReady()
    const waiting = await descendantsOf(pool.keeper.pid)
    // What others mount meanwhile wakes them for a moment.
    const quiet = await until(async () => {
      const before = await switchesOf(waiting)
      await sleep(500)
      return (await switchesOf(waiting)) === before ? true : undefined
    }, 'half a second without a switch')
    expect(quiet).toBe(true)
  })
})

/** The process that holds a sandbox ready. */
async function launcherOf({ keeper }: TestPool, id: string): Promise<number> {
  const children = await readFile(`/proc/${keeper.pid}/task/${keeper.pid}/children`, 'utf8')
  for (const pid of children.split(' ').filter(Boolean)) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
    if (words.includes(id)) return Number(pid)
  }
  throw new Error(`no process holds ${id}`)
}

/** The ids that processes have here, each once. */
async function idsOf(pids: readonly number[]): Promise<readonly number[]> {
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')))
  return [...new Set(texts.map((text) => Number(/^Uid:\s+(\d+)/m.exec(text)?.[1] ?? -1)))]
}

/** How often they were given a processor. */
async function switchesOf(pids: readonly number[]): Promise<number> {
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')))
  return texts.reduce((sum, text) => sum + Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(text)?.[1] ?? 0), 0)
}

/** Proportional set size of all that a keeper has started, in KiB. */
async function memoryOf(keeper: number): Promise<number> {
  const sizes = (await descendantsOf(keeper)).map(async (pid) => {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')
    return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0)
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}
