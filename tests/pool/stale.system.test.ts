/** Sandboxes that were built before the world changed: one that would be built differently now serves no client. */
import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { commandBlock } from '../../src/backends/namespace/frames.ts'
import { FRAME } from '../../src/contract.ts'
import { readGuards } from '../../src/launch-cache/guards.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { packageCopy } from '../support/package.ts'
import {
  type Keeper,
  placeOf,
  planFor,
  sandboxesOf,
  startPool,
  stopKeeper,
  type TestPool,
  until,
  WHICH_SANDBOX,
} from './pool.ts'

interface TestSite {
  /** Shown read-only as /shown. */
  readonly zone: string
  /** Holds the zone. */
  readonly above: string
  /** Shown nowhere. */
  readonly other: string
}

async function makeTestSite(): Promise<TestSite> {
  const base = await temporaryDirectory({ mode: 0o755 })
  const site = { zone: join(base, 'above/zone'), above: join(base, 'above'), other: join(base, 'zone-too') }
  mkdirSync(join(site.zone, 'below'), { recursive: true })
  mkdirSync(site.other)
  return site
}

/** A file system with one file, until the test is over. */
function mountOn(directory: string): void {
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', directory])
  onTestFinished(() => void execFileSync('umount', [directory]))
  writeFileSync(join(directory, 'fresh'), 'fresh')
}

const untilGone = (pool: TestPool, before: readonly string[]) =>
  until(
    async () => ((await pool.names()).some((name) => before.includes(name)) ? undefined : true),
    'the end of what was built before',
  )

const list = ['sh', '-c', 'ls /shown /shown/below'] as const
const showing = ({ zone }: TestSite): readonly string[] => ['--ro', `${zone}:/shown`]

describeWith(['root', 'bwrap', 'userns'], 'a mount on the host', () => {
  test('that no zone shows leaves what is ready as it is', async () => {
    const site = await makeTestSite()
    const pool = await startPool({ options: showing(site), size: 3 })
    await pool.run(list)
    const before = await pool.whenReady()
    mountOn(site.other)
    expect(await pool.run(list)).toMatchObject({ status: 0, isWarm: true })
    expect((await pool.names()).filter((name) => before.includes(name))).toHaveLength(before.length - 1)
  })

  // Under bwrap the zones are in the tree of what waits, else they come with the command.
  test.each(['bwrap', 'unshare'])('below a zone is seen by the next runs (%s)', async (engine) => {
    const site = await makeTestSite()
    const pool = await startPool({ options: [...showing(site), '--engine', engine] })
    await pool.run(list)
    const before = await pool.whenReady()
    mountOn(join(site.zone, 'below'))
    for (const _ of before) expect((await pool.run(list)).stdout.toString()).toContain('fresh')
    await untilGone(pool, before)
  })

  test('elsewhere, and then below a zone, is seen by the next runs', async () => {
    const site = await makeTestSite()
    const pool = await startPool({ options: showing(site) })
    await pool.run(list)
    const before = await pool.whenReady()
    mountOn(site.other)
    await sleep(100) // Until the runners have looked.
    mountOn(join(site.zone, 'below'))
    for (const _ of before) expect((await pool.run(list)).stdout.toString()).toContain('fresh')
  })

  test('above a zone takes what was built with it away', async () => {
    const site = await makeTestSite()
    const pool = await startPool({ options: [...showing(site), '--engine', 'bwrap'] })
    await pool.run(list)
    const before = await pool.whenReady()
    mountOn(site.above)
    expect(await pool.run(list)).toMatchObject({ status: 125 }) // The zone is gone.
    await untilGone(pool, before)
  })
})

interface SlowRun {
  readonly frames: readonly number[]
  readonly printed: string
}

interface SlowClient {
  /** A path that it makes between its claim and its command. */
  readonly makes?: string
  /** The claimed plan; default: the plan of the pool. */
  readonly plan?: Buffer
  /** How it says so; default: FRAME.guards. */
  readonly kind?: number
  /** It says so at once. */
  readonly early?: boolean
  /** It says that it has looked for itself, so many nanoseconds after its claim. */
  readonly looked?: number
  /** Its directories; default: that of the pool. */
  readonly places?: Uint8Array
}

