/**
 * The program of a sandbox that holds a connection: by the port that it has inside, in the tables that the kernel shows of the sandbox's network.
 * Edge: /proc.
 */
import { readdirSync } from 'node:fs'
import { namesIn, textOf } from '../os/look.ts'
import { parentOf } from '../os/process-identity.ts'
import { linkText } from './paths.ts'

/** Every process below `root`, without it. */
function descendants(root: number): readonly number[] {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), parentOf(Number(name))] as const)
  const found = new Set([root])
  // A parent may have a higher number than its child, so one pass is not enough.
  for (let before = 0; before !== found.size; ) {
    before = found.size
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid)
  }
  found.delete(root)
  return [...found]
}

const INODE_FIELD = 9

/** The inode of the socket with this local port. */
function socketOf(pid: number, port: number): string | undefined {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = ['tcp', 'tcp6'].flatMap((table) => textOf(`/proc/${pid}/net/${table}`).split('\n').slice(1))
  const fields = rows.map((row) => row.trim().split(/\s+/)).find(([, local = '']) => local.endsWith(wanted))
  return fields?.[INODE_FIELD]
}

const holds = (pid: number, inode: string): boolean =>
  namesIn(`/proc/${pid}/fd`).some((fd) => linkText(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`)

/** The name that the program gives itself, from inside the sandbox. @param launcher the process that built the sandbox */
export function programOfPort(launcher: number, port: number): string | undefined {
  if (port === 0) return undefined
  // Processes come and go, and some may not be looked at.
  const network = (pid: number): string => linkText(`/proc/${pid}/ns/net`)
  const own = network(launcher)
  // The helper is a process of the host, and so is an engine that stays.
  const inside = descendants(launcher).filter((pid) => !['', own].includes(network(pid)))
  const [first] = inside
  const inode = first === undefined ? undefined : socketOf(first, port)
  if (inode === undefined || inode === '0') return undefined
  const holder = inside.find((pid) => holds(pid, inode))
  return holder === undefined ? undefined : textOf(`/proc/${holder}/comm`).trim() || undefined
}
