/** Follows every hint of rows.ts: wall, command, hint, and how to follow it. */
import { describe } from 'vitest'
import { testWith } from '../support/needs.ts'
import { callers } from '../support/users.ts'
import { follow } from './follow-row.ts'
import { ROWS } from './rows.ts'

describe.each(callers())('as %s', (user) => {
  for (const row of ROWS.filter(({ as = [user] }) => as.includes(user)))
    testWith(row.needs ?? [], row.title, () => follow(row, user))
})
