import { spawnSync } from 'node:child_process'
import { mkdir, readdir, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { takeSession } from '../../../src/backends/docker/session-lock.ts'
import { identityOf, ownIdentity, processTable } from '../../../src/os/process-identity.ts'
import { temporaryDirectory } from '../../support/directory.ts'

/** A runs directory, and next to it the lock of a session, with a holder. */
async function directoryWith(holder?: string) {
  const runsDirectory = join(await temporaryDirectory(), 'runs')
  const directory = join(dirname(runsDirectory), 'sessions')
  const [lock, second] = [join(directory, 'one.lock.0'), join(directory, 'one.lock.1')]
  if (holder !== undefined) {
    await mkdir(directory, { mode: 0o700 })
    await symlink(holder, lock)
  }
  return { directory, lock, second, take: (name = 'one') => takeSession(runsDirectory, name) }
}

/** A process that has ended; its number may be anybody's by now. */
const ended = (): string => {
  const script = `process.stdout.write(require('fs').readFileSync('/proc/self/stat', 'latin1'))`
  const stat = spawnSync(process.execPath, ['-e', script], { encoding: 'latin1' }).stdout
  const startTime = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return `${processTable()}/${Number.parseInt(stat, 10)}:${startTime}`
}

describe('the lock of a session', () => {
  test('is held by one at a time, and nothing is left of it', async () => {
    const { directory, lock, take } = await directoryWith()
    const held = await take()
    expect(await readlink(lock)).toBe(ownIdentity())
    expect(await take()).toBeUndefined()
    expect(await take('another')).toBeDefined()
    held?.release()
    expect(await readdir(directory)).toEqual(['another.lock.0'])
    expect(await take()).toBeDefined()
  })

  test.each([
    ['a process that has ended', ended],
    ['a later process of the same number', () => `${processTable()}/${process.pid}:1`],
  ])('is taken over from %s', async (_, holder) => {
    const { directory, second, take } = await directoryWith(holder())
    const held = await take()
    expect(await readlink(second)).toBe(ownIdentity())
    expect(await take()).toBeUndefined()
    held?.release()
    expect(await readdir(directory)).toEqual([])
  })

  test.each([
    ['a process that lives', () => identityOf(process.ppid) ?? ''],
    ['a process of another machine', () => 'another-boot/4026531836/1:1'],
  ])('is left to %s', async (_, holder) => {
    const { directory, lock, take } = await directoryWith(holder())
    expect(await take()).toBeUndefined()
    expect(await readlink(lock)).toBe(holder())
    expect(await readdir(directory)).toEqual(['one.lock.0'])
  })
})
