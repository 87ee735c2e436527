import { expect, test } from 'vitest'
import { buildProcess } from '../../../src/backends/process/build.ts'
import { planFor, runInputs } from '../plans.ts'

test('the process backend builds nothing without the second half of its opt-in', () => {
  expect(() => buildProcess(planFor('process'), runInputs())).toThrow(/must be allowed twice/)
})
