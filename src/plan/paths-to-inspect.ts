/** Ask, look, decide - this is "ask": every host path that planning wants to know about. Pure. */
import { posix } from 'node:path'
import type { Policy } from '../policy/policy.ts'
import { isWritable } from '../policy/values.ts'
import { deviceQuestions, sysQuestions } from './devices.ts'
import { mountPointOf, type PathFacts, type Wanted, wantedMounts } from './mounts.ts'
import { stepsAsWritten, unresolvedPaths } from './names.ts'
import type { Request } from './request.ts'
import { SYSTEM_QUESTIONS } from './system-tree.ts'
import { commandCandidates, toolchainQuestions } from './toolchain.ts'
import { trustQuestions } from './trust.ts'
import { environmentFiles } from './virtual-environment.ts'
import { isBelow, searchPath } from './well-known-paths.ts'

/** The first round: what can be asked before anything is known. Sorted, without repetition. */
export function pathsNamedBy(policy: Policy, request: Request): readonly string[] {
  const wanted = wantedMounts({ policy, request })
  return tidy([
    ...SYSTEM_QUESTIONS,
    ...trustQuestions(policy.network),
    ...deviceQuestions(policy).flatMap((path) => [...stepsAsWritten(path), path]),
    request.cwd,
    ...(request.home === '' ? [] : [request.home]),
    // A repository that goes, or comes, has another home.
    ...(policy.home === null && !policy.repository ? [] : [posix.join(request.homeProject ?? request.cwd, '.git')]),
    ...(policy.samePath ? [] : environmentFiles(request.cwd)),
    ...request.secretDirectories,
    ...searchPath(request.path),
    ...commandCandidates(request),
    ...wanted.flatMap((one) => sourceQuestions(one)),
    ...mountPoints(wanted),
    ...decidingNames(policy, request).flatMap(stepsAsWritten),
  ])
}

/** Further rounds: what the answers so far make us want to know; ends when it names nothing new. */
export function followUpPaths(policy: Policy, request: Request, seen: PathFacts): readonly string[] {
  return tidy([
    ...sysQuestions(policy, seen),
    ...(policy.toolchains === 'off' ? [] : toolchainQuestions(request, seen)),
    ...unresolvedPaths([...decidingNames(policy, request), ...sourceNames(policy, request)], seen),
  ]).filter((path) => seen[path] === undefined)
}

/**
 * The answers that a plan of this request depends on, out of all that were gathered, and that no later step checks again. The protected
 * paths of a zone are not among them: the guard (native/lib/guard.c) inspects them for each run, and for each apply.
 */
export function decidedBy(policy: Policy, request: Request, answers: PathFacts): PathFacts {
  const pick = (paths: readonly string[]): PathFacts =>
    Object.fromEntries(paths.flatMap((path) => (answers[path] === undefined ? [] : [[path, answers[path]]])))
  const rounds = (seen: PathFacts): PathFacts => {
    const more = pick(followUpPaths(policy, request, seen))
    return Object.keys(more).length === 0 ? seen : rounds({ ...seen, ...more })
  }
  return rounds(pick(pathsNamedBy(policy, request)))
}

function sourceNames(policy: Policy, request: Request): readonly string[] {
  const sources = wantedMounts({ policy, request }).flatMap(({ source }) => source ?? [])
  return sources.filter((source) => posix.isAbsolute(source) && !source.includes('\0'))
}

/** Names that must lead to the same place in the next run. Without a writable zone no command could change that. */
function decidingNames(policy: Policy, request: Request): readonly string[] {
  return wantedMounts({ policy, request }).some(({ mode }) => isWritable(mode)) ? policy.protectFiles : []
}

function sourceQuestions({ source }: Wanted): readonly string[] {
  if (source === undefined) return []
  return [...stepsAsWritten(source), source]
}

/** Inside a read-only zone the mount point must be there already. */
function mountPoints(wanted: readonly Wanted[]): readonly string[] {
  return wanted.flatMap((outer) =>
    wanted.filter((inner) => isBelow(inner.target, outer.target)).flatMap((inner) => mountPointOf(inner, outer) ?? []),
  )
}

function tidy(paths: readonly string[]): readonly string[] {
  return [...new Set(paths)].filter((path) => posix.isAbsolute(path) && !path.includes('\0')).sort()
}
