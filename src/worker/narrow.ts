/**
 * What is left of the operator's policy under a workshop and a worker. Pure.
 *
 * Authority goes down: operator > workshop > worker. A lower level narrows; what would widen is an escalation and the run is
 * refused, with everything that was wanted and granted. How each key is compared and taken over is one row of ROWS.
 * Two things let a level do more: a workshop may set limits, image and runtime where the operator has said nothing outright
 * (no flag, no variable, no profile by name), and it may name variables and credentials; it is the project owner's file and
 * the operator has named it. And what the operator says by flag or variable stays as it is, for it comes last in every policy.
 */
import { checkLayer } from '../policy/check.ts'
import { hearCredentials, hearSeccomp } from '../policy/combine.ts'
import { type PolicyLayer, placeOf } from '../policy/layer.ts'
import type { BackendChoice, Credential, Origin, Policy, Resources, SeccompChoice } from '../policy/policy.ts'
import { EVERYTHING } from '../policy/protected.ts'
import type { NetworkSaid, SandboxSaid } from '../policy/schema.ts'
import { formatDuration, formatSize } from '../unit.ts'
import { isWithinNetwork, narrowNetwork, showNetwork } from './network.ts'
import { invalidWorker, refusal } from './problem.ts'
import type { Escalation, Level, SandboxWish, Warning } from './worker.ts'
import { layZones, type ZoneGround } from './zones.ts'

export interface Narrowed {
  readonly policy: Policy
  readonly escalations: readonly Escalation[]
  readonly warnings: readonly Warning[]
}

export interface NarrowingStep {
  readonly policy: Policy
  readonly level: Level
  readonly wish: SandboxWish
  readonly ground: ZoneGround
  /** The operator chose the profile by name: what it says is said outright. */
  readonly isProfileChosen: boolean
  readonly home: string
}

interface Heard {
  readonly said: SandboxSaid
  readonly layer: PolicyLayer
  readonly home: string
}

/** How one key narrows. */
interface Row<V> {
  /** Dotted, as people write it. */
  readonly key: string
  /** What this level says; undefined = nothing. */
  readonly hears: (heard: Heard) => V | undefined
  readonly isWider: (wanted: V, policy: Policy) => boolean
  /** The policy with the wish, which is no wider; or was let through by `sets`. */
  readonly takes: (wanted: V, policy: Policy) => Policy
  readonly shows: (wanted: V) => string
  readonly grants: (policy: Policy) => string
  /** `default`: a workshop may go beyond what nobody said outright. `always`: beyond anything. */
  readonly sets?: 'default' | 'always'
  /** A flag or variable that says less than the workshop is no refusal: the operator has the last word, and narrows by it. */
  readonly yields?: true
  /** The levels' words add up, so they also count beside a flag's. */
  readonly adds?: true
  /** Flags that would grant it. */
  readonly fix?: (wanted: V) => string
}

const row = <V>(declared: Row<V>): Row<unknown> => declared as unknown as Row<unknown>

interface Limit {
  readonly key: keyof NonNullable<SandboxSaid['resources']>
  readonly field: keyof Resources
  readonly shows: (value: number) => string
  readonly flag?: string
}

const LIMITS: readonly Limit[] = [
  { key: 'memory', field: 'memory', shows: formatSize, flag: '--memory' },
  { key: 'swap', field: 'swap', shows: formatSize },
  { key: 'cpu', field: 'cpus', shows: String, flag: '--cpus' },
  { key: 'pids', field: 'pids', shows: String, flag: '--pids' },
  { key: 'timeout', field: 'timeoutMs', shows: formatDuration, flag: '--timeout' },
  { key: 'cpuTime', field: 'cpuTimeMs', shows: formatDuration, flag: '--cpu-time' },
  { key: 'readBps', field: 'readBps', shows: formatSize },
  { key: 'writeBps', field: 'writeBps', shows: formatSize },
  { key: 'readIops', field: 'readIops', shows: String },
  { key: 'writeIops', field: 'writeIops', shows: String },
  { key: 'output', field: 'output', shows: formatSize, flag: '--output' },
  { key: 'tmp', field: 'tmp', shows: formatSize, flag: '--tmp' },
  { key: 'run', field: 'run', shows: formatSize },
  { key: 'shm', field: 'shm', shows: formatSize },
  { key: 'home', field: 'home', shows: formatSize },
]

