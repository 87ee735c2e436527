import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, mkdirSync, readdirSync, statSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { holderOf, lockOf, openLock, tryLock, waitForLock } from '../../src/os/file-lock.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { partWords } from '../support/host-part.ts'

let directory: string
let file: string
beforeEach(async () => {
  directory = await temporaryDirectory()
  file = join(directory, 'file')
})

/** A process that holds the lock until it is killed. */
async function holder() {
  const script = 'exec 3>>"$0" && "$@" && echo mine && exec sleep 60'
  const child = spawn('sh', ['-c', script, lockOf(file), ...partWords('runs', ['lock', '0'])])
  await once(child.stdout, 'data')
  return child
}

test('a lock has one holder, and nothing is left of it', () => {
  const held = tryLock(file)
  expect(tryLock(file)).toBeUndefined()
  expect(tryLock(join(directory, 'other'))).toBeDefined()
  expect(statSync(lockOf(file)).mode & 0o777).toBe(0o200)
  held?.release()
  expect(readdirSync(directory)).toEqual(['other.lock'])
  expect(tryLock(file)).toBeDefined()
})

test('the kernel lets go of it with its holder, whom a message can name', async () => {
  const child = await holder()
  expect(tryLock(file)).toBeUndefined()
  await expect.poll(() => holderOf(lockOf(file))).toBe(`process ${child.pid} (sleep)`) // It begins as the shell.
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(readdirSync(directory)).toEqual(['file.lock'])
  expect(tryLock(file)).toBeDefined()
})

test('what an earlier version has left is no reason to fail: of another boot, of another pid namespace, of this one', () => {
  symlinkSync('11111111-2222-3333-4444-555555555555/4026531836/812:3034', `${file}.lock.0`)
  symlinkSync('no-identity', `${file}.lock.1`)
  expect(tryLock(file)).toBeDefined()
})

test('a file that its holder has removed locks nothing', async () => {
  const child = await holder()
  unlinkSync(lockOf(file))
  const held = tryLock(file)
  expect(held).toBeDefined()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(tryLock(file)).toBeUndefined()
})

test.runIf(process.getuid?.() === 0)(
  'who may only read what is there cannot hold it; where it is readable, he could',
  () => {
    const held = tryLock(file)
    held?.release()
    openLock(lockOf(file))
    chmodSync(directory, 0o755)
    const words = ['--reuid', '65471', '--clear-groups', '--regid', '65471', 'flock', '-n', lockOf(file), 'true']
    const asReader = () => execFileSync('setpriv', words, { stdio: 'pipe' })
    expect(asReader).toThrow('cannot open lock file')
    chmodSync(lockOf(file), 0o644)
    expect(asReader, 'the control').not.toThrow()
  },
)

describe('refuses', () => {
  test.each([
    ['a link', () => symlinkSync(join(directory, 'elsewhere'), lockOf(file))],
    ['a directory', () => mkdirSync(lockOf(file))],
    ['a FIFO', () => execFileSync('mkfifo', [lockOf(file)])],
    ['a device', () => execFileSync('ln', ['-s', '/dev/null', lockOf(file)])],
  ])('%s, and makes nothing', (_, make) => {
    make()
    expect(() => tryLock(file)).toThrow()
    expect(readdirSync(directory)).toEqual(['file.lock'])
  })
})

test('those who wait get it one after the other', async () => {
  const held = tryLock(file)
  const order: number[] = []
  const waiting = [0, 1, 2].map(async (each) => {
    const fd = openLock(lockOf(file))
    await waitForLock({ lock: lockOf(file), fd })
    order.push(each)
    await setImmediate()
    order.push(each)
    closeSync(fd)
  })
  expect(order).toEqual([])
  held?.release()
  await Promise.all(waiting)
  expect(order.filter((_, at) => at % 2 === 0)).toEqual(order.filter((_, at) => at % 2 === 1))
})
