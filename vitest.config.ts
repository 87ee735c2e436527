import { configDefaults, defineConfig } from 'vitest/config'
import { LongestFirst } from './tests/support/longest-first.ts'
import { unusedGoldens } from './tests/support/unused-goldens.ts'

// `scripts/test.mjs` asks for machine-readable counts beside what people read.
const countsFile = process.env.LLM_DO_TEST_COUNTS

const shared = {
  setupFiles: ['tests/support/surroundings.ts', 'tests/support/golden.ts'],
  exclude: [...configDefaults.exclude, 'tests/vm/**'],
  pool: 'forks' as const,
}

export default defineConfig({
  test: {
    reporters: ['default', unusedGoldens(), ...(countsFile === undefined ? [] : ['json' as const])],
    ...(countsFile === undefined ? {} : { outputFile: { json: countsFile } }),
    sequence: { sequencer: LongestFirst },
    allowOnly: process.env.CI !== 'true',
    projects: [
      {
        extends: true,
        test: {
          ...shared,
          name: 'unit',
          include: ['tests/**/*.test.ts'],
          exclude: [...shared.exclude, 'tests/**/*.system.test.ts', 'tests/**/*.sweep.test.ts'],
          testTimeout: 20_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          ...shared,
          // Exhaustive comparisons of pure functions: part of `make test`, too slow for `make check`.
          name: 'sweep',
          include: ['tests/**/*.sweep.test.ts'],
          testTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          ...shared,
          name: 'system',
          include: ['tests/**/*.system.test.ts'],
          // A small machine under load: a time limit here ends a hang, it measures nothing.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // Two at a time: half of the time of a file is spent waiting. A test must stand the sandboxes of others anyway (docs/development.md).
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