function limitRow({ key, field, shows, flag }: Limit): Row<unknown> {
  const show = (value: number | null) => (value === null ? 'no limit' : shows(value))
  return row<number | null>({
    key: `resources.${key}`,
    hears: ({ said }) => said.resources?.[key],
    isWider: (wanted, { resources }) => {
      const granted = resources[field]
      return granted !== null && (wanted === null || wanted > granted)
    },
    takes: (wanted, policy) => ({ ...policy, resources: { ...policy.resources, [field]: wanted } }),
    shows: show,
    grants: ({ resources }) => show(resources[field]),
    sets: 'default',
    yields: true,
    ...(flag === undefined ? {} : { fix: (wanted) => `${flag} ${wanted === null ? 'none' : shows(wanted)}` }),
  })
}

/** A key whose words go from closed to open. */
function ranked<F extends keyof Policy, V extends Policy[F] & (string | boolean)>(input: {
  readonly field: F
  readonly key?: string
  readonly hears: (heard: Heard) => V | undefined
  /** Closed first. */
  readonly order: readonly V[]
  readonly sets?: 'default'
  readonly fix?: (wanted: V) => string
}): Row<unknown> {
  const { field, key = field, hears, order, sets, fix } = input
  return row<V>({
    key,
    hears,
    isWider: (wanted, policy) => order.indexOf(wanted) > order.indexOf(policy[field] as V),
    takes: (wanted, policy) => ({ ...policy, [field]: wanted }),
    shows: String,
    grants: (policy) => String(policy[field]),
    ...(sets === undefined ? {} : { sets }),
    ...(fix === undefined ? {} : { fix }),
  })
}

/** A word that says where or how, not how much: taken over where nobody above has chosen. */
function choice<F extends 'engine' | 'image' | 'runtime' | 'workdir' | 'samePath' | 'tty'>(input: {
  readonly field: F
  readonly hears: (heard: Heard) => NonNullable<Policy[F]> | undefined
  readonly isFree: (policy: Policy) => boolean
  readonly sets?: 'default'
}): Row<unknown> {
  const { field, hears, isFree, sets } = input
  return row<NonNullable<Policy[F]>>({
    key: field,
    hears,
    isWider: (wanted, policy) => !isFree(policy) && policy[field] !== wanted,
    takes: (wanted, policy) => ({ ...policy, [field]: wanted }),
    shows: String,
    grants: (policy) => String(policy[field] ?? 'nothing'),
    ...(sets === undefined ? {} : { sets }),
    fix: (wanted) => `--${field} ${String(wanted)}`,
  })
}

/** Whole sandboxes are of equal rank, one backend is as tight as another; `process` is none. */
const isSandbox = (backend: BackendChoice) => backend !== 'process'

const SECCOMP_ORDER: readonly SeccompChoice[] = ['strict', 'default', 'nested', 'off']
const showSeccomp = (seccomp: SeccompChoice) => (typeof seccomp === 'string' ? seccomp : seccomp.file)

function isWiderSeccomp(wanted: SeccompChoice, { seccomp }: Policy): boolean {
  if (typeof wanted === 'object' || typeof seccomp === 'object') return showSeccomp(wanted) !== showSeccomp(seccomp)
  return SECCOMP_ORDER.indexOf(wanted) > SECCOMP_ORDER.indexOf(seccomp)
}

const inherits = ({ env }: Policy, name: string) =>
  env.inherit.some((granted) => granted === name || (granted.endsWith('*') && name.startsWith(granted.slice(0, -1))))

