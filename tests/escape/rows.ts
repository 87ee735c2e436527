/** Each row of the contract as tests: it holds with both engines, and without our chain the same attempt breaks it. */
import { expect } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { type Room, type Row, roomOf } from '../../src/doctor/contract-types.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { runInSandbox, tryRow } from '../../src/doctor/self-test.ts'
import { describeWith, lacksForeignCalls, type Need, testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { CONTROLS, endProcessesOf, plainBwrap, type Weakness } from './plain-bwrap.ts'

const ENGINES = ['bwrap', 'unshare'] as const

export function testRoom(room: Room): void {
  const rows = CONTRACT.filter((row) => roomOf(row) === room)
  for (const engine of ENGINES) {
    describeWith([engine, 'userns'], `with ${engine}`, () => {
      for (const row of rows) testWith(engine, row.sentence, () => expectToHold(row, engine))
    })
  }
  const attacked = rows.flatMap((row) => {
    const control = CONTROLS[row.id]
    return control === undefined || 'none' in control ? [] : [{ row, control }]
  })
  if (attacked.length === 0) return
  describeWith(['bwrap', 'userns'], 'without the chain', () => {
    for (const one of attacked) testControl(one)
  })
}

/** Where a row may say that this machine cannot hold it; written down a second time, so that a row cannot excuse itself. */
const CANNOT: Readonly<Partial<Record<Row['id'], (landlockAbi: number) => boolean>>> = {
  'files.make-sockets': (landlockAbi) => landlockAbi < 2,
  'network.host-abstract-sockets': (landlockAbi) => landlockAbi < 6,
  'files.reach-sockets': (landlockAbi) => landlockAbi < 9,
  'syscalls.foreign': () => lacksForeignCalls() !== undefined,
}

/** What a row must say on this machine. */
export const expectedKind = ({ id }: Row, landlockAbi: number): 'cannot' | 'holds' =>
  CANNOT[id]?.(landlockAbi) ? 'cannot' : 'holds'

async function expectToHold(row: Row, engine: (typeof ENGINES)[number]): Promise<void> {
  const { landlockAbi } = await observeForDoctor(process.env)
  const verdict = await tryRow(row, { engine, landlockAbi, runner: runInSandbox })
  expect(verdict, row.id).toMatchObject({ kind: expectedKind(row, landlockAbi) })
}

function testControl({ row, control }: { readonly row: Row; readonly control: Weakness }): void {
  const needs: Need[] = control.only === 'root' ? ['root'] : []
  if (row.id === 'syscalls.foreign') needs.push('foreign-calls')
  testWith(needs, `it is not so: ${row.sentence}`, async () => {
    const bases: string[] = []
    const runner = plainBwrap(control)
    try {
      const verdict = await tryRow(row, {
        engine: 'bwrap',
        landlockAbi: 8, // A row that a kernel cannot hold has no control; sockets that can be reached have.
        runner: (attempt, site) => {
          bases.push(site.base)
          return runner(attempt, site)
        },
      })
      expect(verdict, `${row.id} as ${currentUser()}`).toMatchObject({ kind: 'broken' })
    } finally {
      for (const base of bases) endProcessesOf(base)
    }
  })
}
