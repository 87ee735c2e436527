/**
 * `--seccomp nested` lets a command make namespaces of its own, with every capability in them. The kernel locks what such a mount
 * namespace has copied, so none of the sandbox's mounts comes away and none becomes writable there.
 */
import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES, makeTestSite, sh, words } from './chain.ts'

const ATTEMPTS = [
  'mount -t tmpfs own /tmp && umount /tmp && echo a mount of its own comes away',
  'umount /proc/keys && echo a cover comes away',
  'umount -l /proc && echo /proc comes away',
  'umount /zone && echo a zone comes away',
  'umount /dev && echo /dev comes away',
  'umount /sys/fs/cgroup && echo the files over the cgroup file system come away',
  'mount --move /sys/fs/cgroup /tmp && echo the files over the cgroup file system are moved',
  'umount /proc/cgroups && echo the list of controllers comes away',
  'mount -o remount,rw,bind /zone && echo a zone becomes writable',
  'mount -o remount,rw,bind /proc/sys && echo a setting becomes writable',
  'touch /zone/new && echo a zone is written to',
  'test -c /proc/keys || echo a cover is gone',
]

for (const engine of ENGINES) {
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    test('namespaces inside take nothing of the tree away', async () => {
      const site = await makeTestSite()
      const before = await readdir(site.zone)
      const nested = ['unshare', '-Urm', ...sh(`${ATTEMPTS.join('\n')}\ntrue`)]
      const options = ['--seccomp', 'nested']
      const { status, stdout } = await runCli(words(site, { engine, mode: 'ro', options }, nested))
      expect([status, stdout.toString()]).toEqual([0, 'a mount of its own comes away\n'])
      expect(await readdir(site.zone)).toEqual(before)
    })
  })
}
