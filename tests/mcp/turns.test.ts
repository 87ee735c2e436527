import { expect, test } from 'vitest'
import { Turns } from '../../src/mcp/turns.ts'

const forEver = new AbortController().signal

test('so many have their turn at once, and each end lets the next one in', async () => {
  const turns = new Turns(2)
  const order: string[] = []
  const ends: (() => void)[] = []
  const begin = (name: string) =>
    turns.take(forEver, async () => {
      order.push(name)
      await new Promise<void>((resolve) => ends.push(resolve))
    })
  const all = ['a', 'b', 'c', 'd'].map(begin)
  await new Promise(setImmediate)
  expect(order).toEqual(['a', 'b'])
  ends[0]?.()
  await all[0]
  await new Promise(setImmediate)
  expect(order).toEqual(['a', 'b', 'c'])
  ends[1]?.()
  ends[2]?.()
  await all[2]
  await new Promise(setImmediate)
  ends[3]?.()
  await Promise.all(all)
  expect(order).toEqual(['a', 'b', 'c', 'd'])
})

test('who is cancelled leaves the line, and one that fails gives its place back', async () => {
  const turns = new Turns(1)
  const abort = new AbortController()
  const failing = turns.take(forEver, async () => {
    await new Promise(setImmediate)
    throw new Error('mine')
  })
  const cancelled = turns.take(abort.signal, async () => 'never')
  abort.abort(new Error('enough'))
  await expect(cancelled).rejects.toThrow('enough')
  await expect(failing).rejects.toThrow('mine')
  expect(await turns.take(forEver, async () => 'next')).toBe('next')
  await expect(turns.take(abort.signal, async () => 'never')).rejects.toThrow('enough')
})
