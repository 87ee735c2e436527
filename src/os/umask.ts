/**
 * The mask of file modes of this process, which the command of a run gets.
 * Edge: /proc, this process.
 */
import { readFileSync } from 'node:fs'
import { umaskIn } from './proc-status.ts'

/** Of this process. Where there is no /proc, node sets the mask to look at it, and another thread may make a file meanwhile. */
export function ownUmask(): number {
  if (process.platform !== 'linux') return process.umask()
  return umaskIn(readFileSync('/proc/self/status', { encoding: 'utf8' }))
}
