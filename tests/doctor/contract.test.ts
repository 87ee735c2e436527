/** The contract as data: complete, and no row holds without having been tried. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Ground, ROOMS, roomOf, type Seen } from '../../src/doctor/contract.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { CONTROLS } from '../escape/plain-bwrap.ts'

const GROUND: Ground = {
  uid: 0,
  engine: 'bwrap',
  landlockAbi: 9,
  base: '/tmp/ground',
  shown: '/tmp/ground/shown',
  writable: '/tmp/ground/writable',
  hidden: '/tmp/ground/hidden',
  probe: '/tmp/ground/shown/probe',
  port: 1,
  abstract: 'ground',
  pid: 1,
}
const NOTHING_SEEN: Seen = {
  runs: [],
  world: { shown: {}, writable: {}, processes: [], connections: 0, namespaces: {} },
}

test('every row has an identity of its own in one of the rooms', () => {
  const ids = CONTRACT.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.filter((id) => !ROOMS.includes(roomOf({ id })))).toEqual([])
})

test('every row has a negative control, or says why there is none', () => {
  expect(Object.keys(CONTROLS).toSorted()).toEqual(CONTRACT.map(({ id }) => id).toSorted())
})

describe('a row that was not tried does not hold', () => {
  test.each(CONTRACT)('$id', (row) => {
    expect(row.verdict(NOTHING_SEEN, GROUND)).toMatchObject({ kind: 'broken' })
  })
})

test('every sentence of the contract is in the threat model', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/threat-model.md'), 'utf8')
  expect(CONTRACT.filter(({ id, sentence }) => !text.includes(`| ${id} | ${sentence} |`)).map(({ id }) => id)).toEqual(
    [],
  )
})
