/** The agent's side of the protocol, without an agent: what it takes from a server, and what it holds on to. */
import { getEventListeners } from 'node:events'
import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ServerClient } from '../../src/fleet/http-client.ts'
import { HttpSource } from '../../src/fleet/http-source.ts'
import { Journal } from '../../src/fleet/journal.ts'
import type { FinishedTask } from '../../src/fleet/port.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { ProtocolServer } from './protocol-server.ts'

const OWN_ID = process.getuid?.() ?? -1

async function sourceOf(server: ProtocolServer, directory?: string) {
  const client = new ServerClient({ server: new URL(server.url), workerId: 'w1', token: () => undefined })
  const journal = new Journal(directory ?? `${await temporaryDirectory()}/journal`, OWN_ID)
  const register = async (): Promise<void> => {
    await client.ask('api/workers/register', { method: 'POST', body: { workerId: 'w1', hostname: 'host' } })
  }
  await register()
  const { signal } = new AbortController()
  return new HttpSource({ client, journal, workerId: 'w1', pollMs: 1, register, end: signal, log: () => undefined })
}

const finished = (reason: 'exit' | 'cancelled', exitCode: number) =>
  ({
    status: 'finished',
    reason,
    exitCode,
    message: '',
    stdout: '',
    stderr: '',
    warnings: [],
  }) as unknown as FinishedTask

test('a task that was ended here for another agent runs when it is given again, one that has run reports again', async () => {
  const server = await ProtocolServer.start()
  const source = await sourceOf(server)
  const { signal } = new AbortController()
  for (const end of [finished('cancelled', 130), finished('exit', 0)]) {
    server.jobs.push({ jobId: 'j1', command: 'true' })
    const task = await source.take(signal)
    expect(task?.id).toBe('j1')
    await source.report(task!, end)
  }
  server.jobs.push({ jobId: 'j1', command: 'true' }, { jobId: 'j2', command: 'true' })
  expect((await source.take(signal))?.id).toBe('j2')
  expect(server.reports('j1').map(({ body }) => body['exitCode'])).toEqual([130, 0, 0])
})

test('a record that a power cut has damaged stops no agent, and those next to it are reported', async () => {
  const server = await ProtocolServer.start()
  const directory = `${await temporaryDirectory()}/journal`
  new Journal(directory, OWN_ID).taken('whole')
  const damaged = ['', '{"jobId":', '[]', '{"jobId":5}', '{"jobId":"x","request":{"method":"DELETE","body":5}}']
  for (const [at, text] of damaged.entries()) writeFileSync(`${directory}/${at}.report`, text, { mode: 0o600 })
  const source = await sourceOf(server, directory)
  await source.settle()
  expect(server.reports('whole')).toHaveLength(1)
  expect(new Journal(directory, OWN_ID).owed()).toEqual([])
})

test('polls leave no listener behind', async () => {
  const server = await ProtocolServer.start()
  const source = await sourceOf(server)
  const { signal } = new AbortController()
  for (const jobId of ['a', 'b', 'c']) {
    server.jobs.push({ jobId, command: 'true' })
    await source.take(signal)
  }
  // The pause before the next poll, which began with the last one, may still end.
  await expect.poll(() => getEventListeners(signal, 'abort')).toHaveLength(0)
})

test('a server that cannot be reached is named, with the reason', async () => {
  // Fetch connects to no such port.
  const client = new ServerClient({ server: new URL('http://127.0.0.1:1'), workerId: 'w1', token: () => undefined })
  await expect(client.ask('x')).rejects.toThrow('http://127.0.0.1:1 cannot be reached: bad port')
})
