/** The needs that the wasm backend can meet. Pure. */
import { NO_LAYERS, NO_OBSERVER, NO_RATES, type Offers, OWN_LIMITS } from '../row-kit.ts'

/** WASI programs see what is preopened and nothing else; there are no processes, sockets or system calls to wall in. */
export function wasmOffers(): Offers {
  return {
    engines: [],
    gives: {
      'empty-root': 'wasm',
      zones: 'wasm',
      'pid-namespace': 'wasm',
      'ipc-namespace': 'wasm',
      'user-namespace': 'wasm',
      seccomp: 'wasm',
      'net-none': 'wasm',
      'memory-limit': 'wasm',
      'pids-limit': 'wasm',
      // One thread is one processor; plan/limits.ts takes it away again for less.
      'cpus-limit': 'wasm',
      ...OWN_LIMITS,
      'wasi-command': 'wasm',
      'sockets-closed': 'wasm',
    },
    lacks: {
      'net-restricted': { why: 'WASI has no sockets', fix: '--net none' },
      'net-host': { why: 'WASI has no sockets', fix: '--net none' },
      'io-limit': NO_RATES,
      'copy-on-write': NO_LAYERS,
      explain: NO_OBSERVER,
      tty: { why: 'WASI has no terminals', fix: 'leave out --tty' },
    },
  }
}
