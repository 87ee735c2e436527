/**
 * Who is inside a session's container: one run at a time, or the sweep that ends it.
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
 * One file per session, beside the records of live runs.
 * @returns undefined while another live process holds it
 */
export async function takeSession(runsDirectory: string, name: string): Promise<Held | undefined> {
  const directory = join(dirname(runsDirectory), 'sessions')
  makeDirectories(directory, 0o700)
  const path = join(directory, name)
  if (!take(path) && !(isStale(path) && retake(path))) return undefined
  return { release: () => unlinkSync(path) }
}

/** Beside a lock; nobody else's. */
const besides = (path: string): string => `${path}.${randomUUID()}`

/** Written before it is linked: whoever is killed meanwhile has taken nothing. */
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

/** Of several who see a stale lock one alone moves it aside. What a later one moves is the lock of the first, and goes back. */
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
