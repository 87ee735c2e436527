/** A task narrows the operator's policy, and does nothing else to it; its output arrives whole and in order. */
import { describe, expect, test } from 'vitest'
import { OutputRelay } from '../../src/fleet/output-relay.ts'
import type { Task, TaskOutput } from '../../src/fleet/port.ts'
import { commandLines, narrowedBy, taskProblem } from '../../src/fleet/task.ts'
import type { Policy } from '../../src/policy/policy.ts'

const task = (more: Partial<Task>): Task => ({ id: 'a', commands: [['true']], ...more })

const policyOf = (timeout: number | null): Policy =>
  ({
    resources: { timeout },
    env: { inherit: [], set: { A: 'operator' } },
    require: ['memory-limit'],
    origins: {},
  }) as unknown as Policy

describe('a task', () => {
  test.each([
    { limit: 1000, wanted: 500, holds: 500 },
    { limit: 1000, wanted: 5000, holds: 1000 },
    { limit: null, wanted: 500, holds: 500 },
    { limit: 1000, wanted: undefined, holds: 1000 },
  ])('that wants $wanted ms of $limit gets $holds', ({ limit, wanted, holds }) => {
    const { resources } = narrowedBy(task(wanted === undefined ? {} : { timeoutMs: wanted }), policyOf(limit))
    expect(resources.timeout).toBe(holds)
  })

  test('adds variables and needs, and changes none of the operator', () => {
    const narrowed = narrowedBy(task({ env: { A: 'task', B: 'task' }, require: ['pids-limit'] }), policyOf(null))
    expect(narrowed.env.set).toEqual({ A: 'operator', B: 'task' })
    expect(narrowed.require).toEqual(['memory-limit', 'pids-limit'])
  })

  test.each<Partial<Task>>([
    { id: '' },
    { id: 'x'.repeat(257) },
    { commands: [] },
    { commands: [['']] },
    { commands: [['a\0b']] },
    { timeoutMs: 0 },
    { timeoutMs: 1.5 },
    { env: { 'A=B': 'c' } },
    { env: { A: '\0' } },
  ])('is refused with %j', (more) => {
    expect(taskProblem(task({}))).toBeUndefined()
    expect(taskProblem(task(more))).toBeDefined()
  })

  test('of several lines is a command each, without empty ones', () => {
    expect(commandLines('a b\r\n\n  \nc')).toEqual([
      ['/bin/sh', '-c', 'a b'],
      ['/bin/sh', '-c', 'c'],
    ])
  })
})

test('output is sent in order, one piece at a time, in whole characters, and never empty', async () => {
  const sent: TaskOutput[] = []
  const state = { busy: false, overlapped: false }
  const relay = new OutputRelay(async (output) => {
    state.overlapped ||= state.busy
    state.busy = true
    await new Promise((resolve) => setImmediate(resolve))
    state.busy = false
    sent.push(output)
  })
  const [stdout, stderr] = [relay.listener('stdout'), relay.listener('stderr')]
  const text = '\u{1f600}e'.repeat(50_000)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += 4_999) stdout(bytes.subarray(at, at + 4_999))
  stderr(Buffer.from('after'))
  await relay.end()
  expect(state.overlapped).toBe(false)
  expect(sent.map((one) => one.text).join('')).toBe(`${text}after`)
  expect(sent.at(-1)).toEqual({ stream: 'stderr', text: 'after' })
  for (const one of sent) {
    expect(Buffer.from(one.text).toString()).toBe(one.text)
    expect(Buffer.byteLength(one.text)).toBeGreaterThan(0)
    expect(Buffer.byteLength(one.text)).toBeLessThanOrEqual(65_536)
  }
})

test('a command waits while its output is not taken, and goes on when less than enough of it waits', async () => {
  const takes: (() => void)[] = []
  const relay = new OutputRelay(() => new Promise((resolve) => takes.push(resolve)))
  const hear = relay.listener('stdout')
  expect(hear(Buffer.alloc(1000, 'a'))).toBeUndefined()
  const waits = hear(Buffer.alloc(200_000, 'a'))
  expect(waits).toBeInstanceOf(Promise)
  const state = { goesOn: false, taken: 0 }
  void (waits as Promise<void>).then(() => {
    state.goesOn = true
  })
  while (!state.goesOn) {
    await expect.poll(() => takes.length, { interval: 1 }).toBeGreaterThan(state.taken)
    takes[state.taken]?.()
    state.taken += 1
    await new Promise((resolve) => setImmediate(resolve))
  }
  // 201000 less 6 pieces of 21000 is less than 84000: the rest still waits.
  expect(state.taken).toBe(6)
})

test('a command does not wait for output of which there is more than anybody keeps live', async () => {
  const sent: string[] = []
  const relay = new OutputRelay(async ({ text }) => void sent.push(text))
  const hear = relay.listener('stdout')
  await hear(Buffer.from(`a${'\u{1f600}'.repeat(600_000)}`))
  expect(hear(Buffer.alloc(10_000_000, 'b'))).toBeUndefined()
  await relay.listener('stderr')(Buffer.from('after'))
  await relay.end()
  // The last character does not fit as a whole.
  expect(sent.join('')).toBe(`a${'\u{1f600}'.repeat(512 * 1024 - 1)}after`)
})
