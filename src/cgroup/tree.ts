/** Where the cgroup v2 tree is and where a process stands in it, from the kernel's own lists. */

export interface CgroupMount {
  /** Directory it is mounted on. */
  readonly directory: string
  /** The part of the tree that is mounted there: `/` but for bind mounts and containers without a cgroup namespace. */
  readonly root: string
  readonly readOnly: boolean
}

/** The kernel writes blanks, tabs, newlines and backslashes of paths as octal (proc(5), mountinfo). */
const unescapePath = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/**
 * The cgroup v2 mount to use, from the text of /proc/self/mountinfo: `/sys/fs/cgroup`, on hybrid hosts `/sys/fs/cgroup/unified`.
 * The last line of a place wins, because a later mount covers an earlier one.
 */
export function findCgroupMount(mountinfo: string): CgroupMount | undefined {
  const mounts = mountinfo.split('\n').flatMap((line): CgroupMount[] => {
    const [mount, source] = line.split(' - ')
    if (mount === undefined || !source?.startsWith('cgroup2 ')) return []
    const [, , , root = '/', directory = '', options = ''] = mount.split(' ')
    const readOnly = options.split(',').includes('ro')
    return [{ directory: unescapePath(directory), root: unescapePath(root), readOnly }]
  })
  return mounts.findLast(({ directory }) => directory.startsWith('/sys/fs/cgroup')) ?? mounts.at(-1)
}

/** The path of a process in the version 2 tree, from the text of /proc/PID/cgroup. */
export const findOwnPath = (cgroupFile: string): string | undefined => /^0::(\/.*)$/m.exec(cgroupFile)?.[1]

/** Where a path of the tree is visible; undefined when the mount does not show it (a container that sees only its own part). */
export function directoryOf(mount: CgroupMount, path: string): string | undefined {
  if (path.split('/').includes('..')) return undefined
  const root = mount.root === '/' ? '' : mount.root
  if (path !== root && !path.startsWith(`${root}/`)) return undefined
  return `${mount.directory}${path.slice(root.length)}`.replace(/\/$/, '')
}

export interface Unit {
  readonly name: string
  /** Path of the unit's own cgroup, without what the unit made below it. */
  readonly path: string
  readonly manager: 'user' | 'system'
}

/** The systemd unit that a cgroup path belongs to: its deepest service or scope. */
export function unitOf(path: string): Unit | undefined {
  const parts = path.split('/')
  const at = parts.findLastIndex((part) => /\.(service|scope)$/.test(part))
  const name = parts[at]
  if (name === undefined) return undefined
  const below = parts.slice(0, at).some((part) => /^user@\d+\.service$/.test(part))
  return { name, path: parts.slice(0, at + 1).join('/'), manager: below ? 'user' : 'system' }
}
