/**
 * The zones that are left of a policy's under the requests of a level below. Pure: what a path really is comes in as `real`.
 *
 * A request is granted by name (or by its path inside) or because what it wants to see lies in what is shown already, as wide or
 * wider. Anything else is a new host path, which only a workshop may add, and only inside the project; `allow_worker_zones` lets
 * workers do the same.
 */
import path from 'node:path'
import { isBelow, isWithin, WORKSPACE } from '../plan/well-known-paths.ts'
import { showsWorkspace } from '../plan/workspace.ts'
import { ZONE_SIZE } from '../policy/keys/zone.ts'
import type { Policy } from '../policy/policy.ts'
import { type HostMode, isWritable, narrowestMode, type Origin, type Zone } from '../policy/values.ts'
import type { Escalation, Level, SandboxRequest, SourceLocation, Warning, ZoneRequest } from './worker.ts'

/** The inputs of the judgement about zones. */
export interface ZoneContext {
  /** Canonical directory of the caller. */
  readonly cwd: string
  /** Canonical directories that are the project. */
  readonly project: readonly string[]
  /** Canonical directories of the files in use: a path in them under a granted name is a default, not a request for more. */
  readonly own: readonly string[]
  /** Canonical path of an absolute one; empty for one that was not looked at. */
  readonly real: (path: string) => string
  readonly allowWorkerZones: boolean
}

export interface ZoneStep {
  readonly policy: Policy
  readonly request: SandboxRequest
  readonly level: Level
  readonly context: ZoneContext
  /** The operator has said this key in so many words. */
  readonly isOutright: (key: string) => boolean
}

/** The policy under one level, or under several. */
export interface Narrowed {
  readonly policy: Policy
  readonly escalations: readonly Escalation[]
  readonly warnings: readonly Warning[]
}

export function layZones(step: ZoneStep): Narrowed {
  const first: Narrowed = { policy: step.policy, escalations: reopeningEscalations(step), warnings: [] }
  const laid = step.request.zones.reduce<Narrowed>((sofar, request) => layZone({ step, sofar, request }), first)
  const opened = opensWorkspace(step) ? { ...laid.policy, workspace: 'rw' as const } : laid.policy
  const asked = namesFiles(step.request) ? { ...opened, workspace: 'none' as const } : opened
  const closed = step.request.readonly?.value === true ? readOnly(asked) : asked
  return restricted({ ...step, policy: closed, escalations: laid.escalations, warnings: laid.warnings })
}

/** A caller who lists the files of a command wants these and no more: the caller's directory is then not mounted. */
const namesFiles = ({ zones }: SandboxRequest): boolean => zones.some(({ mode }) => mode !== 'tmpfs')

interface ZoneAt {
  readonly step: ZoneStep
  readonly sofar: Narrowed
  readonly request: ZoneRequest
}

function layZone(at: ZoneAt): Narrowed {
  const { sofar, request } = at
  const same = sofar.policy.zones.find(({ name, target }) => name === request.name || target === request.target)
  const change = same === undefined ? newZone(at) : knownZone(at, same)
  if ('escalation' in change) return { ...sofar, escalations: [...sofar.escalations, change.escalation] }
  const zones =
    same === undefined
      ? [...sofar.policy.zones, change.zone]
      : sofar.policy.zones.map((zone) => (zone === same ? change.zone : zone))
  return {
    ...sofar,
    policy: { ...sofar.policy, zones, origins: spoken(sofar.policy, change.zone) },
    warnings: [...sofar.warnings, ...(change.warnings ?? [])],
  }
}

function spoken({ origins }: Policy, { name, origin }: Zone): Policy['origins'] {
  const key = `zones.${name}`
  return { ...origins, zones: [...(origins['zones'] ?? []), origin], [key]: [...(origins[key] ?? []), origin] }
}

type Change = { readonly zone: Zone; readonly warnings?: readonly Warning[] } | { readonly escalation: Escalation }

