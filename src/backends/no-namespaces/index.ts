/**
 * The row of a sandbox without namespaces, for containers that forbid them: the command is a process of the host among others, and
 * Landlock and the filter hold what they can. Only by name, or in a sandbox of our own (run/plan-run.ts).
 */
import type { Lack } from '../../plan/offers.ts'
import type { Policy } from '../../policy/policy.ts'
import { setsWithoutNamespaces } from '../../seccomp/filter.ts'
import type { Backend, Runner } from '../backend.ts'
import { printLaunchFile } from '../namespace/launch-file.ts'
import { superviseNamespace } from '../namespace/run.ts'
import { buildNoNamespaces, launchFileOf } from './build.ts'
import { GIVEN_UP, noNamespacesOffers } from './offers.ts'

/** Warnings that people must read before they trust the result. */
const WARNINGS: readonly string[] = [
  'no namespaces: the command sees that other processes exist, though it can neither signal nor read them, and it has the addresses of the host',
  'no tree of its own: files outside of what is shown cannot be read, listed or changed, but their names, sizes and owners can be asked for, and modes, times and attributes of files of its user can be changed',
  'no scratch directories: to have one, --rw DIR --env TMPDIR=DIR',
  'in a directory above a protected path nothing can be made, renamed or removed (--protect-not)',
]

/** Said in the place of these: what is to be seen there is the sandbox around it. */
const NESTED: readonly string[] = [
  'inside a sandbox of llm-do exec, whose walls stand: in them this run has Landlock and a filter of its own, and no namespaces, no scratch directories and no other addresses',
]

const runner: Runner = {
  build: ({ plan, run }) => buildNoNamespaces(plan, run),
  print: ({ plan, run }) => printLaunchFile(launchFileOf(plan, run)),
  run: ({ plan, run, stdio, signal }) =>
    superviseNamespace({
      ...{ launch: buildNoNamespaces(plan, run), stdio, signal },
      deadlineMs: plan.limits.timeoutMs,
    }),
}

export const noNamespaces: Backend = {
  name: 'no-namespaces',
  traits: {
    isAutomatic: false,
    root: 'host',
    protectsByMounts: false,
    // The filter closes them.
    hasLandlock: false,
    findsGit: true,
    opensByPath: true,
    givesUp: GIVEN_UP,
    refuses: (mode) => setsWithoutNamespaces({ hasNetwork: mode !== 'none' }),
    hasCgroup: true,
  },
  hasLaunchFile: false,
  headline: 'Isolation: PARTIAL (Landlock and seccomp, no namespaces)',
  offers: noNamespacesOffers,
  terms: (offers, { policy, facts }) => ({
    warnings: facts.isInsideOwn ? NESTED : WARNINGS,
    barred: offers.unusable ?? unheld(policy),
  }),
  isolation: ({ network, seccomp }) => ({
    fs: 'landlock',
    pid: false,
    net: network.mode,
    ipc: false,
    user: false,
    seccomp: seccomp.profile,
  }),
  load: async () => runner,
}

function unheld({ zones, sshAgent }: Policy): Lack | undefined {
  const open = zones.find(({ sockets }) => sockets)
  if (open === undefined && !sshAgent) return undefined
  return { why: 'it makes no UNIX sockets, so it cannot reach any', fix: '--backend namespace' }
}
