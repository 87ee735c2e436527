/** What BullMQ rules, order, rates, flows, attempts and stalled jobs, holds for jobs that are run in sandboxes; on a real Redis. */
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { FlowProducer, type Job, Queue, QueueEvents } from 'bullmq'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { freePort } from '../support/free-port.ts'
import { describeWith } from '../support/needs.ts'

const NAME = 'rules'
const PATIENCE = { timeout: 60_000, interval: 50 }

function ending(child: { readonly kill: (signal: 'SIGKILL') => boolean } & PromiseLike<unknown>): void {
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await child
  })
}

async function startRedis(): Promise<number> {
  const port = await freePort()
  const words = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', await temporaryDirectory(), '--save', '']
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin']
  const file = directories.map((one) => join(one, 'redis-check-rdb')).find((one) => existsSync(one)) ?? ''
  // Debian's redis-server is this program, which looks at its name.
  ending(execa(file, words, { argv0: 'redis-server', reject: false, stdio: 'ignore' }))
  await expect.poll(() => answers(port), PATIENCE).toBe(true)
  return port
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

async function openQueue() {
  const connection = { host: '127.0.0.1', port: await startRedis(), maxRetriesPerRequest: null }
  const queue = new Queue(NAME, { connection })
  const events = new QueueEvents(NAME, { connection })
  const flows = new FlowProducer({ connection })
  onTestFinished(async () => {
    for (const one of [events, flows, queue]) await one.close()
  })
  await events.waitUntilReady()
  const startAgent = async (...words: readonly string[]) => {
    const home = await temporaryDirectory()
    const url = `redis://127.0.0.1:${connection.port}?queue=${NAME}`
    const [file = '', ...argv] = cliWords(['agent', '--queue', url, ...words], { program: 'llm-do' })
    const env = { PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: home }
    const child = execa(file, argv, { cwd: home, env, extendEnv: false, reject: false, stdio: 'ignore' })
    ending(child)
    return { child }
  }
  return { queue, events, flows, startAgent }
}

const countsOf = async (queue: Queue) => await queue.getJobCounts('wait', 'prioritized', 'active', 'completed')

async function jobOf(queue: Queue, id: string | undefined): Promise<Job> {
  const job = await queue.getJob(id ?? '')
  if (job === undefined) throw new Error(`no job ${id}`)
  return job
}

describeWith(['redis', 'userns'], 'a queue of BullMQ', () => {
  test('hands out what is urgent first, and what has no priority before all that has one', async () => {
    const { queue, startAgent } = await openQueue()
    const priorities = { late: 9, soon: 2, middle: 5, first: 0 }
    for (const [name, priority] of Object.entries(priorities))
      await queue.add(name, { command: `echo ${name}` }, { priority })
    await startAgent('--slots', '1')
    await expect.poll(async () => (await countsOf(queue))['completed'], PATIENCE).toBe(4)
    const jobs = (await queue.getCompleted()).toSorted((a, b) => (a.processedOn ?? 0) - (b.processedOn ?? 0))
    expect(jobs.map(({ name }) => name)).toEqual(['first', 'soon', 'middle', 'late'])
    expect(jobs.map(({ returnvalue }) => returnvalue.stdout)).toEqual(['first\n', 'soon\n', 'middle\n', 'late\n'])
  })

  test('runs the parent of a flow after its children, and the parent sees what they ended with', async () => {
    const { queue, events, flows, startAgent } = await openQueue()
    const child = (name: string, command: string) => ({
      ...{ name, queueName: NAME, data: { command, mustSucceed: true } },
      opts: { jobId: name, failParentOnFailure: true },
    })
    const { job } = await flows.add({
      ...{ name: 'parent', queueName: NAME, data: { command: 'cat', childrenOnStdin: true } },
      children: [child('compile', 'echo compiled'), child('test', 'echo tested; echo slow >&2')],
    })
    await startAgent('--slots', '2')
    const { stdout, exitCode } = await job.waitUntilFinished(events)
    expect(exitCode).toBe(0)
    const seen = String(stdout)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(seen).toEqual([
      { id: 'compile', queue: NAME, value: expect.objectContaining({ exitCode: 0, stdout: 'compiled\n' }) },
      { id: 'test', queue: NAME, value: expect.objectContaining({ stdout: 'tested\n', stderr: 'slow\n' }) },
    ])
    const ends = await Promise.all(['compile', 'test'].map(async (id) => (await jobOf(queue, id)).finishedOn ?? 0))
    expect((await jobOf(queue, job.id)).processedOn).toBeGreaterThanOrEqual(Math.max(...ends))
  })

  test('fails the parent of a flow, without a run, when a child that must succeed does not', async () => {
    const { queue, events, flows, startAgent } = await openQueue()
    const { job } = await flows.add({
      ...{ name: 'parent', queueName: NAME, data: { command: 'echo never' } },
      children: [
        {
          ...{ name: 'child', queueName: NAME, data: { command: 'exit 4', mustSucceed: true } },
          opts: { jobId: 'child', failParentOnFailure: true },
        },
      ],
    })
    await startAgent()
    await expect(job.waitUntilFinished(events)).rejects.toThrow('child')
    expect((await jobOf(queue, 'child')).failedReason).toBe('exit: exit code 4')
    expect(await jobOf(queue, job.id)).toMatchObject({ returnvalue: null, progress: 0 })
  })

  test('tries again what must succeed, and keeps the reason of every attempt', async () => {
    const { queue, events, startAgent } = await openQueue()
    const data = { command: 'sleep 60', timeoutMs: 200, mustSucceed: true }
    const job = await queue.add('slow', data, { attempts: 3, backoff: { type: 'fixed', delay: 50 } })
    await startAgent()
    await expect(job.waitUntilFinished(events)).rejects.toThrow(/^timeout: exit code 124 /)
    const { attemptsMade, failedReason, stacktrace } = await jobOf(queue, job.id)
    expect(attemptsMade).toBe(3)
    expect(failedReason).toMatch(/^timeout: exit code 124 /)
    expect(stacktrace).toHaveLength(3)
    for (const trace of stacktrace ?? []) expect(trace).toContain('timeout: exit code 124')
  })

  test('hands out no more than its rate allows, and goes on when that is lifted', async () => {
    const { queue, startAgent } = await openQueue()
    await queue.setGlobalRateLimit(2, 3_600_000)
    for (const name of ['a', 'b', 'c', 'd']) await queue.add(name, { command: 'true' })
    await startAgent('--slots', '4')
    await expect.poll(async () => (await countsOf(queue))['completed'], PATIENCE).toBe(2)
    await expect.poll(() => queue.getRateLimitTtl(2), PATIENCE).toBeGreaterThan(3_000_000)
    expect(await countsOf(queue)).toMatchObject({ wait: 2, active: 0, completed: 2 })
    await queue.removeGlobalRateLimit()
    await queue.removeRateLimitKey()
    await startAgent('--slots', '4')
    await expect.poll(async () => (await countsOf(queue))['completed'], PATIENCE).toBe(4)
  })

  test('takes a job from an agent that died and gives it to another one, which ends it', async () => {
    const { queue, events, startAgent } = await openQueue()
    const job = await queue.add('long', { command: 'echo begun; sleep 2; echo ended' })
    const begun = new Promise((resolve) => events.once('progress', resolve))
    const stalled = new Promise((resolve) => events.once('stalled', resolve))
    const { child } = await startAgent('--lease', '2s')
    await begun
    child.kill('SIGKILL')
    await child
    await startAgent('--lease', '2s')
    expect(await stalled).toMatchObject({ jobId: job.id })
    expect(await job.waitUntilFinished(events)).toMatchObject({ exitCode: 0, stdout: 'begun\nended\n' })
    expect(await jobOf(queue, job.id)).toMatchObject({ attemptsStarted: 2, stalledCounter: 1 })
  })
})
