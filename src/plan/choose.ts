/** Needs within offers: which backend runs the command, or why none can. Pure. */
import { SandboxError } from '../error.ts'
import type { HostFacts } from '../host/facts.ts'
import { engineObstacle, KERNEL_HOLDERS, type Lack, type Offers, offersOf } from '../host/offers.ts'
import { wasmtimeObstacle } from '../host/wasmtime.ts'
import { LIMIT_NEEDS } from '../policy/needs.ts'
import type { Policy } from '../policy/policy.ts'
import { type BackendName, type EngineName, NEEDS, type Need, seccompName } from '../policy/values.ts'
import { usesLandlock } from './landlock.ts'
import { rungFor } from './limits.ts'

/** What the operator's environment allows; inputs, so that planning stays reproducible. */
export interface Permits {
  /** LLM_DO_ALLOW_UNSANDBOXED=1: the second half of the opt-in for `--backend process`. */
  readonly unsandboxed: boolean
  /** False when ENABLE_DOCKER=false takes docker out of `auto`. */
  readonly docker: boolean
}

export interface ChoiceInputs {
  readonly policy: Policy
  readonly needs: readonly Need[]
  readonly facts: HostFacts
  readonly permits: Permits
}

export interface Choice {
  readonly backend: BackendName
  readonly offers: Offers
  readonly engine?: EngineName
  readonly warnings: readonly string[]
}

/** Order of `auto`. Nothing weaker follows: wasm runs other commands, process has no walls. */
const AUTO: readonly BackendName[] = ['namespace', 'docker']

/** Needs in the order of their list, with those that `require` names. */
export function allNeeds({ needs, policy }: Pick<ChoiceInputs, 'needs' | 'policy'>): readonly Need[] {
  return NEEDS.filter((need) => needs.includes(need) || policy.require.includes(need))
}

/**
 * The first backend whose offers cover every need.
 * @throws SandboxError NO_BACKEND with, for each backend in question, what is missing, why, and the fix
 */
export function chooseBackend(inputs: ChoiceInputs): Choice {
  const offers = offersOf(inputs.facts)
  const candidates = inputs.policy.backend === 'auto' ? AUTO : [inputs.policy.backend]
  const judged = candidates.map((backend) => ({ backend, missing: missingOf(backend, offers[backend], inputs) }))
  const fit = judged.find(({ missing }) => missing.length === 0)
  if (fit === undefined) throw refusal(judged, inputs)
  return choice(fit.backend, offers, inputs)
}

/**
 * The backend that should be probed before a refusal, because probing it costs too much to do it always.
 * @returns `docker` when namespace does not cover the needs and docker was not looked at yet
 */
export function nextToProbe(inputs: ChoiceInputs): 'docker' | undefined {
  const { policy, permits, facts } = inputs
  if (facts.docker !== undefined) return undefined
  if (policy.backend === 'docker') return 'docker'
  if (policy.backend !== 'auto' || !permits.docker) return undefined
  return missingOf('namespace', offersOf(facts).namespace, inputs).length === 0 ? undefined : 'docker'
}

function choice(
  backend: BackendName,
  all: Readonly<Record<BackendName, Offers>>,
  { policy, facts }: ChoiceInputs,
): Choice {
  const offers = all[backend]
  if (backend === 'namespace') return { backend, offers, engine: engineFor(policy, offers), warnings: [] }
  if (backend === 'wasm') return { backend, offers, ...engineAround(policy, { facts, all }), warnings: [] }
  return { backend, offers, warnings: backend === 'process' ? [NO_ISOLATION] : [] }
}

interface Around {
  readonly facts: HostFacts
  readonly all: Readonly<Record<BackendName, Offers>>
}

/** What runs WASI modules is put inside the namespace sandbox where there is one. */
function engineAround(policy: Policy, { facts, all }: Around): { readonly engine?: EngineName } {
  return wallsObstacle(policy, facts) === undefined ? { engine: engineFor(policy, all.namespace) } : {}
}

/** What stands in the way of the namespace sandbox that this policy would have. */
function wallsObstacle(policy: Policy, facts: HostFacts): Lack | undefined {
  const { namespace } = offersOf(facts)
  return namespace.unusable ?? engineObstacle(facts, engineFor(policy, namespace))
}

const NO_ISOLATION = 'no isolation: the command runs as a host process and can reach everything this user can'

function engineFor({ engine }: Policy, { engines }: Offers): EngineName {
  return engine === 'auto' ? (engines[0] ?? 'bwrap') : engine
}

interface Missing {
  /** The need, or `backend` when it cannot be used at all. */
  readonly what: Need | 'backend'
  readonly lack: Lack
}

function missingOf(backend: BackendName, offers: Offers, inputs: ChoiceInputs): readonly Missing[] {
  const barred = barredBy(backend, offers, inputs)
  if (barred !== undefined) return [{ what: 'backend', lack: barred }]
  return allNeeds(inputs).flatMap((need) => {
    const lack = lackOf({ need, backend, offers, inputs })
    return lack === undefined ? [] : [{ what: need, lack }]
  })
}

