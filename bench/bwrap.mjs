// The common measure of all benchmarks: bubblewrap, as its manual shows it and with our walls. Others: peers.mjs.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

export function findProgram(name) {
  const found = (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, name))
  return found.find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** bubblewrap as its manual shows it first; the measure of all the others. */
export const NAIVE = [
  'bwrap',
  '--ro-bind',
  '/',
  '/',
  '--dev',
  '/dev',
  '--proc',
  '/proc',
  '--tmpfs',
  '/tmp',
  '--unshare-all',
]

/**
 * The walls of a launch file as one would write them for bwrap: the same mounts, bounds, namespaces and filter. What bwrap
 * cannot do (id maps, Landlock, inode bounds, masks below /proc, limits, exact status) is left out, so it has less to do.
 */
export function byHand(words) {
  const records = recordsOf(words)
  const tree = records.flatMap(([verb, first, second, third]) => {
    if (verb === 'directory') return ['--dir', first]
    if (verb === 'symlink') return ['--symlink', second, first]
    if (verb === 'file') return ['--ro-bind', '/etc/hostname', first]
    if (verb === 'bind') return ['--ro-bind', first, second]
    if (verb === 'zone') return [third === 'rw' ? '--bind' : '--ro-bind', first, second]
    if (verb === 'tmpfs' && first !== '/dev/shm') return ['--size', second, '--tmpfs', first]
    return []
  })
  return [
    'bwrap',
    '--unshare-all',
    '--die-with-parent',
    '--new-session',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    ...tree,
    '--remount-ro',
    '/',
  ]
}

/** Verb -> number of words, for those that make the tree; every record begins with a verb, so others are skipped word by word. */
const TREE_WORDS = { directory: 2, symlink: 2, file: 3, tmpfs: 4, bind: 2, zone: 6 }

function recordsOf(words) {
  const records = []
  for (let at = 0; at < words.length; at += 1) {
    const length = TREE_WORDS[words[at]]
    // The tree comes after the engine's words; before them stand the key and the places, which may hold any text.
    if (length === undefined || at < words.indexOf('hostname')) continue
    records.push(words.slice(at, at + 1 + length))
    at += length
  }
  return records
}
