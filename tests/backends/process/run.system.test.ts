/** Real processes on the bare host: no wall holds them, so limits and ends are what is tried. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../../src/backends/outcome.ts'
import { superviseProcess } from '../../../src/backends/process/run.ts'
import type { Plan } from '../../../src/plan/plan.ts'
import { isAlive } from '../../pool/pool.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { until } from '../../support/processes.ts'
import { planFor, runInputs, text } from '../plans.ts'

const runIds = (function* () {
  for (let index = 1; ; index += 1) yield `p${process.pid}x${index}`
})()

function run(command: readonly string[], changes: Partial<Plan> = {}, signal?: AbortSignal): Promise<Outcome> {
  const plan = planFor('process', { workdir: '/', ...changes })
  const commandEnv = { PATH: '/usr/bin:/bin', WORD: 'a\nb' }
  const inputs = runInputs({ runId: runIds.next().value as string, allowUnsandboxed: true, command, commandEnv })
  return superviseProcess({ plan, run: inputs, stdio: { mode: 'capture', stdin: 'ignore', outputCap: 1000 }, signal })
}

/** Killed processes need a moment to disappear. */
async function expectEnd(pid: number): Promise<void> {
  expect(pid).toBeGreaterThan(0)
  await until('the end', () => !isAlive(pid) || undefined)
}

describe('the process backend', () => {
  test.each([
    ['an exit code', ['sh', '-c', 'exit 137'], { reason: 'exit', exitCode: 137, signal: null }],
    ['a signal', ['sh', '-c', 'kill -9 $$'], { reason: 'signal', exitCode: null, signal: 'SIGKILL' }],
    ['a missing program', ['nosuch-program'], { reason: 'setup', failure: { errno: 'ENOENT' } }],
  ])('tells %s from the other ends', async (_what, command, end) => {
    expect(await run(command)).toMatchObject(end)
  })

  test('gives only the planned variables and leaves no core dumps', async () => {
    const outcome = await run(['sh', '-c', 'echo "$WORD"; ulimit -c; env | grep -c HOME'])
    expect(text(outcome.stdout)).toBe('a\nb\n0\n0\n')
  })

  test('ends at the deadline with everything it started, also what left the group', async () => {
    const script = 'setsid sleep 600 & echo $!; sleep 600'
    const outcome = await run(['sh', '-c', script], { limits: { timeoutMs: 2_000 } })
    expect(outcome).toMatchObject({ reason: 'timeout' })
    await expectEnd(Number(text(outcome.stdout)))
  })

  test('leaves no process behind when the command ends by itself', async () => {
    const outcome = await run(['sh', '-c', 'setsid sleep 600 & echo $!'])
    expect(outcome).toMatchObject({ reason: 'exit', exitCode: 0, killed: 1 })
    await expectEnd(Number(text(outcome.stdout)))
  })

  test('ends when the caller cancels', async () => {
    const abort = new AbortController()
    const started = join(await temporaryDirectory(), 'started')
    const running = run(['sh', '-c', `touch ${started}; exec sleep 600`], {}, abort.signal)
    await until('the command', () => existsSync(started) || undefined)
    abort.abort('SIGINT')
    expect(await running).toMatchObject({ reason: 'cancelled', cancelledBy: 'SIGINT' })
  })

  test('is ended above the memory limit by a watchdog', async () => {
    const limits = { memory: { max: 64 << 20, by: 'watchdog' }, timeoutMs: 60_000 } as const
    const outcome = await run(['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=300M', 'count=1000'], { limits })
    expect(outcome).toMatchObject({ reason: 'memory', signal: 'SIGKILL' })
  })

  test('is ended above the limit of processes by the same watchdog', async () => {
    const limits = { pids: { max: 5, by: 'watchdog' }, timeoutMs: 60_000 } as const
    const outcome = await run(['sh', '-c', 'for i in 1 2 3 4 5 6 7 8; do sleep 600 & done; wait'], { limits })
    expect(outcome).toMatchObject({ signal: 'SIGKILL', events: { pidsMax: 1 } })
  })

  test('runs on as many processors as it may', async () => {
    const outcome = await run(['nproc'], { limits: { cpus: { max: 1, by: 'affinity' }, timeoutMs: 60_000 } })
    expect(text(outcome.stdout)).toBe('1\n')
  })

  test('is ended at the processor time limit', async () => {
    const outcome = await run(['sh', '-c', 'while :; do :; done'], { limits: { cpuTimeMs: 1000, timeoutMs: 60_000 } })
    expect(outcome.signal).toMatch(/SIGXCPU|SIGKILL/)
  })
})
