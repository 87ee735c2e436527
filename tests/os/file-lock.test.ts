import { readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { tryLock, whileLocked } from '../../src/os/file-lock.ts'
import { processTable } from '../../src/os/process-identity.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** An earlier process with the number of this one. */
const DEAD = `${processTable()}/${process.pid}:1`

test('a lock has one holder, and nothing is left of it', async () => {
  const directory = await temporaryDirectory()
  const file = join(directory, 'file')
  const held = tryLock(file)
  expect(tryLock(file)).toBeUndefined()
  expect(tryLock(join(directory, 'other'))).toBeDefined()
  held?.release()
  expect(readdirSync(directory)).toEqual(['other.lock.0'])
  expect(tryLock(file)).toBeDefined()
})

test('the lock of a dead holder is taken over by one, and goes with the release', async () => {
  const directory = await temporaryDirectory()
  const file = join(directory, 'file')
  for (const number of [0, 1]) symlinkSync(DEAD, `${file}.lock.${number}`)
  const held = tryLock(file)
  expect(readdirSync(directory).toSorted()).toEqual(['file.lock.0', 'file.lock.1', 'file.lock.2'])
  expect(tryLock(file)).toBeUndefined()
  held?.release()
  expect(readdirSync(directory)).toEqual([])
})

test('a holder on another machine counts as alive', async () => {
  const file = join(await temporaryDirectory(), 'file')
  symlinkSync('another-boot/4026531836/1:1', `${file}.lock.0`)
  expect(tryLock(file)).toBeUndefined()
})

test('work under a lock comes one after the other, and releases it when it throws', async () => {
  const directory = await temporaryDirectory()
  const file = join(directory, 'file')
  await expect(
    whileLocked(file, () => {
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  const order: number[] = []
  await Promise.all(Array.from({ length: 10 }, (_, index) => whileLocked(file, () => order.push(index))))
  expect(order.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(readdirSync(directory)).toEqual([])
})
