/**
 * Finds UNIX sockets and FIFOs in zones: ways to host processes that a read-only mount leaves open.
 * Edge: file system, a native program.
 */
import { type Dirent, readdirSync } from 'node:fs'
import { posix } from 'node:path'
import { PLACE_ENTRIES_MAX } from '../contract.ts'
import { orElse } from '../os/look.ts'
import { hostCall } from '../os/native-programs.ts'
import { runProgramSync } from '../os/run-program.ts'

/** Entries looked at in one zone, breadth first: a few milliseconds. One deep in a large tree is not found. */
const MOST_ENTRIES = PLACE_ENTRIES_MAX
/** Enough to name; more tell nothing new. */
const MOST_SOCKETS = 5

export interface FoundSockets {
  /** Paths of the first sockets and FIFOs below a directory that a process of the host may serve. */
  readonly open: readonly string[]
  /** Some are files of sockets that have ended. A server that starts again makes others in their place. */
  readonly hasUnbound: boolean
}

/** A directory that cannot be read is left out: the command cannot read it either. */
export function findSockets(directory: string): FoundSockets {
  const found: string[] = []
  const waiting = [directory]
  for (let seen = 0; waiting.length > 0 && seen < MOST_ENTRIES; ) {
    const at = waiting.shift() ?? directory
    const entries = entriesOf(at)
    seen += entries.length
    found.push(...entries.filter((entry) => entry.isSocket() || entry.isFIFO()).map(({ name }) => posix.join(at, name)))
    waiting.push(...entries.filter((entry) => entry.isDirectory()).map(({ name }) => posix.join(at, name)))
  }
  const unbound = found.length === 0 ? '' : unboundAmong(found)
  const open = found.filter((_, at) => unbound[at] !== '1')
  return { open: open.slice(0, MOST_SOCKETS), hasUnbound: open.length < found.length }
}

/** A digit for each path, see native/tools/runs.c; nothing if the program fails: every path then counts as open. */
function unboundAmong(paths: readonly string[]): string {
  const { ok, stdout } = runProgramSync(hostCall('runs', ['unbound', ...paths]))
  return ok ? stdout : ''
}

const entriesOf = (directory: string): readonly Dirent[] =>
  orElse([], () => readdirSync(directory, { withFileTypes: true }))
