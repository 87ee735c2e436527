/** The row of the wasm backend: a WASI module, run by node or wasmtime, inside the namespace sandbox where there is one. */
import {
  type Backend,
  engineFor,
  engineObstacle,
  type HostFacts,
  type Lack,
  namespaceOffers,
  type Policy,
  versionOf,
} from '../row-kit.ts'
import { wasmOffers } from './offers.ts'
import { wasmtimeObstacle } from './wasmtime-obstacle.ts'

/** The obstacle to the namespace sandbox that this policy would have around the module. */
function wallsObstacle(policy: Policy, facts: HostFacts): Lack | undefined {
  const offers = namespaceOffers(facts)
  return offers.unusable ?? engineObstacle(facts, engineFor(policy, offers))
}

/** Around a bare node nothing counts the time of its processors. */
const withoutRlimits = ({ resources }: Policy, walls: Lack | undefined): Lack | undefined =>
  walls !== undefined && resources.cpuTime !== null
    ? {
        why: 'cpuTime is held by the namespace sandbox around the module, which cannot be had here',
        fix: '--timeout TIME',
      }
    : undefined

const usesWasmtime = ({ runtime }: Policy): boolean => runtime === 'wasmtime'

export const wasm: Backend = {
  name: 'wasm',
  traits: {
    isAutomatic: false,
    root: 'zones',
    protectsByMounts: false,
    hasLandlock: false,
    findsGit: false,
    opensByPath: false,
    givesUp: [],
    refuses: () => [],
    hasCgroup: false,
  },
  hasLaunchFile: false,
  headline: 'Isolation: ENABLED (wasm)',
  observe: {
    isWanted: usesWasmtime,
    observe: async ({ search }) => {
      const wasmtime = await versionOf(search('wasmtime'))
      return wasmtime === undefined ? {} : { wasmtime }
    },
  },
  offers: wasmOffers,
  terms: (_offers, { policy, facts }) => {
    const walls = wallsObstacle(policy, facts)
    return {
      ...(walls === undefined && { engine: engineFor(policy, namespaceOffers(facts)) }),
      barred: usesWasmtime(policy) ? wasmtimeObstacle(facts, walls) : withoutRlimits(policy, walls),
    }
  },
  // A WASI command has no processes, no System V IPC and no system calls; the filter is around what runs it.
  isolation: ({ network, engine, seccomp }) => ({
    fs: 'preopened',
    pid: true,
    net: network.mode,
    ipc: true,
    user: true,
    seccomp: engine === undefined ? 'off' : seccomp.profile,
  }),
  describe: async (facts) => (await import('./describe.ts')).describeWasm(facts),
  load: async () => (await import('./run.ts')).runner,
}
