/**
 * A lock between processes that survives the death of its holder. Node has no flock(2).
 *
 * A lock is a symbolic link `FILE.lock.N` whose text is the identity of its holder: making a link is atomic, fails when it exists, and
 * sets its content in the same step. A process that meets the link of a dead holder does not remove it, since two that did so at once
 * could remove each other's fresh lock. It takes the next number instead and then looks again: the lock belongs to the process for
 * which all lower numbers still belong to dead ones. Releasing removes the dead links first, the own one last.
 *
 * Edge: the file system, the clock, randomness.
 */
import { readlinkSync, symlinkSync, unlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../error.ts'
import { isGone, ownIdentity } from './process-identity.ts'

export interface HeldLock {
  readonly release: () => void
}

/** @returns undefined while another live process, or another caller in this one, holds the lock of this file */
export function tryLock(file: string): HeldLock | undefined {
  const dead: string[] = []
  for (let number = 0; ; number += 1) {
    const link = `${file}.lock.${number}`
    if (make(link)) {
      if (dead.every(isOfDead)) return { release: () => [...dead, link].forEach(remove) }
      remove(link)
      return undefined
    }
    if (!isOfDead(link)) return undefined
    dead.push(link)
  }
}

function make(link: string): boolean {
  try {
    symlinkSync(ownIdentity(), link)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** False for a link that is not there: it was released a moment ago. */
function isOfDead(link: string): boolean {
  try {
    return isGone(readlinkSync(link))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
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

/** Longest wait for other holders. An entry of the audit log takes well under a millisecond, so this is thousands of them. */
const PATIENCE_MS = 10_000
const PAUSE_MS = { least: 1, most: 10 } as const

/**
 * Runs `work` while no other process, and no other call in this one, does so for the same file.
 * @throws SandboxError SETUP_FAILED when the lock stays taken for ten seconds
 */
export async function whileLocked<T>(file: string, work: () => T): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const lock = tryLock(file)
    if (lock !== undefined) {
      try {
        return work()
      } finally {
        lock.release()
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
      hint: `readlink ${file}.lock.*   # names its process (boot/pid namespace/pid:start time); remove the link if that is not an llm-do`,
    },
  )
}
