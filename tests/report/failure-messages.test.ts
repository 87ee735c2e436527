/** What the client prints, filled in, is what node would print of the same end. */
import { constants } from 'node:os'
import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../src/backends/outcome.ts'
import { classify } from '../../src/report/classify.ts'
import { messageRecords } from '../../src/report/failure-messages.ts'
import { resultLines } from '../../src/report/text.ts'
import { outcome, plan } from './fixtures.ts'

const ORIGINS = {}
const RECORDS = messageRecords(plan(), ORIGINS)

function told(kind: string, number: number, fill: { readonly program: string; readonly killed: number }): string {
  const found = RECORDS.find(([, ...words]) => words[0] === kind && words[1] === number)
  const [, , , , before = '', slot = '', after = ''] = found ?? []
  const filled = slot === 'program' ? fill.program : slot === 'killed' ? fill.killed : ''
  return `${before}${filled}${after}`
}

const byNode = (end: Partial<Outcome>): string =>
  resultLines(classify(plan(), outcome(end), ['prog'], { origins: ORIGINS }))
    .map((line) => `${line}\n`)
    .join('')

describe('the words left with a plan', () => {
  test.each(['ENOENT', 'EACCES', 'EISDIR', 'ENOEXEC', 'ENOTDIR', 'ELOOP'] as const)('of %s', (errno) => {
    const end = { cause: 'exec', exitCode: null, failure: { step: 'init: exec', path: '', errno, detail: '' } } as const
    const words = told('exec', constants.errno[errno], { program: 'prog', killed: 0 })
    expect(words).toContain('prog')
    expect(words).toBe(byNode(end))
  })

  test.each(['SIGSEGV', 'SIGTERM', 'SIGKILL', 'SIGPIPE'] as const)('of %s', (signal) => {
    const words = told('signal', constants.signals[signal], { program: 'prog', killed: 0 })
    expect(words).toBe(byNode({ exitCode: null, signal }))
  })

  test.each([0, 1, 2, 37])('of a deadline at which %i were killed', (killed) => {
    const words = told('deadline', Math.min(killed, 2), { program: 'prog', killed })
    expect(words).toContain('stopped after')
    expect(words).toBe(byNode({ cause: 'deadline', exitCode: null, killed }))
  })
})

test('a mark that is found twice leaves no words', () => {
  const origins = {
    'resources.timeout': [{ layer: 'profile', source: '/p/987654321.yaml', key: 'resources.timeout' }],
  } as const
  const deadlines = messageRecords(plan(), origins).filter(([, kind]) => kind === 'deadline')
  expect(deadlines.map(([, , number]) => number)).toEqual([0, 1])
})
