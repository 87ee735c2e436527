/** The plans that the client may start without Node, and their dependencies. Pure. */
import { posix } from 'node:path'
import { backendNamed } from '../backends/index.ts'
import type { HostFacts } from '../host/facts.ts'
import { workspaceWarnings } from '../plan/mounts.ts'
import type { Plan } from '../plan/plan.ts'
import type { Request } from '../plan/request.ts'
import type { Policy } from '../policy/policy.ts'

interface Planned {
  readonly plan: Plan
  readonly policy: Policy
  readonly facts: HostFacts
}

export interface Cacheable extends Planned {
  readonly request: Request
  /** Directory of the profiles that come with the program, canonical. */
  readonly shippedProfiles: string
  /** Variables whose values the client takes from the caller's words. */
  readonly given: Readonly<Record<string, string>>
}

/**
 * Of what a plan tells people, only what follows from words and places in the key of the cache can be told without looking again: a socket in a zone
 * is there today, and a program that is not shown is another command's. Values of variables that a person wrote into a profile may be secrets, and must not end up in one more file than they are in. Those of
 * shipped profiles are known to all.
 */
export function isCacheable({ plan, policy, request, shippedProfiles, given }: Cacheable): boolean {
  const lasting = workspaceWarnings({ policy, request })
  return (
    plan.warnings.every((warning) => lasting.includes(warning)) &&
    backendNamed(plan.backend).hasLaunchFile &&
    Object.entries(policy.env.set).every(([name, value]) => given[name] === value || isShipped(name))
  )

  function isShipped(name: string): boolean {
    const origin = policy.origins[`env.set.${name}`]?.at(-1)
    return origin?.layer === 'profile' && posix.dirname(origin.source) === shippedProfiles
  }
}

/** Secrets are looked up for each run, and an authority is made for it; what an observer saw, node explains; node asks about hosts; a proxy's variable may hold a password. */
export const isForNode = ({ trust, needs, network }: Pick<Plan, 'trust' | 'needs' | 'network'>): boolean =>
  trust !== undefined || needs.includes('explain') || network.grants === 'ask' || network.upstream !== undefined

/** A terminal belongs to the caller from the start, a port of this host to one sandbox, and a copy is of what its command finds; everything else can be handed over later. */
export function isPoolable({ plan, policy }: Pick<Planned, 'plan' | 'policy'>): boolean {
  return (
    backendNamed(plan.backend).hasLaunchFile &&
    policy.pool === 'auto' &&
    !plan.tty &&
    !isForNode(plan) &&
    plan.network.publish === undefined &&
    plan.network.grants === undefined &&
    plan.layer?.upper !== 'copy'
  )
}

/** The observations of planning, and the paths whose change could mean a better cgroup. */
export function inspectedPaths(
  { cgroup }: Pick<HostFacts, 'cgroup'>,
  paths: HostFacts['paths'],
): Readonly<Record<string, string | undefined>> {
  const seen = Object.fromEntries(Object.values(paths).map(({ path, identity }) => [path, identity]))
  return { ...cgroup.seen, ...seen }
}

/** An engine of the same name that appears earlier on PATH would have been chosen. */
export function enginesBefore(enginePath: string, path: readonly string[]): readonly string[] {
  const name = posix.basename(enginePath)
  const at = path.indexOf(posix.dirname(enginePath))
  return path
    .slice(0, Math.max(0, at))
    .filter((directory) => posix.isAbsolute(directory))
    .map((directory) => posix.join(directory, name))
}
