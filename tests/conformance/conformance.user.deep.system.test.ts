/** The sentences that every backend must keep, by each of them. */
import { COLUMNS } from './columns.ts'
import { testColumns } from './suite.ts'

testColumns(COLUMNS)
