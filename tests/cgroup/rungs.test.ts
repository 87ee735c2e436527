import { expect, test } from 'vitest'
import { rungsFor } from '../../src/cgroup/rungs.ts'

test.each([
  [['memory', 'pids', 'cpu'], { memory: 'cgroup2', pids: 'cgroup2', cpus: 'cgroup2' }],
  [['memory', 'pids'], { memory: 'cgroup2', pids: 'cgroup2', cpus: 'affinity' }],
  [['hugetlb', 'cpuset', 'io'], { memory: 'watchdog', pids: 'rlimit', cpus: 'affinity' }],
  [[], { memory: 'watchdog', pids: 'rlimit', cpus: 'affinity' }],
])('with the controllers %o the limits are held by %o', (controllers, rungs) => {
  expect(rungsFor({ controllers })).toEqual(rungs)
})
