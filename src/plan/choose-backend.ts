/** Needs within offers: which backend runs the command, or why none can. Pure. */
import { SandboxError } from '../error.ts'
import type { HostFacts } from '../host/facts.ts'
import { rulesOf } from '../network/host-rule.ts'
import { listenerObstacle } from '../network/listeners.ts'
import { LIMIT_NEEDS } from '../policy/needs.ts'
import type { Policy } from '../policy/policy.ts'
import { NEEDS, type Need, seccompName } from '../policy/values.ts'
import { usesLandlock } from './landlock.ts'
import { rungFor } from './limits.ts'
import { type BackendOffer, KERNEL_HOLDERS, type Lack, NFTABLES_FIX } from './offers.ts'

export interface ChoiceInputs {
  readonly policy: Policy
  /** Of the policy, see policy/needs.ts. */
  readonly needs: readonly Need[]
  readonly facts: HostFacts
  /** Of every backend, in the order in which `auto` takes them. */
  readonly offers: readonly BackendOffer[]
}

/**
 * The first backend whose offers cover every need.
 * @throws SandboxError NO_BACKEND with, for each backend in question, what is missing, why, and the fix
 */
export function chooseBackend(inputs: ChoiceInputs): BackendOffer {
  const judged = candidates(inputs).map((offer) => ({ offer, missing: missingOf(offer, inputs) }))
  const fit = judged.find(({ missing }) => missing.length === 0)
  if (fit === undefined) throw refusal(judged, inputs)
  return fit.offer
}

/** The lacks of the backends before the chosen one, for people. */
export function passedOver(inputs: ChoiceInputs, chosen: BackendOffer['name']): readonly string[] {
  const all = candidates(inputs)
  const at = all.findIndex(({ name }) => name === chosen)
  return all.slice(0, Math.max(0, at)).map((offer) => missingText(offer.name, missingOf(offer, inputs)))
}

/**
 * The backend that should be observed before a choice, because doing so costs too much to do it always.
 * @returns the first candidate that was not observed, unless one before it covers the needs
 */
export function nextToObserve(inputs: ChoiceInputs): BackendOffer['name'] | undefined {
  const next = candidates(inputs).find((offer) => offer.isUnobserved === true || missingOf(offer, inputs).length === 0)
  return next?.isUnobserved === true ? next.name : undefined
}

/** Nothing weaker than what `auto` may choose is ever taken unless the policy names it. */
function candidates({ policy, offers }: Pick<ChoiceInputs, 'policy' | 'offers'>): readonly BackendOffer[] {
  return offers.filter(({ name, traits }) => (policy.backend === 'auto' ? traits.isAutomatic : name === policy.backend))
}

interface Missing {
  /** The need, or `backend` when it cannot be used at all. */
  readonly what: Need | 'backend'
  readonly lack: Lack
}

function missingOf(offer: BackendOffer, inputs: ChoiceInputs): readonly Missing[] {
  if (offer.barred !== undefined) return [{ what: 'backend', lack: offer.barred }]
  return inputs.needs.flatMap((need) => {
    const lack = lackOf({ need, offer, inputs })
    return lack === undefined ? [] : [{ what: need, lack }]
  })
}

interface Comparison {
  readonly need: Need
  readonly offer: BackendOffer
  readonly inputs: ChoiceInputs
}

function lackOf(comparison: Comparison): Lack | undefined {
  const { need, offer, inputs } = comparison
  const { policy } = inputs
  const required = policy.require.includes(need)
  if (!required && offer.traits.givesUp.includes(need)) return undefined
  const holder = LIMIT_NEEDS.includes(need) ? rungFor(need, offer, policy.resources) : offer.gives[need]
  if (holder === undefined || holder === 'none')
    return policy.bestEffort && !required && LIMIT_NEEDS.includes(need) ? undefined : lackFor(need, offer)
  return required && BY_KERNEL.includes(need) && !KERNEL_HOLDERS.includes(holder)
    ? tooSoft(need, holder, inputs)
    : leftOpen(comparison)
}

/** A wall that the kernel could hold and the policy's own filter opens: Landlock, which closes sockets, is off where mounts are allowed. */
function leftOpen({ need, offer, inputs: { policy, facts } }: Comparison): Lack | undefined {
  if (need === 'net-restricted') return beyondListeners(offer, policy)
  const seccomp = { profile: seccompName(policy) }
  if (need !== 'sockets-closed' || !offer.traits.hasLandlock || usesLandlock({ ...facts, seccomp })) return undefined
  return {
    why: `seccomp ${seccomp.profile} lets the command make mounts, and Landlock, which closes sockets, forbids every mount`,
    fix: '--seccomp default, or keep sockets out of the zones',
  }
}

/** Rules that only nftables can hold. */
function beyondListeners({ gives }: BackendOffer, { network }: Policy): Lack | undefined {
  const why = gives['net-restricted'] === 'listeners' ? listenerObstacle(rulesOf(network)) : undefined
  return why === undefined
    ? undefined
    : { why: `${why}, which needs nftables, and this kernel has none`, fix: NFTABLES_FIX }
}

/** Needs that the kernel can hold; `require` of any other one (deadline, tty) is met by any holder. */
const BY_KERNEL: readonly Need[] = NEEDS.filter(
  (need) => !['deadline', 'output-limit', 'tty', 'wasi-command', 'net-host', 'explain'].includes(need),
)

function lackFor(need: Need, { lacks, gives }: BackendOffer): Lack {
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
  judged: readonly { offer: BackendOffer; missing: readonly Missing[] }[],
  inputs: ChoiceInputs,
): SandboxError {
  const problems = judged.flatMap(({ offer, missing }) =>
    missing.map(({ what, lack }) => problemText(offer.name, what, lack)),
  )
  const words = judged.map(({ offer, missing }) => missingText(offer.name, missing))
  const reason =
    inputs.policy.backend === 'auto'
      ? 'no backend offers all that the policy needs'
      : `backend ${inputs.policy.backend} does not offer all that the policy needs`
  // None of them fits, so a hint must not name one.
  const isUnfit = (fix: string) => judged.some(({ offer }) => fix.startsWith(`--backend ${offer.name}`))
  const fixes = judged.flatMap(({ missing }) => missing.map(({ lack }) => lack.fix))
  const hint = fixes.find((fix) => fix !== '' && !isUnfit(fix)) ?? 'llm-do doctor'
  return new SandboxError('NO_BACKEND', `${reason}: ${words.join('; ')}`, { hint, problems })
}

function missingText(backend: string, missing: readonly Missing[]): string {
  const whole = missing.find(({ what }) => what === 'backend')
  if (whole !== undefined) return `${backend} cannot be used (${whole.lack.why})`
  return `${backend} lacks ${missing.map(({ what, lack }) => `${what} (${lack.why})`).join(', ')}`
}

function problemText(backend: string, what: Need | 'backend', { why, fix }: Lack): string {
  const subject = what === 'backend' ? backend : `${backend}: ${what}`
  return fix === '' ? `${subject}: ${why}` : `${subject}: ${why}; fix: ${fix}`
}
