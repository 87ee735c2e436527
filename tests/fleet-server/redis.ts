/** A real Redis, a queue of BullMQ in it, and agents that serve it; they end with the test and with its process. */
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { FlowProducer, type Job, Queue, QueueEvents } from 'bullmq'
import { execa } from 'execa'
import { expect, onTestFinished } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { freePort } from '../support/free-port.ts'
import { TIED } from '../support/processes.ts'

export const NAME = 'rules'

function ending(child: { readonly kill: (signal: 'SIGKILL') => boolean } & PromiseLike<unknown>): void {
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await child
  })
}

async function startRedis() {
  const port = await freePort()
  const words = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', await temporaryDirectory(), '--save', '']
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin']
  const file = directories.map((one) => join(one, 'redis-check-rdb')).find((one) => existsSync(one)) ?? ''
  // Debian's redis-server is this program, which looks at its name.
  const named = ['bash', '-c', 'exec -a redis-server "$0" "$@"', file, ...words]
  const child = execa(TIED[0], [...TIED.slice(1), ...named], { reject: false, stdio: 'ignore' })
  ending(child)
  await expect.poll(() => answers(port)).toBe(true)
  return { port, child }
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

export async function openQueue() {
  const redis = await startRedis()
  const connection = { host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null }
  const queue = new Queue(NAME, { connection })
  const events = new QueueEvents(NAME, { connection })
  const flows = new FlowProducer({ connection })
  onTestFinished(async () => {
    for (const one of [events, flows, queue]) await one.close()
  })
  await events.waitUntilReady()
  const startAgent = async (...words: readonly string[]) => {
    const { child } = await agentOf(redis.port, words)
    child.stderr.resume()
    return { child }
  }
  return { queue, events, flows, startAgent }
}

/** An agent of the queue, with its own state. */
async function agentOf(port: number, words: readonly string[]) {
  const home = await temporaryDirectory()
  const url = `redis://127.0.0.1:${port}?queue=${NAME}`
  const [file = '', ...argv] = cliWords(['agent', '--queue', url, ...words], { program: 'llm-do', through: TIED })
  const env = { PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: home }
  const options = { cwd: home, env, extendEnv: false, reject: false, stdin: 'ignore', stdout: 'ignore' } as const
  const child = execa(file, argv, { ...options, buffer: false })
  ending(child)
  return { child }
}

/** An agent whose Redis has been killed. */
export async function agentOfKilledRedis(...words: readonly string[]) {
  const { port, child: redis } = await startRedis()
  const { child } = await agentOf(port, words)
  const lines = createInterface({ input: child.stderr })
  const said = (text: string): Promise<void> =>
    new Promise((resolve) => lines.on('line', (line) => line.includes(text) && resolve()))
  await said('serves the queue')
  const isLost = said('the queue: ')
  redis.kill('SIGKILL')
  await isLost
  return { child }
}

export async function jobOf(queue: Queue, id: string | undefined): Promise<Job> {
  const job = await queue.getJob(id ?? '')
  if (job === undefined) throw new Error(`no job ${id}`)
  return job
}
