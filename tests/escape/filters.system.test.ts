/** Rows about files where the filter lets a command make mounts. The filter is one program for both engines: the deep file has the rest. */
import { testFilters } from './filters.ts'

testFilters(['unshare'], ['nested', 'off'])
