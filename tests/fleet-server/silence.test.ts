/**
 * A task of an agent or server that was silent runs again, or its late result counts; it ends as cancelled only where a person cancelled it.
 * One server and a clock that the rows move; each row is an order of events.
 */
import { expect, test } from 'vitest'
import { OFFLINE_AFTER_MS } from '../../src/fleet/server/store.ts'
import { as, testServer } from './fleet-server.ts'

const LONG_MS = OFFLINE_AFTER_MS + 6_000

type Fleet = Awaited<ReturnType<typeof fleetOf>>

/** Agents `one`, which is given the task of each row, `two` and `three`. */
async function fleetOf() {
  const state = { server: await testServer(), id: '' }
  for (const agent of ['one', 'two', 'three']) await state.server.register(agent)
  const ask = (path: string, agent: string) => state.server.call('GET', path, undefined, as(agent))
  return {
    task: () => state.server.task(state.id),
    begin: async () => {
      state.id = await state.server.submit('work')
      expect((await state.server.take('one')).body.job.jobId).toBe(state.id)
    },
    /** The next row has the queue to itself. */
    settle: async () => {
      const { state: was, worker } = await state.server.task(state.id)
      if (was === 'running') await state.server.report(state.id, worker)
      else if (was === 'queued') await state.server.call('POST', `/api/tasks/${state.id}/cancel`)
    },
    /** All agents are silent; the server looks every second. */
    silence: () => state.server.pass(OFFLINE_AFTER_MS),
    moment: () => state.server.pass(2_000),
    stall: () => {
      state.server.clock.ms += LONG_MS
      state.server.sweep()
    },
    restart: async () => {
      const { directory, clock } = state.server
      await state.server.close()
      clock.ms += LONG_MS
      state.server = await testServer({ directory, clock })
      state.server.sweep()
    },
    personCancels: () => state.server.call('POST', `/api/tasks/${state.id}/cancel`),
    asks: async (agent: string) => (await ask(`/api/jobs/check-cancel?jobId=${state.id}`, agent)).body.cancelRequested,
    polls: async (agent: string) => (await state.server.take(agent)).body.job?.jobId === state.id,
    beats: (agent: string, more = {}) =>
      state.server.call('POST', '/api/workers/heartbeat', { workerId: agent, ...more }, as(agent)),
    restarts: (agent: string) => state.server.register(agent),
    reports: async (agent: string, more = {}) => (await state.server.report(state.id, agent, more)).status,
  }
}

const CANCELLED = { exitCode: 130, reason: 'cancelled' }
const running = { state: 'running', worker: /^one/, attempts: 1 }
const doneByOne = { state: 'done', exitCode: 0, worker: /^one/, attempts: 1 }
const doneByTwo = { state: 'done', exitCode: 0, worker: /^two/, attempts: 2 }
const cancelled = { state: 'cancelled' }

type Row = readonly [order: string, end: object, steps: (fleet: Fleet) => Promise<void>]

const SILENCE: readonly Row[] = [
  [
    'silent, asks',
    running,
    async (f) => {
      f.silence()
      expect(await f.task()).toMatchObject({ state: 'queued', message: expect.stringMatching(/offline/) })
      expect(await f.asks('one')).toBe(false)
    },
  ],
  [
    'silent, asks, reports',
    doneByOne,
    async (f) => {
      f.silence()
      expect(await f.asks('one')).toBe(false)
      expect(await f.reports('one')).toBe(200)
    },
  ],
  [
    'silent, reports',
    doneByOne,
    async (f) => {
      f.silence()
      expect(await f.reports('one')).toBe(200)
    },
  ],
  [
    'silent, polls',
    running,
    async (f) => {
      f.silence()
      expect(await f.polls('one')).toBe(false)
    },
  ],
  [
    'silent, beats, another polls, reports',
    doneByOne,
    async (f) => {
      f.silence()
      await f.beats('one')
      expect(await f.polls('two')).toBe(false)
      await f.reports('one')
    },
  ],
  [
    'silent, another takes it, asks, reports its cancellation, the other reports',
    doneByTwo,
    async (f) => {
      f.silence()
      expect(await f.polls('two')).toBe(true)
      expect(await f.asks('one')).toBe(true)
      expect(await f.reports('one', CANCELLED)).toBe(403)
      expect(await f.asks('two')).toBe(false)
      await f.reports('two')
    },
  ],
  [
    'silent, another takes it and is silent, returns, reports',
    { state: 'queued', worker: /^two/ },
    async (f) => {
      f.silence()
      await f.polls('two')
      f.silence()
      expect(await f.asks('one')).toBe(true)
      expect(await f.reports('one')).toBe(403)
    },
  ],
  [
    'silent, starts anew, takes it again, reports',
    { ...doneByOne, attempts: 2 },
    async (f) => {
      f.silence()
      await f.restarts('one')
      expect(await f.polls('one')).toBe(true)
      await f.reports('one')
    },
  ],
  [
    'says goodbye',
    { state: 'queued', attempts: 1 },
    async (f) => {
      f.silence()
      await f.beats('one', { status: 'OFFLINE' })
      f.moment()
    },
  ],
  [
    'three agents, each silent',
    { state: 'failed', attempts: 3, message: /offline/ },
    async (f) => {
      f.silence()
      await f.polls('two')
      f.silence()
      await f.polls('three')
      f.silence()
    },
  ],
]

