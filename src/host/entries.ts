/**
 * Identities of paths and of the entries one level below them, to be compared with later ones.
 * Edge: file system (lstat, readdir); follows no link and changes nothing.
 */
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { namesIn } from '../os/look.ts'

/** Of one directory; beyond that the directory's own change has to do. */
const MOST_ENTRIES = 256

/** Path -> identity. What cannot be looked at is as absent. */
export function entryIdentities(paths: readonly string[]): ReadonlyMap<string, string> {
  const seen = new Map<string, string>()
  for (const path of paths) {
    const isDirectory = note(seen, path)
    for (const name of isDirectory ? firstNamesIn(path) : []) note(seen, join(path, name))
  }
  return seen
}

/** @returns whether it is a directory */
function note(seen: Map<string, string>, path: string): boolean {
  try {
    const { dev, ino, mode, size, ctimeNs, isDirectory } = statusOf(path)
    seen.set(path, [dev, ino, mode, size, ctimeNs].join(':'))
    return isDirectory
  } catch {
    return false // It is not there, or not for us to see: both times alike.
  }
}

function statusOf(path: string) {
  const status = lstatSync(path, { bigint: true })
  const { dev, ino, mode, size, ctimeNs } = status
  return { dev, ino, mode, size, ctimeNs, isDirectory: status.isDirectory() }
}

const firstNamesIn = (directory: string): readonly string[] => namesIn(directory).toSorted().slice(0, MOST_ENTRIES)