const ROWS: readonly Row<unknown>[] = [
  row<BackendChoice>({
    key: 'backend',
    hears: ({ said }) => said.backend?.backend,
    isWider: (wanted, { backend }) => !isSandbox(wanted) && isSandbox(backend),
    takes: (wanted, policy) => (policy.backend === 'auto' ? { ...policy, backend: wanted } : policy),
    shows: String,
    grants: ({ backend }) => backend,
    fix: (wanted) => `--backend ${wanted}`,
  }),
  choice({
    field: 'engine',
    hears: ({ said }) => said.engine ?? said.backend?.engine,
    isFree: ({ engine }) => engine === 'auto',
  }),
  choice({
    field: 'image',
    hears: ({ said }) => said.image,
    isFree: ({ image }) => image === undefined,
    sets: 'default',
  }),
  choice({
    field: 'runtime',
    hears: ({ said }) => said.runtime,
    isFree: ({ runtime }) => runtime === undefined,
    sets: 'default',
  }),
  ranked({
    field: 'dockerReuse',
    key: 'docker.reuse',
    hears: ({ said }) => said.docker?.reuse,
    order: ['off', 'session'],
  }),
  ranked({
    field: 'workspace',
    hears: ({ said }) => said.workspace,
    order: ['none', 'ro', 'rw'],
    sets: 'default',
    fix: (mode) => `--${mode} .`,
  }),
  choice({ field: 'samePath', hears: ({ said }) => said.samePath, isFree: () => true }),
  row<NetworkSaid>({
    key: 'network',
    hears: ({ said }) => said.network,
    isWider: (wanted, { network }) => !isWithinNetwork(wanted, network),
    takes: (wanted, policy) => {
      const counts = isFlagged(policy, 'network') ? { allow: [], deny: wanted.deny } : wanted
      return { ...policy, network: narrowNetwork(policy.network, counts) }
    },
    adds: true,
    shows: showNetwork,
    grants: ({ network }) => showNetwork(network),
    fix: ({ mode, allow }) =>
      allow.length === 0 ? `--net ${mode ?? 'restricted'}` : allow.map((host) => `--allow-host ${host}`).join(' '),
  }),
  ...LIMITS.map(limitRow),
  row<readonly string[]>({
    key: 'env.inherit',
    hears: ({ said }) => said.env?.inherit,
    isWider: (wanted, policy) => wanted.some((name) => !inherits(policy, name)),
    takes: (wanted, policy) => ({
      ...policy,
      env: { ...policy.env, inherit: [...new Set([...policy.env.inherit, ...wanted])] },
    }),
    shows: (wanted) => wanted.join(', '),
    adds: true,
    grants: ({ env }) => (env.inherit.length === 0 ? 'none' : env.inherit.join(', ')),
    sets: 'always',
    fix: (wanted) => wanted.map((name) => `--env ${name}`).join(' '),
  }),
  // A value of its own gives a worker nothing it could not set by itself; names that somebody above has are left to them.
  row<Readonly<Record<string, string>>>({
    key: 'env.set',
    hears: ({ said }) => said.env?.set,
    isWider: () => false,
    takes: (wanted, policy) => ({
      ...policy,
      env: { ...policy.env, set: { ...ownNames(wanted, policy), ...policy.env.set } },
    }),
    shows: (wanted) => Object.keys(wanted).join(', '),
    adds: true,
    grants: ({ env }) => Object.keys(env.set).join(', '),
  }),
  row<readonly Credential[]>({
    key: 'credentials',
    hears: ({ said, layer, home }) => hearCredentials({ said, layer, home, rank: 0 }),
    isWider: (wanted, { credentials }) =>
      wanted.some(({ file }) => !credentials.some((granted) => granted.file === file)),
    takes: (wanted, policy) => ({ ...policy, credentials: addCredentials(policy.credentials, wanted) }),
    shows: (wanted) => wanted.map(({ file }) => file).join(', '),
    adds: true,
    grants: ({ credentials }) => (credentials.length === 0 ? 'none' : credentials.map(({ file }) => file).join(', ')),
    sets: 'always',
  }),
  ranked({ field: 'sshAgent', hears: ({ said }) => said.sshAgent, order: [false, true], fix: () => '--ssh-agent' }),
  row<SeccompChoice>({
    key: 'seccomp',
    hears: ({ said, layer, home }) => hearSeccomp({ said, layer, home, rank: 0 }),
    isWider: isWiderSeccomp,
    takes: (seccomp, policy) => ({ ...policy, seccomp }),
    shows: showSeccomp,
    grants: ({ seccomp }) => showSeccomp(seccomp),
    fix: (wanted) => `--seccomp ${showSeccomp(wanted)}`,
  }),
  ranked({ field: 'toolchains', hears: ({ said }) => said.toolchains, order: ['off', 'auto'] }),
  choice({ field: 'workdir', hears: ({ said }) => said.workdir, isFree: () => true }),
  row<readonly string[]>({
    key: 'protect',
    hears: ({ said }) => said.protect,
    isWider: (wanted) => wanted.length === 0,
    takes: (wanted, policy) => ({ ...policy, protect: [...new Set([...policy.protect, ...wanted])] }),
    shows: (wanted) => (wanted.length === 0 ? 'no protected paths' : wanted.join(', ')),
    adds: true,
    grants: ({ protect }) => `${protect.length} protected paths`,
  }),
  row<readonly string[]>({
    key: 'protectNot',
    hears: ({ said }) => said.protectNot,
    isWider: (wanted, { protectNot }) =>
      !protectNot.includes(EVERYTHING) && wanted.some((name) => !protectNot.includes(name)),
    takes: (_wanted, policy) => policy,
    shows: (wanted) => wanted.join(', '),
    adds: true,
    grants: ({ protectNot }) => (protectNot.length === 0 ? 'none' : protectNot.join(', ')),
    fix: (wanted) => wanted.map((name) => `--protect-not ${name}`).join(' '),
  }),
  row<Policy['require']>({
    key: 'require',
    hears: ({ said }) => said.require,
    isWider: () => false,
    takes: (wanted, policy) => ({ ...policy, require: [...new Set([...policy.require, ...wanted])] }),
    shows: (wanted) => wanted.join(', '),
    adds: true,
    grants: (policy) => policy.require.join(', '),
  }),
  ranked({
    field: 'bestEffort',
    hears: ({ said }) => said.bestEffort,
    order: [false, true],
    fix: () => '--best-effort',
  }),
  choice({ field: 'tty', hears: ({ said }) => said.tty, isFree: () => true }),
  row<string>({
    key: 'cgroupParent',
    hears: ({ said }) => said.cgroupParent,
    isWider: (wanted, policy) => wanted !== policy.cgroupParent,
    takes: (_wanted, policy) => policy,
    shows: String,
    grants: ({ cgroupParent }) => cgroupParent ?? 'found by itself',
    fix: (wanted) => `--cgroup-parent ${wanted}`,
  }),
  ranked({ field: 'pool', hears: ({ said }) => said.pool, order: ['off', 'auto'] }),
]

