import { describe, expect, test } from 'vitest'
import { outcomeOfStatus } from '../../src/backends/launch-status.ts'

const SIGKILL = 9
const SIGTERM = 15

describe('the end that the launcher reports', () => {
  test.each([
    ['memory', -1, { exitCode: null, signal: 'SIGKILL' }],
    ['memory', SIGKILL, { exitCode: null, signal: 'SIGKILL' }],
    ['memory', 3 << 8, { exitCode: 3, signal: null }],
    ['deadline', -1, { exitCode: null, signal: 'SIGKILL' }],
    ['cpu-time', SIGTERM, { exitCode: null, signal: 'SIGTERM' }],
    ['cancelled', -1, { exitCode: null, signal: 'SIGKILL' }],
    ['lost', -1, { exitCode: null, signal: null }],
    ['exit', 0, { exitCode: 0, signal: null }],
  ])('by %s with wait status %d is %o', (cause, waitStatus, end) => {
    const outcome = outcomeOfStatus(JSON.stringify({ cause, waitStatus, step: '', killed: 0, startedNs: 1 }))
    expect(outcome).toMatchObject({ cause, ...end })
  })

  test.each([
    ['cancelled', null],
    ['memory', 'SIGKILL'],
  ])('by %s before the command ran has signal %s', (cause, signal) => {
    const outcome = outcomeOfStatus(JSON.stringify({ cause, waitStatus: -1, step: '', killed: 0, startedNs: 0 }))
    expect(outcome).toMatchObject({ cause, exitCode: null, signal })
  })
})
