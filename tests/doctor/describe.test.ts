/** The doctor's report about captured hosts; the plan agrees with it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { offersFor } from '../../src/backends/index.ts'
import { describeBackends, describeParts } from '../../src/doctor/describe.ts'
import { reportText, rowText, summaryText } from '../../src/doctor/text.ts'
import type { HostFacts } from '../../src/host/facts.ts'
import type { MachineFacts } from '../../src/host/probe.ts'
import { chooseBackend } from '../../src/plan/choose-backend.ts'
import { needsOf } from '../../src/policy/needs.ts'
import { PLAIN_POLICY } from '../plan/world.ts'

const HOSTS = join(import.meta.dirname, '../hosts')
const hosts = readdirSync(HOSTS)
  .filter((name) => name.endsWith('.json'))
  .map((name): { name: string; facts: HostFacts } => {
    const { machine } = JSON.parse(readFileSync(join(HOSTS, name), 'utf8')) as { machine: MachineFacts }
    return { name, facts: { ...machine, paths: {} } }
  })

/** Whether the plan takes this backend for the default profile. */
function isChosen(facts: HostFacts, backend: 'namespace' | 'docker'): boolean {
  const policy = { ...PLAIN_POLICY, backend }
  try {
    const offers = offersFor({ policy, facts, permits: { unsandboxed: false, docker: true } })
    chooseBackend({ policy, needs: needsOf(policy, ['true']), facts, offers })
    return true
  } catch {
    return false // Refused, which is the other answer.
  }
}

describe.each(hosts)('$name', ({ facts }) => {
  test.each(['namespace', 'docker'] as const)('the doctor calls %s usable when the plan can take it', (backend) => {
    const found = describeBackends(facts).find(({ name }) => name === backend)
    expect(found?.usable).toBe(isChosen(facts, backend))
  })

  test('what is missing has a reason', async () => {
    const dumb = (await describeParts(facts)).filter(({ detail }) => detail === '')
    expect(dumb).toEqual([])
    const lacking = describeBackends(facts).flatMap(({ lacks }) => lacks)
    expect(lacking.filter(({ why }) => why === '')).toEqual([])
  })

  test('the report fits a screen', async () => {
    const text = reportText({
      schema: 1,
      ok: true,
      trial: { ok: true, backend: 'namespace', engine: 'bwrap', filtered: true, setupMs: 5 },
      parts: await describeParts(facts),
      backends: describeBackends(facts),
    })
    expect(text.split('\n').length).toBeLessThan(32)
  })
})

test('where namespaces are forbidden, what is left is named, if this kernel has it', async () => {
  const { facts } = hosts.find(({ name }) => name === 'docker-container.json') ?? {}
  if (facts === undefined) throw new Error('no such host')
  const fixWith = async (landlockAbi: number) =>
    (await describeParts({ ...facts, landlockAbi })).find(({ name }) => name === 'user namespaces')?.fix
  expect([await fixWith(6), await fixWith(5)]).toEqual([expect.stringContaining('--backend no-namespaces'), ''])
})

test('a row of the contract is one line, whatever its reason holds', () => {
  const line = rowText({
    id: 'files.owner',
    sentence: 'A sentence.',
    engine: 'bwrap',
    verdict: { kind: 'broken', why: 'two\nlines \u001b[31m' },
  })
  expect(line).toBe('FAIL   bwrap   files.owner                      A sentence.: two lines  [31m')
})

test('the summary counts every verdict', () => {
  const row = { id: 'files.owner', sentence: '', engine: 'bwrap' } as const
  const verdicts = [{ kind: 'holds' }, { kind: 'broken', why: '' }, { kind: 'cannot', why: '' }] as const
  expect(summaryText(verdicts.map((verdict) => ({ ...row, verdict })))).toBe(
    '1 passed, 1 failed, 1 cannot be held here',
  )
})