function refuse(
  request: ZoneRequest,
  words: Pick<Escalation, 'wanted' | 'granted'> & { readonly fix?: string },
): Change {
  const {
    fix = `--zone ${request.name}=${request.hostPath ?? 'DIRECTORY'}${isWritable(request.mode) ? `:${request.mode}` : ''}`,
  } = words
  return { escalation: { location: positionOf(request.from), key: request.from.key, ...words, fix } }
}

const isShown = (policy: Policy, { cwd, real }: ZoneContext): boolean => showsWorkspace(policy, cwd, real)

const positionOf = ({ file, line }: SourceLocation) => (line === undefined ? file : `${file}:${line}`)

/** A zone of this name, or at this path, is granted: the request may make it smaller. */
function knownZone({ step, sofar, request }: ZoneAt, zone: Zone): Change {
  const from = `zone ${zone.name} (${originText(zone)})`
  if (isWritable(request.mode) && zone.mode === 'ro')
    return refuse(request, { wanted: `mode ${request.mode}`, granted: `ro by ${from}` })
  if (request.sockets === true && !zone.sockets) {
    return refuse(request, { wanted: 'sockets', granted: `none by ${from}`, fix: '' })
  }
  if (zone.mode === 'tmpfs') return { zone }
  if (request.mode === 'tmpfs') return isSpokenByOperator(zone) ? { zone } : { zone: scratch(request, step.level) }
  const narrower: Zone = {
    ...zone,
    mode: narrowestMode(request.mode, zone.mode),
    optional: zone.optional || request.optional === true,
    // A directory is made on the host itself, which a copy-on-write grant leaves as it is.
    create: zone.create || (request.create === true && request.mode === 'rw' && zone.mode === 'rw'),
    origin: originOf(request, step.level),
  }
  return narrowPath({ step, sofar, request }, { ...narrower, sockets: zone.sockets && request.sockets === true }, zone)
}

function isSpokenByOperator({ origin }: Zone): boolean {
  return origin.layer === 'flag' || origin.layer === 'environment'
}

/** The host path of the grant counts; a request inside of it counts more; another one in the project was a default, one outside is new. */
function narrowPath({ step, request }: ZoneAt, narrower: Zone, granted: Zone): Change {
  if (granted.hostPath === undefined) return { zone: narrower }
  const shown = step.context.real(granted.hostPath)
  // The judged path is handed on, so that a link that is changed later leads to a refusal, not elsewhere.
  const same = { zone: { ...narrower, hostPath: shown === '' ? granted.hostPath : shown } }
  if (request.hostPath === undefined) return same
  const wanted = step.context.real(request.hostPath)
  if (wanted === shown) return same
  if (isBelow(wanted, shown)) return { zone: { ...narrower, hostPath: wanted } }
  if (!isInProject(step, wanted) && !step.context.own.some((directory) => isWithin(wanted, directory))) {
    return refuse(request, {
      wanted: `the host path ${wanted}`,
      granted: `${shown} by zone ${granted.name} (${originText(granted)})`,
    })
  }
  const message = `zone ${request.name} shows ${shown} (${originText(granted)}), not ${wanted}.`
  return { ...same, warnings: [{ code: 'W_MOVED', ...request.from, message }] }
}

function originText({ origin }: Zone): string {
  return `${origin.layer} ${origin.source}`
}

function originOf(request: ZoneRequest, level: Level): Origin {
  return { layer: level === 'worker' ? 'worker' : 'workshop', source: positionOf(request.from), key: request.from.key }
}

function scratch(request: ZoneRequest, level: Level): Zone {
  const { name, target, size = ZONE_SIZE } = request
  return {
    name,
    target,
    mode: 'tmpfs',
    size,
    create: false,
    optional: false,
    sockets: false,
    origin: originOf(request, level),
  }
}

