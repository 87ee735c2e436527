/**
 * A lock between processes that survives the death of its holder. Node has no flock(2).
 *
 * A lock is a symbolic link `FILE.lock.N` whose text names its holder: making a link is atomic, fails when it exists, and
 * brings its content along. Whoever meets the link of a dead holder does not remove it, since two who do so at once would
 * remove each other's fresh lock; it takes the next number instead and then looks again: the lock is held by the one
 * whose lower numbers all still belong to the dead. Releasing removes the dead links first, the own one last.
 *
 * Edge: the file system, /proc, the clock.
 */
import { readFileSync, readlinkSync, symlinkSync, unlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../error.ts'

/** Longest wait for the others. An entry takes well under a millisecond, so this is thousands of them. */
const PATIENCE_MS = 10_000
const PAUSE_MS = { least: 1, most: 10 } as const

/** Start time in clock ticks: field 22 of proc_pid_stat(5), counted after the name, which may hold spaces and brackets. */
function startTime(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}

/** `<pid namespace> <pid> <start time>`: a process id alone is used again, and means nothing in another namespace. */
function identity(pid: number): string {
  if (process.platform !== 'linux') return `any ${pid} any`
  return `${readlinkSync('/proc/self/ns/pid')} ${pid} ${startTime(pid)}`
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Sure of it: a holder in another pid namespace cannot be seen from here and counts as alive. */
function isDead(holder: string): boolean {
  const [namespace, word] = holder.split(' ')
  const pid = Number(word)
  const own = identity(process.pid)
  if (namespace !== own.split(' ')[0] || !Number.isSafeInteger(pid) || pid <= 0) return false
  if (!exists(pid)) return true
  try {
    return identity(pid) !== holder
  } catch {
    return true // It ended between the two looks.
  }
}

function holderOf(link: string): string | undefined {
  try {
    return readlinkSync(link)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function take(link: string): boolean {
  try {
    symlinkSync(identity(process.pid), link)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function remove(link: string): void {
  try {
    unlinkSync(link)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** One attempt. @returns the links to remove at the end, the own one last; undefined when somebody else holds the lock */
function attempt(file: string): readonly string[] | undefined {
  const dead: string[] = []
  for (let number = 0; ; number += 1) {
    const link = `${file}.lock.${number}`
    if (take(link)) {
      const stillDead = dead.every((lower) => {
        const holder = holderOf(lower)
        return holder !== undefined && isDead(holder)
      })
      if (stillDead) return [...dead, link]
      remove(link)
      return undefined
    }
    const holder = holderOf(link)
    if (holder === undefined || !isDead(holder)) return undefined
    dead.push(link)
  }
}

/**
 * Runs `work` while no other process, and no other call in this one, does so for the same file.
 * @throws SandboxError SETUP_FAILED when the lock stays taken for ten seconds
 */
export async function whileLocked<T>(file: string, work: () => T): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const links = attempt(file)
    if (links !== undefined) {
      try {
        return work()
      } finally {
        for (const link of links) remove(link)
      }
    }
    if (performance.now() > deadline) throw stuck(file)
    await sleep(PAUSE_MS.least + Math.random() * (PAUSE_MS.most - PAUSE_MS.least))
  }
}

function stuck(file: string): SandboxError {
  return new SandboxError(
    'SETUP_FAILED',
    `${file}: another process holds its lock (${file}.lock.*) and does not let go`,
    {
      hint: `readlink ${file}.lock.*   # names its process; remove the link if that process is not an llm-do`,
    },
  )
}
