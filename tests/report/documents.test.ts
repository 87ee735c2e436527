import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { classify } from '../../src/report/classify.ts'
import type { Reason } from '../../src/report/result.ts'
import { outcome, plan, UNBUILT } from './fixtures.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/reference/result.md'), 'utf8')

/** A record over the type, so that a new reason does not compile until it is listed. */
const REASONS: Readonly<Record<Reason, true>> = {
  ...{ exit: true, signal: true, setup: true, denied: true, cancelled: true, lost: true, protected: true },
  ...{ timeout: true, memory: true, 'cpu-time': true, disk: true, pids: true, seccomp: true },
}

test('docs/reference/result.md explains every reason and every field', () => {
  const failure = { ...UNBUILT, step: 'x' }
  const fields = Object.keys(classify(plan(), outcome({ reason: 'setup', exitCode: null, failure }), ['x']))
  expect(Object.keys(REASONS).filter((reason) => !page.includes(`| \`${reason}\` |`))).toEqual([])
  expect(fields.filter((field) => !new RegExp(`^\\|.*\`${field}\`|^\`${field}\` `, 'm').test(page))).toEqual([])
})
