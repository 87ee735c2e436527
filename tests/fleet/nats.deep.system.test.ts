/** The source of tasks that docs/internals/fleet-protocol.md shows, as it stands, with a real JetStream. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { connect, type JetStreamClient, type NatsConnection } from 'nats'
import { expect, onTestFailed, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { freePort } from '../support/free-port.ts'
import { describeWith, natsServer } from '../support/needs.ts'
import { TIED } from '../support/processes.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const ROOT = join(import.meta.dirname, '../..')

async function startServer(): Promise<string> {
  const port = await freePort()
  const words = ['--jetstream', '--store_dir', await temporaryDirectory(), '--addr', '127.0.0.1', '--port', `${port}`]
  const server = execa(TIED[0], [...TIED.slice(1), natsServer() ?? '', ...words], { reject: false, stdio: 'ignore' })
  onTestFinished(async () => {
    server.kill('SIGKILL')
    await server
  })
  return `127.0.0.1:${port}`
}

/** The example, with a silence of two seconds in the place of thirty. */
function example(): string {
  const page = readFileSync(join(ROOT, 'docs/internals/fleet-protocol.md'), 'utf8')
  const [, text = ''] = /^```js\n((?:(?!^```).)*AckPolicy.*?)^```$/ms.exec(page) ?? []
  const ours = {
    'llm-do-exec': join(checkoutFor(currentUser()), 'dist/index.js'),
    nats: join(ROOT, 'node_modules/nats/index.js'),
  }
  return text
    .replace(/from '(llm-do-exec|nats)'/g, (_, name: keyof typeof ours) => `from ${JSON.stringify(ours[name])}`)
    .replace('nanos(30_000)', 'nanos(2_000)')
    .replace('message.working(), 10_000', 'message.working(), 500')
}

async function startAgent(url: string) {
  const cwd = await temporaryDirectory()
  writeFileSync(join(cwd, 'agent.mjs'), example())
  const agent = execa(TIED[0], [...TIED.slice(1), process.execPath, 'agent.mjs'], {
    cwd,
    env: { NATS_URL: url },
    reject: false,
    all: true,
  })
  onTestFinished(async () => {
    agent.kill('SIGKILL')
    await agent
  })
  onTestFailed(async () => {
    agent.kill('SIGKILL') // Hooks come in an order that is vitest's own: this one waits for no other.
    console.error((await agent).all)
  })
  return { agent }
}

describeWith(['nats', 'userns'], 'a queue of NATS', () => {
  async function startAll(): Promise<{ nats: NatsConnection; jetstream: JetStreamClient; url: string }> {
    const url = await startServer()
    const nats = await connect({ servers: url, waitOnFirstConnect: true, maxReconnectAttempts: -1 })
    onTestFinished(() => nats.close())
    return { nats, jetstream: nats.jetstream(), url }
  }

  /** Ends of tasks that the example has reported, by their numbers. */
  async function endsOf(nats: NatsConnection, count: number): Promise<ReadonlyMap<number, readonly object[]>> {
    const manager = await nats.jetstreamManager()
    const messages = async (): Promise<number> => (await manager.streams.info('ends')).state.messages
    await expect.poll(messages).toBeGreaterThanOrEqual(count)
    const ends = new Map<number, object[]>()
    for (let seq = 1; seq <= (await messages()); seq += 1) {
      const { subject, data } = await manager.streams.getMessage('ends', { seq })
      const task = Number(subject.split('.').at(-1))
      ends.set(task, [...(ends.get(task) ?? []), JSON.parse(Buffer.from(data).toString()) as object])
    }
    return ends
  }

  /**
   * The example makes the streams, the bucket of cancellations last. A bucket that this test made at the same moment
   * with other settings would end the example.
   */
  async function exampleIsReady(nats: NatsConnection): Promise<void> {
    const manager = await nats.jetstreamManager()
    // One that is not there yet is an error.
    const bucket = () => manager.streams.info('KV_cancelled').catch(() => undefined)
    await expect.poll(bucket).toBeDefined()
  }

  const submitter = (jetstream: JetStreamClient) => async (data: unknown) =>
    await jetstream.publish('tasks.new', typeof data === 'string' ? data : JSON.stringify(data))

  test('runs tasks, reports each once, cancels, and refuses what is no task', async () => {
    const { nats, jetstream, url } = await startAll()
    const { agent } = await startAgent(url)
    await exampleIsReady(nats)
    const submit = submitter(jetstream)
    await submit({ command: 'echo one; exit 3' })
    await submit({ command: 'sleep 60', timeoutMs: 300 })
    await submit('no JSON')
    await submit({ command: 5 })
    await submit({ command: 'sleep 60' })
    await (await jetstream.views.kv('cancelled')).put('5', '')
    const ends = await endsOf(nats, 5)
    expect([...ends.keys()].sort()).toEqual([1, 2, 3, 4, 5])
    expect(ends.get(1)).toEqual([expect.objectContaining({ status: 'finished', exitCode: 3, stdout: 'one\n' })])
    expect(ends.get(2)).toEqual([expect.objectContaining({ exitCode: 124, reason: 'timeout' })])
    for (const wrong of [3, 4]) expect(ends.get(wrong)).toEqual([{ status: 'refused', message: 'no command' }])
    expect(ends.get(5)).toEqual([expect.objectContaining({ exitCode: 130, reason: 'cancelled' })])
    const left = async () => (await (await nats.jetstreamManager()).streams.info('tasks')).state.messages
    await expect.poll(left).toBe(0)
    agent.kill('SIGTERM')
    expect(await agent).toMatchObject({ exitCode: 0 })
  })

  test('gives the task of an agent that was killed to another one', async () => {
    const { nats, jetstream, url } = await startAll()
    const { agent: first } = await startAgent(url)
    await exampleIsReady(nats)
    const output = nats.subscribe('tasks.output.1.stdout')
    await submitter(jetstream)({ command: 'echo begun; sleep 3; echo ended' })
    for await (const message of output) if (message.string().includes('begun')) break
    first.kill('SIGKILL')
    await first
    await startAgent(url)
    const ends = await endsOf(nats, 1)
    expect(ends.get(1)).toEqual([expect.objectContaining({ exitCode: 0, stdout: 'begun\nended\n' })])
  })
})
