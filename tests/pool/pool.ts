/** Pools for tests: a new place, kept ready, and whether a run took one of its sandboxes. */
import { randomInt } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import { SLOT_MARK } from '../../src/launch-cache/slots.ts'
import { type CliOptions, type CliResult, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { partWords } from '../support/host-part.ts'
import { descendantsOf } from '../support/processes.ts'
import { becoming, checkoutFor, currentUser, PLAIN_ID, type User } from '../support/users.ts'

export interface Keeper {
  readonly name: string
  readonly pid: number
  readonly size: number
  readonly ready: number
  readonly directory: string
}

export interface TestPool {
  readonly keeper: Keeper
  readonly cwd: string
  /** Options of `exec`. */
  readonly options: readonly string[]
  /** How it was called. */
  readonly call: CliOptions
  /** Directory of the sockets. */
  readonly directory: string
  /** Ready sandboxes. */
  readonly names: () => Promise<readonly string[]>
  readonly whenReady: (count?: number) => Promise<readonly string[]>
  /** A run with the options of the pool, and whether it has claimed a sandbox, which may have refused it. */
  readonly run: (command: readonly string[], options?: CliOptions) => Promise<CliResult & { readonly isWarm: boolean }>
  /** The same, tried again when the pool had nothing: what others mount on this machine empties it. */
  readonly runWarm: TestPool['run']
  readonly stop: () => Promise<void>
}

export interface PoolOptions {
  readonly as?: User
  /** Options of `exec`. */
  readonly options?: readonly string[]
  readonly size?: number
  readonly cwd?: string
  /** Words before those that start the keeper; what it starts has them, too. */
  readonly through?: readonly string[]
}

/** A limit that no other pool has: the pools of root lie in one place, and those of one plan are one. */
const ownLimit = (): string => `${randomInt(100_000, 1_000_000)}`

const WARM_ATTEMPTS = 5
/** Ends a hang, measures nothing: 32 sandboxes take half a minute where others use the processors. */
const PATIENCE_MS = 60_000

/** A zombie is not alive. */
export const isAlive = (pid: number): boolean => {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** Asks until the answer is there; a pool is built in its own time. */
export async function until<T>(probe: () => Promise<T | undefined>, what: string): Promise<T> {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const value = await probe()
    if (value !== undefined) return value
    if (performance.now() > end) throw new Error(`never came: ${what}`)
    await sleep(10)
  }
}

/** A pool of the user in a new directory; it ends with the test. */
export async function startPool({
  as = currentUser(),
  options: more = [],
  size = 2,
  cwd,
  through = [],
}: PoolOptions = {}): Promise<TestPool> {
  const options = ['--pids', ownLimit(), ...more]
  const home = await temporaryDirectory({ owner: as })
  const runtime = await temporaryDirectory({ owner: as })
  const workdir = cwd ?? (await temporaryDirectory({ owner: as, mode: 0o755 }))
  const env = { HOME: home, XDG_RUNTIME_DIR: runtime }
  const call = { as, cwd: workdir, env, program: 'llm-do' as const }
  const started = await runCli(['pool', 'start', '--size', `${size}`, ...options], { ...call, through })
  if (started.status !== 0) throw new Error(`pool start: ${started.stderr}`)
  const keeper = (await keepers(call)).find((one) => one.directory === workdir)
  if (keeper === undefined) throw new Error('the pool that was started is not in the list')
  const directory = join(poolsOf(call), keeper.name)
  const names = async () => (await readdir(directory).catch(() => [])).filter((name) => name.startsWith('r'))
  const pool: TestPool = {
    keeper,
    cwd: workdir,
    options,
    call,
    directory,
    names,
    whenReady: (count = size) =>
      until(async () => {
        const found = await names()
        return found.length >= count ? found : undefined
      }, `${count} sandboxes ready`),
    run: async (command, more = {}) => {
      const before = await names()
      const result = await runCli([...options, '--', ...command], {
        ...call,
        program: 'llm-do-exec',
        ...more,
        env: { ...env, ...more.env },
      })
      const after = await names()
      return { ...result, isWarm: before.some((name) => !after.includes(name)) }
    },
    runWarm: async (command, more) => {
      for (let left = WARM_ATTEMPTS; ; left -= 1) {
        await pool.whenReady(1)
        const result = await pool.run(command, more)
        if (result.isWarm || left === 0) return result
      }
    },
    stop: () => stopKeeper(keeper.pid),
  }
  onTestFinished(() => pool.stop())
  return pool
}

/** That one alone: `pool stop` would end every pool of the user, other tests' too. */
export async function stopKeeper(pid: number): Promise<void> {
  if (isAlive(pid)) process.kill(pid, 'SIGTERM')
  await until(async () => (isAlive(pid) ? undefined : true), 'the end of the keeper')
}

/** As `llm-do pool status` asks for them, without the start of a node. */
export async function keepers(call: CliOptions): Promise<readonly Keeper[]> {
  const { as = currentUser() } = call
  const ask = partWords('pool', ['status', poolsOf(call)], join(checkoutFor(as), 'bin'))
  const [file = '', ...words] = [...becoming(as), ...ask]
  const { stdout } = await execa(file, words)
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Keeper]))
}

const poolsOf = ({ as = currentUser(), env }: CliOptions): string =>
  as === 'root' ? '/run/llm-do/pool' : join(env?.['XDG_RUNTIME_DIR'] ?? '', 'llm-do/pool')

/** A directory as FRAME.places has it. */
export function placeOf(path: string): Buffer {
  const { dev, ino, uid, gid } = statSync(path)
  return Buffer.from([path, dev, ino, uid, gid, ''].join('\0'))
}

/** The plan of a pool for every directory, as a client in `path` has it, but for its seal. */
export function planFor(pool: TestPool, path: string): Buffer {
  const { dev, ino } = statSync(path)
  const fillings: Readonly<Record<string, string>> = { '0p': path, '0d': `${dev}`, '0i': `${ino}` }
  const plan = readFileSync(`/proc/${pool.keeper.pid}/fd/3`, 'latin1')
  const filled = plan
    .split(SLOT_MARK)
    .map((text, at) => (at === 0 ? text : (fillings[text.slice(0, 2)] ?? '') + text.slice(2)))
  return Buffer.from(filled.join(''), 'latin1')
}

/** The ids that the tests may be. */
export const ids = (user: User): number => (user === 'root' ? 0 : PLAIN_ID)

/**
 * Prints in which sandbox it runs: its mount namespace, whose number the kernel gives again once it is gone, and when its init was started.
 */
export const WHICH_SANDBOX = 'echo "$(readlink /proc/self/ns/mnt) $(cut -d" " -f22 /proc/1/stat)"'

/** A keeper's sandboxes, as `WHICH_SANDBOX` prints them. */
export async function sandboxesOf(keeper: number): Promise<readonly string[]> {
  const all = await Promise.all(descendantsOf(keeper).map(processIn))
  return all.filter((one) => one !== undefined)
}

/** Of each process of a sandbox, not only of its init. */
async function processIn(pid: number): Promise<string | undefined> {
  try {
    const [own, namespace] = [await readlink('/proc/self/ns/mnt'), await readlink(`/proc/${pid}/ns/mnt`)]
    const started = (await readFile(`/proc/${pid}/stat`, 'latin1')).split(' ')[21]
    return namespace === own ? undefined : `${namespace} ${started}`
  } catch {
    return undefined // It has ended.
  }
}
