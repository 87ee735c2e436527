/**
 * Finds UNIX sockets and FIFOs in zones: doors to host processes that a read-only mount leaves open.
 * Edge: file system.
 */
import { type Dirent, readdirSync } from 'node:fs'
import { posix } from 'node:path'

/** Entries looked at in one zone, breadth first: a few milliseconds. A door deep in a large tree is not found. */
const MOST_ENTRIES = 2_000
/** Enough to name; more tell nothing new. */
const MOST_DOORS = 5

/** Paths of the first doors below a directory. What cannot be read is left out: the command cannot read it either. */
export function findDoors(directory: string): readonly string[] {
  const doors: string[] = []
  const waiting = [directory]
  for (let seen = 0; waiting.length > 0 && seen < MOST_ENTRIES && doors.length < MOST_DOORS; ) {
    const place = waiting.shift() ?? directory
    const entries = entriesOf(place)
    seen += entries.length
    doors.push(...entries.filter(isDoor).map(({ name }) => posix.join(place, name)))
    waiting.push(...entries.filter((entry) => entry.isDirectory()).map(({ name }) => posix.join(place, name)))
  }
  return doors.slice(0, MOST_DOORS)
}

function entriesOf(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}

function isDoor(entry: Dirent): boolean {
  return entry.isSocket() || entry.isFIFO()
}
