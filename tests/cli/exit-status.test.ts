import { expect, test } from 'vitest'
import { SandboxError } from '../../src/error.ts'
import { refusal } from '../../src/report/classify.ts'
import { exitStatus } from '../../src/report/exit-status.ts'
import type { Result } from '../../src/report/result.ts'

const NOTHING = { exitCode: null, signal: null, error: undefined } as const
const statusOf = (result: Partial<Result>): number => exitStatus({ ...NOTHING, reason: 'exit', ...result } as Result)

test.each<[status: number, Partial<Result>]>([
  [0, { exitCode: 0 }],
  [3, { exitCode: 3 }],
  [124, { reason: 'timeout', exitCode: 3 }],
  [126, { reason: 'protected', exitCode: 0 }],
  [130, { reason: 'cancelled', exitCode: 3 }],
  [137, { reason: 'memory', exitCode: 3 }],
  [137, { reason: 'cpu-time', signal: 'SIGTERM' }],
  [137, { reason: 'disk', exitCode: 0 }],
  [137, { reason: 'lost' }],
  [143, { reason: 'signal', signal: 'SIGTERM' }],
  [137, { reason: 'signal', signal: 'SIGKILL' }],
  [138, { reason: 'signal', signal: 'SIGUSR1' }],
])('%i is the status of %j', (status, result) => {
  expect(statusOf(result)).toBe(status)
})

test.each([
  [125, 'USAGE'],
  [125, 'ZONE_INVALID'],
  [125, 'SETUP_FAILED'],
  [126, 'COMMAND_BLOCKED'],
  [126, 'COMMAND_NOT_EXECUTABLE'],
  [127, 'COMMAND_NOT_FOUND'],
] as const)('%i is the status of the error %s', (status, code) => {
  expect(exitStatus(refusal(new SandboxError(code, 'why'), ['true'], 'default'))).toBe(status)
})
