/**
 * The lock of a session's container: held by one run at a time, or by the prune that removes the container.
 * Edge: files in the user's runtime directory, randomness.
 */
import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeDirectories } from '../../host/directory.ts'
import { isGone, processTable, runnerOf } from './inputs.ts'

export interface Held {
  readonly release: () => void
}

/**
 * One file per session, in the same directory as the records of live runs.
 * @returns undefined while another live process holds it
 */
export async function takeSession(runsDirectory: string, name: string): Promise<Held | undefined> {
  const directory = join(dirname(runsDirectory), 'sessions')
  makeDirectories(directory, 0o700)
  const path = join(directory, name)
  if (!take(path) && !(isStale(path) && retake(path))) return undefined
  return { release: () => unlinkSync(path) }
}

/** A unique temporary name next to the lock. */
const besides = (path: string): string => `${path}.${randomUUID()}`

/** The file is written before it is linked, so a process that is killed in between has not taken the lock. */
function take(path: string): boolean {
  const own = besides(path)
  writeFileSync(own, runnerOf(process.pid) ?? `${processTable()}/${process.pid}`, { mode: 0o600, flag: 'wx' })
  try {
    return link(own, path)
  } finally {
    unlinkSync(own)
  }
}

/** @returns false when there is one already */
function link(from: string, path: string): boolean {
  try {
    linkSync(from, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function isStale(path: string): boolean {
  try {
    const holder = readFileSync(path, 'utf8')
    return holder === '' || isGone(holder) // No holder leaves it empty.
  } catch {
    // Released this moment: the next run will get it.
    return false
  }
}

/** rename(2) lets one of several processes move a stale lock aside. A later one moves the lock of the first, and puts it back. */
function retake(path: string): boolean {
  const aside = besides(path)
  try {
    renameSync(path, aside)
  } catch {
    return false // Another one has just done so.
  }
  const isOurs = isStale(aside)
  if (!isOurs) link(aside, path)
  unlinkSync(aside)
  return isOurs && take(path)
}
