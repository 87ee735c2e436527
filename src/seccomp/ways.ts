/** By which calls a command could leave the mounts that hold its zones, if only its filter counted. Pure. */
import { clausesFor, type SeccompRules, type SetName, type Test } from './rules.ts'
import { type Arch, SYSCALLS } from './syscalls.ts'

/**
 * `mount`: it can make a user namespace and change mounts in it, until the zone's mounts belong to no namespace. Landlock forbids it.
 * `tree`: it can make a mount namespace out of a single tree (open_tree, fsmount) and enter it; Landlock has no word about that.
 */
export type MountWay = 'mount' | 'tree'

const CLONE_NEWUSER = 0x1000_0000n
const SIGCHLD = 17n

interface Attempt {
  readonly call: string
  readonly args?: readonly bigint[]
}

const MAKES_NAMESPACE: readonly Attempt[] = [
  { call: 'unshare', args: [CLONE_NEWUSER] },
  { call: 'clone', args: [CLONE_NEWUSER | SIGCHLD] },
  { call: 'clone3' },
]
const CHANGES_MOUNTS: readonly Attempt[] = ['mount', 'umount2', 'pivot_root', 'move_mount'].map((call) => ({ call }))
const MAKES_TREE: readonly Attempt[] = ['open_tree', 'open_tree_attr', 'fsmount'].map((call) => ({ call }))

function holds(test: Test, args: readonly bigint[]): boolean {
  const argument = args[test.argument] ?? 0n
  const word = Number(BigInt.asUintN(32, test.half === 'high' ? argument >> 32n : argument))
  if ('anyBit' in test) return (word & test.anyBit) !== 0
  const masked = (word & (test.mask ?? 0xffff_ffff)) >>> 0
  return 'among' in test ? test.among.includes(masked) : !test.notAmong.includes(masked)
}

/** @param always sets that are kept whatever the rules say */
export function mountWays(rules: SeccompRules, arch: Arch, always: readonly SetName[] = []): readonly MountWay[] {
  const clauses = clausesFor(rules, arch, always)
  const lets = ({ call, args = [] }: Attempt): boolean => {
    const found = clauses.get(SYSCALLS[arch].get(call) ?? -1)
    return found !== undefined && !found.some(({ when = [] }) => when.every((test) => holds(test, args)))
  }
  if (!MAKES_NAMESPACE.some(lets)) return []
  return [
    ...(CHANGES_MOUNTS.some(lets) ? (['mount'] as const) : []),
    ...(MAKES_TREE.some(lets) && lets({ call: 'setns' }) ? (['tree'] as const) : []),
  ]
}
