/** Whatever a worker asks for, with every form of rule: what it is given was allowed before. */
import { describe, expect, test } from 'vitest'
import { parseRange } from '../../src/network/address.ts'
import { judge, rulesOf } from '../../src/network/host-rule.ts'
import type { NetworkWord, ParsedNetwork } from '../../src/policy/keys/network-layers.ts'
import { narrowNetwork as narrowing } from '../../src/policy/keys/network-narrowing.ts'
import type { NetworkPolicy } from '../../src/policy/values.ts'

/** Park and Miller. */
function randomFrom(seed: number): <Value>(values: readonly Value[]) => Value {
  let state = seed
  return (values) => {
    state = (state * 48271) % 0x7fffffff
    return values[state % values.length] as (typeof values)[number]
  }
}

const NAMES = ['a.example', 'b.a.example', 'c.b.a.example', 'other.test']
const RANGES = ['10.0.0.0/8', '10.1.0.0/16', '10.1.2.3', '[2001:db8::/32]', '[2001:db8::1]']
const HOSTS = [...NAMES, ...NAMES.map((name) => `*.${name}`), ...RANGES]
const PORTS = ['', ':80', ':443', ':22', ':*']
const TOOLS = [
  { name: '@npm', hosts: ['a.example:443', 'b.a.example:22'], from: [] },
  { name: '@git', hosts: ['other.test:22', '10.1.2.3:22'], from: [] },
] as const

type Pick = ReturnType<typeof randomFrom>
const someOf = (pick: Pick, make: () => string): readonly string[] => Array.from({ length: pick([0, 1, 2, 3]) }, make)
const ruleFrom = (pick: Pick) => (): string => pick(HOSTS) + pick(PORTS)

function grantFrom(pick: Pick): NetworkPolicy {
  const mode = pick(['none', 'restricted', 'restricted', 'restricted', 'host'] as const)
  const isRestricted = mode === 'restricted'
  const tools = TOOLS.filter(() => pick([true, false]))
  const allow = [...someOf(pick, ruleFrom(pick)), ...tools.flatMap(({ hosts }) => hosts)]
  return {
    mode,
    allow: isRestricted ? allow : [],
    deny: someOf(pick, ruleFrom(pick)),
    tools,
    ...(isRestricted && pick([true, false, false]) ? { record: true } : {}),
    ...(isRestricted && pick([true, false]) ? { local: [22, 443] } : {}),
    ...(pick([true, false]) ? { hosts: { 'a.example': '10.1.2.3' } } : {}),
    ...(isRestricted && pick([true, false]) ? { publish: ['127.0.0.1:1:1'] } : {}),
  }
}

function wishFrom(pick: Pick): ParsedNetwork {
  const allow = [...someOf(pick, ruleFrom(pick)), ...someOf(pick, () => pick(['@npm', '@git', '@pip']))]
  const words =
    allow.length > 0
      ? (['restricted', 'record'] as const)
      : ([undefined, 'none', 'restricted', 'record', 'host'] as const)
  const mode = pick<NetworkWord | undefined>(words)
  return {
    ...(mode === undefined ? {} : { mode }),
    allow,
    deny: someOf(pick, ruleFrom(pick)),
    ...((mode === 'restricted' || mode === 'record') && pick([true, false, false])
      ? { local: pick([[22], [80], [22, 443]]) }
      : {}),
    ...(pick([true, false, false, false]) ? { publish: [pick(['127.0.0.1:1:1', '127.0.0.1:2:1'])] } : {}),
    ...(pick([true, false, false, false]) ? { hosts: { 'a.example': pick(['10.1.2.3', '10.9.9.9']) } } : {}),
  }
}

const ADDRESSES = ['10.1.2.3', '10.1.9.9', '10.9.9.9', '2001:db8::1', '2001:db8::2', '192.0.2.1']
const QUESTIONS = [...NAMES, 'x.other.test', 'host.llm-do.internal', ...ADDRESSES].flatMap((host) =>
  [22, 80, 443, 8080].map((port) => ({ host, port })),
)

/** `host port` of each question that the network answers with yes. */
function reached({ mode, ...lists }: NetworkPolicy): readonly string[] {
  const rules = mode === 'restricted' ? rulesOf(lists) : undefined
  const isAllowed = ({ host, port }: (typeof QUESTIONS)[number]): boolean => {
    if (rules === undefined) return mode === 'host'
    const range = parseRange(host)
    return judge(rules, range === undefined ? { kind: 'name', name: host } : { kind: 'range', range }, port).isAllowed
  }
  return QUESTIONS.filter(isAllowed).map(({ host, port }) => `${host} ${port}`)
}

