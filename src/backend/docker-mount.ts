/** Words of `--mount` and `--tmpfs`. Pure. */
import { SandboxError } from '../error.ts'
import type { PlannedZone, Scratch } from '../plan/plan.ts'

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

/** A zone and, on top of it, what must stay read-only in it. */
export function zoneMounts(zone: PlannedZone): readonly BindMount[] {
  const { source, target, mode, protect } = zone
  const guarded = protect.map((path) => ({ source: join(source, path), target: join(target, path), readonly: true }))
  return [{ source, target, readonly: mode === 'ro' }, ...(mode === 'rw' ? guarded : [])]
}

function join(directory: string, path: string): string {
  return `${directory.replace(/\/$/, '')}/${path}`
}

export interface TmpfsInputs {
  readonly program: 'docker' | 'podman'
  /** Who the command is: the directory is theirs. */
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
