/** The row of the docker backend, podman included: one container a run, or one a session. */
import { type Backend, wordOf } from '../row-kit.ts'
import { dockerOffers } from './offers.ts'

export const docker: Backend = {
  name: 'docker',
  traits: {
    isAutomatic: true,
    root: 'image',
    protectsByMounts: true,
    hasLandlock: false,
    findsGit: false,
    opensByPath: false,
    givesUp: [],
    refuses: () => [],
    hasCgroup: false,
  },
  hasLaunchFile: false,
  headline: 'Docker isolation: ENABLED (Secure)',
  observe: {
    // A daemon is slow to answer, so it is asked only when no earlier backend is enough.
    isWanted: () => false,
    observe: async (question) => {
      // Our own search comes first: a client that lies in the caller's tree is not asked.
      const found = question.search(question.env['LLM_DO_DOCKER'] || 'docker')
      if (found === undefined) return {}
      const { knownDaemon } = await import('./known-daemon.ts')
      return { docker: await knownDaemon(found, question) }
    },
  },
  offers: dockerOffers,
  terms: (offers, { policy, permits, facts }) =>
    policy.backend === 'auto' && !permits.docker
      ? {
          barred: {
            why: 'ENABLE_DOCKER=false takes it out of the choice',
            fix: '--backend docker, or unset ENABLE_DOCKER',
          },
        }
      : { barred: offers.unusable, isUnobserved: facts.docker === undefined },
  isolation: ({ network, seccomp }) => ({
    fs: 'image',
    pid: true,
    net: wordOf(network),
    ipc: true,
    user: false,
    seccomp: seccomp.profile,
  }),
  describe: async (facts) => (await import('./describe.ts')).describeDocker(facts),
  load: async () => (await import('./run.ts')).runner,
}
