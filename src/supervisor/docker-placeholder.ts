/**
 * Protected paths that do not exist yet, for containers.
 * Edge: files, the flock program.
 *
 * Only a mount can keep a path read-only, and a mount needs something to stand on; left alone, the container runtime would
 * make it on the host, as root, and leave it there. The rules are those of native/placeholder.c, so that both kinds of
 * runs can share a zone: an empty directory of a mode that nobody else uses for the first missing component, a shared
 * lock on it while a run needs it, and only who gets the exclusive lock removes it.
 */
import { spawn } from 'node:child_process'
import { chmodSync, chownSync, closeSync, fstatSync, lstatSync, mkdirSync, openSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxError } from '../error.ts'
import type { Plan, PlannedZone } from '../plan/plan.ts'

/** PLACEHOLDER_MODE of native/placeholder.h. */
const PLACEHOLDER_MODE = 0o1555

export interface Placeholder {
  readonly path: string
  /** Holds the lock. */
  readonly fd: number
}

export interface Standing {
  /** The plan with what its mounts can stand on: existing paths and placeholders. */
  readonly plan: Plan
  readonly placeholders: readonly Placeholder[]
}

/** @throws SandboxError ZONE_INVALID when a protected path leads over a symbolic link */
export async function makePlaceholders(plan: Plan): Promise<Standing> {
  const zones = plan.zones.map((zone) => ({ zone, grounds: groundsOf(zone) }))
  const made = zones.flatMap(({ zone, grounds }) =>
    grounds.filter(({ isPlaceholder }) => isPlaceholder).map(({ path }) => holdMade(path, zone)),
  )
  const placeholders = await Promise.all(made)
  return { plan: { ...plan, zones: zones.map(({ zone, grounds }) => standOn(zone, grounds)) }, placeholders }
}

interface Ground {
  readonly path: string
  /** Relative to the zone's root. */
  readonly below: string
  readonly isPlaceholder: boolean
}

function groundsOf(zone: PlannedZone): readonly Ground[] {
  const grounds = zone.mode === 'rw' ? zone.protect.flatMap((path) => groundOf(zone, path) ?? []) : []
  return [...new Map(grounds.map((ground) => [ground.path, ground])).values()]
}

/**
 * Walks down to the path itself, or to the first component that is missing or not a directory.
 * @returns undefined where nothing can be made: the command is no more than we are, so it cannot either
 */
function groundOf(zone: PlannedZone, below: string): Ground | undefined {
  const root = zone.source
  const parts = below.split('/').filter((part) => part !== '')
  for (const [index] of parts.entries()) {
    const reached = parts.slice(0, index + 1).join('/')
    const path = join(root, reached)
    const seen = lookAt(path)
    if (seen === 'link') throw linkInTheWay(path)
    if (seen === 'missing' && !make(path, zone)) return undefined
    if (seen !== 'directory') return { path, below: reached, isPlaceholder: seen !== 'file' }
  }
  return { path: join(root, below), below, isPlaceholder: false }
}

function lookAt(path: string): 'missing' | 'directory' | 'file' | 'link' | 'placeholder' {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return 'missing'
  if (stat.isSymbolicLink()) return 'link'
  if (!stat.isDirectory()) return 'file'
  return (stat.mode & 0o7777) === PLACEHOLDER_MODE ? 'placeholder' : 'directory'
}

function linkInTheWay(path: string): SandboxError {
  return new SandboxError(
    'ZONE_INVALID',
    `${path} is protected, but it is a symbolic link, which no mount can hold in place`,
    {
      hint: 'leave it out of protect, replace it by what it leads to, or make the zone ro',
    },
  )
}

const NOT_ALLOWED = ['EACCES', 'EPERM', 'EROFS'] as const

/** The mode comes last: only a finished directory looks like a placeholder. */
function make(path: string, { uid, gid }: PlannedZone): boolean {
  try {
    mkdirSync(path, { mode: 0o700 })
    if (process.getuid?.() === 0) chownSync(path, uid, gid)
    chmodSync(path, PLACEHOLDER_MODE)
    return true
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    // Another run was faster: its placeholder serves us too.
    if (code === 'EEXIST') return true
    if ((NOT_ALLOWED as readonly string[]).includes(code)) return false
    throw error
  }
}

/** Attempts; each further one needs another run that leaves at the wrong moment. */
const HOLD_ATTEMPTS = 100

/** Holds what was just made; another run that leaves may remove it before the lock is ours. */
async function holdMade(path: string, zone: PlannedZone): Promise<Placeholder> {
  for (let attempt = 0; attempt < HOLD_ATTEMPTS; attempt += 1) {
    if (lookAt(path) === 'missing') make(path, zone)
    const held = await hold(path)
    if (lstatSync(path, { throwIfNoEntry: false })?.ino === fstatSync(held.fd).ino) return held
    closeSync(held.fd)
  }
  throw new SandboxError('SETUP_FAILED', `${path}: other runs keep taking its placeholder away`, { hint: 'run again' })
}

function standOn(zone: PlannedZone, grounds: readonly Ground[]): PlannedZone {
  return { ...zone, protect: grounds.map(({ below }) => below) }
}

async function hold(path: string): Promise<Placeholder> {
  const fd = openSync(path, 'r')
  await lock(fd, ['--shared'])
  return { path, fd }
}

/**
 * A lock belongs to the open file, not to the program that asked for it, so it stays ours when flock has ended.
 * Where there is no such program (macOS) there are no native runs to share with either.
 */
function lock(fd: number, words: readonly string[]): Promise<boolean> {
  const program = spawn('flock', [...words, '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] })
  return new Promise((resolve) => {
    program.once('error', () => resolve(true))
    program.once('exit', (exitCode) => resolve(exitCode === 0))
  })
}

export async function removePlaceholders(placeholders: readonly Placeholder[]): Promise<void> {
  await Promise.all(placeholders.map(removeOne))
}

/** Somebody else's shared lock means that their mount stands on it: then they remove it. */
async function removeOne({ path, fd }: Placeholder): Promise<void> {
  if (await lock(fd, ['--exclusive', '--nonblock'])) removeIfEmpty(path)
  closeSync(fd)
}

/** Success also when it is gone, or when somebody on the host put something in or in its place. */
const NOT_OURS = ['ENOENT', 'ENOTEMPTY', 'ENOTDIR'] as const

function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!(NOT_OURS as readonly string[]).includes(code)) throw error
  }
}

/** Removes the placeholders among these paths that no live run holds. */
export async function removeStalePlaceholders(paths: readonly string[]): Promise<void> {
  const stale = paths.filter((path) => lookAt(path) === 'placeholder')
  await removePlaceholders(await Promise.all(stale.map(hold)))
}
