/** An agent of a queue of BullMQ on a real Redis: no job is lost with its agent, and no password is shown. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { programFor } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { agentOfKilledRedis, jobOf, openQueue } from './redis.ts'

describeWith(['redis', 'userns'], 'an agent of a queue', () => {
  test('takes a job from an agent that died and gives it to another one, which ends it', async () => {
    const { queue, events, startAgent } = await openQueue()
    const gate = await temporaryDirectory({ mode: 0o755 })
    const options = ['--lease', '2s', '--ro', `${gate}:/gate`]
    const command = 'echo begun; until test -e /gate/open; do sleep 0.1; done; echo ended'
    const job = await queue.add('long', { command })
    const begun = new Promise((resolve) => events.once('progress', resolve))
    const stalled = new Promise((resolve) => events.once('stalled', resolve))
    const { child } = await startAgent(...options)
    await begun
    child.kill('SIGKILL')
    await child
    writeFileSync(join(gate, 'open'), '')
    await startAgent(...options)
    expect(await stalled).toMatchObject({ jobId: job.id })
    expect(await job.waitUntilFinished(events)).toMatchObject({ exitCode: 0, stdout: 'begun\nended\n' })
    expect(await jobOf(queue, job.id)).toMatchObject({ attemptsStarted: 2, stalledCounter: 1 })
  })

  test('ends after its grace, also while Redis is away', async () => {
    const { child } = await agentOfKilledRedis('--grace', '100ms')
    child.kill('SIGTERM')
    expect((await child).exitCode).toBe(1)
  })

  test('refuses a password on its command line', () => {
    const words = ['agent', '--queue', 'redis://:secret@127.0.0.1']
    const { status, stderr } = spawnSync(programFor(currentUser(), 'llm-do'), words, { encoding: 'utf8' })
    expect(status).toBe(125)
    expect(stderr).toContain('LLM_DO_QUEUE_PASSWORD')
    expect(stderr).not.toContain('secret')
  })
})

testWith('strace', 'a program that serves nobody loads no package of queues or databases', () => {
  const words = ['-f', '-e', 'trace=openat', programFor(currentUser(), 'llm-do'), 'pool', 'status']
  const { stderr } = spawnSync('strace', words, { encoding: 'utf8' })
  expect(stderr).toMatch(/dist\/program-/)
  expect(stderr).not.toMatch(/bullmq|sqlite|fleet-page/)
})
