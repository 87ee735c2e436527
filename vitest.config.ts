import { configDefaults, defineConfig } from 'vitest/config'
import { unusedGoldens } from './tests/support/unused-goldens.ts'

// scripts/test/ asks for counts that it can parse, in addition to the text for people.
const countsFile = process.env.LLM_DO_TEST_COUNTS

const shared = {
  // A failure in the log of CI says what came, whole.
  chaiConfig: { truncateThreshold: 0 },
  setupFiles: ['tests/support/surroundings.ts', 'tests/support/golden.ts'],
  exclude: [...configDefaults.exclude, 'tests/vm/**'],
  pool: 'forks' as const,
  // An awaited event comes late on a busy machine; vitest's default of a second measures the machine.
  expect: { poll: { timeout: 15_000 } },
}

// Tests make much that is soon garbage: with room for it, collections take a sixth less of the processor time of all unit tests.
const pure = { ...shared, execArgv: ['--max-semi-space-size=64'] }

// A small machine under load: a time limit here ends a hang, it measures nothing.
const system = { ...shared, testTimeout: 240_000, hookTimeout: 240_000, expect: { poll: { timeout: 60_000 } } }

export default defineConfig({
  test: {
    reporters: ['default', unusedGoldens(), ...(countsFile === undefined ? [] : ['json' as const])],
    ...(countsFile === undefined ? {} : { outputFile: { json: countsFile } }),
    allowOnly: process.env.CI !== 'true',
    // By the sum of a file's text: a lane of system tests finds what the unit tests have transformed, which saves 2 s of processor time.
    experimental: { fsModuleCache: true, fsModuleCachePath: process.env.LLM_DO_TEST_MODULES ?? 'build/test-modules' },
    projects: [
      {
        extends: true,
        test: {
          ...pure,
          name: 'unit',
          include: ['tests/**/*.test.ts'],
          exclude: [...shared.exclude, 'tests/**/*.system.test.ts', 'tests/**/*.sweep.test.ts'],
          testTimeout: 20_000,
          maxWorkers: 2,
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          ...pure,
          // Exhaustive comparisons of pure functions: part of `make test`, too slow for `make check`.
          name: 'sweep',
          include: ['tests/**/*.sweep.test.ts'],
          testTimeout: 60_000,
          maxWorkers: 2,
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          ...system,
          name: 'system',
          include: ['tests/**/*.system.test.ts'],
          // One file at a time: scripts/test/ runs several such processes side by side, each with separate directories.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
