/**
 * A task of an agent or server that was silent runs again, or its late result counts; it ends as cancelled only where a person cancelled it.
 * One server and a clock that the rows move; each row is an order of events.
 */
import { expect, test } from 'vitest'
import { OFFLINE_AFTER_MS } from '../../src/fleet/server/store.ts'
import { as, testServer } from './fleet-server.ts'

const LONG_MS = OFFLINE_AFTER_MS + 6_000
const CANCELLED = { exitCode: 130, reason: 'cancelled' }

/** Agents `one`, which is given the task of each row, `two` and `three`. */
async function fleetOf() {
  const state = { server: await testServer({ agents: ['one', 'two', 'three'] }), id: '' }
  const task = () => state.server.task(state.id)
  const reports = async (agent: string, more = {}) => (await state.server.report(state.id, agent, more)).status
  /** Events of a row, and what some of them answer. */
  const events: Readonly<Record<string, (agent: string) => unknown>> = {
    /** All agents are silent; the server looks every second. */
    silence: () => state.server.pass(OFFLINE_AFTER_MS),
    almost: () => state.server.pass(OFFLINE_AFTER_MS - 1_000),
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
    personCancels: async () => (await state.server.cancel(state.id)).status,
    is: async () => (await task()).state,
    asks: async (agent) => {
      const path = `/api/jobs/check-cancel?jobId=${state.id}`
      return (await state.server.call('GET', path, undefined, as(agent))).body.cancelRequested
    },
    polls: async (agent) => (await state.server.take(agent)).body.job?.jobId === state.id,
    beats: (agent) => state.server.beat(agent),
    idles: (agent) => state.server.beat(agent, { status: 'IDLE', dockerContainers: 0 }),
    leaves: (agent) => state.server.beat(agent, { status: 'OFFLINE' }),
    startsAnew: (agent) => state.server.register(agent),
    reports: (agent) => reports(agent),
    cancels: (agent) => reports(agent, CANCELLED),
    endsWith130: (agent) => reports(agent, { exitCode: 130, reason: 'exit' }),
    reports130: (agent) => reports(agent, { exitCode: 130 }),
  }
  return {
    task,
    /** `EVENT [AGENT] [-> ANSWER]` */
    happens: async (step: string) => {
      const [words = '', answer] = step.split(' -> ')
      const [event = '', agent = 'one'] = words.split(' ')
      const got = await (events[event] ?? expect.unreachable(`no event ${event}`))(agent)
      if (answer !== undefined) expect(`${got}`, step).toBe(answer)
    },
    begin: async () => {
      state.id = await state.server.submit('work')
      expect((await state.server.take('one')).body.job.jobId).toBe(state.id)
    },
    /** The next row has the queue to itself. */
    settle: async () => {
      const { state: was, worker } = await task()
      if (was === 'running') await reports(worker)
      else if (was === 'queued') await state.server.cancel(state.id)
    },
  }
}

const running = { state: 'running', worker: /^one/, attempts: 1 }
const doneByOne = { state: 'done', exitCode: 0, worker: /^one/, attempts: 1 }
const doneByTwo = { state: 'done', exitCode: 0, worker: /^two/, attempts: 2 }
const cancelled = { state: 'cancelled', exitCode: 130 }

type Row = readonly [order: string, end: object]

const SILENCE: readonly Row[] = [
  ['silence', { state: 'queued', message: /offline/ }],
  ['silence, asks -> false', running],
  ['silence, asks -> false, reports -> 200', doneByOne],
  ['silence, reports -> 200', doneByOne],
  ['silence, polls -> false', running],
  ['silence, beats, polls two -> false, reports', doneByOne],
  ['silence, polls two -> true, asks -> true, cancels -> 403, asks two -> false, reports two', doneByTwo],
  ['silence, polls two, silence, asks -> true, reports -> 403', { state: 'queued', worker: /^two/ }],
  ['silence, startsAnew, polls -> true, reports', { ...doneByOne, attempts: 2 }],
  ['startsAnew', { state: 'queued', attempts: 1 }],
  ['almost, idles, moment', { state: 'queued', attempts: 1 }],
  ['silence, leaves, moment', { state: 'queued', attempts: 1 }],
  ['silence, polls two, silence, polls three, silence', { state: 'failed', attempts: 3, message: /offline/ }],
]

const ABSENCE: readonly Row[] = [
  ['restart, moment, is -> running, asks -> false, reports', doneByOne],
  ['restart, silence, polls two -> true, reports two', doneByTwo],
  ['silence, restart, asks -> false', running],
  ['stall, moment, is -> running, asks -> false, reports', doneByOne],
  ['stall, silence, is -> queued, asks -> false', running],
]

const CANCELLATION: readonly Row[] = [
  ['personCancels, asks -> true, cancels', cancelled],
  ['asks -> false, personCancels -> 200, asks -> true, reports130, personCancels -> 409', cancelled],
  ['silence, personCancels, is -> cancelled, asks -> true, reports -> 200', { state: 'cancelled' }],
  ['personCancels, silence', { state: 'cancelled' }],
  ['personCancels, restart, asks -> true, cancels', cancelled],
  ['cancels', { state: 'queued', message: /no person/ }],
  ['cancels, polls two -> true, reports two', doneByTwo],
  ['reports130', { state: 'queued' }],
  ['endsWith130', { state: 'done', exitCode: 130 }],
]

test.each([
  { events: 'silence, return, report and another attempt', rows: SILENCE },
  { events: 'restart and stall of the server', rows: ABSENCE },
  { events: 'cancellation by a person, and by nobody', rows: CANCELLATION },
])('a task ends well in every order of $events', async ({ rows }) => {
  const fleet = await fleetOf()
  for (const [order, end] of rows) {
    await fleet.begin()
    for (const step of order.split(', ')) await fleet.happens(step)
    const patterns = Object.entries(end).map(([key, value]) => [
      key,
      value instanceof RegExp ? expect.stringMatching(value) : value,
    ])
    expect(await fleet.task(), order).toMatchObject(Object.fromEntries(patterns))
    await fleet.settle()
  }
})
