/**
 * Tells a process from a later one with the same number, on this machine or another, in this container or another.
 * An identity is `<boot>/<pid namespace>/<pid>:<start time>`; where there is no /proc, `<host name>/<pid>`.
 * Edge: /proc, signal 0.
 */
import { readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { textOf } from './look.ts'

/** Changes with every start of the machine; undefined where the kernel or a container hides it. */
export function bootId(): string | undefined {
  return textOf('/proc/sys/kernel/random/boot_id').trim() || undefined
}

/** The scope of a pid: this boot and pid namespace. Several machines and containers may share a daemon or a directory. */
export function processTable(): string {
  const boot = bootId()
  return boot === undefined ? hostname() : `${boot}/${/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? ''}`
}

/** @returns undefined when the process does not exist, or this user may not see it */
export function identityOf(pid: number): string | undefined {
  const started = statFields(pid)?.[START_TIME]
  if (started !== undefined) return `${processTable()}/${pid}:${started}`
  return process.platform !== 'linux' && isAlive(pid) ? `${processTable()}/${pid}` : undefined
}

export function ownIdentity(): string {
  return identityOf(process.pid) ?? `${processTable()}/${process.pid}`
}

/** Whether its number means a process here: of this boot, in this pid namespace. */
export const isHere = (identity: string): boolean => identity.startsWith(`${processTable()}/`)

/** Whether that process has ended for sure; one of another table cannot be seen from here and counts as alive. */
export function isGone(identity: string): boolean {
  const table = processTable()
  if (!identity.startsWith(`${table}/`)) return false
  const pid = Number.parseInt(identity.slice(table.length + 1), 10)
  if (statFields(pid)?.[STATE] === 'Z') return true // Nobody has asked yet how it ended.
  const now = identityOf(pid)
  // A process of another user may be hidden from /proc (hidepid) and yet be alive.
  return now === undefined ? !isAlive(pid) : now !== identity
}

/** Also true for a process of another user. */
export function isAlive(pid: number): boolean {
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Positions of fields 3, 4, 6 and 22 of proc_pid_stat(5) after the program's name, which may hold spaces and brackets. */
const [STATE, PARENT, SESSION, START_TIME] = [0, 4 - 3, 6 - 3, 22 - 3]

/** The leader of the session that a process belongs to. @param pid a number, or `self` */
export function sessionLeaderOf(pid: string): number | undefined {
  const session = statFields(pid)?.[SESSION]
  return session === undefined ? undefined : Number(session)
}

/** NaN for a process that is gone or hidden. */
export const parentOf = (pid: number): number => Number(statFields(pid)?.[PARENT])

function statFields(pid: number | string): readonly string[] | undefined {
  const stat = textOf(`/proc/${pid}/stat`)
  return stat === '' ? undefined : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}