/** The keys that a level can narrow, zones apart; a test holds them against the schema. */
export const NARROWED_KEYS: readonly string[] = ROWS.map(({ key }) => key)

function ownNames(wanted: Readonly<Record<string, string>>, policy: Policy): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(wanted).filter(([name]) => !inherits(policy, name)))
}

function addCredentials(granted: readonly Credential[], wanted: readonly Credential[]): readonly Credential[] {
  return [...granted, ...wanted.filter(({ target }) => !granted.some((credential) => credential.target === target))]
}

/**
 * One level's wishes laid over the policy above it.
 * @throws SandboxError WORKER_INVALID when the section itself says something impossible
 */
export function narrowStep(step: NarrowingStep): Narrowed {
  const heard = hear(step)
  const scalars = ROWS.reduce<Narrowed>((sofar, declared) => applyRow({ step, sofar, declared, heard }), {
    policy: step.policy,
    escalations: [],
    warnings: [],
  })
  const { wish, level, ground } = step
  const zones = layZones({ policy: scalars.policy, wish, level, ground, isOutright: (key) => isOutright(step, key) })
  return {
    policy: zones.policy,
    escalations: [...scalars.escalations, ...zones.escalations],
    warnings: [...scalars.warnings, ...zones.warnings],
  }
}

function hear({ wish, home }: NarrowingStep): Heard {
  const { layer } = wish
  const { said, problems } = checkLayer(layer)
  if (problems.length > 0) throw refusal({ code: 'WORKER_INVALID', lines: problems, hint: 'llm-do workers check' })
  const { network, env } = said
  const both = (env?.inherit ?? []).filter((name) => Object.hasOwn(env?.set ?? {}, name))
  const { file, line, key } = wish.from
  const at = (inner: string) => ({ file, line, key: key === '' ? inner : `${key}.${inner}` })
  if (both.length > 0)
    throw invalidWorker([{ ...at('env'), expected: `${both.join(', ')} inherited or set`, got: 'both' }])
  if (network !== undefined && network.mode !== 'restricted' && network.allow.length > 0) {
    const got = `mode ${network.mode ?? 'none'}`
    throw invalidWorker([{ ...at('network'), expected: 'mode restricted beside a list of allowed hosts', got }])
  }
  return { said, layer, home }
}

