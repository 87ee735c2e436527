/**
 * Narrows the operator's policy by a workshop and a worker. Pure.
 *
 * Authority goes down: operator > workshop > worker. A lower level narrows; widening is an escalation and the run is
 * refused, with every request and grant. How each key is compared and taken over is in its declaration.
 * Two exceptions let a level do more: a workshop may set limits, image and runtime where the operator has said nothing outright
 * (no flag, no variable, no profile by name), and it may name variables and credentials; it is the project owner's file and
 * the operator has named it. A flag or variable of the operator always wins, because it comes last in every policy.
 */

import { listsInVain } from '../policy/cross-key-checks.ts'
import { ALL_KEYS, type NamedKey, type ParsedSandbox } from '../policy/keys/index.ts'
import type { Key } from '../policy/keys/key.ts'
import type { Narrowing } from '../policy/keys/narrowing.ts'
import { locationOf, type PolicyLayer, sourceOf } from '../policy/layer.ts'
import type { LayerSource } from '../policy/layer-source.ts'
import type { Policy } from '../policy/policy.ts'
import { checkLayer } from '../policy/validate-layer.ts'

import { valueAt, withValueAt } from '../policy/value-at.ts'
import { invalidWorker, refusal } from './problem.ts'
import type { Escalation } from './worker.ts'
import { layZones, type Narrowed, type ZoneStep } from './zones.ts'

export interface NarrowingStep extends Omit<ZoneStep, 'isOutright'> {
  /** The operator chose the profile by name: what it says is said outright. */
  readonly isProfileChosen: boolean
  readonly home: string
}

/** A key as one level may change it, with what the level says about it. */
interface NarrowedKey {
  /** Dotted, as people write it. */
  readonly path: string
  /** Where the policy holds the value: the whole mapping where only a part of it is narrowed. */
  readonly holder: string
  readonly key: Key
  readonly rule: Narrowing<unknown, unknown>
  readonly resolves: boolean
}

function narrowedKeys({ path, key }: NamedKey): readonly NarrowedKey[] {
  const { narrowing } = key
  if (narrowing === undefined) return []
  if (!('parts' in narrowing))
    return [{ path, holder: path, key, rule: narrowing as Narrowing<unknown, unknown>, resolves: true }]
  return Object.entries(narrowing.parts).map(([part, rule]) => ({
    path: `${path}.${part}`,
    holder: path,
    key,
    rule: rule as Narrowing<unknown, unknown>,
    resolves: false,
  }))
}

const NARROWED = ALL_KEYS.flatMap(narrowedKeys)

/** The keys that a level can narrow, zones apart; a test compares them with the schema. */
export const NARROWED_KEYS: readonly string[] = NARROWED.map(({ path }) => path)

/**
 * One level's requests laid over the policy above it.
 * @throws SandboxError WORKER_INVALID when the section itself says something impossible
 */
export function narrowStep(step: NarrowingStep): Narrowed {
  const settings = settingsOf(step)
  const scalars = NARROWED.reduce<Narrowed>((sofar, narrowed) => applyKey({ step, sofar, narrowed, settings }), {
    policy: step.policy,
    escalations: [],
    warnings: [],
  })
  const { request, level, context } = step
  const zones = layZones({
    policy: scalars.policy,
    request,
    level,
    context,
    isOutright: (key) => isOutright(step, key),
  })
  return {
    policy: zones.policy,
    escalations: [...scalars.escalations, ...zones.escalations],
    warnings: [...scalars.warnings, ...zones.warnings],
  }
}

/** Settings of a level, parsed, and their places. */
interface LevelSettings {
  readonly parsed: ParsedSandbox
  readonly layer: PolicyLayer
  readonly source: LayerSource
}

function settingsOf({ request, home }: NarrowingStep): LevelSettings {
  const { layer, parsed, problems } = checkLayer(request.layer)
  if (problems.length > 0) throw refusal({ code: 'WORKER_INVALID', lines: problems, hint: 'llm-do workers check' })
  const { network, env } = parsed
  const both = (env?.inherit ?? []).filter((name) => Object.hasOwn(env?.set ?? {}, name))
  const { file, line, key } = request.from
  const at = (inner: string) => ({ file, line, key: key === '' ? inner : `${key}.${inner}` })
  if (both.length > 0)
    throw invalidWorker([{ ...at('env'), expected: `${both.join(', ')} inherited or set`, got: 'both' }])
  if (network !== undefined && listsInVain(network)) {
    const got = `mode ${network.mode ?? 'none'}`
    throw invalidWorker([
      { ...at('network'), expected: 'mode restricted together with a list of allowed hosts or ports', got },
    ])
  }
  return { parsed, layer, source: sourceOf(layer, { rank: 0, home }) }
}

