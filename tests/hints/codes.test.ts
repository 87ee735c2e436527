/** Each error of docs/reference/errors.md has a hint that a test follows, and each kind of denial a fix. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ERROR_CODES } from '../../src/error.ts'
import { DENIALS, ROWS } from './rows.ts'

/** Nothing that is typed in a shell provokes these, or mends them: the test that has the error instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  OPTIONS_INVALID: 'library/check-options.test.ts',
  COMMAND_INVALID: 'run/exec.test.ts',
  HELPER_MISSING: 'os/native-programs.test.ts',
  BACKEND_FAILED: 'real/lost.system.test.ts',
  OUTPUT_NOT_FOUND: 'mcp/stdio.system.test.ts',
  SANDBOX_CLOSED: 'library/library.system.test.ts',
  LAYER_BUSY: 'cow/state.system.test.ts',
  LAYER_FAILED: 'cow/full-disk.system.test.ts',
  INTERNAL: 'escape/odd-callers.system.test.ts',
}

test.each(Object.keys(ERROR_CODES))('%s is provoked, and its hint is followed', (code) => {
  const elsewhere = ELSEWHERE[code]
  const isFollowed = ROWS.some((row) => row.code === code)
  expect({ code, isFollowed }).toEqual({ code, isFollowed: elsewhere === undefined })
  if (elsewhere !== undefined) expect(readFileSync(join(import.meta.dirname, '..', elsewhere), 'utf8')).toContain(code)
})

const REPORT = join(import.meta.dirname, '../../src/report')
/** Keys of the policy in a denial; those of limits that only hints name have no denial. */
const KEYS = readdirSync(REPORT)
  .filter((file) => !['hints.ts', 'plan-text.ts'].includes(file))
  .flatMap((file) => [...readFileSync(join(REPORT, file), 'utf8').matchAll(/\bkey(?:: | = .*)'([a-zA-Z.]+)'/g)])
  .map(([, key = '']) => key)

test('the fix of a denial of each key is followed', () => {
  const followed = [...ROWS.map(({ key }) => key), ...DENIALS('/place').map(({ denial }) => denial.key)]
  // tests/network/on-purpose follows the first; the second has a key of a profile in the place of a flag (tests/network/credentials).
  const elsewhere = ['network.local', 'network.requests']
  expect(new Set(KEYS).size).toBeGreaterThan(14)
  expect([...new Set(KEYS)].filter((key) => !followed.includes(key))).toEqual(elsewhere)
})
