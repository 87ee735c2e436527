/** Files of the host: what is hidden, read-only or protected, and what must not be planted. */
import { closeSync, existsSync, linkSync, lstatSync, openSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Attack, type Harm, isNamespace, type Observed } from './attack.ts'
import { put, textOf } from './world.ts'

const printed =
  (word: string) =>
  ({ printed: text }: Observed): Harm =>
    text.includes(word) ? `it said ${word}` : undefined
/** The path is in the zone, whatever it is. */
const made =
  (name: string) =>
  ({ world }: Observed): Harm => {
    const path = join(world.zone, name)
    return existsSync(path) || isLink(path) ? `${name} was made` : undefined
  }
const isLink = (path: string): boolean => {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    return false // It is not there.
  }
}

const REACH: readonly Attack[] = [
  {
    id: 'files.hidden',
    of: 'files of the host',
    sentence: 'What no zone shows is read, by its own path and by paths round about.',
    script: ({ hidden, base }) =>
      `for at in ${hidden} /..${hidden} /proc/1/root${hidden} /proc/self/root/..${hidden} /proc/self/cwd/../hidden ${base}/shown/../hidden; do cat $at/secret; done`,
    harmed: ({ world, printed: text }) => (text.includes(world.token) ? 'the secret was read' : undefined),
    control: 'bare',
  },
  {
    id: 'files.old-root',
    of: 'old root kept',
    sentence: 'What lies above the root is something else than the root.',
    script: () =>
      'test "$(ls -a /)" = "$(ls -a /..)" || echo DIFFERS; for at in /../etc/shadow /../sys/kernel /../root; do test -e $at && echo SEEN; done',
    // The content of a container's image is the daemon's choice.
    on: isNamespace,
    harmed: ({ printed: text }) => (/DIFFERS|SEEN/.test(text) ? 'the root of the host can be seen' : undefined),
    control: 'bare',
  },
  {
    id: 'files.read-only-zone',
    of: 'files of the host',
    sentence: 'A read-only zone is written to, remounted or uncovered.',
    script: ({ shown }) =>
      `echo evil >${shown}/notes; rm -f ${shown}/notes; mv ${shown}/notes ${shown}/x; ln ${shown}/notes ${shown}/y; mount -o remount,rw,bind ${shown}; umount ${shown}; echo evil >>${shown}/notes; touch ${shown}/new`,
    harmed: ({ world }) =>
      textOf(join(world.shown, 'notes')) === 'host\n' && !existsSync(join(world.shown, 'new'))
        ? undefined
        : 'the read-only zone changed',
    control: 'bare',
  },
  {
    id: 'files.kernel-knobs',
    of: 'CVE-2025-31133, CVE-2025-52565, CVE-2019-16884 (runc)',
    sentence: 'Settings of the kernel below /proc and /sys are opened for writing.',
    script: () =>
      'for at in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger /proc/sys/vm/overcommit_memory /sys/kernel/uevent_helper; do ( : >>$at ) 2>/dev/null && echo "WRITABLE $at"; done; umount -l /proc/sys && ( : >>/proc/sys/kernel/core_pattern ) && echo WRITABLE',
    harmed: printed('WRITABLE'),
    control: 'bare',
    controlAs: 'root',
  },
  {
    id: 'files.kernel-memory',
    of: 'CVE-2025-31133 (runc)',
    sentence: 'Files below /proc that tell about the whole machine are read.',
    script: () =>
      'for name in kcore kallsyms keys key-users kmsg timer_list slabinfo vmallocinfo interrupts cmdline zoneinfo buddyinfo diskstats softirqs; do head -c 16 /proc/$name 2>/dev/null | grep -q . && echo "READ $name"; done',
    // A container of docker's shows some of them: the daemon's own masks hold there.
    on: isNamespace,
    harmed: printed('READ'),
    control: 'bare',
  },
  {
    id: 'files.cgroups',
    of: 'CVE-2022-0492 (release_agent)',
    sentence: 'A cgroup file system is found or mounted, and its release agent set.',
    script: () =>
      'while read -r _ at type _; do case $type in cgroup*) ls $at/cgroup.procs $at/*/cgroup.procs | grep -q . && echo FOUND;; esac; done </proc/self/mounts; mkdir /tmp/cg; mount -t cgroup -o rdma cgroup /tmp/cg && echo MOUNTED; mount -t cgroup2 cgroup /tmp/cg && : >>/tmp/cg/cgroup.procs && echo MOUNTED; umount /tmp/cg',
    on: isNamespace,
    harmed: ({ printed: text }) => (/FOUND|MOUNTED/.test(text) ? 'a cgroup file system can be used' : undefined),
    control: 'bare',
    controlAs: 'root',
  },
  {
    id: 'files.devices',
    of: 'files of the host',
    sentence: 'A device node is made and opened.',
    script: ({ zone }) =>
      `mknod ${zone}/memory c 1 1; mknod /tmp/memory c 1 1; for at in ${zone} /tmp; do head -c 1 $at/memory >/dev/null && echo OPENED; done`,
    harmed: (seen) => made('memory')(seen) ?? printed('OPENED')(seen),
    control: 'bare',
    controlAs: 'root',
  },
  {
    id: 'files.other-devices',
    of: 'files of the host',
    sentence: 'A run that is shown a device opens another one of the host, by its path or by a node.',
    on: isNamespace,
    attempt: async ({ world: { zone }, inside }) => {
      const nodes = `/dev/kmsg /dev/loop0 /dev/vda ${zone}/log`
      await inside(
        `mknod ${zone}/log c 1 11; for node in ${nodes}; do dd if=$node bs=8192 count=1 >${zone}/read 2>/dev/null && echo OPENED; done; true`,
        { options: ['--device', '/dev/full'] },
      )
    },
    harmed: printed('OPENED'),
    control: 'bare',
    controlAs: 'root',
  },
  {
    id: 'files.fifo',
    of: 'files of the host',
    sentence: 'A FIFO or a socket is made in a zone, where a program of the host would talk to it.',
    script: ({ zone }) => `mkfifo ${zone}/fifo`,
    // Landlock, which says no, would also forbid the mounts that nested gives back; a container has none.
    on: (cell) => isNamespace(cell) && cell.filter !== 'nested',
    harmed: made('fifo'),
    control: 'bare',
  },
]

