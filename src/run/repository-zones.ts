/**
 * The repository around the caller's directory as zones: from its root on, and of a linked worktree what all worktrees share. git needs no
 * less, and an agent is started anywhere in a project. Pure.
 */
import { posix } from 'node:path'
import { SandboxError } from '../error.ts'
import type { LinkedWorktree } from '../host/linked-worktree.ts'
import { isBelow, isWithin, normal, withheldWorkspace } from '../plan/well-known-paths.ts'
import { showsFiles, showsWorkspace } from '../plan/workspace.ts'
import type { Policy } from '../policy/policy.ts'
import type { Zone, ZoneMode } from '../policy/values.ts'
import { shellWord } from '../report/hints.ts'

export interface RepositoryCaller {
  readonly cwd: string
  readonly home: string
  /** The root of the repository as homes are kept by it (home-project.ts): one that may not be trusted is none. */
  readonly project: string
  readonly worktree?: LinkedWorktree
}

/** A profile serves all directories, so for its key a warning has to do (plan/resolve-plan.ts). */
function refuseIfAsked({ zones, workspace, origins }: Policy, cwd: string, root: string): void {
  const holding = (path: string) =>
    zones.find((zone) => showsFiles(zone) && zone.hostPath !== undefined && isWithin(path, normal(zone.hostPath)))
  const isAsked = origins['repository']?.at(-1)?.layer === 'flag'
  if (!isAsked || !isBelow(cwd, root) || holding(root) !== undefined) return
  const mode = holding(cwd)?.mode ?? (workspace === 'none' ? 'ro' : workspace)
  throw new SandboxError(
    'POLICY_INVALID',
    `--repository: ${root} is not mounted, because another option decides about the current directory.`,
    { hint: `--${mode} ${shellWord(root)} in the place of both` },
  )
}

/** Where a zone shows the caller's directory already, its caller has said how much is shown. */
export function withRepository(policy: Policy, { cwd, home, project, worktree }: RepositoryCaller): Policy {
  const { workspace } = policy
  const root = worktree?.root ?? project
  if (!policy.repository) return policy
  if (workspace === 'none' || !showsWorkspace(policy, cwd)) {
    refuseIfAsked(policy, cwd, root)
    return policy
  }
  const origin = policy.origins['repository']?.at(-1) ?? { layer: 'built-in', source: 'built-in', key: 'repository' }
  const zone = (name: string, mode: ZoneMode, hostPath: string): Zone =>
    ({ name, mode, hostPath, create: false, optional: false, sockets: false, origin }) as const
  const isShared = worktree !== undefined && withheldWorkspace(posix.dirname(worktree.common), home) === undefined
  const zones = [
    ...(isBelow(cwd, root) && withheldWorkspace(root, home) === undefined ? [zone('repository', workspace, root)] : []),
    ...(isShared && workspace === 'rw' ? [zone('git', 'rw', worktree.common)] : []),
  ]
  return { ...policy, zones: [...policy.zones, ...zones] }
}
