/** The shipped profiles and files of rules that are hard to compile: what the tests of the compiler go through. */
import { PROFILE_NAMES, type SeccompRules, shippedRules } from '../../src/seccomp/rules.ts'
import { ARCHES, SYSCALLS } from '../../src/seccomp/syscalls.ts'

/** Every call denied, each neighbour with another error: as many jumps as a filter can need. */
export const RAGGED: SeccompRules = {
  extends: 'default',
  allow: [],
  deny: [...SYSCALLS.x64.keys()].map((name, index) => ({
    names: [name],
    errno: (['EPERM', 'EINVAL', 'EACCES', 'ENODEV', 'EBUSY'] as const)[index % 5]!,
  })),
}
/** Far apart on purpose: conditions behind more than 255 instructions. */
export const FAR: SeccompRules = {
  ...RAGGED,
  deny: RAGGED.deny.filter(({ names }) => !['openat', 'socket', 'ioctl'].includes(names[0]!)),
}

const RULES: readonly (readonly [string, SeccompRules])[] = [
  ...PROFILE_NAMES.map((name) => [name, shippedRules(name)] as const),
  ['a file that denies every call in its own way', RAGGED],
  ['a file with conditions far from the front', FAR],
  [
    'a file that allows',
    { extends: 'strict', allow: ['socket', 'clone3', 'ptrace'], deny: [{ names: ['read'], errno: 'EACCES' }] },
  ],
]
export const ALL = ARCHES.flatMap((arch) => RULES.map(([title, rules]) => ({ arch, title, rules })))
