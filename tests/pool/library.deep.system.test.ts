/** The whole contract in warm sandboxes of openSandbox, with both engines, and kills while it runs commands. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { tryRow } from '../../src/doctor/self-test.ts'
import { openSandbox } from '../../src/pool/sandbox.ts'
import { expectedKind } from '../escape/rows.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { commOf, descendantsOf } from '../support/processes.ts'
import { warmRunner } from './contract.ts'
import { until } from './pool.ts'

/** More by LLM_DO_TEST_SOAK, and by `make soak`. */
const KILLS = Number(process.env.LLM_DO_TEST_SOAK ?? 60)

/** The keeper, launchers, engines and each PID 1. */
const ofPools = (): readonly number[] =>
  descendantsOf(process.pid).filter((pid) => /^(pool|launch|bwrap|\.init)$/.test(commOf(pid)))

function killOne(n: number): void {
  const all = ofPools()
  try {
    process.kill(all[(n * 7919) % all.length] ?? 0, all.length > 0 ? 'SIGKILL' : 0)
  } catch {
    // It has just ended.
  }
}

describeWith(['bwrap', 'userns'], 'an open sandbox', () => {
  test(`reports how each run ended when ${KILLS} times something is killed`, { timeout: 600_000 }, async () => {
    const sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), warm: 2 })
    try {
      for (let n = 0; n < KILLS; n++) {
        const run = sandbox.exec({ command: ['sh', '-c', 'sleep 0.1; exit 7'] })
        await sleep((n * 37) % 100)
        killOne(n)
        const { exitCode, reason } = await run
        // A sandbox that is killed under a running command loses its end, and that must be reported.
        expect([7, null]).toContain(exitCode)
        expect(['exit', 'setup', 'lost', 'signal', 'cancelled']).toContain(reason)
      }
      expect(await sandbox.exec({ command: ['sh', '-c', 'exit 7'] })).toMatchObject({ exitCode: 7, reason: 'exit' })
    } finally {
      await sandbox.close()
    }
    await until(async () => (ofPools().length === 0 ? true : undefined), 'the end of all processes')
  })
})

for (const engine of ['bwrap', 'unshare'] as const)
  describeWith([engine, 'userns'], `the contract in a warm sandbox (${engine})`, () => {
    for (const row of CONTRACT)
      test(row.sentence, { timeout: 60_000 }, async () => {
        const { landlockAbi } = await observeForDoctor(process.env)
        const verdict = await tryRow(row, { engine, landlockAbi, runner: warmRunner })
        expect(verdict, row.id).toMatchObject({ kind: expectedKind(row, landlockAbi) })
      })
  })
