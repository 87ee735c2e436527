/** Whether and where the caller's directory is shown of itself: the plan shows it by this, and a worker's requests are judged by it. Pure. */
import type { Policy } from '../policy/policy.ts'
import type { Zone } from '../policy/values.ts'
import { isWithin, normal, WORKSPACE } from './well-known-paths.ts'

export type Shown = Pick<Policy, 'zones' | 'workspace' | 'samePath'>

/** A zone of files that a person has named: not fresh memory, not a socket and not a generated home. */
export const showsFiles = ({ mode, kind, isHome }: Zone): boolean =>
  mode !== 'tmpfs' && kind !== 'socket' && isHome !== true

export const workspaceTarget = (samePath: boolean, cwd: string): string => (samePath ? cwd : WORKSPACE)

/**
 * True when the caller's directory is mounted in addition to the zones. It is mounted once: a zone that is it or holds it has it already,
 * with the mode that a person wrote, and a zone at its target takes its place.
 * @param real the canonical path of a zone's source, where it is known
 */
export function showsWorkspace({ workspace, zones, samePath }: Shown, cwd: string, real = normal): boolean {
  const target = workspaceTarget(samePath, cwd)
  const takesItsPlace = (zone: Zone): boolean =>
    (zone.target !== undefined && normal(zone.target) === target) ||
    (showsFiles(zone) && zone.hostPath !== undefined && isWithin(cwd, real(zone.hostPath)))
  return workspace !== 'none' && !zones.some(takesItsPlace)
}