const ABSENCE: readonly Row[] = [
  [
    'server restarted, looks, returns, reports',
    doneByOne,
    async (f) => {
      await f.restart()
      f.moment()
      expect(await f.task()).toMatchObject({ state: 'running' })
      expect(await f.asks('one')).toBe(false)
      await f.reports('one')
    },
  ],
  [
    'server restarted, silent, another takes it, reports',
    doneByTwo,
    async (f) => {
      await f.restart()
      f.silence()
      expect(await f.polls('two')).toBe(true)
      await f.reports('two')
    },
  ],
  [
    'silent, server restarted, asks',
    running,
    async (f) => {
      f.silence()
      await f.restart()
      expect(await f.asks('one')).toBe(false)
    },
  ],
  [
    'stall, looks, asks, reports',
    doneByOne,
    async (f) => {
      f.stall()
      f.moment()
      expect(await f.task()).toMatchObject({ state: 'running' })
      expect(await f.asks('one')).toBe(false)
      await f.reports('one')
    },
  ],
  [
    'stall, silent, asks',
    running,
    async (f) => {
      f.stall()
      f.silence()
      expect(await f.task()).toMatchObject({ state: 'queued' })
      expect(await f.asks('one')).toBe(false)
    },
  ],
]

const CANCELLATION: readonly Row[] = [
  [
    'person cancels, asks, reports',
    { state: 'cancelled', exitCode: 130 },
    async (f) => {
      await f.personCancels()
      expect(await f.asks('one')).toBe(true)
      await f.reports('one', CANCELLED)
    },
  ],
  [
    'silent, person cancels, asks, reports its result',
    cancelled,
    async (f) => {
      f.silence()
      await f.personCancels()
      expect(await f.asks('one')).toBe(true)
      expect(await f.reports('one')).toBe(200)
    },
  ],
  [
    'person cancels, silent',
    cancelled,
    async (f) => {
      await f.personCancels()
      f.silence()
    },
  ],
  [
    'person cancels, server restarted, asks, reports',
    { state: 'cancelled', exitCode: 130 },
    async (f) => {
      await f.personCancels()
      await f.restart()
      expect(await f.asks('one')).toBe(true)
      await f.reports('one', CANCELLED)
    },
  ],
  [
    'reports a cancellation that no person asked for, another takes it',
    doneByTwo,
    async (f) => {
      await f.reports('one', CANCELLED)
      expect(await f.task()).toMatchObject({ state: 'queued', message: expect.stringMatching(/no person/) })
      expect(await f.polls('two')).toBe(true)
      await f.reports('two')
    },
  ],
  ['reports 130 and no reason', { state: 'queued' }, async (f) => void (await f.reports('one', { exitCode: 130 }))],
  [
    'its command ends with 130',
    { state: 'done', exitCode: 130 },
    async (f) => {
      await f.reports('one', { exitCode: 130, reason: 'exit' })
    },
  ],
]

test.each([
  { events: 'silence, return, report and another attempt', rows: SILENCE },
  { events: 'restart and stall of the server', rows: ABSENCE },
  { events: 'cancellation by a person, and by nobody', rows: CANCELLATION },
])('a task ends well in every order of $events', async ({ rows }) => {
  const fleet = await fleetOf()
  for (const [order, end, steps] of rows) {
    await fleet.begin()
    await steps(fleet)
    const patterns = Object.entries(end).map(([key, value]) => [
      key,
      value instanceof RegExp ? expect.stringMatching(value) : value,
    ])
    expect(await fleet.task(), order).toMatchObject(Object.fromEntries(patterns))
    await fleet.settle()
  }
})
