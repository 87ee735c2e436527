/**
 * A directory for temporary files of the test file's own: TMPDIR of the tests, of what they start and of the sandboxes' runners. What
 * is in it, and what names it, comes from this file and from no other process on the machine.
 */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { removeTree } from './remove-tree.ts'

/** How the path of every such directory looks, whatever file it belongs to. */
export const TEST_DIRECTORY = '/llm-do-test.'

/** Makes it and removes it after the file's last hook: vitest runs the hooks that came first last. */
export function useOwnDirectory(): void {
  const path = mkdtempSync(join(realpathSync(tmpdir()), TEST_DIRECTORY))
  // As open as /tmp: tests run programs as other users.
  chmodSync(path, 0o1777)
  process.env.TMPDIR = path
  useOwnRuntimeDirectory(join(path, 'runtime'))
  afterAll(() => removeTree(path))
}

/** A plain user's records, pools and secret; those of root are in one place, over which a lane of `make test` has its own mount. */
function useOwnRuntimeDirectory(path: string): void {
  if (process.getuid?.() === 0) return
  mkdirSync(path, { mode: 0o700 })
  process.env.XDG_RUNTIME_DIR = path
}
