/** Where the caches of a policy lie on the host, where they appear, and which variables tell programs so. Pure. */
import { posix } from 'node:path'
import { parseCache } from '../policy/keys/caches.ts'
import type { Policy } from '../policy/policy.ts'
import type { Request } from './request.ts'
import { SANDBOX_HOME } from './well-known-paths.ts'

interface KnownCache {
  /** Directory of the cache -> where it appears; absent: all of it at /cache/NAME. */
  readonly parts?: Readonly<Record<string, string>>
  /** Directory above the parts that the command writes, too, and that is gone at the end. */
  readonly above?: string
  readonly variables: Readonly<Record<string, string>>
}

const CARGO_HOME = `${SANDBOX_HOME}/.cargo`

const KNOWN: Readonly<Record<string, KnownCache>> = {
  npm: { variables: { npm_config_cache: '/cache/npm' } },
  pip: { variables: { PIP_CACHE_DIR: '/cache/pip' } },
  go: { variables: { GOCACHE: '/cache/go/build', GOMODCACHE: '/cache/go/mod' } },
  // CARGO_HOME itself has settings that name programs to run, and logins: only what was downloaded is kept.
  cargo: {
    above: CARGO_HOME,
    parts: { registry: `${CARGO_HOME}/registry`, git: `${CARGO_HOME}/git` },
    variables: { CARGO_HOME },
  },
}

export interface PlannedCache {
  readonly name: string
  /** Absent: an empty directory in memory. */
  readonly source?: string
  readonly target: string
  /** Every directory from the first that is ours. */
  readonly root: string
}

type Caller = Pick<Request, 'privatePlaces'>

/** The mounts; none where this user has no place for them. */
export function plannedCaches(
  { caches }: Pick<Policy, 'caches'>,
  { privatePlaces: places }: Caller,
): readonly PlannedCache[] {
  if (places === undefined) return []
  return caches.flatMap((text) => {
    const { name, isShared } = parseCache(text)
    const source = posix.join(isShared ? places.shared : places.project, name)
    const { parts = { '': `/cache/${name}` }, above } = knownCache(name)
    const { root } = places
    return [
      ...(above === undefined ? [] : [{ name, target: above, root }]),
      ...Object.entries(parts).map(([part, target]) => ({ name, source: posix.join(source, part), target, root })),
    ]
  })
}

/** Variables that point the command's tools to them. */
export function cacheVariables(policy: Pick<Policy, 'caches'>, caller: Caller): Readonly<Record<string, string>> {
  const names = [...new Set(plannedCaches(policy, caller).map(({ name }) => name))]
  return Object.assign({}, ...names.map((name) => knownCache(name).variables))
}

const knownCache = (name: string): KnownCache =>
  (Object.hasOwn(KNOWN, name) ? KNOWN[name] : undefined) ?? { variables: {} }

/** Why caches that are wanted are not there, for people. */
export function cacheWarnings({ caches }: Pick<Policy, 'caches'>, { privatePlaces }: Caller): readonly string[] {
  return caches.length === 0 || privatePlaces !== undefined
    ? []
    : ['caches: nothing is kept for the next run: set HOME or XDG_CACHE_HOME to a directory of yours']
}
