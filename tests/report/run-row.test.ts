/** Lines of audit logs and of results of batches, as the page of `llm-do report` has them. */
import { describe, expect, test } from 'vitest'
import { jsonInHtml, readReportPage } from '../../src/report/report-page.ts'
import { runRow } from '../../src/report/run-row.ts'

const line = (fields: object) => JSON.stringify({ argv: ['true'], reason: 'exit', exitCode: 0, ...fields })

describe('a run', () => {
  test.each([
    [{}, 'succeeded', 'exit'],
    [{ exitCode: 3 }, 'failed', 'exit'],
    [{ reason: 'signal', exitCode: null, signal: 'SIGSEGV' }, 'failed', 'signal'],
    [{ reason: 'timeout', exitCode: null }, 'limit', 'timeout'],
    [{ reason: 'pids', exitCode: 1 }, 'limit', 'pids'],
    [{ reason: 'setup', exitCode: null, error: 'NO_BACKEND' }, 'refused', 'setup'],
    [{ reason: 'setup', decision: 'blocked', decidedBy: 'rule rm' }, 'refused', 'blocked'],
  ])('%j counts as %s', (fields, k, r) => {
    expect(runRow(line(fields))).toMatchObject({ k, r })
  })

  test('of a batch has its ID, and one that was refused there its message', () => {
    expect(runRow('{"id":"a","ok":true,"exitCode":0,"reason":"exit","durationMs":4.5}')).toEqual({
      c: 'a',
      k: 'succeeded',
      r: 'exit',
      d: 4.5,
      exit: 0,
    })
    expect(runRow('{"id":"c","ok":false,"error":{"cause":"invalid","message":"line 3"}}')).toEqual({
      c: 'c',
      k: 'refused',
      r: 'refused',
      error: 'line 3',
    })
  })

  test.each([
    ['', undefined],
    ['[]', undefined],
    ['{"argv":["true"],"reason":"a reason of the future"}', undefined],
    ['{"argv":"true","reason":"exit"}', undefined],
    ['{"reason":"exit","exitCode":0}', undefined],
  ])('%j is none', (text, expected) => {
    expect(runRow(text)).toBe(expected)
  })
})

describe('a hostile run', () => {
  test('shows what would reorder or hide text', () => {
    const row = runRow(line({ argv: ['\u202egpj.exe\u001b[31m'], worker: 'a\u2066b' }))
    expect(row).toMatchObject({ c: expect.stringContaining('\\u{202e}gpj.exe\\u{1b}[31m'), worker: 'a\\u{2066}b' })
  })

  test('is bounded, and numbers are numbers', () => {
    const denials = Array.from({ length: 1_000 }, () => ({ operation: 'x', target: 'y' }))
    const row = runRow(line({ argv: ['a'.repeat(1e6)], denials, durationMs: '<b>', time: {}, usage: 'x' }))
    expect(JSON.stringify(row).length).toBeLessThan(10_000)
    expect(row).not.toHaveProperty('d')
    expect(row).not.toHaveProperty('t')
  })

  test('ends no element of the page', () => {
    const row = { c: '</script><!--<script>\u2028' }
    expect(jsonInHtml(row)).not.toContain('<')
    expect(JSON.parse(jsonInHtml(row))).toEqual(row)
  })
})

test('the page names its own script and style, and nothing that it would load', () => {
  const { head, tail } = readReportPage()
  expect(head).toMatch(/content="default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'/)
  expect(`${head}${tail}`).not.toMatch(/@POLICY@|@RUNS@|(src|href)=|\burl\(|fetch\(|innerHTML|outerHTML|insertAdjacent/)
})
