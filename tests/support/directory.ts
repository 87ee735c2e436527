/** Temporary directories that are gone when the test is, whatever became of it. */
import { chmod, chown, realpath } from 'node:fs/promises'
import { dir } from 'tmp-promise'
import { onTestFinished } from 'vitest'
import { currentUser, PLAIN_ID, type User } from './users.ts'

export interface DirectoryOptions {
  /** Its owner; the user of this process by default. */
  readonly owner?: User
  /** Permission bits. */
  readonly mode?: number
  /** Where it is made; the test file's own directory by default. */
  readonly below?: string
}

/** A new directory that the caller removes with `remove`; for what outlives one test. Its path is canonical. */
export async function newDirectory({ owner = currentUser(), mode = 0o700, below }: DirectoryOptions = {}): Promise<{
  readonly path: string
  readonly remove: () => Promise<void>
}> {
  const made = await dir({
    prefix: 'llm-do-test',
    unsafeCleanup: true,
    ...(below === undefined ? {} : { tmpdir: below }),
  })
  await chmod(made.path, mode)
  if (owner !== currentUser()) await chown(made.path, PLAIN_ID, PLAIN_ID)
  return { path: await realpath(made.path), remove: () => made.cleanup() }
}

/** A new directory that is removed when the running test ends. */
export async function temporaryDirectory(options: DirectoryOptions = {}): Promise<string> {
  const { path, remove } = await newDirectory(options)
  onTestFinished(() => remove())
  return path
}
