import { describe, expect, test } from 'vitest'
import { canonicalName, judge, parseRule, printRule, rulesOf } from '../../src/network/host-rule.ts'
import { JUDGEMENTS, patternOf } from './judgements.ts'

test.each(JUDGEMENTS)('allow $allow, deny $deny: $host on port $port', ({ host, port, allowed, by, ...rules }) => {
  const { isAllowed, rule } = judge(rulesOf(rules), patternOf(host), port)
  expect({ isAllowed, by: rule === undefined ? undefined : printRule(rule) }).toEqual({ isAllowed: allowed, by })
})

describe('a rule', () => {
  test.each([
    ['Example.ORG.', 'example.org'],
    ['*.Example.org:443', '*.example.org:443'],
    ['example.org:*', 'example.org:*'],
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.0/24:22', '192.0.2.0/24:22'],
    ['[2001:DB8:0:0::1]:443', '[2001:db8::1]:443'],
    ['[2001:db8::/32]', '[2001:db8::/32]'],
    ['[::ffff:192.0.2.7]', '192.0.2.7'],
    ['_dmarc.example.org', '_dmarc.example.org'],
  ])('%s is %s', (text, canonical) => {
    const rule = parseRule(text)
    expect(rule === undefined ? undefined : printRule(rule)).toBe(canonical)
  })

  const NONE = [
    ...['', '*', '*.', '*.*.a', 'a*.b', 'a..b', '.a', '-a.b', 'a-.b', 'a b', 'a\nb', 'a\0b', 'a/b', 'bücher.example'],
    ...['a:0', 'a:65536', 'a:', 'a:b', `${'a'.repeat(64)}.b`, `${'a.'.repeat(130)}b`],
    ...['1.2.3', '1.2.3.4.5', '01.2.3.4', '256.2.3.4', '0x7f.1', '2130706433'],
    ...['192.0.2.1/24', '192.0.2.0/33', '192.0.2.0/', '192.0.2.0/24/24'],
    ...['2001:db8::1', '[192.0.2.7]', '[2001:db8::1', '[2001:db8::1/32]', '[fe80::1%eth0]'],
  ]
  test.each(NONE)('%j is none', (text) => {
    expect(parseRule(text)).toBeUndefined()
  })
})

test('a name keeps one form, whatever its case and its final dot', () => {
  expect(['A.Test', 'a.test.', 'a.test..'].map(canonicalName)).toEqual(['a.test', 'a.test', undefined])
})