/** No level above has this zone: it must lie inside of what is shown, or be inside the project where that is enough. */
function newZone(at: ZoneAt): Change {
  const { step, request } = at
  const { hostPath, mode } = request
  if (mode === 'tmpfs') return { zone: scratch(request, step.level) }
  if (hostPath === undefined)
    return refuse(request, { wanted: `a zone ${request.name} (${mode})`, granted: 'no zone of that name' })
  const wanted = step.context.real(hostPath)
  const cover = coverOf(at, wanted)
  const zone: Zone = {
    name: request.name,
    target: request.target,
    mode,
    hostPath: wanted,
    create: request.create === true,
    optional: request.optional === true,
    sockets: request.sockets === true,
    origin: originOf(request, step.level),
  }
  if (request.sockets === true && cover?.sockets !== true)
    return refuse(request, { wanted: 'sockets', granted: 'none', fix: '' })
  if (cover === undefined)
    return mayAdd(step, wanted)
      ? { zone }
      : refuse(request, { wanted: `the host path ${wanted} (${mode})`, granted: 'no zone that shows it' })
  if (isWritable(mode) && cover.mode === 'ro')
    return refuse(request, { wanted: `mode ${mode} on ${wanted}`, granted: `ro by ${cover.what}` })
  // A directory is made on the host itself, which a copy-on-write grant leaves as it is.
  if (request.create === true && cover.mode !== 'rw')
    return refuse(request, { wanted: `to create ${wanted}`, granted: `${cover.mode} by ${cover.what}` })
  return { zone: { ...zone, mode: narrowestMode(mode, cover.mode) } }
}

interface Cover {
  readonly hostPath: string
  readonly mode: HostMode
  readonly sockets: boolean
  readonly what: string
}

/** The deepest directory above a path that is shown already. */
function coverOf({ step }: ZoneAt, wanted: string): Cover | undefined {
  return coversOf(step)
    .filter(({ hostPath }) => isWithin(wanted, hostPath))
    .sort((a, b) => b.hostPath.length - a.hostPath.length)[0]
}

/** Zones of this level's own cover nothing: two requests may overlap only where each of them is granted. */
function coversOf({ policy, context, level, isOutright }: ZoneStep): readonly Cover[] {
  const zones = policy.zones.flatMap((zone) =>
    zone.mode === 'tmpfs' || zone.hostPath === undefined
      ? []
      : [
          {
            hostPath: context.real(zone.hostPath),
            mode: zone.mode,
            sockets: zone.sockets,
            what: `zone ${zone.name} (${originText(zone)})`,
          },
        ],
  )
  const { workspace } = policy
  const isCeiling = level !== 'workshop' || isOutright('workspace')
  if (workspace === 'none' || !isShown(policy, context) || !isCeiling) return zones
  return [...zones, { hostPath: context.cwd, mode: workspace, sockets: false, what: 'the workspace' }]
}

function mayAdd(step: ZoneStep, wanted: string): boolean {
  const isAllowed = step.level === 'workshop' || (step.level === 'worker' && step.context.allowWorkerZones)
  return isAllowed && isInProject(step, wanted)
}

function isInProject({ context }: ZoneStep, wanted: string): boolean {
  return context.project.some((directory) => isWithin(wanted, directory))
}

/** `readonly: false` under a ro grant. */
function reopeningEscalations(step: ZoneStep): readonly Escalation[] {
  const { request, policy } = step
  if (request.readonly?.value !== false || opensWorkspace(step)) return []
  const closed = policy.zones.find(({ mode }) => mode === 'ro')
  const what = closed === undefined ? workspaceWords(step) : `zone ${closed.name} (${originText(closed)})`
  if (what === undefined) return []
  const { from } = request.readonly
  return [
    {
      location: positionOf(from),
      key: from.key,
      wanted: 'rw (readonly: false)',
      granted: `ro by ${what}`,
      fix: closed === undefined ? '--rw .' : '',
    },
  ]
}

function workspaceWords({ policy, context }: ZoneStep): string | undefined {
  return isShown(policy, context) && policy.workspace === 'ro' ? 'the workspace' : undefined
}

/** The project owner may open the project's directory where the operator has not closed it. */
function opensWorkspace({ request, policy, level, context, isOutright }: ZoneStep): boolean {
  const isOpening = request.readonly?.value === false && level === 'workshop'
  return isOpening && isShown(policy, context) && policy.workspace === 'ro' && !isOutright('workspace')
}