interface Applied {
  readonly step: NarrowingStep
  readonly sofar: Narrowed
  readonly declared: Row<unknown>
  readonly heard: Heard
}

function applyRow({ step, sofar, declared, heard }: Applied): Narrowed {
  const wanted = declared.hears(heard)
  if (wanted === undefined) return sofar
  const { key } = declared
  const { policy } = sofar
  if (declared.isWider(wanted, policy) && !maySet(step, declared)) {
    if (declared.yields === true && step.level === 'workshop' && isFlagged(policy, key)) return sofar
    const granted = `${declared.grants(policy)} (${whoSaid(policy, key)})`
    const place = placeOf(heard.layer, key)
    const escalation = { place, key, wanted: declared.shows(wanted), granted, fix: declared.fix?.(wanted) ?? '' }
    return { ...sofar, escalations: [...sofar.escalations, escalation] }
  }
  if (isFlagged(policy, key) && declared.adds !== true) return sofar
  const taken = declared.takes(wanted, policy)
  if (taken === policy && declared.grants(policy) !== declared.shows(wanted))
    return kept({ sofar, declared, wanted, step, heard })
  const origin: Origin = { layer: heard.layer.layer, source: placeOf(heard.layer, key), key }
  const origins = { ...taken.origins, [key]: [...(taken.origins[key] ?? []), origin] }
  return { ...sofar, policy: { ...taken, origins } }
}

function kept(input: Applied & { readonly wanted: unknown }): Narrowed {
  const { sofar, declared, wanted, step } = input
  const { file, line, key } = step.wish.from
  const said = `${declared.key} ${declared.shows(wanted)}`
  const message = `${said} was not needed: ${declared.grants(sofar.policy)} was said by ${whoSaid(sofar.policy, declared.key)}.`
  return {
    ...sofar,
    warnings: [...sofar.warnings, { code: 'W_KEPT', file, line, key: `${key}.${declared.key}`, message }],
  }
}

function maySet(step: NarrowingStep, { key, sets }: Row<unknown>): boolean {
  if (step.level !== 'workshop' || sets === undefined) return false
  return sets === 'always' || !isOutright(step, key)
}

const OUTRIGHT: ReadonlySet<string> = new Set(['flag', 'environment', 'docker-environment'])

/** The operator's own words: a flag or a variable says it. */
export function isFlagged({ origins }: Policy, key: string): boolean {
  return (origins[key] ?? []).some(({ layer }) => OUTRIGHT.has(layer))
}

function isOutright({ policy, isProfileChosen }: NarrowingStep, key: string): boolean {
  return (
    isFlagged(policy, key) || (isProfileChosen && (policy.origins[key] ?? []).some(({ layer }) => layer === 'profile'))
  )
}

/** Who said what counts now: `flag --net`, `profile default.yaml:5`. */
function whoSaid({ origins }: Policy, key: string): string {
  const last = origins[key]?.at(-1)
  if (last === undefined || last.layer === 'built-in') return 'built-in'
  return `${last.layer} ${last.source}`
}

/** One error for everything that was wanted beyond what was granted. */
export function escalationError(escalations: readonly Escalation[]) {
  const lines = escalations.map(
    ({ place, key, wanted, granted }) => `${place}: ${key}: wanted ${wanted}, granted ${granted}.`,
  )
  const fixes = [...new Set(escalations.map(({ fix }) => fix).filter((fix) => fix !== ''))]
  const hint =
    fixes.length === 0
      ? 'only the operator can grant this: a profile of your own, or flags'
      : `to grant it: llm-do exec ${fixes.join(' ')} ...`
  return refusal({ code: 'POLICY_ESCALATION', lines, hint })
}