const PLANTS: readonly Attack[] = [
  {
    id: 'files.leased',
    of: 'third review, finding 11',
    sentence: 'A lease on a file of a read-only zone makes each program of the host that writes the file wait.',
    on: (cell) => isNamespace(cell) && cell.filter !== 'off' && cell.filter !== 'file',
    script: ({ shown }) =>
      `python3 -c 'import fcntl, os; fcntl.fcntl(os.open("${shown}/notes", 0), fcntl.F_SETLEASE, fcntl.F_RDLCK)' 2>/dev/null && echo LEASED`,
    harmed: printed('LEASED'),
    control: 'bare',
  },
  {
    id: 'streams.reopened',
    of: 'third review, finding 6',
    sentence: 'A file that is standard input, opened for reading, is opened again by /proc/self/fd and written.',
    on: isNamespace,
    prepare: async (world) => put(world, join(world.base, 'input'), 'host\n'),
    attempt: async (stage) => {
      const stdinFd = openSync(join(stage.world.base, 'input'), 'r')
      try {
        await stage.inside('cat /proc/self/fd/0; echo evil > /proc/self/fd/0', { stdinFd })
      } finally {
        closeSync(stdinFd)
      }
    },
    harmed: ({ world }) => (textOf(join(world.base, 'input')) === 'host\n' ? undefined : 'the input was written'),
    control: 'bare',
  },
]

