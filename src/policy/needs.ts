/** What a policy cannot do without, as words that a backend's offer is compared with. Pure. */
import type { Need, Policy } from './policy.ts'

/** Limits: without `require` any rung may hold them, and with `bestEffort` none has to. */
export const LIMIT_NEEDS: readonly Need[] = ['memory-limit', 'cpu-limit', 'pids-limit', 'io-limit']

/** Rates of reading and writing disks, in the order of the manual. */
export const IO_RATES = ['readBps', 'writeBps', 'readIops', 'writeIops'] as const

/**
 * Every need of a run, in the order of NEEDS in policy.ts' words: walls, network, limits, the rest.
 * A limit that the policy lifts (`none`) is no need; with `bestEffort` only a required limit is.
 */
export function needsOf(policy: Policy, command: readonly string[]): readonly Need[] {
  return [...new Set([...wallsOf(policy), ...limitsOf(policy), ...mannersOf(policy, command), ...policy.require])]
}

/** The needs that the kernel itself must enforce: what `require` names. A watchdog or an affinity does not meet them. */
export function kernelNeedsOf(policy: Policy): readonly Need[] {
  return policy.require
}

function wallsOf(policy: Policy): readonly Need[] {
  return [
    'empty-root',
    ...when(policy.zones.length > 0 || policy.workspace !== 'none', 'zones'),
    'pid-namespace',
    'ipc-namespace',
    'user-namespace',
    ...when(policy.seccomp !== 'off', 'seccomp'),
    `net-${policy.network.mode}`,
  ]
}

function limitsOf({ resources, bestEffort }: Policy): readonly Need[] {
  if (bestEffort) return []
  return [
    ...when(resources.memory !== null, 'memory-limit'),
    ...when(resources.cpus !== null, 'cpu-limit'),
    ...when(resources.pids !== null, 'pids-limit'),
    ...when(
      IO_RATES.some((rate) => resources[rate] !== null),
      'io-limit',
    ),
  ]
}

function mannersOf(policy: Policy, command: readonly string[]): readonly Need[] {
  const { timeoutMs, cpuTimeMs, output } = policy.resources
  return [
    ...when(timeoutMs !== null || cpuTimeMs !== null, 'deadline'),
    ...when(output !== null, 'output-limit'),
    ...when(policy.tty, 'tty'),
    ...when(policy.backend === 'wasm' || command[0]?.endsWith('.wasm') === true, 'wasi-command'),
  ]
}

function when(holds: boolean, need: Need): readonly Need[] {
  return holds ? [need] : []
}
