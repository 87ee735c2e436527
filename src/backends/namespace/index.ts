/** The row of the namespace backend: the sandbox that our own programs build, with bwrap or unshare as engine. */
import { wordOf } from '../../policy/keys/network-layers.ts'
import type { Backend, BackendRun, Runner } from '../backend.ts'
import { buildNamespace, enginePathOf, launchFile, type NamespaceInputs } from './build.ts'
import { printLaunchFile } from './launch-file.ts'
import { engineFor, engineObstacle, namespaceOffers } from './offers.ts'
import { superviseNamespace } from './run.ts'
import type { Terminating } from './terminator.ts'

const inputsOf = ({ facts, plan, run }: BackendRun): NamespaceInputs => ({ ...run, ...enginePathOf(facts, plan) })

/** Not loaded apart: nearly every run is one of these. */
const runner: Runner = {
  build: (planned) => buildNamespace(planned.plan, inputsOf(planned)),
  print: (planned) => printLaunchFile(launchFile(planned.plan, inputsOf(planned))),
  run: async ({ stdio, signal, ...planned }) => {
    const start = ({ trustBundle, channel }: Partial<Terminating>) => {
      const inputs = { ...inputsOf(planned), ...(trustBundle === undefined ? {} : { trustBundle }) }
      const launch = buildNamespace(planned.plan, inputs)
      const { plan, run } = planned
      return superviseNamespace({
        ...{ launch, stdio, signal, channel },
        deadlineMs: plan.limits.timeoutMs,
        onServing: run.serve?.onServing,
      })
    }
    const { terminatedHosts } = planned.run
    if (planned.plan.trust === undefined || terminatedHosts === undefined) return start({})
    const { withTerminator } = await import('./terminator.ts')
    return withTerminator({ trust: planned.plan.trust, hosts: terminatedHosts }, start)
  },
}

export const namespace: Backend = {
  name: 'namespace',
  traits: {
    isAutomatic: true,
    root: 'assembled',
    protectsByMounts: true,
    hasLandlock: true,
    findsGit: true,
    opensByPath: false,
    givesUp: [],
    refuses: () => [],
    hasCgroup: true,
  },
  hasLaunchFile: true,
  headline: 'Isolation: ENABLED (namespace)',
  offers: namespaceOffers,
  terms: (offers, { policy, facts }) => ({
    engine: engineFor(policy, offers),
    barred: offers.unusable ?? (policy.engine === 'auto' ? undefined : engineObstacle(facts, policy.engine)),
  }),
  isolation: ({ network, seccomp }) => ({
    fs: 'empty-root',
    pid: true,
    net: wordOf(network),
    ipc: true,
    user: true,
    seccomp: seccomp.profile,
  }),
  describe: async (facts) => (await import('./describe.ts')).describeNamespace(facts),
  load: async () => runner,
}
