import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  identityOf,
  isAlive,
  isGone,
  ownIdentity,
  processTable,
  sessionLeaderOf,
} from '../../src/os/process-identity.ts'

const ended = (): number => spawnSync('true').pid

describe('the identity of a process', () => {
  test('names boot, pid namespace, number and start time', () => {
    expect(ownIdentity()).toMatch(/^[0-9a-f-]{36}\/\d+\/\d+:\d+$/)
    expect(ownIdentity()).toContain(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
    expect(identityOf(process.pid)).toBe(ownIdentity())
  })

  test('is none after its end', () => {
    expect(identityOf(ended())).toBeUndefined()
  })

  test.each<[string, () => string, boolean]>([
    ['of this process', ownIdentity, false],
    ['of another user', () => identityOf(1) ?? '', false],
    ['of a process that has ended', () => `${processTable()}/${ended()}:1`, true],
    ['of an earlier process with the same number', () => `${processTable()}/${process.pid}:1`, true],
    ['of another machine', () => 'another-boot/4026531836/1:1', false],
    ['that is no identity', () => '', false],
  ])('%s is gone: %#', (_, identity, gone) => {
    expect(isGone(identity())).toBe(gone)
  })

  test('process 1 is alive to everybody, 0 and -1 are groups and no processes', () => {
    expect([1, 0, -1, Number.NaN].map(isAlive)).toEqual([true, false, false, false])
  })

  test('the leader of a session is found from a member', () => {
    const leader = sessionLeaderOf('self')
    expect(leader).toBe(Number(readFileSync('/proc/self/stat', 'latin1').replace(/.*\) /s, '').split(' ')[3]))
    expect(sessionLeaderOf('none')).toBeUndefined()
  })
})