/** Names that programs of the host obey or run by themselves; each made in another way. */
const PROTECTED: readonly Attack[] = [
  {
    id: 'protected.changed',
    of: 'files of the host',
    sentence: 'A protected directory that is there is written to, removed, renamed or exchanged.',
    prepare: async (world) => put(world, join(world.zone, '.vscode/tasks.json'), 'host\n'),
    attempt: async (stage) => {
      await stage.inside(
        `cd ${stage.world.zone}; echo evil >.vscode/tasks.json; echo evil >.vscode/new; rm -rf .vscode; mv .vscode x; mkdir y; mv -T y .vscode; ln -sfn y .vscode; true`,
      )
    },
    harmed: ({ world }) =>
      textOf(join(world.zone, '.vscode/tasks.json')) === 'host\n' && !existsSync(join(world.zone, '.vscode/new'))
        ? undefined
        : 'a protected directory changed',
    control: 'bare',
  },
  {
    id: 'protected.parent-renamed',
    of: 'finding 4',
    sentence: 'The directory above a protected path is renamed, and another one put in its place.',
    prepare: async (world) => {
      put(world, join(world.zone, 'deep/way/rules'), 'host\n')
    },
    attempt: async (stage) => {
      await stage.inside(
        `cd ${stage.world.zone}; mv deep/way deep/w; mv deep d; mkdir -p deep/way; echo evil >deep/way/rules; true`,
        // By a flag: where the zone is another user's, so is a profile next to it, which root does not obey.
        { options: ['--protect', 'deep/way/rules'] },
      )
    },
    harmed: ({ world }) =>
      textOf(join(world.zone, 'deep/way/rules')) === 'host\n' ? undefined : 'another file stands in its place',
    control: 'bare',
  },
  {
    id: 'protected.detached',
    of: 'finding 3',
    sentence: 'A mount namespace made inside lets go of the tree, and a kept descriptor renames what was covered.',
    attempt: async (stage) => {
      const { zone, tools } = stage.world
      await stage.inside(`${tools}/detach ${zone} .git .gitx; ${tools}/detach ${zone}/.git config configx`)
    },
    harmed: ({ world }) => (existsSync(join(world.zone, '.git/config')) ? undefined : 'a protected path was renamed'),
    // A cover as any runner makes one, and then the way round it.
    control: async (stage) => {
      const { zone, tools } = stage.world
      await stage.host([
        'unshare',
        '-Urm',
        'sh',
        '-c',
        `mount --bind ${zone}/.git/config ${zone}/.git/config; ${tools}/detach ${zone} .git .gitx`,
      ])
    },
  },
]

/** Files in a zone that the policy hides. */
const HIDDEN: readonly Attack[] = [
  {
    id: 'hidden.read',
    of: 'files of the host',
    sentence: 'A hidden file is read by its path, another name, a link, a renamed directory, or a second zone.',
    on: (cell) => isNamespace(cell) && (cell.filter === 'default' || cell.filter === 'strict'),
    prepare: async (world) => {
      for (const name of ['.env', 'way/.ENV.local', 'way/keys/deep', 'way/server.pem'])
        put(world, join(world.zone, name), world.token)
      linkSync(join(world.zone, '.env'), join(world.zone, 'other'))
      symlinkSync('../.env', join(world.zone, 'way/link'))
    },
    attempt: async ({ world, inside }) => {
      const { zone } = world
      const reads = 'cat .env other way*/.ENV.local way*/keys/deep way*/server.pem way*/link; grep -rs . . /second'
      await inside(
        `cd ${zone}; ${reads}; exec 3<.env; cat /proc/self/fd/3 /proc/1/root${zone}/.env way/../.env; mv .env x; ln .env y; rm -f .env; mv -T way way2; umount .env; unshare -Urm umount .env; ${reads}; cp -r . /tmp/copy; grep -rs . /tmp/copy; true`,
        {
          options: ['--rw', `${zone}/way:/second`, ...['.env*', '*.pem', 'keys/'].flatMap((name) => ['--hide', name])],
        },
      )
    },
    harmed: ({ world, printed: text }) => (text.includes(world.token) ? 'the secret was read' : undefined),
    control: 'bare',
  },
]

export const FILE_ATTACKS: readonly Attack[] = [...REACH, ...PLANTS, ...PROTECTED, ...HIDDEN]
