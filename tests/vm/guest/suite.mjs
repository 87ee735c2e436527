import { readFileSync } from 'node:fs'

console.log(
  JSON.stringify({
    title: 'boot',
    ok: true,
    detail: [
      process.argv[2],
      process.version,
      process.getuid(),
      readFileSync('/sys/fs/cgroup/cgroup.controllers', 'utf8'),
      readFileSync('/proc/self/cgroup', 'utf8'),
    ],
  }),
)
