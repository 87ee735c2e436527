/** Whether the caller's directory is shown of itself: the plan shows it by this, and a worker's requests are judged by it. */
import type { Policy } from './policy.ts'
import type { Zone } from './values.ts'

/** A zone of files is shown in the place of the caller's directory; fresh memory or a socket is shown beside it. */
export const takesItsPlace = ({ mode, kind }: Zone): boolean => mode !== 'tmpfs' && kind !== 'socket'

/** True when the caller's directory is to be shown although no zone was named. */
export function wantsWorkspace({ workspace, zones }: Pick<Policy, 'workspace' | 'zones'>): boolean {
  return workspace !== 'none' && !zones.some(takesItsPlace)
}
