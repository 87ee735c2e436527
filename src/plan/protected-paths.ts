/** The paths inside a writable zone that stay read-only. Pure. */
import { posix } from 'node:path'
import type { Policy } from '../policy/policy.ts'
import {
  EVERYTHING,
  GIT,
  GIT_NAMES,
  PROTECTED_NAMES,
  REPOSITORY_SYSTEMS,
  type RepositorySystem,
} from '../policy/protected.ts'
import type { PlannedGit, PlannedHome } from './plan.ts'
import { byText, isBelow, isWithin } from './well-known-paths.ts'

/** The names that a policy protects. */
export interface ProtectedWords {
  /** Relative to the root of each rw zone. */
  readonly zone: readonly string[]
  /** Relative to each home directory. */
  readonly home: readonly string[]
  /** Absent: no repository is protected. */
  readonly git?: PlannedGit
}

/** Built-in names without those that the policy opens, and the policy's own. */
export function protectedWords({ protect, protectNot }: Pick<Policy, 'protect' | 'protectNot'>): ProtectedWords {
  if (protectNot.includes(EVERYTHING)) return { zone: protect, home: [] }
  const names = PROTECTED_NAMES.filter(({ name }) => !protectNot.includes(name))
  const inZones = names.flatMap(({ name, where }) => (where === 'zone' ? [name] : []))
  const openSystems = REPOSITORY_SYSTEMS.map(({ name }) => name).filter((name) => protectNot.includes(name))
  const openInGit = GIT_NAMES.filter((name) => protectNot.includes(`${GIT}/${name}`))
  const isAllOpen = openSystems.length === REPOSITORY_SYSTEMS.length
  return {
    zone: [...inZones, ...protect],
    home: names.map(({ name }) => name),
    ...(isAllOpen ? {} : { git: { open: [...openSystems, ...openInGit] } }),
  }
}

/** Names of homes that a policy opens. */
export function openInHomes({ protectNot }: Pick<Policy, 'protectNot'>): readonly string[] {
  return PROTECTED_NAMES.map(({ name }) => name).filter((name) => protectNot.includes(name))
}

/** Names that stay as they are in homes, once each. */
export function namesInHomes({ open }: PlannedHome): readonly string[] {
  return [...new Set(PROTECTED_NAMES.map(({ name }) => name))].filter((name) => !open.includes(name))
}

export interface ProtectInputs {
  /** Canonical root of the zone. */
  readonly source: string
  readonly words: ProtectedWords
  /** Canonical home directories. */
  readonly homes: readonly string[]
  /** Canonical host paths. */
  readonly files: readonly string[]
}

/**
 * Relative paths that stay read-only in a zone, parents first; what lies below another one is left out, since that covers it.
 * A zone that is itself part of a protected path keeps the rest: with `.github` as the zone, `.github/workflows` protects
 * `workflows`.
 */
export function protectedIn({ source, words, homes, files }: ProtectInputs): readonly string[] {
  const named = words.zone.flatMap((path) => remainders(source, posix.normalize(path).replace(/\/$/, '')))
  const inHomes = homePaths({ source, words, homes })
  const shown = [...inHomes, ...files]
    .filter((file) => isBelow(file, source))
    .map((file) => posix.relative(source, file))
  return outermost(new Set([...named, ...shown]))
}

function outermost(paths: ReadonlySet<string>): readonly string[] {
  return [...paths].filter((path) => !parentsOf(path).some((parent) => paths.has(parent))).sort(byText)
}

function parentsOf(path: string): readonly string[] {
  const words = path.split('/')
  return words.slice(1).map((_, index) => words.slice(0, index + 1).join('/'))
}

/** Names in repositories that stay as they are, at a zone's root: for backends whose guard knows no other level. */
export function gitPathsAtRoot(git: PlannedGit): readonly string[] {
  return protectedSystems(git).flatMap(({ name, closed }) => closed.map((below) => `${name}/${below}`))
}

/** The systems whose repositories are protected, with what is closed in them. */
export function protectedSystems({ open }: PlannedGit): readonly RepositorySystem[] {
  return REPOSITORY_SYSTEMS.filter(({ name }) => !open.includes(name)).map((system) => ({
    ...system,
    closed: system.closed.filter((name) => !open.includes(name)),
  }))
}

/** Absolute paths of the names in the homes that the zone shows, or shows a part of. */
function homePaths({ source, words, homes }: Omit<ProtectInputs, 'files'>): readonly string[] {
  return homesIn(source, homes).flatMap((home) => words.home.map((name) => posix.join(home, name)))
}

/** The homes in a zone, and those that a zone is a part of. */
export function homesIn(source: string, homes: readonly string[]): readonly string[] {
  return homes.filter((home) => isWithin(home, source) || isBelow(source, home))
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

/** Why a `protect` entry cannot be one, or undefined. */
export function protectProblem(path: string): string | undefined {
  if (path === '' || path.includes('\0')) return 'expected a relative path'
  if (posix.isAbsolute(path)) return 'expected a path relative to the zone, got an absolute one'
  const tidy = posix.normalize(path)
  return tidy === '.' || tidy === './' || tidy.split('/').includes('..')
    ? 'expected a path below the root of the zone'
    : undefined
}
