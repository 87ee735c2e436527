import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { processQuestions } from '../../src/supervisor/process-questions.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** A launch that notes each question, and gives the answers one after the other. */
async function world(...answers: readonly string[]) {
  const place = await temporaryDirectory()
  const [group, log] = [join(place, 'group'), join(place, 'log')]
  await mkdir(group)
  await writeFile(join(group, 'cgroup.procs'), '')
  await writeFile(log, '')
  const cases = answers.map((answer, index) => `${index + 1}) ${answer};;`).join(' ')
  const script = `#!/bin/sh\necho "$*" >>${log}\ncase $(wc -l <${log}) in ${cases} esac\n`
  await writeFile(join(place, 'launch'), script, { mode: 0o755 })
  return { questions: processQuestions(place), group, asked: () => readFile(log, 'utf8') }
}

test('The process that was moved to a group tells the version of Landlock, too', async () => {
  const { questions, group, asked } = await world('echo 7', 'echo 8')
  const [refused, abi] = await Promise.all([questions.enter(group), questions.landlockAbi()])
  expect({ refused, abi }).toEqual({ refused: undefined, abi: 7 })
  expect(await asked()).toBe('--landlock-abi\n')
})

test('Without a group to enter the question is asked alone', async () => {
  const { questions, asked } = await world('echo 0')
  expect(await questions.landlockAbi()).toBe(0)
  expect(await asked()).toBe('--landlock-abi\n')
})

test.each([
  ['nothing', 'exit 0'],
  ['no number', 'echo none'],
  ['half a line', 'printf 7'],
  ['a number before it failed', 'echo 7; exit 3'],
])('A process that was moved and told %s is asked again by itself', async (_title, answer) => {
  const { questions, group, asked } = await world(answer, 'echo 5')
  expect(await questions.enter(group)).toBeUndefined()
  expect(await questions.landlockAbi()).toBe(5)
  expect(await asked()).toBe('--landlock-abi\n--landlock-abi\n')
})

test('A process that could not be moved is no answer', async () => {
  const { questions, group, asked } = await world('echo 6')
  expect(await questions.enter(`${group}/gone`)).toMatch(/.+/)
  expect(await questions.landlockAbi()).toBe(6)
  expect(await asked()).toBe('--landlock-abi\n')
})

test('No answer at all is refused: none would take a wall away', async () => {
  const { questions, group } = await world('exit 3', 'exit 3')
  await questions.enter(group)
  await expect(questions.landlockAbi()).rejects.toMatchObject({ code: 'SETUP_FAILED' })
})
