/**
 * Whether a command could move a protected path in a writable zone, although no call of it may change that path. Pure.
 *
 * A protection is a mount, and the kernel keeps a mount point in its place only for the mount namespace that the mount belongs to.
 * A command that can make mounts keeps a descriptor of the zone, pivots away, detaches the old tree and renames the
 * protected path through the descriptor (tests/programs/detach.c). No known wall prevents that, so such a zone is refused.
 */
import { isWritable } from '../policy/values.ts'
import type { MountWay } from '../seccomp/ways.ts'
import { usesLandlock } from './landlock.ts'
import type { BackendTraits } from './offers.ts'
import type { PlannedZone } from './plan.ts'
import { byText, shown } from './well-known-paths.ts'

export interface DetachInputs {
  readonly traits: Pick<BackendTraits, 'protectsByMounts' | 'hasLandlock'>
  /** Mount operations that the filter allows a command. */
  readonly ways: readonly MountWay[]
  readonly landlockAbi: number
  readonly kernel: string
  /** Name or file of the filter. */
  readonly profile: string
  /** The caller is root, whose zones are lent to the command by idmapped mounts. */
  readonly isRoot: boolean
  readonly zones: readonly PlannedZone[]
  /** The policy opens every built-in name already. */
  readonly isOpen: boolean
  /** Paths of the zone's `protect` that hold what decides the next run; they are never given up. */
  readonly ownIn: (zone: PlannedZone) => readonly string[]
}

/** Protections that would not hold, one line a zone. */
export function detachProblems(inputs: DetachInputs): readonly string[] {
  if (!canDetach(inputs)) return []
  return inputs.zones.flatMap((zone) => problemOf(zone, inputs))
}

/** Linux that makes a mount namespace out of a tree (OPEN_TREE_NAMESPACE, FSMOUNT_NAMESPACE) in calls that Landlock does not see. */
const FIRST_WITH_TREES = 7

function canDetach({ traits, ways, landlockAbi, kernel, profile }: DetachInputs): boolean {
  if (!traits.protectsByMounts) return false
  const isLandlocked = traits.hasLandlock && usesLandlock({ landlockAbi, seccomp: { profile } })
  const hasTrees = Number.parseInt(kernel, 10) >= FIRST_WITH_TREES
  return (ways.includes('mount') && !isLandlocked) || (ways.includes('tree') && hasTrees)
}

/** Enough to see what it is about. */
const MOST_NAMED = 4

function problemOf(zone: PlannedZone, { profile, isOpen, isRoot, ownIn }: DetachInputs): readonly string[] {
  if (zone.hide !== undefined) return [hideProblem(zone, profile)]
  if (isRoot && isWritable(zone.mode) && zone.uid === 0) return [copyUpProblem(zone, profile)]
  if (zone.protect.length === 0 && zone.git === undefined && zone.linked === undefined) return []
  const own = [...ownIn(zone), ...(zone.linked ?? []).map(({ path }) => `another name of ${path}`)]
  const head = `${zone.from}: ${shown(zone.source)} cannot be writable under seccomp ${shown(profile)}, which lets the command make mounts: it could move`
  if (own.length > 0)
    return [`${head} what decides the next run (${listed(own)}); show another directory, or this one read-only`]
  const names = [...(zone.git === undefined ? [] : ['git directories']), ...zone.protect]
  const way = isOpen ? 'leave them out of protect' : "give them up with --protect-not '*'"
  return [`${head} its protected paths (${listed(names)}); ${way}, or show it read-only`]
}

/** A cover that is detached with the tree above it shows the file again. */
const hideProblem = ({ from, source }: PlannedZone, profile: string): string =>
  `${from}: nothing in ${shown(source)} can be hidden under seccomp ${shown(profile)}, which lets the command make mounts: it could take off what covers a file; leave out hide (--hide), or choose another filter`

/**
 * An overlay file system of the command's own, with the zone above and another zone of root below, makes the kernel itself copy files
 * into the writable zone with their set-id bits and capabilities. No filter sees that, and the copy can be rewritten by mmap.
 */
function copyUpProblem(zone: PlannedZone, profile: string): string {
  return (
    `${zone.from}: ${shown(zone.source)} is root's and cannot be writable under seccomp ${shown(profile)}, which lets the command make mounts: ` +
    'by an overlay it could leave a set-id program there that is root for every user; run llm-do as a plain user, give the directory to one (chown), or show it read-only'
  )
}

function listed(paths: readonly string[]): string {
  const named = [...paths].sort(byText).slice(0, MOST_NAMED).map(shown).join(', ')
  return paths.length <= MOST_NAMED ? named : `${named} and ${paths.length - MOST_NAMED} more`
}
