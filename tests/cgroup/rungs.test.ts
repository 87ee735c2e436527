import { expect, test } from 'vitest'
import { rungsFor } from '../../src/cgroup/rungs.ts'

test.each([
  [['memory', 'pids', 'cpu'], { memory: 'cgroup2', pids: 'cgroup2', cpus: 'cgroup2', io: 'none' }],
  [['memory', 'pids'], { memory: 'cgroup2', pids: 'cgroup2', cpus: 'affinity', io: 'none' }],
  [['hugetlb', 'cpuset', 'io'], { memory: 'watchdog', pids: 'rlimit', cpus: 'affinity', io: 'cgroup2' }],
  [[], { memory: 'watchdog', pids: 'rlimit', cpus: 'affinity', io: 'none' }],
])('with the controllers %o the limits are held by %o', (controllers, rungs) => {
  expect(rungsFor({ controllers })).toEqual(rungs)
})
