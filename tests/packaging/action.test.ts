/** action.yml is what GitHub takes, and nothing of an input becomes text of a shell. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readAction } from '../support/github-runner.ts'

const ROOT = join(import.meta.dirname, '../..')
const { inputs, runs } = readAction(ROOT)

test('has no expression in the text of a step', () => {
  expect(runs.steps.filter(({ run }) => run.includes('${{'))).toEqual([])
})

test('uses each of its inputs, and no other', () => {
  const used = runs.steps.flatMap(({ env = {} }) =>
    Object.entries(env).flatMap(([name, value]) => (name.startsWith('INPUT_') ? [[name, value]] : [])),
  )
  const expected = Object.keys(inputs).map((name) => [
    `INPUT_${name.toUpperCase().replaceAll('-', '_')}`,
    `\${{ inputs.${name} }}`,
  ])
  expect(used.toSorted()).toEqual(expected.toSorted())
})

test('each variable of a step is read by its script', () => {
  const unread = runs.steps.flatMap(({ run, env = {} }) => {
    const [, script = ''] = /packaging\/action\/(\w+)/.exec(run) ?? []
    const text = readFileSync(join(ROOT, 'packaging/action', script), 'utf8')
    return Object.keys(env).filter((name) => !new RegExp(`\\$\\{?${name}\\b`).test(text))
  })
  expect(unread).toEqual([])
})
