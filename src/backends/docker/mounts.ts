/** Words of `--mount` and `--tmpfs`. Pure. */
import { type PlannedZone, SandboxError, type Scratch } from '../run-kit.ts'

/** One field of the comma-separated value of --mount, read by Go's encoding/csv: quotes are doubled inside quotes. */
export function csvField(field: string): string {
  return /[",\r\n]|^\s|\s$/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}

export interface BindMount {
  readonly source: string
  readonly target: string
  readonly readonly: boolean
}

/**
 * `--mount`, never `-v`: a missing source is an error there, `-v` makes a directory that belongs to root.
 * rprivate: a mount that appears later below the source must not arrive inside.
 */
export function bindWords({ source, target, readonly }: BindMount): readonly string[] {
  const fields = ['type=bind', `source=${source}`, `target=${target}`, ...(readonly ? ['readonly'] : [])]
  return ['--mount', [...fields, 'bind-propagation=rprivate'].map(csvField).join(',')]
}

/** Part of a rw zone that becomes a mount, so that it can be neither renamed nor removed. */
export interface Cover {
  /** Source of the zone. */
  readonly zone: string
  /** Relative to the zone's root. */
  readonly path: string
  readonly readonly: boolean
  /** The inode that was seen there and is held open; absent where the covers are only printed for people. */
  readonly inode?: Inode
}

/** An inode in the form that native/tools/container-mounts.c reads: decimal digits. */
export interface Inode {
  readonly dev: string
  readonly ino: string
}

/**
 * The mounts that protected paths need when all of them exist: the path itself, read-only, and each directory on the way, which stays
 * writable. A directory with mounts below it can be renamed, a directory that is a mount cannot. Parents first.
 */
export function coversOf({ source, mode, protect }: PlannedZone): readonly Cover[] {
  if (mode !== 'rw') return []
  const all = protect.flatMap((path) => {
    const words = path.split('/')
    return words.map((_, index) => ({
      path: words.slice(0, index + 1).join('/'),
      readonly: index === words.length - 1,
    }))
  })
  const unique = new Map<string, boolean>()
  for (const { path, readonly } of all) unique.set(path, readonly || unique.get(path) === true)
  return [...unique].map(([path, readonly]) => ({ zone: source, path, readonly }))
}

/** A zone and what is mounted on top of it. */
export function zoneMounts(zone: PlannedZone, covers: readonly Cover[]): readonly BindMount[] {
  const { source, target, mode } = zone
  const below = mode === 'rw' ? covers.filter((cover) => cover.zone === source) : []
  return [
    { source, target, readonly: mode === 'ro' },
    ...below.map(({ path, readonly }) => ({ source: join(source, path), target: join(target, path), readonly })),
  ]
}

function join(directory: string, path: string): string {
  return `${directory.replace(/\/$/, '')}/${path}`
}

export interface Mounted {
  readonly zones: readonly PlannedZone[]
  readonly scratch: readonly Scratch[]
  readonly covers: readonly Cover[]
}

/** Words of native/tools/container-mounts.h: all mounts that a container must have before its command begins. */
export function heldWords({ zones, scratch, covers }: Mounted): readonly string[] {
  const mounts = [
    ...zones.flatMap((zone) => [
      [zone.target, '.', String(zone.dev), String(zone.ino), zone.mode],
      ...(zone.mode === 'rw'
        ? covers.filter((cover) => cover.zone === zone.source).map((cover) => heldCover(zone, cover))
        : []),
    ]),
    ...scratch.map(({ target }) => [target, '.', '-', '-', 'rw']),
  ]
  return [String(mounts.length), ...mounts.flat()]
}

function heldCover({ target }: PlannedZone, { path, readonly, inode }: Cover): readonly string[] {
  return [target, path, inode?.dev ?? '', inode?.ino ?? '', readonly ? 'ro' : 'rw']
}

export interface TmpfsInputs {
  readonly program: 'docker' | 'podman'
  /** User and group of the command, which own the directory. */
  readonly owner: { readonly uid: number; readonly gid: number }
}

/**
 * A sized tmpfs. Programs may be started from it, as from the scratch directories of the other backends.
 * podman knows no bound on inodes; there the memory limit, which counts them, is what holds.
 */
export function tmpfsWords(scratch: Scratch, { program, owner }: TmpfsInputs): readonly string[] {
  return program === 'podman' ? podmanTmpfs(scratch) : dockerTmpfs(scratch, owner)
}

function dockerTmpfs({ target, size, inodes, mode }: Scratch, { uid, gid }: TmpfsInputs['owner']): readonly string[] {
  if (target.includes(':')) {
    throw new SandboxError('ZONE_INVALID', `${target}: docker cannot put a tmpfs on a path with a colon`, {
      hint: `--tmpfs ${target.replaceAll(':', '-')}`,
    })
  }
  const bounds = [`size=${size}`, `nr_inodes=${inodes}`]
  const words = ['rw', 'exec', 'nosuid', 'nodev', ...bounds, `mode=${octal(mode)}`, `uid=${uid}`, `gid=${gid}`]
  return ['--tmpfs', `${target}:${words.join(',')}`]
}

/** `U`: the directory belongs to the container's user. notmpcopyup: nothing of the image is copied into it. */
function podmanTmpfs({ target, size, mode }: Scratch): readonly string[] {
  const fields = ['type=tmpfs', `target=${target}`, `tmpfs-size=${size}`, `tmpfs-mode=${octal(mode)}`]
  return ['--mount', [...fields, 'U=true', 'notmpcopyup'].map(csvField).join(',')]
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
