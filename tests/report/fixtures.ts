/** A small plan and outcome to start from; every test says only what differs. */

import type { Capture, Outcome } from '../../src/backends/outcome.ts'
import type { Plan } from '../../src/plan/plan.ts'
import { planFor } from '../backends/plans.ts'

export function capture(text: string | Uint8Array = '', more: Partial<Capture> = {}): Capture {
  const head = Buffer.from(text as string)
  return { head, tail: new Uint8Array(), bytes: head.length, ...more }
}

export function outcome(more: Partial<Outcome> = {}): Outcome {
  return {
    ...{ cause: 'exit', exitCode: 0, signal: null, stdout: capture(), stderr: capture() },
    ...{ setupMs: 5.9, durationMs: 12.5, usage: { cpuMs: 1, peakMemory: 2, peakPids: 3 }, killed: 0, warnings: [] },
    ...more,
  }
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
