/**
 * Golden files: texts under tests/golden that are reviewed like code.
 *
 *     expect(print(launch)).toMatchGolden('offline.ubuntu-24.04.bwrap')
 *
 * `make golden` (LLM_DO_GOLDEN=write) rewrites them and removes those that no test uses; the git diff is the review.
 * This file is a vitest set-up file, so the matcher is there in every test. Only unit tests may use it: a golden text is
 * the same on every machine. unused-goldens.ts does the check over the whole run.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'

export const GOLDEN_DIRECTORY = join(import.meta.dirname, '../golden')

export const isWritingGoldens = (): boolean => process.env.LLM_DO_GOLDEN === 'write'

/** Content of a golden file, or undefined without one. */
function readGolden(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function writeGolden(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

interface Comparison {
  readonly pass: boolean
  readonly message: () => string
  readonly actual?: string
  readonly expected?: string
}

/**
 * Compares a text with a golden file, or writes it.
 * @param directory where golden files live
 * @param name path of the golden file below it
 */
export function compareWithGolden(text: string, { name, directory }: { name: string; directory: string }): Comparison {
  const file = join(directory, name)
  const golden = readGolden(file)
  if (isWritingGoldens() && golden !== text) {
    writeGolden(file, text)
    return { pass: true, message: () => `tests/golden/${name} is what it should not be` }
  }
  if (golden === undefined) {
    return { pass: false, message: () => `tests/golden/${name} does not exist (hint: make golden, then review it)` }
  }
  return {
    pass: golden === text,
    message: () => `tests/golden/${name} differs (hint: make golden, then review git diff)`,
    actual: text,
    expected: golden,
  }
}

expect.extend({
  toMatchGolden(text: unknown, name: string) {
    if (typeof text !== 'string') throw new TypeError(`toMatchGolden(${name}): expected a string, got ${typeof text}`)
    const meta = this.task?.meta
    if (meta !== undefined) meta.goldens = [...(meta.goldens ?? []), name]
    return compareWithGolden(text, { name, directory: GOLDEN_DIRECTORY })
  },
})

declare module 'vitest' {
  // biome-ignore lint/suspicious/noExplicitAny: the declaration must equal the one it extends
  interface Matchers<T = any> {
    /** Equals tests/golden/NAME, byte for byte. */
    toMatchGolden(name: string): T
  }
  interface TaskMeta {
    /** Names of the golden files this test compared with. */
    goldens?: readonly string[]
  }
}
