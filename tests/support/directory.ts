/** Temporary directories that are gone when the test is, whatever became of it. */
import { chmod, chown, mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { removeTree } from './remove-tree.ts'
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
  const made = await mkdtemp(join(below ?? tmpdir(), 'llm-do-test-'))
  await chmod(made, mode)
  if (owner !== currentUser()) await chown(made, PLAIN_ID, PLAIN_ID)
  return { path: await realpath(made), remove: async () => removeTree(made) }
}

/** A new directory that is removed when the running test ends. */
export async function temporaryDirectory(options: DirectoryOptions = {}): Promise<string> {
  const { path, remove } = await newDirectory(options)
  onTestFinished(() => remove())
  return path
}
