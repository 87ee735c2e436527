/** BullMQ's rules about order, rates, flows, attempts and stalled jobs also hold for jobs that are run in sandboxes; on a real Redis. */
import { join } from 'node:path'
import type { Queue } from 'bullmq'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { jobOf, NAME, openQueue } from './redis.ts'

const countsOf = async (queue: Queue) => await queue.getJobCounts('wait', 'prioritized', 'active', 'completed')

const ROOT = join(import.meta.dirname, '../..')

async function bench(...words: readonly string[]): Promise<string> {
  const { stdout } = await execa(process.execPath, [join(ROOT, 'bench/fleet.mjs'), ...words], { cwd: ROOT })
  return stdout
}

describeWith(['redis', 'userns'], 'a queue of BullMQ', () => {
  test('hands out what is urgent first, and what has no priority before all that has one', async () => {
    const { queue, startAgent } = await openQueue()
    const priorities = { late: 9, soon: 2, middle: 5, first: 0 }
    for (const [name, priority] of Object.entries(priorities))
      await queue.add(name, { command: `echo ${name}` }, { priority })
    await startAgent('--slots', '1')
    await expect.poll(async () => (await countsOf(queue))['completed']).toBe(4)
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

  test('hands out no more than its rate allows, and goes on when that is lifted', async () => {
    const { queue, startAgent } = await openQueue()
    await queue.setGlobalRateLimit(2, 3_600_000)
    for (const name of ['a', 'b', 'c', 'd']) await queue.add(name, { command: 'true' })
    await startAgent('--slots', '4')
    await expect.poll(async () => (await countsOf(queue))['completed']).toBe(2)
    await expect.poll(() => queue.getRateLimitTtl(2)).toBeGreaterThan(3_000_000)
    expect(await countsOf(queue)).toMatchObject({ wait: 2, active: 0, completed: 2 })
    await queue.removeGlobalRateLimit()
    await queue.removeRateLimitKey()
    await startAgent('--slots', '4')
    await expect.poll(async () => (await countsOf(queue))['completed']).toBe(4)
  })

  test('runs tasks, reports reasons, and lets BullMQ try again what has to succeed', async () => {
    const lines = (await bench('demo')).split('\n')
    const expected = [
      /^hello +exit 0 .*: hello from/,
      /^lines +exit 0 .*: one$/,
      /^denied +exit 1 .*shadow: /,
      /^offline +exit 0 .*: no network$/,
      /^slow +timeout 124 /,
      /^retried +failed after 2 attempts: exit: exit code 3$/,
      /^cancelled +failed after 1 attempts: cancelled$/,
    ]
    expect(lines).toEqual(expected.map((line) => expect.stringMatching(line)))
  })

  test('loses no task and reports none twice when an agent and Redis are killed', async () => {
    const told = JSON.parse(await bench('chaos', '--tasks', '60', '--kills', '1', '--server-kills', '1', '--seed', '1'))
    expect(told).toMatchObject({ tasks: 60, lost: [], twice: [], failed: [], left: [] })
  })
})