/** @returns undefined where the level says nothing about the key */
function wantedBy({ parsed, source }: LevelSettings, { path, key, resolves }: NarrowedKey): unknown {
  const written = valueAt(parsed, path)
  const { resolve } = key.merging
  return written === undefined || !resolves || resolve === undefined ? written : resolve(written as never, source)
}

interface Applied {
  readonly step: NarrowingStep
  readonly sofar: Narrowed
  readonly narrowed: NarrowedKey
  readonly settings: LevelSettings
}

function applyKey({ step, sofar, narrowed, settings }: Applied): Narrowed {
  const wanted = wantedBy(settings, narrowed)
  if (wanted === undefined) return sofar
  const { path, holder, rule } = narrowed
  const { policy } = sofar
  const granted = valueAt(policy, holder)
  const { layer, source } = settings
  if (rule.isWider(wanted, granted) && !maySet(step, narrowed)) {
    if (rule.yields === true && step.level === 'workshop' && isFlagged(policy, path)) return sofar
    const escalation = {
      location: locationOf(layer, path),
      key: path,
      wanted: rule.shows(wanted),
      granted: `${rule.grants(granted)} (${setBy(policy, path)})`,
      fix: fixFor(narrowed, wanted),
    }
    return { ...sofar, escalations: [...sofar.escalations, escalation] }
  }
  if (isFlagged(policy, path) && rule.adds !== true) return sofar
  const taken = rule.takes(wanted, granted, isFlagged(policy, path))
  if (taken === granted && rule.grants(granted) !== rule.shows(wanted))
    return withoutEffect({ step, sofar, narrowed, settings, wanted })
  const origins = { ...policy.origins, [path]: [...(policy.origins[path] ?? []), source.originOf(path)] }
  return { ...sofar, policy: { ...withValueAt(policy, holder, taken), origins } }
}

/** The flags that would grant it: those of the rule, else the one that sets the key. */
function fixFor({ key, rule }: NarrowedKey, wanted: unknown): string {
  const [flag] = key.flags
  if (rule.fix !== undefined) return rule.fix(wanted)
  if (flag === undefined || flag.sets !== undefined || flag.repeats !== undefined) return ''
  if (flag.argument === undefined) return `--${flag.name}`
  return `--${flag.name} ${wanted === null ? 'none' : rule.shows(wanted)}`
}

function withoutEffect({ sofar, narrowed, step, wanted }: Applied & { readonly wanted: unknown }): Narrowed {
  const { file, line, key } = step.request.from
  const { path, holder, rule } = narrowed
  const granted = rule.grants(valueAt(sofar.policy, holder))
  const message = `${path} ${rule.shows(wanted)} was not needed: ${granted} was said by ${setBy(sofar.policy, path)}.`
  return {
    ...sofar,
    warnings: [...sofar.warnings, { code: 'W_KEPT', file, line, key: `${key}.${path}`, message }],
  }
}

function maySet(step: NarrowingStep, { path, rule }: NarrowedKey): boolean {
  if (step.level !== 'workshop' || rule.sets === undefined) return false
  return rule.sets === 'always' || !isOutright(step, path)
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

/** The place that set the current value: `flag --net`, `profile default.yaml:5`. */
function setBy({ origins }: Policy, key: string): string {
  const last = origins[key]?.at(-1)
  if (last === undefined || last.layer === 'built-in') return 'built-in'
  return `${last.layer} ${last.source}`
}

/**
 * One error for everything that was wanted beyond what was granted.
 * @param unnamed a workshop that is there, and that the caller has not named
 */
export function escalationError(escalations: readonly Escalation[], unnamed?: string) {
  const lines = escalations.map(
    ({ location, key, wanted, granted }) => `${location}: ${key}: wanted ${wanted}, granted ${granted}.`,
  )
  const fixes = [...new Set(escalations.map(({ fix }) => fix).filter((fix) => fix !== ''))]
  const hint =
    unnamed !== undefined
      ? `llm-do exec --workshop ${unnamed} ...   (it is here, and was not named)`
      : fixes.length === 0
        ? 'only the operator can grant this: a profile of your own, or flags'
        : `to grant it: llm-do exec ${fixes.join(' ')} ...`
  return refusal({ code: 'POLICY_ESCALATION', lines, hint })
}
