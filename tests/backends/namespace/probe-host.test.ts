import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { processQuestions } from '../../../src/backends/namespace/probe-host.ts'
import { temporaryDirectory } from '../../support/directory.ts'

/** A launch that notes each question, and gives the answers one after the other; and a directory that a shell takes for a group. */
async function world(...replies: readonly string[]) {
  const directory = await temporaryDirectory()
  const [group, log] = [join(directory, 'group'), join(directory, 'log')]
  await mkdir(group)
  await writeFile(join(group, 'cgroup.procs'), '')
  await writeFile(log, '')
  const cases = replies.map((reply, index) => `${index + 1}) ${reply};;`).join(' ')
  const script = `#!/bin/sh\nshift; echo "$*" >>${log}\ncase $(wc -l <${log}) in ${cases} esac\n`
  await writeFile(join(directory, 'llm-do'), script, { mode: 0o755 })
  const calls = async () => (await readFile(log, 'utf8')).replaceAll(group, 'GROUP').trimEnd().split('\n')
  const byShell = async () => (await readFile(join(group, 'cgroup.procs'), 'utf8')) === '0\n'
  return { questions: processQuestions(directory), group, calls, byShell }
}

test('One process answers both questions', async () => {
  const { questions, group, calls, byShell } = await world('echo entered; echo 7', 'echo 8')
  const [refused, abi] = await Promise.all([questions.enter(group), questions.landlockAbi()])
  expect({ refused, abi }).toEqual({ refused: undefined, abi: 7 })
  expect(await calls()).toEqual(['--probe-host GROUP'])
  expect(await byShell()).toBe(false)
})

test('Without a group to enter the version is asked alone', async () => {
  const { questions, calls } = await world('echo 0')
  expect(await questions.landlockAbi()).toBe(0)
  expect(await calls()).toEqual(['--probe-host'])
})

test('What launch cannot enter a shell tries, and its word counts', async () => {
  const { questions, group, calls, byShell } = await world('echo 6')
  expect(await questions.enter(group)).toBeUndefined()
  expect(await byShell()).toBe(true)
  expect(await questions.enter(`${group}/gone`)).toEqual({ why: expect.stringMatching(/.+/), isPassing: false })
  expect(await calls()).toEqual(['--probe-host GROUP', '--probe-host GROUP/gone'])
})

test('A version that was told without entering is known', async () => {
  const { questions, group, calls } = await world('echo 6', 'echo 5')
  await questions.enter(group)
  expect(await questions.landlockAbi()).toBe(6)
  expect(await calls()).toEqual(['--probe-host GROUP'])
})

test.each([
  ['nothing', 'exit 0'],
  ['no number', 'echo entered; echo none'],
  ['half a line', 'echo entered; printf 7'],
  ['that it entered, and no more', 'echo entered'],
  ['both before it failed', 'echo entered; echo 7; exit 3'],
])('A launch that tells %s is believed in nothing', async (_title, reply) => {
  const { questions, group, calls, byShell } = await world(reply, 'echo 5')
  expect(await questions.enter(group)).toBeUndefined()
  expect(await byShell()).toBe(true)
  expect(await questions.landlockAbi()).toBe(5)
  expect(await calls()).toEqual(['--probe-host GROUP', '--probe-host'])
})

test('No answer at all is refused: none would take a wall away', async () => {
  const { questions, group } = await world('exit 3', 'exit 3')
  await questions.enter(group)
  await expect(questions.landlockAbi()).rejects.toMatchObject({ code: 'SETUP_FAILED' })
})
