/** The same rules in the words of Docker's and podman's `--security-opt seccomp=FILE`. What they cannot say: docs/internals/seccomp.md. */
import {
  type Arch,
  allowedCubes,
  type Clause,
  type Cube,
  clausesFor,
  ERRNO,
  type ProfileName,
  type SeccompRules,
  type SetName,
  SYSCALLS,
  shippedRules,
} from '../run-kit.ts'

export interface DockerArgument {
  readonly index: number
  /** The mask. */
  readonly value: number
  /** Value of the argument under the mask. */
  readonly valueTwo: number
  readonly op: 'SCMP_CMP_MASKED_EQ'
}
export interface DockerRule {
  readonly names: readonly string[]
  readonly action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO'
  readonly errnoRet?: number
  readonly args?: readonly DockerArgument[]
}
export interface DockerSeccomp {
  readonly defaultAction: 'SCMP_ACT_ERRNO'
  readonly defaultErrnoRet: number
  readonly architectures: readonly string[]
  readonly syscalls: readonly DockerRule[]
}

const ARCHITECTURE: Readonly<Record<Arch, string>> = { x64: 'SCMP_ARCH_X86_64', arm64: 'SCMP_ARCH_AARCH64' }

/** Largest exact integer of a JSON number. Only unshare looks above bit 31, and no kernel knows a flag above bit 52. */
const EXACT = BigInt(Number.MAX_SAFE_INTEGER)

const argumentsOf = (cube: Cube): readonly DockerArgument[] =>
  [...cube].map(([index, { mask, value }]) => ({
    index,
    value: Number(mask & EXACT),
    valueTwo: Number(value & EXACT),
    op: 'SCMP_CMP_MASKED_EQ',
  }))

function rulesForCall(name: string, clauses: readonly Clause[]): readonly DockerRule[] {
  const cubes = allowedCubes(clauses)
  const [first] = clauses
  if (first === undefined) return [{ names: [name], action: 'SCMP_ACT_ALLOW' }]
  if (cubes.length === 0) return [{ names: [name], action: 'SCMP_ACT_ERRNO', errnoRet: ERRNO[first.errno] }]
  return cubes.map((cube) => ({ names: [name], action: 'SCMP_ACT_ALLOW', args: argumentsOf(cube) }))
}

/** One rule for all calls that are answered alike. */
function joinNames(rules: readonly DockerRule[]): readonly DockerRule[] {
  const groups = new Map<string, DockerRule>()
  for (const { names, ...rest } of rules) {
    const key = JSON.stringify(rest)
    groups.set(key, { names: [...(groups.get(key)?.names ?? []), ...names], ...rest })
  }
  return [...groups.values()]
}

/**
 * Docker's profile for the same rules: a list of what is allowed. The engine answers ENOSYS for numbers above its list and
 * ends calls of other machines; what is left over answers EPERM.
 * @param always sets that are kept whatever the profile says
 */
export function dockerSeccomp(
  profile: ProfileName | 'off' | SeccompRules,
  arch: Arch,
  always: readonly SetName[] = [],
): DockerSeccomp {
  const clauses = clausesFor(typeof profile === 'string' ? shippedRules(profile) : profile, arch, always)
  const rules = [...SYSCALLS[arch]].flatMap(([name, number]) => rulesForCall(name, clauses.get(number) ?? []))
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: ERRNO.EPERM,
    architectures: [ARCHITECTURE[arch]],
    syscalls: joinNames(rules),
  }
}
