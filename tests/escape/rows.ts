/** The verdict that a row of the contract must have on this machine. */
import type { Row } from '../../src/doctor/contract-types.ts'
import { lacksForeignCalls } from '../support/needs.ts'

/** Where a row may say that this machine cannot hold it; written down a second time, so that a row cannot excuse itself. */
const CANNOT: Readonly<Partial<Record<Row['id'], (landlockAbi: number) => boolean>>> = {
  'files.make-sockets': (landlockAbi) => landlockAbi < 2,
  'network.host-abstract-sockets': (landlockAbi) => landlockAbi < 6,
  'files.reach-sockets': (landlockAbi) => landlockAbi < 9,
  'syscalls.foreign': () => lacksForeignCalls() !== undefined,
}

export const expectedKind = ({ id }: Row, landlockAbi: number): 'cannot' | 'holds' =>
  CANNOT[id]?.(landlockAbi) ? 'cannot' : 'holds'
