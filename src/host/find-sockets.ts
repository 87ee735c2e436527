/**
 * Finds UNIX sockets and FIFOs in zones: ways to host processes that a read-only mount leaves open.
 * Edge: file system.
 */
import { type Dirent, readdirSync } from 'node:fs'
import { posix } from 'node:path'
import { PLACE_ENTRIES_MAX } from '../contract.ts'

/** Entries looked at in one zone, breadth first: a few milliseconds. One deep in a large tree is not found. */
const MOST_ENTRIES = PLACE_ENTRIES_MAX
/** Enough to name; more tell nothing new. */
const MOST_SOCKETS = 5

/** Paths of the first ones below a directory. What cannot be read is left out: the command cannot read it either. */
export function findSockets(directory: string): readonly string[] {
  const found: string[] = []
  const waiting = [directory]
  for (let seen = 0; waiting.length > 0 && seen < MOST_ENTRIES && found.length < MOST_SOCKETS; ) {
    const at = waiting.shift() ?? directory
    const entries = entriesOf(at)
    seen += entries.length
    found.push(...entries.filter(isSocketOrFifo).map(({ name }) => posix.join(at, name)))
    waiting.push(...entries.filter((entry) => entry.isDirectory()).map(({ name }) => posix.join(at, name)))
  }
  return found.slice(0, MOST_SOCKETS)
}

function entriesOf(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}

function isSocketOrFifo(entry: Dirent): boolean {
  return entry.isSocket() || entry.isFIFO()
}
