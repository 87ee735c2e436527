/** The plan's system call filter as Docker's own profile. Pure. */
import { SandboxError } from '../../error.ts'
import type { Plan } from '../../plan/plan.ts'
import { keptSets } from '../../seccomp/filter.ts'
import { PROFILE_NAMES, type ProfileName } from '../../seccomp/rules.ts'
import { dockerSeccomp } from './seccomp-profile.ts'

export interface SeccompWords {
  readonly words: readonly string[]
  /** What the client reads at the descriptor that `words` name. */
  readonly profile?: Uint8Array
}

/**
 * @param fd where the client will find the profile: it takes a path only; `null` where a descriptor has none (Windows), and
 *   the daemon's own default profile then holds
 * @throws SandboxError NO_BACKEND for a filter file: a plan holds its compiled form, which Docker does not take
 */
export function seccompWords(
  { seccomp, identity }: Pick<Plan, 'seccomp' | 'identity'>,
  fd: number | null,
): SeccompWords {
  const { profile, arch } = seccomp
  if (profile !== 'off' && !isNamed(profile)) {
    throw new SandboxError('NO_BACKEND', `docker lacks seccomp: the filter file ${profile} cannot be translated`, {
      hint: `--seccomp ${PROFILE_NAMES.join('|')}, or --backend namespace`,
    })
  }
  if (fd === null) return { words: [] }
  return {
    words: ['--security-opt', `seccomp=/dev/fd/${fd}`],
    profile: new TextEncoder().encode(
      JSON.stringify(dockerSeccomp(profile, arch, keptSets({ isRoot: identity === 'fresh' }))),
    ),
  }
}

function isNamed(profile: string): profile is ProfileName {
  return (PROFILE_NAMES as readonly string[]).includes(profile)
}
