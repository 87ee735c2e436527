/** Ask, look, decide - this is "ask": every host path that planning wants to know about. Pure. */
import { posix } from 'node:path'
import type { Policy } from '../policy/policy.ts'
import { mountPointOf, type PathFacts, type Wanted, wantedMounts } from './mounts.ts'
import { ancestorsOf, isBelow, normal } from './places.ts'
import { protectedSteps, protectProblem } from './protect.ts'
import type { Request } from './request.ts'
import { SYSTEM_QUESTIONS } from './system.ts'
import { commandPlaces, searchPath, toolchainQuestions } from './toolchain.ts'

/** The first round: what can be asked before anything is known. Sorted, without repetition. */
export function pathsNamedBy(policy: Policy, request: Request): readonly string[] {
  const wanted = wantedMounts({ policy, request })
  return tidy([
    ...SYSTEM_QUESTIONS,
    request.cwd,
    ...(request.home === '' ? [] : [request.home]),
    ...searchPath(request.path),
    ...commandPlaces(request),
    ...wanted.flatMap((one) => sourceQuestions(one)),
    ...mountPoints(wanted),
    ...policy.protectFiles.map(normal),
    ...protectedPlaces(policy, wanted),
  ])
}

/** Further rounds: what the answers so far make us want to know; ends when it names nothing new. */
export function followUpPaths(policy: Policy, request: Request, seen: PathFacts): readonly string[] {
  if (policy.toolchains === 'off') return []
  return tidy(toolchainQuestions(request, seen)).filter((path) => seen[path] === undefined)
}

function sourceQuestions({ source, create }: Wanted): readonly string[] {
  if (source === undefined) return []
  return create ? [...ancestorsOf(source), source] : [source]
}

/** Inside a read-only zone the mount point must be there already. */
function mountPoints(wanted: readonly Wanted[]): readonly string[] {
  return wanted.flatMap((outer) =>
    wanted.filter((inner) => isBelow(inner.target, outer.target)).flatMap((inner) => mountPointOf(inner, outer) ?? []),
  )
}

/** Protected paths inside writable zones, with the directories on the way: a symbolic link there would lead elsewhere. */
function protectedPlaces({ protect }: Policy, wanted: readonly Wanted[]): readonly string[] {
  const sources = wanted.flatMap(({ mode, source }) => (mode === 'rw' && source !== undefined ? [source] : []))
  const paths = protect.filter((path) => protectProblem(path) === undefined)
  return sources.flatMap((source) => paths.flatMap((path) => protectedSteps(source, path)))
}

function tidy(paths: readonly string[]): readonly string[] {
  return [...new Set(paths)].filter((path) => posix.isAbsolute(path) && !path.includes('\0')).sort()
}
