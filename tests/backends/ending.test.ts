/** The end of a run that no native program has reported; the native one is held by the same table (tests/native/unit/status.c). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownReason, signalName, signalNumber, withExitStatus } from '../../src/backends/ending.ts'
import type { Reason } from '../../src/contract.ts'
import { type ErrorCode, exitStatusOf } from '../../src/error.ts'

const ROWS = readFileSync(join(import.meta.dirname, '../ends.txt'), 'utf8')
  .split('\n')
  .filter((row) => row !== '' && !row.startsWith('#'))

function read(row: string) {
  const [given = '', expected = ''] = row.split(' -> ')
  const [ended = '', , errno = '', step = '', , oom, pids, filter] = given.split(' ')
  const [cause, by] = ended.split('@')
  const [reason, exit, signal, status, code = ''] = expected.split(' ')
  const failure = { code: code as ErrorCode, step, path: '', errno, detail: '' }
  return {
    isOwn: cause === 'exit',
    isFiltered: filter === 'on',
    reason: reason as Reason,
    exitStatus: Number(status),
    ended: {
      exitCode: exit === '-1' ? null : Number(exit),
      signal: signal === '0' ? null : signalName(Number(signal)),
      events: { oomKill: Number(oom), pidsMax: Number(pids), throttledMs: 0 },
      ...(code === '-' ? {} : { failure }),
      ...(by === undefined ? {} : { cancelledBy: signalName(Number(by)) }),
    },
  }
}

test.each(ROWS)('%s', (row) => {
  const { isOwn, isFiltered, reason, exitStatus, ended } = read(row)
  if (isOwn) expect(ownReason(ended, isFiltered)).toBe(reason)
  expect(withExitStatus({ ...ended, reason }).exitStatus).toBe(exitStatus)
})

test('a signal has its name of Linux, or its number', () => {
  const named = [1, 9, 29, 31, 34].map((number) => signalName(number))
  expect(named).toEqual(['SIGHUP', 'SIGKILL', 'SIGIO', 'SIGSYS', 'SIG34'])
  expect([...named, 'SIGNOTHING'].map(signalNumber)).toEqual([1, 9, 29, 31, 34, 0])
})

test.each([
  [125, 'USAGE'],
  [125, 'ZONE_INVALID'],
  [126, 'COMMAND_BLOCKED'],
  [126, 'COMMAND_NOT_EXECUTABLE'],
  [127, 'COMMAND_NOT_FOUND'],
  [137, 'BACKEND_FAILED'],
] as const)('%i is the status of the error %s', (status, code) => {
  expect(exitStatusOf(code)).toBe(status)
})
