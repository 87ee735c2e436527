/**
 * Follows one hint of each kind; hints.user.deep.system.test.ts follows all of rows.ts. Those of files that are not shown, read-only or
 * protected are followed by denials.system.test.ts.
 */
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { follow } from './follow-row.ts'
import { ROWS } from './rows.ts'

const KINDS = [
  "a program of the caller's PATH, with what lies beside it",
  'a file without the execute bit',
  'an option that does not exist',
  "a port of this host's loopback",
  'a workshop that is here',
  'a value that looks like an option',
  '--ro of a directory that does not exist',
  'changes that take more than they may',
  'processes',
  'a run without walls',
  'a sandbox with namespaces inside a sandbox',
  'a name without any network',
  'a secret without an end of TLS',
  'a server of this host, at the loopback of the sandbox',
  'a file of the home that the output names',
  'a pipe in the text of -c',
  'a question without a terminal',
]
const rows = ROWS.filter(({ title }) => KINDS.includes(title))

test('every kind has a row', () => {
  expect(rows.map(({ title }) => title)).toEqual(KINDS)
})

describeWith('userns', 'a hint is right', () => {
  test.each(rows)('about $title', (row) => follow(row, currentUser()))
})
