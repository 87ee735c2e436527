/** Files of the host: what is hidden, read-only or protected, and what must not be planted. */
import { existsSync, lstatSync } from 'node:fs'
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

export const FILE_ATTACKS: readonly Attack[] = [...REACH, ...PLANTS, ...PROTECTED]
