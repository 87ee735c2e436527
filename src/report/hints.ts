/** What the caller can do next: the flag to raise for each limit, the flag that shows a path. */
import type { Plan } from '../plan/plan.ts'
import type { Origin } from '../policy/values.ts'
import type { Reason } from './result.ts'

/** Dotted policy key and flag of each limit that can end or starve a command. */
const LIMITS = {
  timeout: { key: 'resources.timeout', flag: '--timeout' },
  'cpu-time': { key: 'resources.cpuTime', flag: '--cpu-time' },
  memory: { key: 'resources.memory', flag: '--memory' },
  pids: { key: 'resources.pids', flag: '--pids' },
  disk: { key: 'cow.size', flag: '--cow-size' },
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

export function raise(limit: LimitName): string {
  const { key, flag } = LIMITS[limit]
  return `raise ${flag} or ${key}`
}

/** For a command that had as many processes as it may have, where no controller counts what was refused beyond: no reason, a guess. */
export function reachedPidsHint(max: number): string {
  return `it had all ${max} processes it may have, and nothing here counts those that were refused; if it needed more: ${raise('pids')}`
}

const SHELL_SAFE = /^[\w@%+=:,./-]+$/

/** One word for a POSIX shell. A hint is a command, so it must survive being pasted. */
export function shellWord(word: string): string {
  return SHELL_SAFE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/** For a path among the command's words that is there for the caller but not for the command: never a reason, a guess worth trying. */
export function invisiblePathHint(path: string): string {
  return `${path} exists on this machine but is not visible in the sandbox; to show it: --ro ${shellWord(path)}`
}

/** For a command that has failed where nobody else reads what it said: what stops most newcomers. */
export function readOnlyHint({ zones }: Plan): readonly string[] {
  const isReadOnly = zones.some(({ name, mode }) => name === 'workspace' && mode === 'ro')
  return isReadOnly ? ['the workspace is read-only; if it failed for that: --rw .'] : []
}

/** For a command that the system call filter stopped. */
export function seccompHint(plan: Plan): string {
  const wider = plan.seccomp.profile === 'strict' ? '--seccomp default' : '--seccomp nested'
  return `the system call filter (${plan.seccomp.profile}) stopped it; if the program is trusted with more: ${wider}`
}

const CROSS_DEVICE = /Invalid cross-device link|\bEXDEV\b/

/** As another user than root, the kernel renames no directory that the host has. @param stderr of a failed command */
export function crossDeviceHint({ layer, identity }: Plan, stderr: string): readonly string[] {
  if (layer === undefined || identity === 'fresh' || !CROSS_DEVICE.test(stderr)) return []
  return [
    'in a copy-on-write directory only root can rename directories that the host has: copy and remove them (mv does), or --rw',
  ]
}

/** Limits that end a run; the cap of the output only drops. */
export type LimitReason = Extract<Reason, LimitName>

export function isLimit(reason: Reason): reason is LimitReason {
  return Object.hasOwn(LIMITS, reason)
}
