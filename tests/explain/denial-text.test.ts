import { expect, test } from 'vitest'
import type { Denial } from '../../src/report/result.ts'
import { denialText } from '../../src/report/text.ts'

const denial: Denial = {
  ...{ layer: 'mount', operation: 'write', target: '/workspace/a', count: 1, fix: '--rw .', key: 'zones' },
  evidence: 'sandbox',
}

test.each<[Partial<Denial>, string]>([
  [{}, 'denied: write /workspace/a; to allow it: --rw .'],
  [{ count: 3 }, 'denied: write /workspace/a (3 times); to allow it: --rw .'],
  [{ fix: '' }, 'denied: write /workspace/a'],
])('a denial with %j is one line', (more, line) => {
  expect(denialText({ ...denial, ...more })).toBe(line)
})
