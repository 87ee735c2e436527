/** Protected names that the policy opens: where they are, and what to say when a run has changed one. Pure. */
import { posix } from 'node:path'
import type { Policy } from '../policy/policy.ts'
import { EVERYTHING, PROTECTED_NAMES, REPOSITORY_SYSTEMS } from '../policy/protected.ts'
import type { Plan, PlannedZone } from './plan.ts'
import { homesIn } from './protected-paths.ts'
import type { Request } from './request.ts'
import { isWithin, shown } from './well-known-paths.ts'

/** A file that a program of the host runs or obeys automatically, in a zone where the command may write it. */
export interface OpenedPath {
  readonly path: string
  /** The program that runs or obeys it. */
  readonly tool: string
}

export interface OpenedInputs {
  readonly policy: Pick<Policy, 'protectNot'>
  readonly zones: readonly PlannedZone[]
  /** Canonical home directories. */
  readonly homes: readonly string[]
}

/** Paths whose change the result of a run reports; mostly none. */
export function openedIn({ policy, plan, request }: OpenedRun): readonly OpenedPath[] {
  return policy.protectNot.length === 0 ? [] : openedPaths({ policy, zones: plan.zones, homes: request.homes })
}

interface OpenedRun extends Pick<OpenedInputs, 'policy'> {
  readonly plan: Pick<Plan, 'zones'>
  readonly request: Pick<Request, 'homes'>
}

/** Repositories are looked at where they mostly are, at the root of a zone. */
export function openedPaths({ policy: { protectNot }, zones, homes }: OpenedInputs): readonly OpenedPath[] {
  const isOpen = (name: string) => protectNot.includes(name) || protectNot.includes(EVERYTHING)
  const names = PROTECTED_NAMES.filter(({ name }) => isOpen(name))
  const inRepositories = REPOSITORY_SYSTEMS.flatMap((system) =>
    system.closed
      .map((name) => ({ name: `${system.name}/${name}`, tool: system.tool }))
      .filter(({ name }) => isOpen(name) || isOpen(system.name)),
  )
  const writable = zones.filter(({ mode, kind }) => mode === 'rw' && kind === 'directory')
  const opened = writable.flatMap(({ source }) => [
    ...inRepositories.map(({ name, tool }) => ({ path: posix.join(source, name), tool })),
    ...names.flatMap(({ name, where, tool }) =>
      [...(where === 'zone' ? [source] : []), ...homesIn(source, homes)].map((root) => ({
        path: posix.join(root, name),
        tool,
      })),
    ),
  ])
  return opened.filter(
    ({ path }, index) =>
      writable.some(({ source }) => isWithin(path, source)) && opened.findIndex((one) => one.path === path) === index,
  )
}

/** Path -> its identity, which differs after a change; absent where nothing exists. */
export type Sight = ReadonlyMap<string, string>

export interface OpenedComparison {
  readonly opened: readonly OpenedPath[]
  /** Identities of the paths and, for directories, of their entries. */
  readonly before: Sight
  readonly after: Sight
}

/** Enough to act on. */
const MOST_NAMED = 5

/** One warning for each thing that appeared, changed or went away; the first of them by name. */
export function changedWarnings({ opened, before, after }: OpenedComparison): readonly string[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path))
  // A directory changes with each name in it: what is in it says more.
  const inner = paths.filter((path) => !paths.some((other) => other.startsWith(`${path}/`))).sort()
  const warnings = inner
    .slice(0, MOST_NAMED)
    .map((path) => `the command changed ${shown(path)}, which ${toolOf(path, opened)} may run or obey`)
  const rest = inner.length - warnings.length
  return rest > 0
    ? [...warnings, `the command changed ${rest} more files that programs of the host may run or obey`]
    : warnings
}

function toolOf(path: string, opened: readonly OpenedPath[]): string {
  return opened.find((candidate) => isWithin(path, candidate.path))?.tool ?? 'a program'
}
