/**
 * Approvals that last as long as a terminal session: one file a session, owner only, named by the session's leader and the
 * time it started, so that a later session with the same number has none of them.
 * Edge: reads /proc, reads and writes the user's runtime directory.
 */
import { appendFile, lstat, readFile } from 'node:fs/promises'
import path from 'node:path'
import { ownDirectory } from '../backends/runs-directory.ts'
import { makeDirectories } from '../host/directory.ts'
import { type Memory, processMemory } from './approval.ts'

/** Where sessions keep their approvals: in the directory that every run keeps read-only. */
export function approvalsDirectory(env: Readonly<Record<string, string | undefined>>, uid: number): string {
  return path.posix.join(ownDirectory(env, uid), 'approvals')
}

export interface SessionMemoryOptions {
  readonly directory: string
  readonly uid: number
  /** Whose session: a process, as /proc names it; this one by default. */
  readonly member?: string
}

/**
 * The memory of a terminal session; of this process alone where the session's leader is gone or out of sight (what tells
 * a session from a later one of the same number), or where the directory is not safely ours. Nothing is looked at before
 * it is asked, nothing is made before there is a key.
 */
export function sessionMemory({ directory, uid, member = 'self' }: SessionMemoryOptions): Memory {
  const own = processMemory()
  const fileOf = async () => {
    const session = await sessionName(member)
    return session !== undefined && (await isOwnDirectory(directory, uid)) ? path.join(directory, session) : undefined
  }
  return {
    has: async (key) => {
      if (await own.has(key)) return true
      const file = await fileOf()
      return file !== undefined && (await keysOf(file, uid)).includes(key)
    },
    add: async (key) => {
      await own.add(key)
      tryToMake(directory)
      const file = await fileOf()
      // A full disk forgets the answer; the next run asks again.
      if (file !== undefined) await appendFile(file, `${key}\n`, { mode: 0o600 }).catch(() => undefined)
    },
  }
}

/** What it became is looked at next. */
function tryToMake(directory: string): void {
  try {
    makeDirectories(directory, 0o700)
  } catch {
    // Then there is nothing to remember in, and the next run asks again.
  }
}

async function keysOf(file: string, uid: number): Promise<readonly string[]> {
  const facts = await lstat(file).catch(() => undefined)
  const isOwn = facts?.isFile() === true && facts.uid === uid && (facts.mode & 0o077) === 0
  if (!isOwn) return []
  return (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')
}

async function isOwnDirectory(directory: string, uid: number): Promise<boolean> {
  const around = [path.dirname(directory), directory]
  const facts = await Promise.all(around.map((place) => lstat(place).catch(() => undefined)))
  return facts.every((fact) => fact?.isDirectory() === true && fact.uid === uid && (fact.mode & 0o022) === 0)
}

/** Fields of /proc/PID/stat after the name, which may hold anything: proc(5) counts session as 6 and starttime as 22. */
const [SESSION, START_TIME] = [6 - 3, 22 - 3]

/** Session number, start time of its leader, boot; undefined where /proc does not say. */
async function sessionName(member: string): Promise<string | undefined> {
  const session = (await statFields(member))?.[SESSION]
  const started = session === undefined ? undefined : (await statFields(session))?.[START_TIME]
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined)
  if (session === undefined || started === undefined || boot === undefined) return undefined
  return `${session}-${started}-${boot.trim()}`
}

async function statFields(pid: string): Promise<readonly string[] | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')
}
