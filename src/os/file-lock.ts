/**
 * A lock between processes that the kernel holds, and so lets go of with its holder: after `kill -9`, a power cut, in a container that was
 * started again on its volume. It is flock(2) on `FILE.lock`. Node has no flock: on Linux a native program takes it on a descriptor that it
 * inherits. The lock belongs to the open file and stays when that program has ended. macOS and Windows lock a file when they open it.
 *
 * FILE.lock is write-only: a sandbox that is shown it read-only cannot open it, and so cannot hold it against other runs. What has been
 * removed locks nothing (`nlink` 0), so a holder may remove it when it lets go.
 *
 * Links `FILE.lock.0` of an earlier version mean nothing.
 *
 * Edge: the file system, processes, /proc.
 */
import { spawn, spawnSync } from 'node:child_process'
import { closeSync, constants, fstatSync, openSync, statfsSync, statSync, unlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../error.ts'
import { namesIn, textOf } from './look.ts'
import { checkNativeProgram, type HostCall, hostCall } from './native-programs.ts'

export interface HeldLock {
  readonly release: () => void
}

/** The file that is locked for a file or a directory. */
export const lockOf = (file: string): string => `${file}.lock`

/** O_NONBLOCK: a FIFO must be refused, not waited for. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK
const WRITE_ONLY = 0o200

/**
 * O_EXLOCK of macOS (sys/fcntl.h), and libuv's for Windows (uv/win.h), where a file that is open elsewhere cannot be opened. Elsewhere the
 * native program locks.
 */
const LOCK_AT_OPEN: Readonly<Partial<Record<NodeJS.Platform, number>>> = { darwin: 0x20, win32: 0x10000000 }
const LOCKED_ELSEWHERE = new Set(['EAGAIN', 'EWOULDBLOCK', 'EBUSY'])

/** @throws SandboxError SETUP_FAILED for anything but a regular file; the error of the file system */
export function openLock(lock: string): number {
  const fd = openSync(lock, FLAGS, WRITE_ONLY)
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  throw new SandboxError('SETUP_FAILED', `${lock}: expected a regular file, got something else`, {
    hint: `ls -ld ${lock}; remove it if it is not yours`,
  })
}

/**
 * Takes the lock of a file for as long as this process lives, or until it is released.
 * @returns undefined while another process, or another caller in this one, holds it
 * @throws SandboxError SETUP_FAILED where it cannot be asked
 */
export function tryLock(file: string): HeldLock | undefined {
  const lock = lockOf(file)
  for (;;) {
    const fd = openLocked(lock)
    if (fd === undefined) return undefined
    if (fstatSync(fd).nlink > 0) return { release: () => release(lock, fd) }
    closeSync(fd) // Its last holder has removed it.
  }
}

function openLocked(lock: string): number | undefined {
  const fd = lockedAtOpen(lock)
  if (fd !== undefined) return fd === 'held' ? undefined : fd
  const opened = openLock(lock)
  const { file, argv } = lockCall(0)
  const { status, error, stderr } = spawnSync(file, argv, {
    ...PLAIN,
    stdio: ['ignore', 'ignore', 'pipe', opened],
  })
  if (status === 0) return opened
  closeSync(opened)
  if (status === 1) return undefined
  throw unlockable(lock, error?.message ?? String(stderr).trim())
}

function lockedAtOpen(lock: string): number | 'held' | undefined {
  const flag = LOCK_AT_OPEN[process.platform]
  if (flag === undefined) return undefined
  try {
    return openSync(lock, FLAGS | flag, WRITE_ONLY)
  } catch (error) {
    if (LOCKED_ELSEWHERE.has((error as NodeJS.ErrnoException).code ?? '')) return 'held'
    throw error
  }
}

/** Removed while it is held: who opens it now finds that it locks nothing. */
function release(lock: string, fd: number): void {
  try {
    unlinkSync(lock)
  } catch {
    // Gone already, or it cannot be removed: a lock file without a holder does no harm.
  }
  closeSync(fd)
}

/* ---- the native program ---- */

const PLAIN = { env: {}, cwd: '/' } as const

function lockCall(patienceMs: number, room?: number): HostCall {
  const words = room === undefined ? [patienceMs] : [patienceMs, room]
  const call = hostCall('runs', ['lock', ...words.map(String)])
  checkNativeProgram(call.file, process.arch)
  return call
}

function unlockable(lock: string, why: string): SandboxError {
  return new SandboxError('SETUP_FAILED', `${lock}: cannot be locked: ${why}`, {
    hint: 'take a directory on a file system that knows flock(2)',
  })
}

/** Longest wait for other holders. A line of the audit log takes well under a millisecond, so this is thousands of them. */
const PATIENCE_MS = 10_000

export interface LockQuestion {
  /** The name of what `fd` is, for messages. */
  readonly lock: string
  /** A descriptor of it. The lock is held until every copy is closed. */
  readonly fd: number
  /** Instead of keeping the lock: keeps room for so many bytes at the end of another open file. */
  readonly room?: { readonly fd: number; readonly bytes: number }
}

/** The file system has no room for the line. */
export class NoRoom extends Error {}

/**
 * Waits for the lock of an open file.
 * @returns what lets go of it where closing the file does not
 * @throws SandboxError SETUP_FAILED when another holds it for ten seconds, NoRoom where the other file cannot grow
 */
export async function waitForLock(question: LockQuestion): Promise<() => void> {
  if (LOCK_AT_OPEN[process.platform] !== undefined) return await waitAtOpen(question)
  await waitByProgram(question)
  return () => undefined
}

const PAUSE_MS = 10

async function waitAtOpen({ lock, room }: LockQuestion): Promise<() => void> {
  for (const deadline = performance.now() + PATIENCE_MS; ; ) {
    const taken = lockedAtOpen(lock)
    if (typeof taken === 'number') {
      const { bavail, bsize } = statfsSync(lock)
      if (room !== undefined && bavail * bsize < room.bytes) throw new NoRoom('No space left on device')
      return () => closeSync(taken)
    }
    if (performance.now() > deadline) throw held(lock)
    await sleep(PAUSE_MS)
  }
}

async function waitByProgram({ lock, fd, room }: LockQuestion): Promise<void> {
  const { file, argv } = lockCall(PATIENCE_MS, room?.bytes)
  const child = spawn(file, argv, { ...PLAIN, stdio: ['ignore', 'ignore', 'pipe', fd, room?.fd ?? 'ignore'] })
  const said: Buffer[] = []
  child.stderr?.on('data', (bytes: Buffer) => said.push(bytes))
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (status === 0) return
  if (status === 1) throw held(lock)
  const why = Buffer.concat(said).toString('utf8').trim()
  if (why.startsWith('room: ')) throw new NoRoom(why.slice('room: '.length))
  throw unlockable(lock, why || `status ${status}`)
}

function held(lock: string): SandboxError {
  return new SandboxError('SETUP_FAILED', `${lock}: it is locked by ${holderOf(lock)}, which does not let go`, {
    hint: `wait for it, or end it; to look: lslocks, fuser -v ${lock}`,
  })
}

/* ---- who holds it ---- */

/** For messages: `process 812 (node)`, as far as this user can see. @param lock a file of `lockOf` */
export function holderOf(lock: string): string {
  const pid = process.platform === 'linux' ? pidOfHolder(lock) : undefined
  return pid === undefined
    ? 'a process that cannot be seen from here (of another user or container)'
    : `process ${pid} (${textOf(`/proc/${pid}/comm`).trim()})`
}

/** The kernel shows a lock with the descriptors of who has it (proc_pid_fdinfo(5)), also when another process has taken it for him. */
function pidOfHolder(lock: string): string | undefined {
  const inode = statSync(lock, { throwIfNoEntry: false })?.ino
  const line = new RegExp(`^lock:.* FLOCK .*:${inode} `, 'm')
  return namesIn('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find((pid) => namesIn(`/proc/${pid}/fdinfo`).some((fd) => line.test(textOf(`/proc/${pid}/fdinfo/${fd}`))))
}
