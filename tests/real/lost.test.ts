import { expect, test } from 'vitest'
import { outcomeOfLaunch } from '../../src/backends/launch-status.ts'

test('a run was never set up where launch could not be started', () => {
  const nothing = { head: new Uint8Array(), tail: new Uint8Array(), bytes: 0 }
  const ended = { cause: 'exit', exitCode: null, signal: null, status: '', elapsedMs: 1 } as const
  expect(outcomeOfLaunch({ ...ended, startErrno: 'ENOENT', stdout: nothing, stderr: nothing }).reason).toBe('setup')
})
