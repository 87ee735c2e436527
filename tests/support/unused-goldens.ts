/**
 * A vitest reporter that fails a whole run of the unit tests when tests/golden holds a file that no test compared with.
 * A golden that no test reads checks nothing. When goldens are being written, it removes them instead.
 */
import { readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Reporter, TestModule, Vitest } from 'vitest/node'

const GOLDEN_DIRECTORY = join(import.meta.dirname, '../golden')

/** Files below a directory, relative to it. */
export function filesBelow(directory: string): readonly string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
}

/** Names of golden files that were not used. */
export const unusedOf = (files: readonly string[], used: ReadonlySet<string>): readonly string[] =>
  files.filter((file) => !used.has(file)).toSorted()

function goldensUsedBy(modules: readonly TestModule[]): ReadonlySet<string> {
  const tests = modules.flatMap((module) => [...module.children.allTests()])
  return new Set(tests.flatMap((test) => test.meta().goldens ?? []))
}

/** Only a run of all unit tests, none filtered out, none failed, can say that a file is unused. */
async function isComplete(vitest: Vitest, modules: readonly TestModule[]): Promise<boolean> {
  if (vitest.config.testNamePattern !== undefined || vitest.state.getCountOfFailedTests() > 0) return false
  const ran = new Set(modules.filter((module) => module.ok()).map((module) => module.moduleId))
  const all = (await vitest.globTestSpecifications()).filter(({ project }) => project.name === 'unit')
  return all.length > 0 && all.every(({ moduleId }) => ran.has(moduleId))
}

export function unusedGoldens(): Reporter {
  const seen: { vitest?: Vitest } = {}
  return {
    onInit(vitest) {
      seen.vitest = vitest
    },
    async onTestRunEnd(modules) {
      if (seen.vitest === undefined || !(await isComplete(seen.vitest, modules))) return
      const unused = unusedOf(filesBelow(GOLDEN_DIRECTORY), goldensUsedBy(modules))
      if (unused.length === 0) return
      if (process.env.LLM_DO_GOLDEN === 'write') {
        for (const name of unused) rmSync(join(GOLDEN_DIRECTORY, name))
        console.log(`removed golden files that no test uses: ${unused.join(', ')}`)
        return
      }
      console.error(`no test uses these golden files: ${unused.join(', ')} (hint: make golden removes them)`)
      process.exitCode = 1
    },
  }
}
