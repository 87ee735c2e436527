import { describe, expect, test } from 'vitest'
import { classify } from '../../src/report/classify.ts'
import { printJson } from '../../src/report/json.ts'
import { capture, outcome, plan } from './fixtures.ts'

const timedOut = classify(
  plan(),
  outcome({ reason: 'timeout', exitCode: null, signal: 'SIGKILL', stdout: capture('part') }),
  ['x'],
)
const notFound = classify(
  plan(),
  outcome({
    reason: 'setup',
    exitCode: null,
    failure: { code: 'COMMAND_NOT_FOUND', step: 'init: execve', path: 'x', errno: 'ENOENT', detail: '' },
  }),
  ['x'],
)

describe('a result is one line of valid JSON', () => {
  test.each(['a\nb\r\n', '\u2028\u2029\u0085', '\u001b]0;title\u0007', '"\\', '\ud800 alone'])(
    'with %j on stdout',
    (text) => {
      const result = { ...timedOut, stdout: text }
      const printed = printJson(result)
      expect(printed.trimEnd().split(/[\n\r\u2028\u2029]/)).toHaveLength(1)
      expect(JSON.parse(printed).stdout).toBe(text)
    },
  )

  test('with the keys of the specification first and in its order', () => {
    const keys = Object.keys(JSON.parse(printJson(timedOut)))
    expect(keys.slice(0, 9).join(' ')).toBe('schema ok exitCode signal reason stdout stderr truncated encoding')
  })
})

describe('the shell form', () => {
  test.each([
    ['stdout', { stdout: 5, stderr: 0 }, true],
    ['stderr', { stdout: 0, stderr: 5 }, true],
    ['nothing', { stdout: 0, stderr: 0 }, false],
  ])('says whether something is missing: of %s', (_, truncated, expected) => {
    expect(JSON.parse(printJson({ ...timedOut, truncated }, 'shell'))).toMatchObject({ truncated: expected })
  })

  test('has -1 for a timeout', () => {
    const form = { stdout: 'part', stderr: '', exit_code: -1, truncated: false }
    expect(JSON.parse(printJson(timedOut, 'shell'))).toEqual(form)
  })
  test('has the status of a shell for a missing command, and says so on stderr', () => {
    const form = JSON.parse(printJson(notFound, 'shell'))
    expect(form.exit_code).toBe(127)
    expect(form.stderr).toContain('COMMAND_NOT_FOUND')
  })
})

describe('the task form', () => {
  test('tells a timeout', () => {
    expect(JSON.parse(printJson(timedOut, 'task'))).toEqual({
      success: false,
      stdout: 'part',
      stderr: '',
      exitCode: 124,
      executionTime: 13,
      timedOut: true,
      error: 'stopped after 30s (resources.timeout)',
    })
  })
  test('has no error for a command that merely failed', () => {
    const failed = classify(plan(), outcome({ exitCode: 3 }), ['x'])
    expect(JSON.parse(printJson(failed, 'task'))).toMatchObject({ success: false, exitCode: 3, timedOut: false })
    expect(JSON.parse(printJson(failed, 'task'))).not.toHaveProperty('error')
  })
})
