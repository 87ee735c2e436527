/**
 * Whether this process is in a sandbox of our own.
 * Edge: the file system (stat, statfs).
 */
import { statfsSync, statSync } from 'node:fs'
import { orElse } from './look.ts'

/** TMPFS_MAGIC of include/uapi/linux/magic.h. */
const TMPFS = 0x0102_1994
export const OUR_INIT = '/.init'

/**
 * A file system in memory, over whose root our init is mounted. Only who made the mounts around this process can have made it look so; no
 * variable does. Nothing is read, since Landlock in the sandbox may forbid it.
 */
export function isInsideOwn(): boolean {
  return orElse(false, () => {
    const [root, init] = [statSync('/'), statSync(OUR_INIT)]
    return init.isFile() && init.dev !== root.dev && statfsSync('/').type === TMPFS
  })
}
