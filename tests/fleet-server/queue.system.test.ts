/** Tasks of BullMQ on a real Redis, run by agents that are killed, as bench/fleet.mjs does it. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { programFor } from '../support/cli.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'

const ROOT = join(import.meta.dirname, '../..')

async function bench(...words: readonly string[]): Promise<string> {
  const { stdout } = await execa(process.execPath, [join(ROOT, 'bench/fleet.mjs'), ...words], { cwd: ROOT })
  return stdout
}

describeWith('redis', 'an agent of a queue', () => {
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
