/**
 * The mask of file modes of this process, which the command of a run gets.
 * Edge: /proc, this process.
 */
import { readFileSync } from 'node:fs'
import { umaskIn } from './proc-status.ts'

/** Of this process. Where there is no /proc to read, node sets the mask to look at it, and another thread may make a file meanwhile. */
export function ownUmask(): number {
  try {
    return umaskIn(readFileSync('/proc/self/status', { encoding: 'utf8' }))
  } catch {
    return process.umask()
  }
}
