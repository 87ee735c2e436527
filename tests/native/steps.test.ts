/** Names of steps cross from C to TypeScript in a field of 32 bytes, and src/report/explain-failure.ts finds them by their whole text. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXPLAINED_STEPS } from '../../src/report/explain-failure.ts'

const NATIVE = join(import.meta.dirname, '../../native')
const FIELD = 32

const SOURCES = readdirSync(NATIVE, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.c'))
/** The literal that these functions take for a step. */
const STEP = /\b(?:fail|fail_with|run_refuse|run_record_failure|run_record_failure_as)\([^"\n]*"([^"\n]+)"/g

const steps = SOURCES.flatMap((file) =>
  [...readFileSync(join(NATIVE, file), 'utf8').matchAll(STEP)].flatMap(([, step]) => step ?? []),
)

test('the steps are found', () => {
  expect(steps).toContain('launch: mount below a cow zone')
  expect(steps.length).toBeGreaterThan(100)
})

test('no step is cut off on its way to the runner', () => {
  expect(steps.filter((step) => step.length >= FIELD)).toEqual([])
})

test('every step that is explained exists', () => {
  const literals = SOURCES.map((file) => readFileSync(join(NATIVE, file), 'utf8')).join('\n')
  expect(EXPLAINED_STEPS.filter((step) => !literals.includes(`"${step}"`))).toEqual([])
})
