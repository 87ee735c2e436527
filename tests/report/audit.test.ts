import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { auditLine, CHAIN_START } from '../../src/report/audit.ts'
import { classify } from '../../src/report/classify.ts'
import { outcome, plan } from './fixtures.ts'

const entry = (command: readonly string[]) =>
  ({
    time: '2026-01-02T03:04:05.678Z',
    result: classify(plan(), outcome(), command),
    decision: 'run',
    decidedBy: 'policy',
  }) as const

test('a line says when, what, by whose decision, under which plan, and how it ended', () => {
  expect(JSON.parse(auditLine(entry(['ls', '-l']), CHAIN_START))).toEqual({
    schema: 1,
    time: '2026-01-02T03:04:05.678Z',
    decision: 'run',
    decidedBy: 'policy',
    argvSha256: createHash('sha256').update('ls\0-l\0').digest('hex'),
    ...{ argv: ['ls', '-l'], profile: 'task', planHash: '0123456789abcdef', backend: 'namespace' },
    ...{ reason: 'exit', exitCode: 0, signal: null, durationMs: 12.5, denials: [] },
    usage: { cpuMs: 1, peakMemory: 2, peakPids: 3 },
    prev: CHAIN_START,
  })
})

test('two commands with the same words joined differently have different sums', () => {
  const sum = (command: readonly string[]) => JSON.parse(auditLine(entry(command), CHAIN_START)).argvSha256
  expect(sum(['a b'])).not.toBe(sum(['a', 'b']))
})
