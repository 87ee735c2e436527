/**
 * Keepers, clients and sandboxes that are killed at any moment: no exit status is lost, nothing hangs, nothing is left.
 * LLM_DO_TEST_KILLS says how many, LLM_DO_TEST_SEED which and when; the seed is in every message.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type CliOptions, cliWords, runCli } from '../support/cli.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { descendantsOf, isAlive, keepers, startPool, stopKeeper, type TestPool, until } from './pool.ts'

const KILLS = Number(process.env.LLM_DO_TEST_KILLS ?? 100)
const SEED = Number(process.env.LLM_DO_TEST_SEED ?? 20_261_122)
/** A slow machine stops earlier; milliseconds. */
const SOAK_MS = 60_000
/** Who has not ended by then hangs; milliseconds. */
const HANG_MS = 15_000

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    const more = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((more ^ (more >>> 14)) >>> 0) / 2 ** 32
  }
}

interface EndedClient {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly stderr: string
}

interface Client {
  readonly child: ChildProcess
  readonly ended: Promise<EndedClient>
}

function startClient({ call, cwd }: TestPool, mark: string): Client {
  const [file = '', ...words] = cliWords(['--', 'sh', '-c', `: ${mark}; sleep 0.01; exit 7`], {
    ...call,
    program: 'llm-do-exec',
  })
  const child = spawn(file, words, {
    cwd,
    env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, ...call.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const chunks: Buffer[] = []
  child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk))
  const ended = new Promise<EndedClient>((resolve) =>
    child.once('close', (status, signal) => resolve({ status, signal, stderr: Buffer.concat(chunks).toString() })),
  )
  return { child, ended }
}

type Kind = 'keeper' | 'client' | 'sandbox'

/** A keeper costs the test most, and there is only one. */
const kindOf = (number: number): Kind => (number < 0.1 ? 'keeper' : number < 0.4 ? 'client' : 'sandbox')

const kill = (pid: number | undefined): void => {
  try {
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended by itself.
  }
}

async function victimOf({
  kind,
  keeper,
  client,
  random,
}: {
  kind: Kind
  keeper: number
  client: Client
  random: number
}) {
  if (kind === 'keeper') return keeper
  if (kind === 'client') return client.child.pid
  const all = await descendantsOf(keeper)
  return all[Math.floor(random * all.length)]
}

/** What is reported of a run while something was killed: a sandbox that was killed cannot say how its command ended, but says so. */
function expectReported(kind: Kind, { status, signal, stderr }: EndedClient, note: string): void {
  if (kind === 'client' && signal === 'SIGKILL') return
  if (kind === 'sandbox') {
    expect([7, 125, 130, 137, 143], `${note}: ${stderr}`).toContain(status)
    if (status !== 7) expect(stderr, note).toMatch(/^llm-do: /m)
    return
  }
  expect({ status, signal, stderr }, note).toEqual({ status: 7, signal: null, stderr: '' })
}

async function keeperOf(pool: TestPool): Promise<number> {
  const call: CliOptions = { ...pool.call, program: 'llm-do' }
  const find = async () => (await keepers(call)).find(({ directory }) => directory === pool.cwd)?.pid
  const alive = await find()
  if (alive !== undefined) return alive
  await runCli(['pool', 'start', '--size', '3'], call)
  return (await find()) ?? Promise.reject(new Error('the keeper did not come back'))
}

describeWith(['bwrap', 'userns'], 'warm sandboxes', () => {
  test(`${KILLS} kills (seed ${SEED}) lose no exit status and leave no client waiting`, {
    timeout: SOAK_MS * 3,
  }, async () => {
    const mark = newMark()
    const random = chance(SEED)
    const pool = await startPool({ size: 3 })
    await pool.run(['sh', '-c', 'exit 7'])
    const runsDirectories = [join(dirname(dirname(pool.directory)), 'runs')]
    const before = await takeSnapshot({ mark, runsDirectories })
    let keeper = pool.keeper.pid
    onTestFinished(() => stopKeeper(keeper))
    const end = performance.now() + SOAK_MS
    for (let n = 0; n < KILLS && performance.now() < end; n++) {
      const kind = kindOf(random())
      const note = `seed ${SEED}, kill ${n} of a ${kind}`
      const client = startClient(pool, mark)
      await sleep(random() * 40)
      const victim = await victimOf({ kind, keeper, client, random: random() })
      const below = kind === 'sandbox' && victim !== undefined ? [victim, ...(await descendantsOf(victim))] : []
      kill(victim)
      const ended = await Promise.race([client.ended, sleep(HANG_MS, undefined, { ref: false })])
      if (ended === undefined) throw new Error(`${note}: it hangs`)
      expectReported(kind, ended, note)
      // Dying takes the kernel a moment, in which the next client could begin in there: then that one would be the victim.
      await until(async () => (below.some(isAlive) ? undefined : true), `${note}: the end of the victim`)
      if (kind === 'keeper') keeper = await keeperOf(pool)
    }
    await stopKeeper(keeper)
    await runCli(['prune'], { ...pool.call, program: 'llm-do' })
    await expectNothingLeft({ before, mark, runsDirectories })
  })
})
