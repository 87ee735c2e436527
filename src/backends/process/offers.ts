/** The limits of a plain process of the host, without any wall. Pure. */
import type { HostFacts } from '../../host/facts.ts'
import type { Lack, Offers } from '../../plan/offers.ts'
import type { Need } from '../../policy/values.ts'
import { NO_LAYERS, NO_OBSERVER, NO_RATES, OWN_LIMITS } from '../offers.ts'

const NO_WALL: Lack = { why: 'a host process has no walls', fix: '--backend namespace or --backend docker' }

const NO_RLIMIT: Lack = { why: 'the limits of a host process are held on Linux only', fix: '--best-effort' }

export function processOffers({ platform }: HostFacts): Offers {
  const walls: readonly Need[] = [
    'empty-root',
    'zones',
    'pid-namespace',
    'ipc-namespace',
    'user-namespace',
    'seccomp',
    'net-none',
    'net-restricted',
    'sockets-closed',
    'wasi-command',
  ]
  const limits = ['memory-limit', 'pids-limit', 'cpus-limit'] as const
  const held = { 'memory-limit': 'watchdog', 'pids-limit': 'watchdog', 'cpus-limit': 'affinity' } as const
  const onLinux = platform === 'linux'
  return {
    engines: [],
    gives: { 'net-host': 'runner', ...OWN_LIMITS, tty: 'runner', ...(onLinux ? held : {}) },
    lacks: Object.fromEntries([
      ...walls.map((need) => [need, NO_WALL]),
      ['io-limit', NO_RATES],
      ['copy-on-write', NO_LAYERS],
      ['explain', NO_OBSERVER],
      ...(onLinux ? [] : limits.map((need) => [need, NO_RLIMIT])),
    ]),
  }
}
