/** Which rung holds each limit on this host: the kernel's controller where there is one, else the next best thing. */
import type { CgroupFact } from './fact.ts'

export type LimitRung = 'cgroup2' | 'watchdog' | 'rlimit' | 'affinity'

export interface LimitRungs {
  readonly memory: LimitRung
  readonly pids: LimitRung
  readonly cpus: LimitRung
}

/** Without a controller memory is sampled, processes are bounded by RLIMIT_NPROC, processors by affinity. */
export function rungsFor({ controllers }: Pick<CgroupFact, 'controllers'>): LimitRungs {
  return {
    memory: controllers.includes('memory') ? 'cgroup2' : 'watchdog',
    pids: controllers.includes('pids') ? 'cgroup2' : 'rlimit',
    cpus: controllers.includes('cpu') ? 'cgroup2' : 'affinity',
  }
}
