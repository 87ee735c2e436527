import { describe, expect, test } from 'vitest'
import { addressProblems, MAX_WILDCARDS, planAddresses } from '../../src/network/address-plan.ts'
import { rulesOf } from '../../src/network/host-rule.ts'

const planOf = (allow: readonly string[], deny: readonly string[] = []) => planAddresses(rulesOf({ allow, deny }))

test('without a rule nothing leads out', () => {
  expect(planOf([])).toEqual({ standIns: [], diversions: [] })
})

test('names with the same ports share a block, and with it the rules of the kernel', () => {
  expect(planOf(['a.test', 'b.test', 'c.test', 'd.test:22'])).toEqual({
    standIns: [
      { addresses: '198.18.1.0', pattern: 'a.test' },
      { addresses: '198.18.1.1', pattern: 'b.test' },
      { addresses: '198.18.1.2', pattern: 'c.test' },
      { addresses: '198.18.1.4', pattern: 'd.test' },
    ],
    diversions: [
      { addresses: '198.18.1.0/30', port: 80 },
      { addresses: '198.18.1.0/30', port: 443 },
      { addresses: '198.18.1.4/32', port: 22 },
    ],
  })
})

test('a name has the ports of all rules that cover it', () => {
  const { diversions } = planOf(['a.b.test:22', '*.b.test:443'])
  expect(diversions.filter(({ addresses }) => addresses === '198.18.1.0/32').map(({ port }) => port)).toEqual([22, 443])
})

describe('what is denied', () => {
  test('as a port is not diverted', () => {
    expect(planOf(['a.test'], ['a.test:80']).diversions).toEqual([{ addresses: '198.18.1.0/32', port: 443 }])
  })

  test('as a whole has no address', () => {
    expect(planOf(['a.b.test'], ['*.b.test'])).toEqual({ standIns: [], diversions: [] })
  })
})

test('where hosts can be added, every port of a name leads to the judgement, and there are addresses for names that come later', () => {
  const later = planAddresses(rulesOf({ allow: ['a.test', '192.0.2.7:22'], deny: [], grants: 'later' }))
  expect(later).toEqual({
    standIns: [
      { addresses: '198.18.1.0', pattern: 'a.test' },
      { addresses: '198.19.192.0/18', pattern: '*' },
    ],
    diversions: [
      { addresses: '198.18.1.0/32', port: '*' },
      { addresses: '198.19.192.0/18', port: '*' },
      { addresses: '192.0.2.7', port: '*' },
    ],
  })
})

test('each wildcard has 1024 addresses of its own', () => {
  expect(planOf(['*.a.test', '*.b.test:22']).standIns).toEqual([
    { addresses: '198.18.64.0/22', pattern: '*.a.test' },
    { addresses: '198.18.68.0/22', pattern: '*.b.test' },
  ])
})

test('a listed address is diverted as it is, but for those of the sandbox itself', () => {
  expect(planOf(['192.0.2.0/24:22', '127.0.0.1:80', '198.18.0.1', '[::1]:22'])).toEqual({
    standIns: [],
    diversions: [{ addresses: '192.0.2.0/24', port: 22 }],
  })
})

test('a range with addresses of the sandbox itself is refused', () => {
  expect(addressProblems(rulesOf({ allow: ['0.0.0.0/0', '10.0.0.0/8'], deny: [] }))).toEqual([
    "network.allow: expected a range without the sandbox's own addresses, got 0.0.0.0/0.",
  ])
})

test('more wildcards than there are addresses for are refused', () => {
  const allow = Array.from({ length: MAX_WILDCARDS + 1 }, (_, at) => `*.w${at}.test`)
  expect(addressProblems(rulesOf({ allow, deny: [] }))).toEqual([
    `network.allow: expected at most ${MAX_WILDCARDS} wildcards, got ${MAX_WILDCARDS + 1}.`,
  ])
})
