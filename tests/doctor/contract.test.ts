/** The contract as data: complete, and no row holds without having been tried. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Observed, ROOMS, roomOf, type TestSite, verdictOf } from '../../src/doctor/contract-types.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { CONTROLS } from '../escape/plain-bwrap.ts'

const SITE: TestSite = {
  uid: 0,
  umask: 0o022,
  engine: 'bwrap',
  landlockAbi: 9,
  base: '/tmp/site',
  shown: '/tmp/site/shown',
  writable: '/tmp/site/writable',
  hidden: '/tmp/site/hidden',
  probe: '/tmp/site/shown/probe',
  port: 1,
  abstract: 'site',
  pid: 1,
}
const NOTHING_OBSERVED: Observed = {
  runs: [],
  hostState: { shown: {}, writable: {}, processes: [], connections: 0, namespaces: {} },
}

test('every row has an identity of its own in one of the rooms', () => {
  const ids = CONTRACT.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.filter((id) => !ROOMS.includes(roomOf({ id })))).toEqual([])
})

test('no negative control is left over', () => {
  expect(Object.keys(CONTROLS).filter((id) => !CONTRACT.some((row) => row.id === id))).toEqual([])
})

describe('a row that was not tried does not hold', () => {
  test.each(CONTRACT)('$id', (row) => {
    expect(verdictOf(row, NOTHING_OBSERVED, SITE)).toMatchObject({ kind: 'broken' })
  })
})

test('every sentence of the contract is in the threat model', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/internals/threat-model.md'), 'utf8')
  expect(CONTRACT.filter(({ id, sentence }) => !text.includes(`| ${id} | ${sentence} |`)).map(({ id }) => id)).toEqual(
    [],
  )
})