const planOf = (pool: TestPool): Buffer => planFor(pool, pool.cwd)

/** By a client that claims a sandbox well before it sends the command. */
async function runSlowly(
  pool: TestPool,
  {
    makes,
    plan = planOf(pool),
    kind = FRAME.guards,
    early = false,
    looked,
    places = placeOf(pool.cwd),
  }: SlowClient = {},
): Promise<SlowRun> {
  const [name] = await pool.whenReady()
  const run = Buffer.from(commandBlock({ command: ['/bin/echo', 'ran'], env: {}, umask: 0o022 })).toString('hex')
  const { directory } = pool
  const sent = { kind, plan: plan.toString('hex'), early, places: Buffer.from(places).toString('hex'), run }
  const input = JSON.stringify({ directory, name, change: makes ?? null, looked: looked ?? null, ...sent })
  const { stdout } = await execa('python3', [join(import.meta.dirname, 'slow-client.py')], { input })
  return JSON.parse(stdout) as SlowRun
}

const RAN: SlowRun = { frames: [FRAME.taken, FRAME.status], printed: 'ran\n' }
const REFUSED: SlowRun = { frames: [FRAME.refused], printed: '' }
/** Refused, or gone before the command came. */
const NOT_TAKEN = { frames: expect.not.arrayContaining([FRAME.taken]), printed: '' }

/** The first word of a plan after the verb `check`. */
const sealOf = (plan: Buffer): string => plan.toString('latin1').split('\0')[2] ?? ''

/** The ways in which a client tells its plan. */
const TOLD: readonly (readonly [string, (pool: TestPool) => SlowClient])[] = [
  ['the whole plan, with its command', () => ({})],
  ['the whole plan, at once', () => ({ early: true })],
  [
    'only what was planned from, at once',
    (pool) => ({ early: true, plan: Buffer.from(readGuards(planOf(pool)).files) }),
  ],
  ['the seal', (pool) => ({ kind: FRAME.same, plan: Buffer.from(sealOf(planOf(pool))) })],
  [
    'the seal, and that it has looked, too early',
    (pool) => ({ kind: FRAME.same, plan: Buffer.from(sealOf(planOf(pool))), looked: 0 }),
  ],
  [
    'the seal, and that it will look',
    (pool) => ({ kind: FRAME.same, plan: Buffer.from(sealOf(planOf(pool))), looked: 3_600e9 }),
  ],
]

