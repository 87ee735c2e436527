/** The kernel, PID 1, other processes and the terminal. */
import { type Attack, isNamespace } from './attack.ts'

export const KERNEL_ATTACKS: readonly Attack[] = [
  {
    id: 'kernel.namespaces',
    of: 'nested user namespaces (srt, bwrap --disable-userns)',
    sentence: 'A user namespace made inside takes the covers of /proc off.',
    script: ({ shown }) =>
      `unshare -Urm sh -c "umount /proc/keys; umount -l /proc; umount /dev; test -c /proc/keys || echo UNCOVERED; for at in /proc/sys ${shown}; do mount -o remount,rw,bind \\$at && echo UNCOVERED; done; for at in ${shown} /sys/fs/cgroup /proc/cgroups; do umount \\$at && echo UNCOVERED; done"; true`,
    on: isNamespace,
    harmed: ({ printed }) => (printed.includes('UNCOVERED') ? 'a cover came away' : undefined),
    // A cover made in the same user namespace is not locked.
    control: async (stage) => {
      await stage.command([
        '--',
        'unshare',
        '-Urm',
        'sh',
        '-c',
        'echo attack begun; mount --bind /dev/null /proc/keys; umount /proc/keys; test -c /proc/keys || echo UNCOVERED',
      ])
    },
  },
  {
    id: 'init.executable',
    of: 'CVE-2019-5736 (runc)',
    sentence: 'The program of PID 1 is written to.',
    script: () =>
      'for at in /proc/1/exe /.init /init /sbin/docker-init /dev/init; do ( : >>$at ) 2>/dev/null && echo "WRITABLE $at"; done; find / -xdev -name "*init*" -perm -u+w -type f -writable 2>/dev/null | grep -q "^/\\.init" && echo WRITABLE; true',
    on: isNamespace,
    harmed: ({ printed }) => (printed.includes('WRITABLE') ? 'a program of ours can be written' : undefined),
    control: async (stage) => {
      await stage.command(['--', 'sh', '-c', `echo attack begun; ( : >>${stage.world.tools}/linger ) && echo WRITABLE`])
    },
    // The programs of this checkout are root's.
    controlAs: 'root',
  },
  {
    id: 'processes.host',
    of: 'processes of the host',
    sentence: 'A process of the host is seen or sent a signal.',
    script: () =>
      `kill -0 ${process.pid} && echo REACHED; test -d /proc/${process.pid} && grep -q node /proc/${process.pid}/comm && echo REACHED; true`,
    harmed: ({ printed }) => (printed.includes('REACHED') ? 'a process of the host was reached' : undefined),
    control: 'bare',
    controlAs: 'root',
  },
  {
    id: 'processes.descriptors',
    of: 'CVE-2024-21626 (runc)',
    sentence: 'A descriptor that the caller left open, or the working directory, leads out.',
    script: () =>
      'for fd in 3 4 5 6 9 10 63 255; do test -e /proc/self/fd/$fd && readlink /proc/self/fd/$fd | grep -v "^/proc/[0-9]*/fd$" && echo "LEAKED $fd"; done; ls /proc/self/cwd/../../../../root 2>/dev/null | grep -q . && echo LEAKED; true',
    harmed: ({ printed }) => (printed.includes('LEAKED') ? 'a descriptor of the caller arrived' : undefined),
    control: async (stage) => {
      await stage.command(['--', 'sh', '-c', 'echo attack begun; exec 9</; test -e /proc/self/fd/9 && echo LEAKED'])
    },
  },
]
