/** By which calls a command could leave the mounts that hold its zones, if only its filter counted. Pure. */
import { ACTION, decode } from './bpf.ts'
import { nativeCall, simulate } from './simulate.ts'
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

/** @param filter hexadecimal; empty for no filter */
export function mountWays(filter: string, arch: Arch): readonly MountWay[] {
  const program = decode(Buffer.from(filter, 'hex'))
  const lets = ({ call, args = [] }: Attempt) => {
    const number = SYSCALLS[arch].get(call)
    if (number === undefined) return false
    return filter === '' || simulate(program, nativeCall(arch, number, args)).action === ACTION.allow
  }
  if (!MAKES_NAMESPACE.some(lets)) return []
  return [
    ...(CHANGES_MOUNTS.some(lets) ? (['mount'] as const) : []),
    ...(MAKES_TREE.some(lets) && lets({ call: 'setns' }) ? (['tree'] as const) : []),
  ]
}