/** Why the whole backend is out, before any need is compared. */
function barredBy(backend: BackendName, offers: Offers, { policy, facts, permits }: ChoiceInputs): Lack | undefined {
  if (backend === 'docker' && policy.backend === 'auto' && !permits.docker) {
    return { why: 'ENABLE_DOCKER=false takes it out of the choice', fix: '--backend docker, or unset ENABLE_DOCKER' }
  }
  if (backend === 'process' && !permits.unsandboxed) {
    return {
      why: 'it isolates nothing and must be allowed twice',
      fix: 'LLM_DO_ALLOW_UNSANDBOXED=1 llm-do exec --backend process ...',
    }
  }
  if (offers.unusable !== undefined) return offers.unusable
  if (backend === 'wasm' && policy.runtime === 'wasmtime') return wasmtimeObstacle(facts, wallsObstacle(policy, facts))
  return backend === 'namespace' && policy.engine !== 'auto' ? engineObstacle(facts, policy.engine) : undefined
}

interface Comparison {
  readonly need: Need
  readonly backend: BackendName
  readonly offers: Offers
  readonly inputs: ChoiceInputs
}

function lackOf(comparison: Comparison): Lack | undefined {
  const { need, backend, offers, inputs } = comparison
  const { policy } = inputs
  const required = policy.require.includes(need)
  // Walls are what the double opt-in of `process` gives up, but for those that were required by name.
  if (backend === 'process' && !required && !LIMIT_NEEDS.includes(need)) return undefined
  const holder = LIMIT_NEEDS.includes(need) ? rungFor(need, offers, policy.resources) : offers.gives[need]
  if (holder === undefined || holder === 'none')
    return policy.bestEffort && !required && LIMIT_NEEDS.includes(need) ? undefined : lackFor(need, offers)
  return required && BY_KERNEL.includes(need) && !KERNEL_HOLDERS.includes(holder)
    ? tooSoft(need, holder, inputs)
    : leftOpen(comparison)
}

/** What the kernel could hold and the policy's own filter leaves open: Landlock, which closes sockets, is off where mounts are allowed. */
function leftOpen({ need, backend, inputs: { policy, facts } }: Comparison): Lack | undefined {
  const seccomp = { profile: seccompName(policy) }
  if (need !== 'sockets-closed' || backend !== 'namespace' || usesLandlock({ ...facts, seccomp })) return undefined
  return {
    why: `seccomp ${seccomp.profile} lets the command make mounts, and Landlock, which closes sockets, forbids every mount`,
    fix: '--seccomp default, or keep sockets out of the zones',
  }
}

/** Needs that the kernel can hold; `require` of any other one (deadline, tty) is met by whoever does it. */
const BY_KERNEL: readonly Need[] = NEEDS.filter(
  (need) => !['deadline', 'output-limit', 'tty', 'wasi-command', 'net-host'].includes(need),
)

function lackFor(need: Need, { lacks, gives }: Offers): Lack {
  const known = lacks[need]
  if (known !== undefined) return known
  if (gives[need] === 'affinity') {
    return {
      why: 'less than one processor needs the cpu controller of a cgroup',
      fix: '--cpus 1, or --best-effort; see llm-do doctor',
    }
  }
  if (gives[need] === 'wasm') {
    return { why: 'nothing holds less than one processor for WASI code', fix: '--cpus 1, or --best-effort' }
  }
  return { why: 'nothing here holds it', fix: LIMIT_NEEDS.includes(need) ? '--best-effort' : 'llm-do doctor' }
}

function tooSoft(need: Need, holder: string, { facts }: ChoiceInputs): Lack {
  const lacking = facts.cgroup.lacking === '' ? '' : ` (${facts.cgroup.lacking})`
  return {
    why: `only ${holder} holds ${need} here${lacking}, and it is required of the kernel`,
    fix: `${facts.cgroup.fix || 'llm-do doctor'}, or leave ${need} out of require`,
  }
}

function refusal(
  judged: readonly { backend: BackendName; missing: readonly Missing[] }[],
  inputs: ChoiceInputs,
): SandboxError {
  const problems = judged.flatMap(({ backend, missing }) =>
    missing.map(({ what, lack }) => problemText(backend, what, lack)),
  )
  const words = judged.map(({ backend, missing }) => missingText(backend, missing))
  const asked =
    inputs.policy.backend === 'auto'
      ? 'no backend offers all that the policy needs'
      : `backend ${inputs.policy.backend} does not offer all that the policy needs`
  const hint =
    judged.flatMap(({ missing }) => missing.map(({ lack }) => lack.fix)).find((fix) => fix !== '') ?? 'llm-do doctor'
  return new SandboxError('NO_BACKEND', `${asked}: ${words.join('; ')}`, { hint, problems })
}

function missingText(backend: BackendName, missing: readonly Missing[]): string {
  const whole = missing.find(({ what }) => what === 'backend')
  if (whole !== undefined) return `${backend} cannot be used (${whole.lack.why})`
  return `${backend} lacks ${missing.map(({ what, lack }) => `${what} (${lack.why})`).join(', ')}`
}

function problemText(backend: BackendName, what: Need | 'backend', { why, fix }: Lack): string {
  const subject = what === 'backend' ? backend : `${backend}: ${what}`
  return fix === '' ? `${subject}: ${why}` : `${subject}: ${why}; fix: ${fix}`
}
