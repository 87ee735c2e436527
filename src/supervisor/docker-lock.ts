/**
 * Who is inside a session's container: one run at a time, or the sweep that ends it.
 * Edge: files in the user's runtime directory.
 */
import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isGone, runnerOf } from '../backend/docker-inputs.ts'
import { makeDirectories } from '../host/directory.ts'

export interface Held {
  readonly release: () => void
}

/**
 * One file per session, beside the records of live runs.
 * @returns undefined while another live process holds it
 */
export async function takeSession(runsDirectory: string, name: string): Promise<Held | undefined> {
  const directory = join(dirname(runsDirectory), 'sessions')
  await makeDirectories(directory, 0o700)
  const path = join(directory, name)
  if (!write(path) && !(isStale(path) && retake(path))) return undefined
  return { release: () => unlinkSync(path) }
}

function write(path: string): boolean {
  try {
    const fd = openSync(path, 'wx', 0o600)
    writeSync(fd, runnerOf(process.pid) ?? '')
    closeSync(fd)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function isStale(path: string): boolean {
  try {
    return isGone(readFileSync(path, 'utf8'))
  } catch {
    // Released this moment: the next run will get it.
    return false
  }
}

function retake(path: string): boolean {
  unlinkSync(path)
  return write(path)
}
