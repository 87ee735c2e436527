/**
 * A copy of the built package, for tests that change something of it: which node it takes, for one.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll } from 'vitest'
import { newDirectory } from './directory.ts'
import { checkoutFor, currentUser, type User } from './users.ts'

const PARTS = ['bin', 'dist', 'package.json', 'profiles', 'schemas', 'workers', 'scripts', 'native/lib/contract.h']

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

/** As npm leaves it without install scripts: the commands are scripts, and another package has the native programs. */
export function takeScripts(root: string): void {
  const other = join(root, '../@llm-do', `exec-${process.platform}-${process.arch}`)
  cpSync(root, other, { recursive: true })
  rmSync(join(root, 'bin'), { recursive: true })
  execFileSync(process.execPath, [join(root, 'scripts/commands.mjs')])
}

/** @param owner who can read it; the user of this process by default */
export async function packageCopy(owner: User = currentUser()): Promise<PackageCopy> {
  const { path, remove } = await newDirectory({ owner, mode: 0o755 })
  const root = join(path, 'node_modules/llm-do-exec')
  mkdirSync(root, { recursive: true })
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

/** One copy for all tests of a file. */
export function packageOfFile(): () => PackageCopy {
  const made: { copy?: PackageCopy } = {}
  beforeAll(async () => {
    made.copy = await packageCopy()
    return made.copy.remove
  })
  return () => made.copy as PackageCopy
}
