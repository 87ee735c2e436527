/** Rows about files under every filter, by both engines and by docker. */
import { FILTERS, testFilters } from './filters.ts'

testFilters(['unshare', 'bwrap', 'docker'], FILTERS)