function readOnly(policy: Policy): Policy {
  return {
    ...policy,
    workspace: policy.workspace === 'none' ? 'none' : 'ro',
    zones: policy.zones.map((zone) => (isWritable(zone.mode) ? { ...zone, mode: 'ro', create: false } : zone)),
  }
}

/** Only what lies in the subtree stays; a zone around it is cut down to it. */
function restricted(step: ZoneStep & Narrowed): Narrowed {
  const { request, policy, context, level, escalations, warnings } = step
  const laid = { policy, escalations, warnings }
  if (request.restrict === undefined) return laid
  const { value: subtree, from } = request.restrict
  const shown = [...policy.zones, ...workspaceZones({ policy, context, subtree, from, level })]
  const zones = shown.flatMap((zone) => cutDown({ zone, subtree, context }))
  // The remaining part of the caller's directory is one of the zones: the whole must not come back next to them.
  if (zones.length > 0) return { ...laid, policy: { ...policy, zones, workspace: 'none' } }
  const granted = shown.map(({ target, hostPath }) => target ?? hostPath ?? '').join(', ')
  const escalation = {
    location: positionOf(from),
    key: from.key,
    wanted: subtree,
    granted: granted === '' ? 'no zones' : granted,
    fix: '',
  }
  return { ...laid, escalations: [...escalations, escalation] }
}

/** The part of the caller's directory in the subtree, which is called by its place inside or from the project's root. */
function workspaceZones(input: {
  readonly policy: Policy
  readonly context: ZoneContext
  readonly subtree: string
  readonly from: SourceLocation
  readonly level: Level
}): readonly Zone[] {
  const { policy, context, subtree, from, level } = input
  const isHidden = policy.zones.some(({ target, hostPath = '' }) => isWithin(subtree, target ?? hostPath))
  if (policy.workspace === 'none' || !isShown(policy, context) || isHidden) return []
  const origin: Origin = { layer: level === 'worker' ? 'worker' : 'workshop', source: positionOf(from), key: from.key }
  const common = { mode: policy.workspace, create: false, optional: false, sockets: false, origin } as const
  const whole: Zone = { name: 'workspace', target: WORKSPACE, hostPath: context.cwd, ...common }
  if (isWithin(subtree, WORKSPACE)) return [whole]
  const hostPath = context.real(path.join(context.cwd, subtree))
  if (!isWithin(hostPath, context.cwd)) return []
  return [{ name: path.posix.basename(subtree), target: subtree, hostPath, ...common }]
}

function cutDown({
  zone,
  subtree,
  context,
}: {
  readonly zone: Zone
  readonly subtree: string
  readonly context: ZoneContext
}): readonly Zone[] {
  const target = zone.target ?? zone.hostPath ?? ''
  if (isWithin(target, subtree)) return [zone]
  if (!isWithin(subtree, target) || zone.hostPath === undefined) return []
  const hostPath = context.real(path.join(zone.hostPath, path.posix.relative(target, subtree)))
  // A link in the subtree's path may lead out of the zone, and then it is not a part of it.
  return isWithin(hostPath, context.real(zone.hostPath)) ? [{ ...zone, target: subtree, hostPath }] : []
}

/** Every path whose canonical form layZones() may ask for. */
export function pathsToKnow(input: {
  readonly zones: readonly Pick<Zone, 'hostPath' | 'target'>[]
  readonly restricts: readonly string[]
  readonly cwd: string
}): readonly string[] {
  const { zones, restricts, cwd } = input
  const sources = zones.flatMap(({ hostPath }) => (hostPath === undefined ? [] : [hostPath]))
  const around = [{ hostPath: cwd, target: WORKSPACE }, ...zones]
  const subtrees = restricts.flatMap((subtree) => [
    path.join(cwd, subtree),
    ...around.flatMap(({ hostPath, target = hostPath ?? '' }) =>
      hostPath !== undefined && isWithin(subtree, target)
        ? [path.join(hostPath, path.posix.relative(target, subtree))]
        : [],
    ),
  ])
  return [...new Set([...sources, ...subtrees].map((known) => path.resolve(known)))]
}
