/**
 * The repository around the caller's directory as zones: from its root on, and of a linked worktree what all worktrees share. git needs no
 * less, and an agent is started anywhere in a project. Pure.
 */
import { posix } from 'node:path'
import type { LinkedWorktree } from '../host/linked-worktree.ts'
import { isBelow, withheldWorkspace } from '../plan/well-known-paths.ts'
import { showsWorkspace } from '../plan/workspace.ts'
import type { Policy } from '../policy/policy.ts'
import type { Zone, ZoneMode } from '../policy/values.ts'

export interface RepositoryCaller {
  readonly cwd: string
  readonly home: string
  /** The root of the repository as homes are kept by it (home-project.ts): one that may not be trusted is none. */
  readonly project: string
  readonly worktree?: LinkedWorktree
}

/** Where a zone shows the caller's directory already, its caller has said how much is shown. */
export function withRepository(policy: Policy, { cwd, home, project, worktree }: RepositoryCaller): Policy {
  const { workspace } = policy
  if (!policy.repository || workspace === 'none' || !showsWorkspace(policy, cwd)) return policy
  const origin = policy.origins['repository']?.at(-1) ?? { layer: 'built-in', source: 'built-in', key: 'repository' }
  const zone = (name: string, mode: ZoneMode, hostPath: string): Zone =>
    ({ name, mode, hostPath, create: false, optional: false, sockets: false, origin }) as const
  const root = worktree?.root ?? project
  const isShared = worktree !== undefined && withheldWorkspace(posix.dirname(worktree.common), home) === undefined
  const zones = [
    ...(isBelow(cwd, root) && withheldWorkspace(root, home) === undefined ? [zone('repository', workspace, root)] : []),
    ...(isShared && workspace === 'rw' ? [zone('git', 'rw', worktree.common)] : []),
  ]
  return { ...policy, zones: [...policy.zones, ...zones] }
}
