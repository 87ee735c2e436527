import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Delivery } from '../../src/backends/delivery.ts'

/** A listener that finishes a chunk when the test says so. */
function slow() {
  const state: { heard: number[]; done: (() => void)[] } = { heard: [], done: [] }
  const listener = (chunk: Uint8Array) => {
    state.heard.push(chunk[0])
    return new Promise<void>((resolve) => state.done.push(resolve))
  }
  const finish = async () => {
    state.done.shift()?.()
    await turn()
  }
  return { heard: state.heard, listener, finish }
}

const chunk = (number: number) => Uint8Array.of(number)

test('a listener that answers at once is never waited for', () => {
  const heard: number[] = []
  const delivery = new Delivery(() => undefined)
  for (const number of [1, 2]) delivery.hand(chunk(number), ([first]) => heard.push(first))
  expect({ heard, isIdle: delivery.isIdle }).toEqual({ heard: [1, 2], isIdle: true })
})

test('chunks are handed over one after the other, and the reader is told when all are', async () => {
  let idle = 0
  const { heard, listener, finish } = slow()
  const delivery = new Delivery(() => {
    idle += 1
  })
  for (const number of [1, 2]) delivery.hand(chunk(number), listener)
  expect(heard).toEqual([1])
  await finish()
  expect({ heard, idle, isIdle: delivery.isIdle }).toEqual({ heard: [1, 2], idle: 0, isIdle: false })
  await finish()
  await delivery.heard()
  expect({ idle, isIdle: delivery.isIdle }).toEqual({ idle: 1, isIdle: true })
})

test('a listener that fails is done with its chunk', async () => {
  const delivery = new Delivery(() => undefined)
  delivery.hand(chunk(1), () => Promise.reject(new Error('mine')))
  await delivery.heard()
  await turn()
  expect(delivery.isIdle).toBe(true)
})

test('who is busy when the run is to end is not waited for, and hears nothing further', async () => {
  const { heard, listener, finish } = slow()
  const delivery = new Delivery(() => undefined)
  for (const number of [1, 2]) delivery.hand(chunk(number), listener)
  delivery.release()
  await delivery.heard()
  delivery.hand(chunk(3), listener)
  await finish()
  await finish()
  delivery.hand(chunk(4), listener)
  expect(heard).toEqual([1])
})

test('who is not busy then hears the last words, up to the first that would have to wait', async () => {
  const { heard, listener } = slow()
  const delivery = new Delivery(() => undefined)
  delivery.release()
  for (const number of [1, 2, 3]) delivery.hand(chunk(number), listener)
  await delivery.heard()
  expect(heard).toEqual([1])
})
