/** The sentences that every backend must keep, by the default one. conformance.user.deep tries each backend. */
import { COLUMNS } from './columns.ts'
import { testColumns } from './suite.ts'

testColumns(COLUMNS.filter(({ name }) => name === 'namespace (unshare)'))
