/** The plan's system call filter as Docker's own profile. Pure. */
import { keptSets, type Plan, PROFILE_NAMES, type ProfileName, SandboxError } from '../run-kit.ts'
import { type DockerRule, type DockerSeccomp, dockerSeccomp } from './seccomp-profile.ts'

export interface SeccompWords {
  readonly words: readonly string[]
  /** Text that the client reads at the descriptor that `words` name. */
  readonly profile?: Uint8Array
}

/**
 * @param fd where the client will find the profile: it takes a path only; `null` where a descriptor has none (Windows), and
 *   the daemon's own default profile then holds
 * @throws SandboxError NO_BACKEND for a filter file: a plan holds its compiled form, which Docker does not take
 */
export function seccompWords(
  { seccomp, identity, network }: Pick<Plan, 'seccomp' | 'identity' | 'network'>,
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
      JSON.stringify(
        withNetfilter(network, dockerSeccomp(profile, arch, keptSets({ isRoot: identity === 'fresh' })), profile),
      ),
    ),
  }
}

const [AF_NETLINK, NETLINK_NETFILTER] = [16, 12]
const equals = (index: number, value: number) =>
  ({ index, value: 0xffff_ffff, valueTwo: value, op: 'SCMP_CMP_MASKED_EQ' }) as const

/** Our init makes the rules of a restricted network, and then closes this call again with another filter (native/tools/container-network.c). */
function withNetfilter({ mode }: Plan['network'], rules: DockerSeccomp, profile: string): DockerSeccomp {
  if (mode !== 'restricted' || profile === 'off') return rules
  const socket: DockerRule = {
    names: ['socket'],
    action: 'SCMP_ACT_ALLOW',
    args: [equals(0, AF_NETLINK), equals(2, NETLINK_NETFILTER)],
  }
  return { ...rules, syscalls: [...rules.syscalls, socket] }
}

function isNamed(profile: string): profile is ProfileName {
  return (PROFILE_NAMES as readonly string[]).includes(profile)
}
