/**
 * A copy of the built package, for tests that change something of it: which node it takes, for one.
 */
import { chmodSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newDirectory } from './directory.ts'
import { checkoutFor, currentUser, type User } from './users.ts'

const PARTS = ['bin', 'dist', 'package.json', 'profiles', 'schemas', 'workers', 'scripts']

export interface PackageCopy {
  readonly root: string
  /** Puts another node on record; undefined takes the record away. */
  readonly recordNode: (node: string | undefined) => void
  /** While `work` runs, the node on record fails at once. */
  readonly withoutNode: <T>(work: () => PromiseLike<T>) => Promise<T>
  readonly remove: () => Promise<void>
}

/** From now on a package that needs node says so and ends with 99. */
export function recordFailingNode(root: string): void {
  const failing = join(root, 'no-node')
  writeFileSync(failing, '#!/bin/sh\necho "node was started" >&2\nexit 99\n')
  chmodSync(failing, 0o755)
  writeFileSync(join(root, 'dist/node-path'), `${failing}\n`)
}

/** @param owner who can read it; the user of this process by default */
export async function packageCopy(owner: User = currentUser()): Promise<PackageCopy> {
  const { path: root, remove } = await newDirectory({ owner, mode: 0o755 })
  for (const part of PARTS)
    if (existsSync(join(checkoutFor(currentUser()), part)))
      cpSync(join(checkoutFor(currentUser()), part), join(root, part), { recursive: true })
  const record = join(root, 'dist/node-path')
  const before = readFileSync(record, 'utf8')
  const recordNode = (node: string | undefined) => writeFileSync(record, node === undefined ? '' : `${node}\n`)
  return {
    root,
    recordNode,
    withoutNode: async (work) => {
      recordFailingNode(root)
      try {
        return await work()
      } finally {
        writeFileSync(record, before)
      }
    },
    remove,
  }
}
