/** Pools: what becomes of a command when a part of one is killed, who may use one, and when it ends. */
import { existsSync, statSync } from 'node:fs'
import { readdir, readFile, readlink, rename } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { NO_INPUT } from '../../src/backends/input.ts'
import { commandBlock } from '../../src/backends/namespace/frames.ts'
import { FramedLine, FramedRun } from '../../src/backends/namespace/run-protocol.ts'
import { FRAME } from '../../src/contract.ts'
import { runCli } from '../support/cli.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { descendantsOf } from '../support/processes.ts'
import { startPool, type TestPool, until } from './pool.ts'

const sh = (script: string): readonly string[] => ['sh', '-c', script]

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

describeWith(['bwrap', 'userns'], 'a pool', () => {
  test('whose keeper was killed costs a cold start, and leaves a directory that prune removes', async () => {
    const [dead, alive] = [await startPool(), await startPool()]
    await dead.run(['true'])
    await Promise.all([dead.whenReady(), alive.whenReady()])
    process.kill(dead.keeper.pid, 'SIGKILL')
    await until(async () => ((await dead.names()).length === 0 ? true : undefined), 'the end of its sandboxes')
    expect(await dead.run(['true'])).toMatchObject({ status: 0, isWarm: false })
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

  test('holds nothing open of those who have started it', async () => {
    // Node passes on what is above the numbers that it uses itself.
    const inherits = ['bash', '-c', 'exec 100</etc/hostname; exec "$@"', 'bash']
    const { keeper } = await startPool({ size: 1, through: inherits })
    const descriptors = await readdir(`/proc/${keeper.pid}/fd`)
    const places = await Promise.all(descriptors.map((fd) => readlink(`/proc/${keeper.pid}/fd/${fd}`).catch(() => '')))
    expect(places).toContain('/dev/null')
    expect(places).not.toContain('/etc/hostname')
  })

  test('counts no sandbox that was killed', async () => {
    const pool = await startPool({ size: 2 })
    const [name = ''] = await pool.whenReady()
    const launch = await launcherOf(pool, name.slice(1))
    process.kill(launch, 'SIGKILL')
    await until(async () => ((await pool.names()).includes(name) ? undefined : true), 'the end of its socket')
    expect(await pool.whenReady()).toHaveLength(2)
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
    const [init = 0, waiting = 0] = descendantsOf(launch).slice(-2)
    process.kill(waiting, 'SIGSTOP') // So that the command is taken, and the word to start is given.
    const run = pool.run(sh('exit 3'))
    await whenTaken(pool, name)
    process.kill(victim({ waiting, init, launch }), 'SIGKILL')
    expect(await run).toMatchObject({ status: 3, stderr: Buffer.from('') })
  })

  test('cancels a command that has not started yet, and starts it nowhere else', async () => {
    const pool = await startPool({ size: 1 })
    const command = sh('echo started; exit 3')
    await pool.run(command)
    const [name = ''] = await pool.whenReady()
    const [waiting = 0] = descendantsOf(await launcherOf(pool, name.slice(1))).slice(-1)
    process.kill(waiting, 'SIGSTOP')
    const abort = new AbortController()
    const run = pool.run(command, { abort: abort.signal })
    await whenTaken(pool, name)
    abort.abort()
    expect(await run).toMatchObject({ isWarm: true, signal: 'SIGTERM', stdout: Buffer.from('') })
  })

  test('ends by itself when it is idle', async () => {
    const pool = await startPool({ options: ['--idle-timeout', '1s'] })
    await until(
      async () => ((await readdir(pool.directory).catch(() => undefined)) === undefined ? true : undefined),
      'its end',
    )
  })

  testWith(
    ['root', 'plain-user'],
    'of one user does not talk to another who reaches its socket, be it root',
    async () => {
      const userSeen = async (pool: TestPool): Promise<string | undefined> => {
        const [name = ''] = await pool.whenReady()
        const line = FramedLine.connect(join(pool.directory, name))
        const run = new FramedRun(line, { stdin: NO_INPUT, outputCap: null, isTaken: false })
        run.begin([[FRAME.run, commandBlock({ command: ['id', '-u'], env: { PATH: '/usr/bin:/bin' }, umask: 0o022 })]])
        const { taken, stdout } = await run.end()
        return taken ? Buffer.from(stdout.head).toString() : undefined
      }
      const options = ['--engine', 'bwrap'] // Such a sandbox takes a command without directories.
      expect(await userSeen(await startPool({ as: 'plain', options }))).toBeUndefined()
      // A plan that is refused there is served to its own user.
      expect(await userSeen(await startPool({ as: 'root', options }))).toMatch(/^\d+\n$/)
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
        const { status, stdout } = await runCli([...pool.options, '--', 'id', '-u'], {
          ...pool.call,
          program: 'llm-do-exec',
        })
        impostor.close()
        process.kill(pool.keeper.pid, 'SIGCONT')
        return { status, userSeen: stdout.toString(), asked: impostor.connections(), bytes: impostor.bytes() }
      }
      expect(await sent('plain')).toEqual({ status: 0, userSeen: '1000\n', asked: 1, bytes: 0 })
      // The control: to its own user's listener the run sends all it knows.
      expect((await sent('root')).bytes).toBeGreaterThan(100)
    },
  )

  testWith('root', 'gives each an id on the host that no other process has as long as it is there', async () => {
    const pool = await startPool({ size: 2, options: ['--engine', 'unshare'] })
    const launches = await Promise.all((await pool.whenReady()).map((name) => launcherOf(pool, name.slice(1))))
    const ids = await Promise.all(launches.map(async (launch) => idsOf(descendantsOf(launch))))
    // The stager stays root, outside, until a command comes.
    expect(ids.map((all) => all.filter((id) => id !== 0))).toEqual(launches.map((launch) => [0x70000000 + launch]))
  })
})

/** The process that holds a sandbox ready, by the record of its run. */
async function launcherOf({ directory }: TestPool, id: string): Promise<number> {
  const record = (await readFile(join(directory, '../../runs', id), 'latin1')).split('\0')
  return Number(record[record.indexOf('pid') + 1])
}

/** The record of a sandbox says that it is warm until it has taken its command. */
const whenTaken = ({ directory }: TestPool, name: string) =>
  until(async () => {
    const record = await readFile(join(directory, '../../runs', name.slice(1)), 'latin1')
    return record.split('\0').includes('warm') ? undefined : true
  }, 'a command that is taken')

/** The ids that processes have here, each once. */
async function idsOf(pids: readonly number[]): Promise<readonly number[]> {
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')))
  return [...new Set(texts.map((text) => Number(/^Uid:\s+(\d+)/m.exec(text)?.[1] ?? -1)))]
}
