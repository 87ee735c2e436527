/** The row of the process backend: a plain process of the host, without any wall; for development only. */
import { LIMIT_NEEDS } from '../../policy/needs.ts'
import { NEEDS } from '../../policy/values.ts'
import type { Backend } from '../backend.ts'
import { processOffers } from './offers.ts'

/** Warnings that people must read before they trust the result. */
const WARNINGS: readonly string[] = [
  'no isolation: the command runs as a host process and can reach everything this user can',
  'Execution context: Host process (LEGACY MODE)',
  'Isolation: DISABLED: the command can read, write and reach everything this user can',
]

export const processBackend: Backend = {
  name: 'process',
  traits: {
    isAutomatic: false,
    root: 'host',
    protectsByMounts: false,
    hasLandlock: false,
    findsGit: false,
    opensByPath: false,
    // Limits stay, and the host's files stay as they are until a person applies the changes.
    givesUp: NEEDS.filter((need) => ![...LIMIT_NEEDS, 'copy-on-write', 'explain'].includes(need)),
    refuses: () => [],
    hasCgroup: false,
  },
  hasLaunchFile: false,
  headline: 'Isolation: DISABLED (Host process)',
  offers: processOffers,
  terms: (_offers, { permits }) => ({
    warnings: WARNINGS,
    ...(!permits.unsandboxed && {
      barred: {
        why: 'it isolates nothing and must be allowed twice',
        fix: 'LLM_DO_ALLOW_UNSANDBOXED=1 llm-do exec --backend process ...',
      },
    }),
  }),
  isolation: () => ({ fs: 'host', pid: false, net: 'host', ipc: false, user: false, seccomp: 'off' }),
  load: async () => (await import('./run.ts')).runner,
}
