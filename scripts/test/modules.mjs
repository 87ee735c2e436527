// The transformed modules of vitest (build/test-modules): those that a whole run has not read are of sources that have changed.
import { existsSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './programs.mjs'

/** Gives each module a time of access before its own time, so a read sets it on every file system that keeps it. @returns what removes the others */
export function markModules(directory = join(checkout, 'build/test-modules')) {
  const names = existsSync(directory) ? readdirSync(directory).filter((name) => /^[0-9a-f]{40}$/.test(name)) : []
  const files = names.map((name) => join(directory, name))
  for (const file of files) utimesSync(file, 0, statSync(file).mtime)
  return () => {
    const unread = files.filter((file) => existsSync(file) && statSync(file).atimeMs === 0)
    // Where no time of access is kept, nothing was read.
    if (unread.length < files.length) for (const file of unread) rmSync(file)
  }
}