describeWith(['bwrap', 'userns'], 'a client that has claimed a sandbox and takes its time', () => {
  test.each(TOLD)('is refused when what was planned from has changed meanwhile: it sends %s', async (_, told) => {
    const pool = await startPool({ size: 1 })
    const makes = join(pool.call.env?.HOME ?? '', '.config/llm-do/profiles/default.yaml')
    await pool.whenReady()
    expect(await runSlowly(pool, told(pool))).toEqual(RAN) // The control.
    expect(await runSlowly(pool, { ...told(pool), makes })).toEqual(REFUSED)
  })

  test('is refused with another plan of the same length', async () => {
    const pool = await startPool({ size: 1 })
    const own = planOf(pool).toString('latin1')
    const other = own.replace('\0net\0none\0', '\0net\0host\0')
    expect(other).not.toBe(own)
    expect(await runSlowly(pool)).toEqual(RAN) // The control.
    expect(await runSlowly(pool, { plan: Buffer.from(other, 'latin1') })).toEqual(REFUSED)
  })

  test('is refused with another seal, with a part of the seal, and with none', async () => {
    const pool = await startPool({ size: 1 })
    const seal = sealOf(planOf(pool))
    expect(seal).toMatch(/^[0-9a-f]{128}$/)
    expect(readlinkSync(join(pool.directory, 'seal'))).toBe(seal)
    const send = (text: string) => runSlowly(pool, { kind: FRAME.same, plan: Buffer.from(text) })
    expect(await send(seal)).toEqual(RAN) // The control.
    for (const other of [seal.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')), seal.slice(0, -1), ''])
      expect(await send(other), other).toEqual(REFUSED)
  })
})

describeWith(['unshare', 'userns'], 'a blank sandbox', () => {
  const blank = async (options: readonly string[] = ['--rw', '.']) => ({
    pool: await startPool({ size: 1, options: [...options, '--engine', 'unshare'] }),
    other: await temporaryDirectory({ mode: 0o755 }),
  })

  test('takes the directory of its client, as it is when the plan is', async () => {
    const { pool, other } = await blank()
    const there: SlowClient = { places: placeOf(other), plan: planFor(pool, other) }
    expect(await runSlowly(pool, there)).toEqual(RAN) // The control.
    const replaced = Buffer.from(
      placeOf(other)
        .toString()
        .replace(/\0(\d+)\0(\d+)\0/, '\0$1\x001$2\0'),
    )
    const seal = { kind: FRAME.same, plan: Buffer.from(sealOf(planOf(pool))) }
    expect(await runSlowly(pool, { ...seal, places: placeOf(other) })).toEqual(RAN) // The same.
    expect(await runSlowly(pool, { ...seal, places: replaced })).toEqual(NOT_TAKEN)
    expect(await runSlowly(pool, { ...there, places: placeOf(pool.cwd) })).toEqual(NOT_TAKEN)
  })

  test('serves no run whose plan is not what it was', async () => {
    const { pool } = await blank()
    const command = ['sh', '-c', 'echo "$WORD."']
    expect(await pool.runWarm(command)).toMatchObject({ isWarm: true, stdout: Buffer.from('.\n') })
    await pool.whenReady()
    const profiles = join(pool.call.env?.HOME ?? '', '.config/llm-do/profiles')
    mkdirSync(profiles, { recursive: true })
    writeFileSync(join(profiles, 'default.yaml'), 'sandbox: { env: { set: { WORD: here } } }\n')
    expect((await pool.run(command)).stdout.toString()).toBe('here.\n')
  })

  test('takes no command without directories, or with more than it has', async () => {
    const { pool, other } = await blank()
    expect(await runSlowly(pool)).toEqual(RAN) // The control.
    const seal = { kind: FRAME.same, plan: Buffer.from(sealOf(planOf(pool))) }
    expect(await runSlowly(pool, { ...seal, places: Buffer.from('') })).toEqual(REFUSED)
    const two = Buffer.concat([placeOf(pool.cwd), placeOf(other)])
    expect(await runSlowly(pool, { places: two })).toEqual(NOT_TAKEN)
  })

  test('follows no link to its directory', async () => {
    const { pool, other } = await blank()
    const link = join(other, 'link')
    mkdirSync(join(other, 'there'))
    symlinkSync('there', link)
    const of = (path: string): SlowClient => ({ places: placeOf(path), plan: planFor(pool, path) })
    expect(await runSlowly(pool, of(join(other, 'there')))).toEqual(RAN) // The control: the same device and inode.
    expect(await runSlowly(pool, of(link))).toEqual(NOT_TAKEN)
  })

  test('refuses a command that comes after a repository that it would not cover', async () => {
    const { pool } = await blank()
    expect(await runSlowly(pool, { makes: join(pool.cwd, 'a/file') })).toEqual(RAN) // The control.
    expect(await runSlowly(pool, { makes: join(pool.cwd, 'b/.git/config') })).toEqual(NOT_TAKEN)
  })
})

/** Has a pool say that it is of the plan with that seal. */
function pretend(pool: TestPool, seal: string): void {
  rmSync(join(pool.directory, 'seal'), { force: true })
  if (seal !== '') symlinkSync(seal, join(pool.directory, 'seal'))
}

describeWith(['bwrap', 'userns'], 'a pool that says it is of another plan', () => {
  const command = ['sh', '-c', 'echo "ran $ONE"'] as const

  test('serves its own plan all the same', async () => {
    const pool = await startPool()
    await pool.run(command)
    for (const seal of ['', 'short', '0'.repeat(128)]) {
      pretend(pool, seal)
      expect(await pool.runWarm(command), seal).toMatchObject({ isWarm: true, status: 0 })
    }
  })

  test('serves no client of that plan, whose command runs once', async () => {
    const pool = await startPool()
    const own = planOf(pool)
    const run = () =>
      runCli([...pool.options, '--env', 'ONE=1', '--', ...command], { ...pool.call, program: 'llm-do-exec' })
    await run()
    const launchFiles = join(pool.call.env?.HOME ?? '', '.cache/llm-do/launch')
    const others = readdirSync(launchFiles).map((name) => readFileSync(join(launchFiles, name)))
    const other = others.map(sealOf).find((seal) => seal !== sealOf(own))
    if (other === undefined) throw new Error('no other plan of this pool')
    pretend(pool, other)
    const before = await pool.whenReady()
    const { status, stdout } = await run()
    expect({ status, stdout: stdout.toString() }).toEqual({ status: 0, stdout: 'ran 1\n' })
    expect((await pool.names()).filter((name) => before.includes(name))).toHaveLength(before.length - 1)
  })
})

describeWith(['bwrap', 'userns'], 'a directory that was put in the place of a zone', () => {
  test('is what the next run shows, and not what was built before', async () => {
    const site = await makeTestSite()
    writeFileSync(join(site.zone, 'old'), '')
    const pool = await startPool({ options: showing(site) })
    await pool.run(list)
    expect(await pool.runWarm(list)).toMatchObject({ isWarm: true, status: 0 })
    await pool.whenReady()
    renameSync(site.zone, `${site.zone}-moved`)
    mkdirSync(join(site.zone, 'below'), { recursive: true })
    writeFileSync(join(site.zone, 'new'), '')
    for (let run = 0; run < 2; run += 1) {
      const { status, stdout } = await pool.run(list)
      expect({ status, shows: stdout.toString() }).toEqual({
        status: 0,
        shows: '/shown:\nbelow\nnew\n\n/shown/below:\n',
      })
    }
  })
})

/** A file that was changed a moment ago is not trusted to stay as it was read: no plan is kept that was made from it. */
const settle = () => sleep(100)

/** Writes a file anew, as an update does. */
function replace(file: string): void {
  writeFileSync(`${file}.new`, readFileSync(file), { mode: statSync(file).mode })
  renameSync(`${file}.new`, file)
}

/** A pool of a copied package. */
async function poolOfCopy() {
  const { root, remove } = await packageCopy()
  onTestFinished(remove)
  await settle()
  const env = {
    PATH: process.env.PATH,
    HOME: await temporaryDirectory(),
    XDG_RUNTIME_DIR: await temporaryDirectory(),
  }
  const call = { cwd: await temporaryDirectory({ mode: 0o755 }), env, extendEnv: false, reject: false } as const
  const pool = (...words: string[]) => execa(join(root, 'bin/llm-do'), ['pool', ...words], call)
  const run = () => execa(join(root, 'bin/llm-do-exec'), ['-c', WHICH_SANDBOX], call)
  expect((await pool('start', '--size', '2')).exitCode).toBe(0)
  const started = JSON.parse((await pool('status', '--json')).stdout) as Keeper[]
  const keeper = started.find(({ directory }) => directory === call.cwd)
  if (keeper === undefined) throw new Error('the pool that was started is not in the list')
  onTestFinished(() => stopKeeper(keeper.pid))
  const runtime = process.getuid?.() === 0 ? '/run' : env.XDG_RUNTIME_DIR
  const directory = join(runtime, 'llm-do/pool', keeper.name)
  const names = () => readdirSync(directory).filter((name) => name.startsWith('r'))
  const whenReady = () => until(async () => (names().length === 2 ? names() : undefined), 'two sandboxes')
  const ready = async () => {
    await whenReady()
    return sandboxesOf(keeper.pid)
  }
  await run() // Leaves its plan.
  return { root, run, ready }
}

describeWith(['bwrap', 'userns'], 'a pool of another version of the runner', () => {
  test.each(['init', 'llm-do'])('(another %s) serves no client', async (program) => {
    const { root, run, ready } = await poolOfCopy()
    // The control: the same files.
    const before = await ready()
    expect(before).toContain((await run()).stdout)
    const built = await ready()
    replace(join(root, 'bin', program))
    await settle()
    for (const _ of ['planned', 'from the cache']) {
      const { exitCode, stdout } = await run()
      expect([exitCode, built.includes(stdout)]).toEqual([0, false])
    }
  })
})
