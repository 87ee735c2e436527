/** Selects the command's variables. The plan holds names; the user's values appear only when the sandbox starts. Pure. */
import { posix } from 'node:path'
import type { Policy } from '../policy/policy.ts'
import type { BackendName } from '../policy/values.ts'
import { cacheVariables } from './caches.ts'
import { type PathFacts, SSH_AGENT_TARGET } from './mounts.ts'
import type { BackendTraits } from './offers.ts'
import type { Plan, PlannedVariable, PlannedZone } from './plan.ts'
import { proxyVariables } from './proxy-variables.ts'
import type { Request } from './request.ts'
import { insideOf, ownDirectories } from './toolchain.ts'
import { trustVariables } from './trust.ts'
import {
  byText,
  isBelow,
  isWithin,
  RUNTIME_ROOTS,
  SANDBOX_HOME,
  STANDARD_PATH,
  searchPath,
  shown,
} from './well-known-paths.ts'

export interface EnvironmentInputs {
  readonly policy: Policy
  readonly request: Request
  readonly paths: PathFacts
  readonly backend: BackendName
  readonly root: BackendTraits['root']
  readonly zones: readonly PlannedZone[]
  readonly workdir: string
  /** Variables that toolchains need. */
  readonly toolchains: Readonly<Record<string, string>>
}

/** The variables of the command, sorted by name; what the policy sets wins over what it inherits, and that over ours. */
export function plannedVariables(inputs: EnvironmentInputs): readonly PlannedVariable[] {
  const { policy, request } = inputs
  const ours = builtIns(inputs)
  const isKnown = (name: string): boolean =>
    [...FOLLOW_CALLER, ...ours.map((variable) => variable.name)].includes(name) ||
    inherited(policy.env.inherit, [name]).length > 0
  const layers: readonly PlannedVariable[] = [
    ...ours,
    ...inherited(policy.env.inherit, request.environmentNames).map((name) => ({ name, from: 'inherit' }) as const),
    ...Object.keys(policy.env.set).map((name) => {
      return { name, from: isGiven(policy, name) && !isKnown(name) ? 'given' : 'set' } as const
    }),
  ]
  return [...new Map(layers.map((variable) => [variable.name, variable])).values()].sort((a, b) =>
    byText(a.name, b.name),
  )
}

/** Built-in variables that follow the caller each time. */
export const FOLLOW_CALLER: readonly string[] = ['LANG', 'TERM', 'TZ']

/** By a flag, and by no layer below it. */
function isGiven({ origins }: Policy, name: string): boolean {
  const layers = origins[`env.set.${name}`] ?? []
  return layers.length > 0 && layers.every(({ layer }) => layer === 'flag')
}

/** Without network a name does not exist, and npm would try it again for 70 seconds, pip for 7. */
const NO_SECOND_TRY = { npm_config_fetch_retries: '0', PIP_RETRIES: '0' }

/** A name that is listed and still refused stays refused: npm would wait 70 seconds between its tries. */
const SOON_AGAIN = { npm_config_fetch_retry_mintimeout: '500', npm_config_fetch_retry_maxtimeout: '2000' }

/**
 * npm, pip and what uses the package `update-notifier` ask once a day whether there is a newer version of themselves. In a fresh home
 * that is each run: 0.2 s of an `npm run`, and a refused name in its result that is not the command's.
 */
const NO_LOOK_FOR_UPDATES = {
  npm_config_update_notifier: 'false',
  NO_UPDATE_NOTIFIER: '1',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
}

/** Ids that a user namespace does not map are EINVAL to chown(2), and fakeroot takes no other answer than EPERM for its own. */
const FAKEROOT = { FAKEROOTDONTTRYCHOWN: '1' }

const packageManagerVariables = ({ network: { mode } }: Policy): Readonly<Record<string, string>> => ({
  ...(mode === 'none' ? NO_SECOND_TRY : {}),
  ...(mode === 'restricted' ? SOON_AGAIN : {}),
  ...(mode === 'host' ? {} : NO_LOOK_FOR_UPDATES),
})

function builtIns(inputs: EnvironmentInputs): readonly PlannedVariable[] {
  const { policy, request, backend, root, workdir, toolchains, zones } = inputs
  const { LANG = 'C.UTF-8', TERM = 'dumb', TZ } = request.locale
  const values: Readonly<Record<string, string | undefined>> = {
    ...toolchains,
    ...(root === 'assembled' && closesTmp(zones) ? { TMPDIR: VAR_TMP, TMUX_TMPDIR: VAR_TMP } : {}),
    ...proxyVariables(policy.network),
    ...(root === 'assembled' ? request.authorities?.variables : {}),
    ...trustVariables(policy.network),
    ...(root === 'host' ? {} : { ...FAKEROOT, ...cacheVariables(policy, request) }),
    ...accountOf(inputs),
    ...(root === 'assembled' ? packageManagerVariables(policy) : {}),
    LANG,
    TERM,
    TZ,
    PWD: workdir,
    LLM_DO_SANDBOX: backend,
    LLM_DO_SANDBOX_PROFILE: policy.profile,
    SSH_AUTH_SOCK: zones.some(({ target }) => target === SSH_AGENT_TARGET) ? SSH_AGENT_TARGET : undefined,
  }
  const ours = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, from: 'built-in', value } as const],
  )
  return root === 'host'
    ? [
        ...ours,
        ...inherited(['HOME', 'PATH', 'USER'], request.environmentNames).map(
          (name) => ({ name, from: 'inherit' }) as const,
        ),
      ]
    : ours
}

