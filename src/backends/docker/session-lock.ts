/**
 * The lock of a session's container: held by one run at a time, or by the sweep that ends the session.
 * Edge: files in the user's runtime directory.
 */
import { dirname, join } from 'node:path'
import { type HeldLock, makeDirectories, tryLock } from '../run-kit.ts'

export type { HeldLock }

/**
 * One lock per session, next to the records of live runs.
 * @returns undefined while another live process holds it
 */
export async function takeSession(runsDirectory: string, name: string): Promise<HeldLock | undefined> {
  const directory = join(dirname(runsDirectory), 'sessions')
  makeDirectories(directory, 0o700)
  return tryLock(join(directory, name))
}
