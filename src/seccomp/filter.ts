/**
 * The filter of a policy as a plan bears it, and what stays in it whatever was asked for. The compiler is loaded for what was not
 * compiled when the program was built. Pure.
 */
import { PRECOMPILED_FILTERS, type PrecompiledFilters } from './precompiled.ts'
import type { ProfileName, SeccompRules, SetName } from './rules.ts'
import type { Arch } from './syscalls.ts'
import type { MountWay } from './ways.ts'

/**
 * Sets that no choice of a filter removes, neither `off` nor a file. For root these cover every way by which a file that belongs to root
 * on the host could get set-id bits or capabilities: io_uring makes files with any mode, and sets attributes, without the calls that
 * a filter sees.
 */
export function keptSets({ isRoot }: { readonly isRoot: boolean }): readonly SetName[] {
  return isRoot ? KEPT_FOR_ROOT : KEPT
}

/** Sets that replace the walls of namespaces, for a command without them. */
export function setsWithoutNamespaces({ hasNetwork }: { readonly hasNetwork: boolean }): readonly SetName[] {
  return hasNetwork ? WITHOUT_NAMESPACES : [...WITHOUT_NAMESPACES, 'every-socket']
}

/** io_uring does what they refuse without a system call, and keys belong to the user. */
const WITHOUT_NAMESPACES = [
  'processes-of-others',
  'shared-ipc',
  'unix-sockets',
  'io-uring',
  'keyring',
  'terminal-injection',
  'userfaultfd',
  'bpf',
] as const satisfies readonly SetName[]

const KEPT = ['first-process'] as const satisfies readonly SetName[]
const KEPT_FOR_ROOT = [...KEPT, 'setuid-bits', 'extended-attributes', 'io-uring'] as const satisfies readonly SetName[]

export interface FilterRequest {
  /** A shipped name, `off` for none, or the rules of a user's file. */
  readonly profile: ProfileName | 'off' | SeccompRules
  readonly arch: Arch
  /** Sets that are kept whatever the profile says. */
  readonly always: readonly SetName[]
}

/** @returns the filter in hexadecimal, as a function of the machine; the plan refuses unknown machines */
export async function filterFor(
  request: FilterRequest,
  known: PrecompiledFilters = PRECOMPILED_FILTERS,
): Promise<(arch: Arch) => string> {
  const { profile, always } = request
  const filter = typeof profile === 'string' ? known[nameOf({ ...request, profile })] : undefined
  if (filter !== undefined) return () => filter
  const { compileProfile, toHex } = await import('./compile.ts')
  return (arch) => toHex(compileProfile({ profile, arch, always }).filter)
}

/** The answer of `mountWays` for each shipped filter. */
export const SHIPPED_WAYS: Readonly<Record<ProfileName | 'off', readonly MountWay[]>> = {
  default: [],
  strict: [],
  nested: ['mount'],
  off: ['mount', 'tree'],
}

/** The words under which a filter is known. */
export function nameOf({ profile, arch, always }: FilterRequest & { readonly profile: ProfileName | 'off' }): string {
  return [profile, arch, ...always].join(' ')
}