export const VAR_TMP = '/var/tmp'

/** Landlock takes UNIX sockets and FIFOs from a directory with all directories above it: a writable zone below /tmp closes /tmp. */
export const closesTmp = (zones: readonly Pick<PlannedZone, 'target' | 'mode' | 'kind' | 'sockets'>[]): boolean =>
  zones.some(
    ({ target, mode, kind, sockets }) => mode !== 'ro' && kind === 'directory' && !sockets && isBelow(target, '/tmp'),
  )

/** Under the host's own root the command keeps the caller's account; an image knows best where its programs are. */
function accountOf(inputs: EnvironmentInputs): Readonly<Record<string, string>> {
  if (inputs.root === 'host') return {}
  const account = { HOME: SANDBOX_HOME, USER: 'sandbox' }
  return inputs.root === 'assembled' ? { ...account, PATH: insidePath(inputs).join(':') } : account
}

/** The caller's PATH as far as it is visible inside, under the names it has there, then the standard directories it lacks. */
export function insidePath({
  request,
  paths,
  zones,
}: Pick<EnvironmentInputs, 'request' | 'paths' | 'zones'>): readonly string[] {
  const visible = searchPath(request.path).flatMap((entry) => visibleEntry({ entry, paths, zones }))
  const own = ownDirectories(request, paths).flatMap((directory) => insideOf(directory, zones) ?? [])
  return [...new Set([...visible, ...STANDARD_PATH, ...own])].filter((entry) => !entry.includes(':'))
}

function visibleEntry({
  entry,
  paths,
  zones,
}: {
  entry: string
  paths: PathFacts
  zones: readonly PlannedZone[]
}): readonly string[] {
  if (RUNTIME_ROOTS.some((root) => isWithin(entry, root))) return [entry]
  const fact = paths[entry]
  if (fact?.kind !== 'directory') return []
  if (isWithin(fact.real, '/usr')) return [fact.real]
  const inside = insideOf(fact.real, zones)
  return inside === undefined ? [] : [inside]
}

/** Names of the caller's variables that the patterns take over; a name that ends in `*` is a prefix. */
export function inherited(patterns: readonly string[], names: readonly string[]): readonly string[] {
  const takes = (name: string): boolean =>
    patterns.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))
  return names.filter(takes)
}

/** Names that no environment can hold. */
export function variableProblems({ env }: Policy): readonly string[] {
  const named = [
    ...env.inherit.map((name) => ['inherit', name] as const),
    ...Object.keys(env.set).map((name) => ['set', name] as const),
  ]
  const names = named.filter(([, name]) => name === '' || /[=\0]/.test(name))
  const values = Object.entries(env.set).filter(([, value]) => value.includes('\0'))
  return [
    ...names.map(([list, name]) => `env.${list}: expected the name of a variable, got "${shown(name)}"`),
    ...values.map(([name]) => `env.set.${shown(name)}: a value cannot hold a NUL byte`),
  ]
}

/**
 * The complete environment of the command, secrets included: looked up when the sandbox starts and never stored.
 * @param hostEnv the caller's environment; a variable that is gone since planning is left out
 */
export function commandEnvironment(
  plan: Plan,
  policy: Policy,
  hostEnv: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const textOf = ({ name, from, value }: PlannedVariable): string | undefined =>
    from === 'set' || from === 'given' ? policy.env.set[name] : from === 'inherit' ? hostEnv[name] : value
  return Object.fromEntries(
    plan.env.flatMap((variable) => {
      const value = textOf(variable)
      return value === undefined ? [] : [[variable.name, value]]
    }),
  )
}

export interface WorkdirInputs extends Pick<EnvironmentInputs, 'policy' | 'request' | 'paths' | 'zones'> {
  readonly workspace: string
}

/** Where the command starts: as the policy says, else where the caller stands if that is shown, else the workspace. */
export function resolveWorkdir({ policy, request, zones, workspace }: WorkdirInputs): string {
  if (policy.workdir !== undefined) return posix.resolve(workspace, policy.workdir)
  return insideOf(request.cwd, zones) ?? workspace
}
