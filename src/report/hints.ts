/** Suggests the caller's next step: the flag to raise for each limit, the flag that mounts a path. */
import type { Outcome } from '../backends/outcome.ts'
import type { Plan, PlannedZone } from '../plan/plan.ts'
import type { Origin } from '../policy/values.ts'
import { shellWord } from '../text/shell-word.ts'
import { formatDuration, sizeWord } from '../text/units.ts'
import type { Reason } from './result.ts'

export { shellWord }

export const WORKSPACE_ZONE = 'workspace'

/** The flag that shows the same zone in this mode. */
export function zoneFlag({ name, source, target }: PlannedZone, mode: PlannedZone['mode']): string {
  if (name === WORKSPACE_ZONE) return `--${mode} .`
  return `--${mode} ${shellWord(source === target ? source : `${source}:${target}`)}`
}

/** Dotted policy key and flag of each limit that can end or starve a command. */
const LIMITS = {
  timeout: { key: 'resources.timeout', flag: '--timeout' },
  'cpu-time': { key: 'resources.cpuTime', flag: '--cpu-time' },
  memory: { key: 'resources.memory', flag: '--memory' },
  pids: { key: 'resources.pids', flag: '--pids' },
  disk: { key: 'cow.size', flag: '--cow-size' },
  'rw-size': { key: 'resources.rwSize', flag: '--rw-size' },
  output: { key: 'resources.output', flag: '--output' },
} as const

export type LimitName = keyof typeof LIMITS

/** Dotted key -> everyone who set it, last one wins; as in Policy. */
export type Origins = Readonly<Record<string, readonly Origin[]>>

/** The key of a limit and who set it: `resources.timeout, profiles/ci.yaml`. */
export function limitSource(limit: LimitName, origins: Origins): string {
  const { key } = LIMITS[limit]
  const origin = origins[key]?.at(-1)
  return origin === undefined ? key : `${key}, ${origin.source}`
}

/** The value of each limit that was reached, and the spelling of its flag. */
const REACHED: Readonly<Record<LimitName, (plan: Plan) => readonly [number | undefined, (value: number) => string]>> = {
  timeout: ({ limits }) => [limits.timeoutMs, formatDuration],
  'cpu-time': ({ limits }) => [limits.cpuTimeMs, formatDuration],
  memory: ({ limits }) => [limits.memory?.max, sizeWord],
  pids: ({ limits }) => [limits.pids?.max, String],
  disk: ({ layer }) => [layer?.size, sizeWord],
  'rw-size': ({ limits }) => [limits.rwSize, sizeWord],
  output: ({ limits }) => [limits.output, sizeWord],
}

/** With twice the limit of the plan as an example. */
export function raise(limit: LimitName, plan: Plan): string {
  const { key, flag } = LIMITS[limit]
  const [value, written] = REACHED[limit](plan)
  const example = value === undefined ? '' : `, for example ${flag} ${written(2 * value)}`
  return `raise ${flag} or ${key}${example}`
}

/** For a command that had as many processes as it may have, where no controller counts what was refused beyond: no reason, a guess. */
export function reachedPidsHint(plan: Plan): string {
  const { max } = plan.limits.pids ?? { max: 0 }
  return `it had all ${max} processes it may have, and nothing here counts those that were refused; if it needed more: ${raise('pids', plan)}`
}

/** A path that is there for the caller but not for the command under the same name. */
export interface InvisiblePath {
  readonly path: string
  /** Where the command finds the same thing. */
  readonly inside?: string
  /** Flags that show it at the path itself. */
  readonly flags?: string
}

/** Never a reason, a guess worth trying. */
export function invisiblePathHint({ path, inside, flags }: InvisiblePath): string {
  if (inside === undefined && flags === undefined)
    return `${path} is not visible in the sandbox, and may hold credentials`
  if (inside === undefined)
    return `${path} exists on this machine but is not visible in the sandbox; to show it: ${flags}`
  const where = `${path} is ${inside} in the sandbox`
  return flags === undefined ? where : `${where}; to have it at its own path: ${flags}`
}

/** Python keeps what it prints to a pipe until it has 8 KiB, and a signal ends it before. */
export const UNBUFFERED_HINT = 'what Python had printed may have been lost in its buffer: --env PYTHONUNBUFFERED=1'

/** `sh` has no `source`. */
const SOURCE_HINT = 'source is a word of bash, and -c runs sh: -lc in the place of -c, or . in the place of source'

/** @param stderr of a failed command */
export const sourceHint = (stderr: string): readonly string[] =>
  /\bsource: not found/.test(stderr) ? [SOURCE_HINT] : []

/** For a command that wanted to install packages of the system. */
export const PACKAGES_HINT = 'packages of the system are installed on the host, or into an image: --image IMAGE'

/** For a script whose first line names an interpreter that is on the host. */
export function interpreterHint({ path, flags = '' }: InvisiblePath): string {
  return `its first line names ${path}, which is not visible there in the sandbox; to show it: ${flags}`
}

/**
 * For a command that the system call filter stopped: a 32-bit program or call, which every filter but `off` stops, and for root `off` as
 * well (docs/reference/seccomp.md).
 */
export function seccompHint({ seccomp: { profile }, identity }: Plan): string {
  const stopped = `the system call filter (${profile}) stops 32-bit programs and system calls`
  const off = 'to let them run, with everything else that the filter keeps out: --seccomp off'
  return identity === 'fresh'
    ? `${stopped}, for root whatever the filter; as another user ${off}`
    : `${stopped}; ${off}`
}

const CROSS_DEVICE = /Invalid cross-device link|\bEXDEV\b/

/** As another user than root, the kernel renames no directory that the host has. @param stderr of a failed command */
export function crossDeviceHint({ layer, identity, zones }: Plan, stderr: string): readonly string[] {
  if (layer === undefined || identity === 'fresh' || !CROSS_DEVICE.test(stderr)) return []
  const writable = zones.filter(({ mode }) => mode === 'cow').map(({ source }) => `--rw ${shellWord(source)}`)
  return [
    `in a copy-on-write directory only root can rename directories that the host has: copy and remove them (mv does), or in the place of --cow: ${writable.join(' ')}`,
  ]
}

/** Limits that end a run; the cap of the output only drops. */
export type LimitReason = Extract<Reason, LimitName>

/** Two limits end a run with the reason `disk`. */
export const limitOf = (reason: LimitReason, { zonesGrown }: Pick<Outcome, 'zonesGrown'>): LimitReason | 'rw-size' =>
  reason === 'disk' && zonesGrown === true ? 'rw-size' : reason

export function isLimit(reason: Reason): reason is LimitReason {
  return Object.hasOwn(LIMITS, reason)
}
