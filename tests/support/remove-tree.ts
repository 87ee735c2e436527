/** Removes what a run as a plain user may leave. */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'

/** overlayfs makes a directory in each layer that its owner may not read, so only root's removal needs no other modes first. */
export function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    spawnSync('chmod', ['-R', 'u+rwX', path])
    rmSync(path, { recursive: true, force: true })
  }
}
