import { spawnSync } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { processTable, runnerOf } from '../../../src/backends/docker/inputs.ts'
import { takeSession } from '../../../src/backends/docker/session-lock.ts'
import { temporaryDirectory } from '../../support/directory.ts'

/** A runs directory, and the lock of a session beside it, with what somebody wrote into it. */
async function placeWith(holder?: string) {
  const runsDirectory = join(await temporaryDirectory(), 'runs')
  const directory = join(dirname(runsDirectory), 'sessions')
  const lock = join(directory, 'one')
  if (holder !== undefined) {
    await mkdir(directory, { mode: 0o700 })
    await writeFile(lock, holder)
  }
  return { directory, lock, take: (name = 'one') => takeSession(runsDirectory, name) }
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
    const { directory, lock, take } = await placeWith()
    const held = await take()
    expect(await readFile(lock, 'utf8')).toBe(runnerOf(process.pid))
    expect(await take()).toBeUndefined()
    expect(await take('another')).toBeDefined()
    held?.release()
    expect(await readdir(directory)).toEqual(['another'])
    expect(await take()).toBeDefined()
  })

  test.each([
    ['a process that has ended', ended],
    ['a later process of the same number', () => `${processTable()}/${process.pid}:1`],
    ['nobody, since its maker was killed', () => ''],
  ])('is taken over from %s', async (_, holder) => {
    const { directory, lock, take } = await placeWith(holder())
    expect(await take()).toBeDefined()
    expect(await readFile(lock, 'utf8')).toBe(runnerOf(process.pid))
    expect(await readdir(directory)).toEqual(['one'])
    expect(await take()).toBeUndefined()
  })

  test.each([
    ['a process that lives', () => runnerOf(process.pid) ?? ''],
    ['a process of another machine', () => 'another-boot/4026531836/1:1'],
  ])('is left to %s', async (_, holder) => {
    const { directory, lock, take } = await placeWith(holder())
    expect(await take()).toBeUndefined()
    expect(await readFile(lock, 'utf8')).toBe(holder())
    expect(await readdir(directory)).toEqual(['one'])
  })
})
