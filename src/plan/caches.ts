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
const GRADLE_USER_HOME = `${SANDBOX_HOME}/.gradle`

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
  // https://docs.astral.sh/uv/reference/environment/
  uv: { variables: { UV_CACHE_DIR: '/cache/uv' } },
  // Up to 10 it reads npm's names of variables, from 11 on its own: https://pnpm.io/settings
  pnpm: {
    variables: Object.fromEntries(
      ['npm', 'pnpm'].flatMap((prefix) => [
        [`${prefix}_config_store_dir`, '/cache/pnpm/store'],
        [`${prefix}_config_cache_dir`, '/cache/pnpm/metadata'],
      ]),
    ),
  },
  // The first is of yarn 1, the second of yarn 2 and newer, whose cache is below it.
  yarn: { variables: { YARN_CACHE_FOLDER: '/cache/yarn/cache', YARN_GLOBAL_FOLDER: '/cache/yarn' } },
  // As for cargo: init.d, gradle.properties and settings.xml name programs and hold logins.
  gradle: {
    above: GRADLE_USER_HOME,
    parts: { caches: `${GRADLE_USER_HOME}/caches`, wrapper: `${GRADLE_USER_HOME}/wrapper` },
    variables: { GRADLE_USER_HOME },
  },
  maven: {
    above: `${SANDBOX_HOME}/.m2`,
    parts: { repository: `${SANDBOX_HOME}/.m2/repository` },
    variables: {},
  },
  // https://bun.sh/docs/install/cache
  bun: { variables: { BUN_INSTALL_CACHE_DIR: '/cache/bun' } },
  // https://docs.deno.com/runtime/reference/env_variables/
  deno: { variables: { DENO_DIR: '/cache/deno' } },
  // ccache(1), "ENVIRONMENT VARIABLES"
  ccache: { variables: { CCACHE_DIR: '/cache/ccache' } },
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
