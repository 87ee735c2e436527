/** Describes attempts on protected paths: what was made, where it is now, and the flag that would have allowed it. */
import { posix } from 'node:path'
import type { Guarded, ProtectedAttempt } from '../backends/outcome.ts'
import type { Plan, PlannedZone } from '../plan/plan.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import { GIT, GIT_NAMES, PROTECTED_NAMES, REPOSITORY_SYSTEMS } from '../policy/protected.ts'
import { shellWord, zoneFlag } from './hints.ts'

const NOTHING_NAMED = 'stopped: it made something that is protected'

/** One line: the first attempt by name, the others by number. */
export function protectedHeadline(guarded: Guarded | undefined): string {
  const [first] = guarded?.attempts.first ?? []
  if (guarded === undefined || first === undefined) return NOTHING_NAMED
  const others = guarded.attempts.count - 1
  const more = others > 0 ? `, and ${others} more` : ''
  if (first.unseen === true)
    return `${first.path} cannot be looked at after the run, so something protected may have been made there${more}`
  return `stopped: it made ${first.path}, which is protected (${whereabouts(first)})${more}`
}

function whereabouts({ aside, gone }: ProtectedAttempt): string {
  if (gone) return 'it was removed again before the end'
  return aside === '' ? 'IT IS STILL THERE: it could not be moved' : `set aside as ${aside}`
}

/** The flag of each name, and how to take back what a program outside made at the same time. */
export function protectedHints(guarded: Guarded | undefined, plan: Plan): readonly string[] {
  const attempts = (guarded?.attempts.first ?? []).filter(({ unseen }) => unseen !== true)
  const unseen = guarded?.attempts.first.find((one) => one.unseen === true)
  const names = [...new Set(attempts.flatMap(({ path }) => flagName(path, plan.zones)))]
  const moved = attempts.find(({ aside }) => aside !== '')
  return [
    ...(unseen === undefined
      ? []
      : [`look for what the command left, and open what it closed: chmod -R u+rwX ${shellWord(unseen.path)}`]),
    ...names.map((name) => `to allow it: --protect-not ${shellWord(name)}`),
    ...(names.length === 0 ? [] : draftHint(attempts, plan)),
    ...(moved === undefined
      ? []
      : [
          `if a program outside the sandbox made it meanwhile: mv ${shellWord(posix.join(posix.dirname(moved.path), moved.aside))} ${shellWord(moved.path)}`,
        ]),
  ]
}

/** A draft has no readers on the host, so nothing is stopped, and `llm-do apply` leaves out protected names. */
function draftHint(attempts: readonly ProtectedAttempt[], { engine, zones }: Plan): readonly string[] {
  const zone = zones.find(({ mode, source }) => mode === 'rw' && attempts.some(({ path }) => isWithin(path, source)))
  if (zone === undefined || zone.kind !== 'directory' || engine === undefined) return []
  return [`to let it end and decide by llm-do apply, in the place of --rw: ${zoneFlag(zone, 'cow')}`]
}

/** The value of --protect-not for a path that was made. */
export function flagName(path: string, zones: readonly PlannedZone[]): readonly string[] {
  const zone = zones.find(({ mode, source }) => mode === 'rw' && isWithin(path, source))
  if (zone === undefined) return []
  const rest = posix.relative(zone.source, path)
  const words = rest.split('/')
  const name = zone.protect.find((one) => one === rest || one.startsWith(`${rest}/`))
  if (name !== undefined && words[0] !== '.git') return builtInName(posix.join(zone.source, name))
  const other = OTHER_SYSTEMS.find((system) => words.includes(system))
  if (other !== undefined) return [other]
  // Neither a repository nor in one: something that a repository's configuration names.
  if (!words.includes(GIT) && words.at(-1) !== 'HEAD') return ['.git/config']
  const closed = CLOSED_IN_GIT.find((one) => rest.endsWith(`/${one}`))
  return [closed === undefined || words.at(-1) === GIT ? GIT : nameInGit(closed)]
}

/** The value of --protect-not for the closed name that a path of the host lies at or below; undefined where it lies at none. */
export function closedName(path: string, zones: readonly PlannedZone[]): string | undefined {
  const zone = zones.find(({ mode, source }) => mode === 'rw' && isWithin(path, source))
  if (zone === undefined) return undefined
  const name = zone.protect.find((one) => isWithin(path, posix.join(zone.source, one)))
  const inGit = CLOSED_IN_GIT.find((one) => `${path}/`.includes(`/.git/${one}/`))
  if (inGit !== undefined) return nameInGit(inGit)
  const other = OTHER_SYSTEMS.find((system) => path.split('/').includes(system))
  if (other !== undefined && zone.git !== undefined) return other
  return name === undefined ? undefined : builtInName(posix.join(zone.source, name))[0]
}

/** A path of the policy's own, or of what decides the next run, has no flag. */
function builtInName(path: string): readonly string[] {
  const names = PROTECTED_NAMES.map(({ name }) => name).filter((name) => path.endsWith(`/${name}`))
  return names.sort((a, b) => b.length - a.length).slice(0, 1)
}

/** A worktree or a submodule also has its own `.git`: unless all of git is allowed, it stays half made. */
const nameInGit = (closed: string): string => (/^(?:worktrees|modules)$/.test(closed) ? GIT : `${GIT}/${closed}`)

/** Longest first. */
const CLOSED_IN_GIT = [...GIT_NAMES].sort((a, b) => b.length - a.length)

const OTHER_SYSTEMS = REPOSITORY_SYSTEMS.map(({ name }) => name).filter((name) => name !== GIT)

/** For a command that failed after git had tried to write a configuration. A zone names that itself where the policy was made from it. */
export const configLockedHint = ({ zones }: Plan): string =>
  zones.some(({ protect }) => protect.includes(`${GIT}/config`))
    ? "git's configuration says which hosts @git allows, so it stays read-only: change it outside of the sandbox"
    : "git's configuration is read-only here: --protect-not .git/config"

export function guardWarnings(guarded: Guarded | undefined): readonly string[] {
  return [...setIdWarnings(guarded), ...(guarded?.unwatched === true ? [UNWATCHED] : [])]
}

const UNWATCHED =
  'protected names were looked for by time alone, since this user has no inotify instance left (fs.inotify.max_user_instances): an attempt may have been seen a second late'

function setIdWarnings(guarded: Guarded | undefined): readonly string[] {
  const { count = 0, first = [] } = guarded?.setId ?? {}
  if (count === 0) return []
  const names = first.slice(0, 3).join(', ')
  const more = count > 3 ? ` and ${count - Math.min(3, first.length)} more` : ''
  return [
    `read-only in the sandbox, since they run with other rights than their caller's (set-id bit or capabilities): ${names}${more}`,
  ]
}
