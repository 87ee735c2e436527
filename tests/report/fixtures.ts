/** A small plan and outcome to start from; every test says only what differs. */

import { ownReason, withExitStatus } from '../../src/backends/ending.ts'
import type { Capture, Outcome, SetupFailure } from '../../src/backends/outcome.ts'
import type { Plan } from '../../src/plan/plan.ts'
import { planFor } from '../backends/plans.ts'

export function capture(text: string | Uint8Array = '', more: Partial<Capture> = {}): Capture {
  const head = Buffer.from(text as string)
  return { head, tail: new Uint8Array(), bytes: head.length, ...more }
}

export const UNBUILT: SetupFailure = { code: 'SETUP_FAILED', step: '', path: '', errno: '', detail: '' }

export function outcome(more: Partial<Outcome> = {}): Outcome {
  const whole = {
    ...{ exitCode: 0, signal: null, stdout: capture(), stderr: capture() },
    ...{ setupMs: 5.9, durationMs: 12.5, usage: { cpuMs: 1, peakMemory: 2, peakPids: 3 }, killed: 0, warnings: [] },
    ...more,
  }
  return withExitStatus({ ...whole, reason: more.reason ?? ownReason(whole, true) })
}

export function plan(more: Partial<Plan> = {}): Plan {
  return planFor('namespace', {
    engine: 'bwrap',
    scratch: [],
    limits: {
      memory: { max: 512 * 1024 ** 2, by: 'cgroup2' },
      pids: { max: 32, by: 'cgroup2' },
      ...{ timeoutMs: 30_000, cpuTimeMs: 2_000 },
    },
    seccomp: { profile: 'default', arch: 'x64', filter: '0600000000000000' },
    landlockAbi: 4,
    ...more,
  })
}
