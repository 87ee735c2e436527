/** The walls and limits around a command without namespaces: Landlock, the filter, and the native runner. Pure. */
import { ioLack, rungsFor } from '../../cgroup/rungs.ts'
import { LANDLOCK_SCOPES } from '../../contract.ts'
import type { HostFacts } from '../../host/facts.ts'
import type { Lack, Offers } from '../../plan/offers.ts'
import type { Need } from '../../policy/values.ts'
import { NO_LAYERS, NO_OBSERVER, NOT_WASI, nothing, OWN_LIMITS, unusable } from '../offers.ts'

/** Walls that need a namespace: naming the backend gives them up. */
export const GIVEN_UP: readonly Need[] = ['empty-root', 'pid-namespace', 'ipc-namespace', 'user-namespace']

const NO_NAMESPACE: Lack = {
  why: 'the command has no namespaces',
  fix: '--backend namespace; where a container forbids it: docs/guide/ci.md',
}

const NESTED: Lack = {
  why: 'in a sandbox of llm-do exec the command has no namespaces of its own',
  fix: 'outside of that sandbox: --backend namespace',
}

const NESTED_NETWORK: Lack = {
  why: 'in a sandbox of llm-do exec the network is restricted around it',
  fix: '--net host, which is what the sandbox around it lets through, or --net none',
}

const UNWATCHED: Lack = {
  why: 'there is no cgroup, and the sandbox around it hides the processes that would be watched',
  fix: '--memory none',
}

export function noNamespacesOffers(facts: HostFacts): Offers {
  const barred = obstacle(facts)
  if (barred !== undefined) return nothing(barred)
  const rungs = rungsFor(facts.cgroup)
  const isUnwatched = rungs.memory === 'watchdog' && facts.hidesProcesses === true
  return {
    engines: [],
    gives: {
      zones: 'kernel',
      seccomp: 'kernel',
      'net-none': 'kernel',
      'net-host': 'kernel',
      'sockets-closed': 'kernel',
      ...(isUnwatched ? {} : { 'memory-limit': rungs.memory }),
      'pids-limit': rungs.pids,
      'cpus-limit': rungs.cpus,
      ...(rungs.io === 'none' ? {} : { 'io-limit': rungs.io }),
      ...OWN_LIMITS,
      tty: 'runner',
    },
    lacks: {
      ...Object.fromEntries(GIVEN_UP.map((need) => [need, facts.isInsideOwn ? NESTED : NO_NAMESPACE])),
      'net-restricted': facts.isInsideOwn ? NESTED_NETWORK : NO_NAMESPACE,
      ...(isUnwatched ? { 'memory-limit': UNWATCHED } : {}),
      'copy-on-write': NO_LAYERS,
      explain: NO_OBSERVER,
      'wasi-command': NOT_WASI,
      ...(rungs.io === 'none' ? { 'io-limit': ioLack(facts.cgroup) } : {}),
    },
  }
}

function obstacle({ platform, nativePrograms, landlockAbi, kernel }: HostFacts): Lack | undefined {
  if (platform !== 'linux') return { why: 'Landlock exists on Linux only', fix: '--backend docker' }
  if (!nativePrograms.ok) return unusable(nativePrograms)
  if (landlockAbi >= LANDLOCK_SCOPES) return undefined
  return {
    why: `signals and abstract sockets are kept in by Landlock ${LANDLOCK_SCOPES} (Linux 6.12); kernel ${kernel} has ${landlockAbi || 'none'}`,
    fix: 'run on Linux 6.12 or later with Landlock on (lsm=landlock,...)',
  }
}
