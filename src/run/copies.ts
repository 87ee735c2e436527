/**
 * A policy under which a run leaves the host as it is, for runs that only try something: each directory that may be changed is a copy. There
 * are no copies of single files, which are read-only, and a socket stays what it is.
 * Edge: the file system, to tell files from directories.
 */
import { statSync } from 'node:fs'
import type { Policy } from '../policy/policy.ts'
import type { Zone } from '../policy/values.ts'

export function asCopies(policy: Policy): Policy {
  const zones = policy.zones.map((zone) => ({ ...zone, mode: copyMode(zone) }))
  return { ...policy, zones, workspace: policy.workspace === 'rw' ? 'cow' : policy.workspace }
}

/** Files that may be changed under the policy, and not under its copies. */
export function filesWithoutCopy({ zones }: Policy): readonly string[] {
  return zones.flatMap((zone) => (zone.mode === 'rw' && copyMode(zone) === 'ro' ? (zone.hostPath ?? []) : []))
}

/** A directory that is to be made is none yet. */
function copyMode({ mode, hostPath = '' }: Zone): Zone['mode'] {
  if (mode !== 'rw') return mode
  const status = statSync(hostPath, { throwIfNoEntry: false })
  if (status?.isSocket() === true) return mode
  return status === undefined || status.isDirectory() ? 'cow' : 'ro'
}