test('400 random requests are given nothing that was not granted', () => {
  const seen = { within: 0, wider: 0, reached: 0 }
  for (let seed = 1; seed <= 400; seed += 1) {
    const pick = randomFrom(seed * 7919)
    const [grant, wish] = [grantFrom(pick), wishFrom(pick)]
    if (narrowing.isWider(wish, grant)) {
      seen.wider += 1
      continue
    }
    seen.within += 1
    const before = new Set(reached(grant))
    for (const isFlagged of [true, false]) {
      const given = narrowing.takes(wish, grant, isFlagged)
      const now = reached(given)
      seen.reached += now.length
      const wider = [
        ...given.allow.filter((host) => host.startsWith('@')),
        ...now.filter((question) => !before.has(question)),
        // Where a name leads is the operator's word, and loopback is open on the ports that were granted only.
        ...(given.publish ?? []).filter((one) => grant.publish?.includes(one) !== true),
        ...(grant.mode === 'host' ? [] : (given.local ?? []).filter((one) => grant.local?.includes(one) !== true)),
      ]
      if (wider.length > 0) expect({ seed, wish, grant, isFlagged, wider }).toMatchObject({ wider: [] })
      if (grant.mode !== 'none') expect(given.hosts).toEqual(grant.hosts)
    }
  }
  // Not because nothing was ever given, or nothing refused.
  expect(Math.min(seen.within, seen.wider, seen.reached)).toBeGreaterThan(30)
})

test.each<[what: string, within: Partial<ParsedNetwork>, wider: Partial<ParsedNetwork>]>([
  ['an address of a name', { hosts: { 'a.example': '10.1.2.3' } }, { hosts: { 'a.example': '10.9.9.9' } }],
  ['a published port', { publish: ['127.0.0.1:1:1'] }, { publish: ['127.0.0.1:2:1'] }],
  ['a port of this host', { mode: 'restricted', local: [22] }, { mode: 'restricted', local: [80] }],
  [
    'a port of this host by localhost',
    { mode: 'restricted', allow: ['localhost:22'] },
    { mode: 'restricted', allow: ['localhost:80'] },
  ],
])('%s is what was granted, or the worker is refused', (_what, within, wider) => {
  const granted = { hosts: { 'a.example': '10.1.2.3' }, publish: ['127.0.0.1:1:1'], local: [22] }
  const grant: NetworkPolicy = { mode: 'restricted', allow: ['a.example', 'localhost:22'], deny: [], ...granted }
  for (const recorded of [{}, { record: true } as const]) {
    const asks = [within, wider].map((wish) =>
      narrowing.isWider({ allow: [], deny: [], ...wish }, { ...grant, ...recorded }),
    )
    expect(asks).toEqual([false, true])
  }
})

test('a worker may name a tool that the operator has named, and no other', () => {
  const grant: NetworkPolicy = {
    mode: 'restricted',
    allow: ['a.example:443', 'b.a.example:22'],
    deny: [],
    tools: [TOOLS[0]],
  }
  const wish = (name: string): ParsedNetwork => ({ mode: 'restricted', allow: [name], deny: [] })
  expect(narrowing.isWider(wish('@npm'), grant)).toBe(false)
  expect(narrowing.takes(wish('@npm'), grant, false).allow).toEqual(grant.allow)
  expect(narrowing.isWider(wish('@git'), grant)).toBe(true)
  expect(narrowing.isWider(wish('@npm'), { ...grant, allow: ['a.example:443'] })).toBe(true)
  expect(narrowing.isWider(wish('@npm'), { mode: 'host', allow: [], deny: [] })).toBe(true)
})

describe('the end of TLS is the operator’s alone to say', () => {
  const credentials = [{ host: 'a.example', header: 'X-Key', from: 'env:KEY' }]
  const requests = ['GET a.example/*']
  const grant: NetworkPolicy = {
    mode: 'restricted',
    allow: ['a.example'],
    deny: [],
    terminate: true,
    credentials,
    requests,
  }
  const wish = (more: Partial<ParsedNetwork>): ParsedNetwork => ({ allow: [], deny: [], ...more })

  test.each([
    { terminate: true },
    { terminate: false },
    { credentials },
    { requests },
    { credentials: [{ host: 'a.example', header: 'X-Key', from: 'file:/etc/passwd' }] },
  ])('a worker that says %j is refused', (more) => {
    expect(narrowing.isWider(wish(more), grant)).toBe(true)
    expect(narrowing.isWider(wish(more), { ...grant, mode: 'host' })).toBe(true)
  })

  test('and what the operator has said holds for a worker that takes fewer hosts', () => {
    const less = wish({ mode: 'restricted', allow: ['a.example:443'] })
    expect(narrowing.isWider(less, grant)).toBe(false)
    for (const isFlagged of [true, false])
      expect(narrowing.takes(less, grant, isFlagged)).toMatchObject({ terminate: true, credentials, requests })
  })

  test('an escalation says which secret was asked for, and where it is', () => {
    expect(narrowing.shows(wish({ terminate: true, credentials, requests }))).toBe(
      'restricted (TLS ended on the host, X-Key for a.example of env:KEY, GET a.example/*)',
    )
  })
})
