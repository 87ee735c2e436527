/** Chooses the rung of each limit on this host: the kernel's controller where there is one, else the next best thing. */
import type { CgroupFact } from './fact.ts'

export type LimitRung = 'cgroup2' | 'watchdog' | 'rlimit' | 'affinity' | 'none'

export interface LimitRungs {
  readonly memory: LimitRung
  readonly pids: LimitRung
  readonly cpus: LimitRung
  readonly io: LimitRung
}

/** Without a controller memory is sampled, processes are bounded by RLIMIT_NPROC, processors by affinity, disks by nothing. */
export function rungsFor({ controllers }: Pick<CgroupFact, 'controllers'>): LimitRungs {
  return {
    memory: controllers.includes('memory') ? 'cgroup2' : 'watchdog',
    pids: controllers.includes('pids') ? 'cgroup2' : 'rlimit',
    cpus: controllers.includes('cpu') ? 'cgroup2' : 'affinity',
    io: controllers.includes('io') ? 'cgroup2' : 'none',
  }
}

/** The controllers that every run wants; rates of disks are asked for by few, and a place is none the worse without them. */
export const WANTED_BY_ALL = ['memory', 'pids', 'cpu'] as const
export type WantedController = (typeof WANTED_BY_ALL)[number]

/** Gives a user's own systemd manager every controller worth having. */
export const DROP_IN =
  'as root: mkdir -p /etc/systemd/system/user@.service.d && printf "[Service]\\nDelegate=cpu cpuset io memory pids\\n" > /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload, then log in again'

/** Why rates of disks cannot be held here, and what would change that: one clause and a command. */
export function ioLack({ parent, lacking, fix }: CgroupFact): { readonly why: string; readonly fix: string } {
  if (parent === undefined) return { why: `only a cgroup can hold it: ${lacking || 'there is none here'}`, fix }
  const enable = `as root, from the top of the tree down to ${parent}: echo +io > cgroup.subtree_control`
  return { why: `${parent} has no io controller`, fix: fix || (parent.includes('/user@') ? DROP_IN : enable) }
}
