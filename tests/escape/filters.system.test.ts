/**
 * Rows about files where no filter stands in the way of mounts. The filter is one program for both engines: the deep file has the rest, and
 * tests/adversary tries its rows about files under every filter.
 */
import { testFilters } from './filters.ts'

testFilters(['unshare'], ['off'])
