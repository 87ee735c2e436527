/** Which paths inside a writable zone stay read-only. Pure. */
import { posix } from 'node:path'
import { byText, isWithin } from './places.ts'

export interface ProtectInputs {
  /** Canonical root of the zone. */
  readonly source: string
  /** Relative to a zone's root, as the policy has them. */
  readonly protect: readonly string[]
  /** Canonical host paths. */
  readonly files: readonly string[]
}

/**
 * Relative paths that stay read-only in a zone, parents first; what lies below another one is left out, since that covers it.
 * A zone that is itself part of a protected path keeps the rest: with `.git` as the zone, `.git/hooks` protects `hooks`.
 */
export function protectedIn({ source, protect, files }: ProtectInputs): readonly string[] {
  const named = protect.flatMap((path) => remainders(source, posix.normalize(path).replace(/\/$/, '')))
  const shown = files
    .filter((file) => file !== source && isWithin(file, source))
    .map((file) => posix.relative(source, file))
  const unique = [...new Set([...named, ...shown])].sort(byText)
  return unique.filter((path) => !unique.some((other) => other !== path && isWithin(path, other)))
}

/** The path itself, and what is left of it when the zone's root ends with its first words. */
function remainders(source: string, path: string): readonly string[] {
  const words = path.split('/')
  const rest = words
    .slice(1)
    .map((_, index) => index + 1)
    .filter((taken) => source.endsWith(`/${words.slice(0, taken).join('/')}`))
  return [path, ...rest.map((taken) => words.slice(taken).join('/'))]
}

/** Host paths of a protected path in a zone and of the directories on the way to it, outermost first. */
export function protectedSteps(source: string, path: string): readonly string[] {
  return remainders(source, tidyPath(path)).flatMap((rest) => {
    const words = rest.split('/')
    return words.map((_, index) => posix.join(source, ...words.slice(0, index + 1)))
  })
}

function tidyPath(path: string): string {
  return posix.normalize(path).replace(/\/$/, '')
}

/** Why a `protect` entry cannot be one, or undefined. */
export function protectProblem(path: string): string | undefined {
  if (path === '' || path.includes('\0')) return 'expected a relative path'
  if (posix.isAbsolute(path)) return 'expected a path relative to the zone, got an absolute one'
  const tidy = posix.normalize(path)
  return tidy === '.' || tidy === './' || tidy.split('/').includes('..')
    ? 'expected a path below the root of the zone'
    : undefined
}
