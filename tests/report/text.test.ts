import { expect, test } from 'vitest'
import { SandboxError } from '../../src/error.ts'
import { classify } from '../../src/report/classify.ts'
import { errorLines, neutralise, resultLines } from '../../src/report/text.ts'
import { outcome, plan, UNBUILT } from './fixtures.ts'

test.each([
  ['\u001b[2Jgone', '\\u{1b}[2Jgone'],
  ['a\nb\r\tc', 'a\\u{a}b\\u{d}\\u{9}c'],
  ['\u009b31m', '\\u{9b}31m'],
  ['abc\u202etxt', 'abc\\u{202e}txt'],
  ['\ud800', '\\u{d800}'],
  ['Grüße 😀', 'Grüße 😀'],
])('a person sees %j as text', (raw, seen) => {
  expect(neutralise(raw)).toBe(seen)
})

test.each([0, 1, 127])('nothing is said about a command that exits with %i', (exitCode) => {
  expect(resultLines(classify(plan(), outcome({ exitCode }), ['x']))).toEqual([])
})

test('a deadline is one line and one hint', () => {
  expect(resultLines(classify(plan(), outcome({ reason: 'timeout', killed: 1 }), ['x']))).toEqual([
    'llm-do: stopped after 30s (resources.timeout); 1 process killed',
    'llm-do: hint: raise --timeout or resources.timeout, for example --timeout 1m',
  ])
})

test('a command that is missing is one error and one hint, with its name made harmless', () => {
  const failure = { ...UNBUILT, code: 'COMMAND_NOT_FOUND', step: 'init: execve', errno: 'ENOENT' } as const
  const lines = resultLines(classify(plan(), outcome({ reason: 'setup', exitCode: null, failure }), ['\u001b[31mx']))
  expect(lines[0]).toBe('llm-do: error COMMAND_NOT_FOUND: \\u{1b}[31mx: not found in the sandbox')
  expect(lines).toHaveLength(2)
})

test('an error shows all its problems, then the hint', () => {
  const error = new SandboxError('POLICY_INVALID', 'ci.yaml', { problems: ['a: expected b'], hint: 'look at it' })
  expect(errorLines(error)).toEqual([
    'llm-do: error POLICY_INVALID: ci.yaml',
    'llm-do:   a: expected b',
    'llm-do: hint: look at it',
  ])
})

test('the name of a directory that a command made adds no hint', () => {
  const attempts = { count: 1, first: [{ path: '/w/a\nrun this/.git', aside: '.git.set-aside.1', gone: false }] }
  const guarded = { attempts, setId: { count: 0, first: [] }, configLocked: false }
  const lines = resultLines(classify(plan(), outcome({ reason: 'protected', guarded }), ['x']))
  expect(lines.at(-1)).toContain(String.raw`mv '/w/a\u{a}run this/.git.set-aside.1' '/w/a\u{a}run this/.git'`)
  expect(lines.filter((line) => line.startsWith('llm-do: hint: '))).toHaveLength(1)
})

test('a single problem that is the message is not said twice', () => {
  expect(errorLines(new SandboxError('ZONE_INVALID', 'a', { problems: ['a'] }))).toEqual([
    'llm-do: error ZONE_INVALID: a',
  ])
})
