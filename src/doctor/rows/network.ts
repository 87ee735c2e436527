/** Rows about network, IPC and system calls. Pure. */
import { LANDLOCK_SCOPES } from '../../contract.ts'
import {
  first,
  linesOf,
  probe,
  type Row,
  shell,
  unless,
  unlessRan,
  unlessResultIs,
  withoutLandlock,
} from '../contract-types.ts'

/** Families and protocols of linux/socket.h and linux/netlink.h, each also with upper bits that the kernel cuts. */
const FORBIDDEN_SOCKETS = [
  '40', // AF_VSOCK leaves the net namespace
  '38,5,0', // AF_ALG
  '33,2,2', // AF_RXRPC
  '17,3,3', // AF_PACKET
  '44,3,0', // AF_XDP
  '21,5,0', // AF_RDS
  '30,5,0', // AF_TIPC
  '16,3,6', // NETLINK_XFRM
  '16,3,12', // NETLINK_NETFILTER
  '16,3,9', // NETLINK_AUDIT
  '16,3,15', // NETLINK_KOBJECT_UEVENT
  '16,3,16', // NETLINK_GENERIC
  '0x100000028',
  '0xffffffff00000011,3,3',
  '0x100000010,3,0x10000000c',
]
const USUAL_SOCKETS = ['1,1,0', '2,1,0', '10,2,0', '16,3,0', '16,3,4']

/** CLONE_NEW* of linux/sched.h, one by one, then with upper bits. NEWTIME has no place in clone's flags. */
const NAMESPACES = [
  '0x20000',
  '0x2000000',
  '0x4000000',
  '0x8000000',
  '0x10000000',
  '0x20000000',
  '0x40000000',
  '0x110000000',
  '0x8000000010000000',
]

const REFUSED_CALLS = [
  ...['init_module', 'finit_module', 'delete_module', 'kexec_load', 'bpf', 'perf_event_open', 'userfaultfd', 'mount'],
  ...[
    'umount2',
    'pivot_root',
    'chroot',
    'setns',
    'swapon',
    'swapoff',
    'reboot',
    'quotactl',
    'open_by_handle_at',
    'kcmp',
  ],
  ...['pidfd_getfd', 'clock_settime', 'settimeofday', 'sethostname', 'setdomainname', 'fanotify_init', 'mbind'],
  ...['set_mempolicy', 'migrate_pages', 'move_pages'],
]
const UNKNOWN_CALLS = [
  ...[
    'clone3',
    'io_uring_setup',
    'io_uring_enter',
    'io_uring_register',
    'open_tree',
    'move_mount',
    'fsopen',
    'fsconfig',
  ],
  ...['fsmount', 'fspick', 'mount_setattr', 'beyond', 'x32'],
]

export const NETWORK_ROWS: readonly Row[] = [
  {
    id: 'network.only-loopback',
    sentence: 'Without network there is only lo, which is up, and no route.',
    attempts: ({ probe: program }) => [
      { command: shell('cat /proc/net/dev; echo ---; cat /proc/net/route') },
      { command: [program, 'connect', '9'] },
    ],
    wrong: (observed) => {
      const [devices = '', routes = ''] = first(observed).stdout.split('---\n')
      const names = [...devices.matchAll(/^\s*(\S+):/gm)].map(([, name]) => name)
      return [
        unlessRan(first(observed)),
        unless(names.length === 1 && names[0] === 'lo', `interfaces ${names.join(' ') || 'unknown'}`),
        unless(routes.trim().split('\n').length <= 1, 'there is a route'),
        ...unlessResultIs(first(observed, 1), ['ECONNREFUSED'], 1),
      ]
    },
  },
  {
    id: 'network.host-loopback',
    sentence: "The host's 127.0.0.1 is unreachable.",
    attempts: ({ probe: program, port }) => [{ command: [program, 'connect', `${port}`] }],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), ['ECONNREFUSED', 'ENETUNREACH'], 1),
      unless(observed.hostState.connections === 0, 'the host was reached'),
    ],
  },
  {
    id: 'network.abstract-sockets',
    sentence: "The host's abstract UNIX sockets are unreachable.",
    attempts: ({ probe: program, abstract }) => [{ command: [program, 'unix', `@${abstract}`] }],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), ['ECONNREFUSED', 'EPERM'], 1),
      unless(observed.hostState.connections === 0, 'the host was reached'),
    ],
  },
  {
    id: 'network.host-abstract-sockets',
    sentence: "With the host's network, its abstract UNIX sockets stay unreachable.",
    attempts: ({ probe: program, abstract }) => [
      { command: [program, 'unix', `@${abstract}`], policy: { network: 'host' } },
    ],
    wrong: (observed, site) =>
      site.landlockAbi < LANDLOCK_SCOPES
        ? { kind: 'cannot', why: withoutLandlock(LANDLOCK_SCOPES, '6.12', site) }
        : [
            ...unlessResultIs(first(observed), ['EPERM'], 1),
            unless(observed.hostState.connections === 0, 'the host was reached'),
          ],
  },
  {
    id: 'network.socket-families',
    sentence: 'Socket families are an allow-list, whatever the upper half of the argument holds; the usual ones work.',
    attempts: ({ probe: program }) => [
      { command: [program, 'socket', ...FORBIDDEN_SOCKETS] },
      { command: [program, 'socket', ...USUAL_SOCKETS] },
    ],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), ['EAFNOSUPPORT', 'EPROTONOSUPPORT', 'EPERM'], FORBIDDEN_SOCKETS.length),
      ...unlessResultIs(first(observed, 1), ['ok'], USUAL_SOCKETS.length),
    ],
  },
  {
    id: 'network.own-namespaces',
    sentence:
      'SysV IPC, message queues, /dev/shm, host name, users, mounts, processes and network are in namespaces of their own.',
    attempts: () => [
      {
        command: shell(
          'for name in cgroup ipc mnt net pid user uts; do echo $name $(readlink /proc/self/ns/$name); done',
        ),
      },
    ],
    wrong: (observed) => [
      unless(linesOf(first(observed)).length === 7, 'not every namespace could be seen'),
      ...linesOf(first(observed))
        .filter(({ what, result }) => observed.hostState.namespaces[what] === result)
        .map(({ what }) => `${what} is shared with the host`),
    ],
  },
  {
    id: 'network.no-keyrings',
    sentence: "The kernel's keyrings, which no namespace parts, are out of reach.",
    attempts: probe('call', 'keyctl', 'add_key', 'request_key'),
    wrong: (observed) => unlessResultIs(first(observed), ['EPERM'], 3),
  },
  {
    id: 'network.no-nested-namespaces',
    sentence: 'No namespace can be made inside, by clone or unshare, with upper bits or without.',
    attempts: probe('namespace', ...NAMESPACES),
    wrong: (observed) => unlessResultIs(first(observed), ['EPERM'], NAMESPACES.length * 2),
  },
]

export const SYSCALL_ROWS: readonly Row[] = [
  {
    id: 'syscalls.refused',
    sentence: 'Modules, kexec, bpf, perf, userfaultfd, mounts, clocks, names, NUMA policy and handles answer EPERM.',
    attempts: probe('call', ...REFUSED_CALLS),
    wrong: (observed) => unlessResultIs(first(observed), ['EPERM'], REFUSED_CALLS.length),
  },
  {
    id: 'syscalls.unknown',
    sentence: 'io_uring, clone3, the new mount calls, numbers above the last known one and x32 answer ENOSYS.',
    attempts: probe('call', ...UNKNOWN_CALLS),
    wrong: (observed) => unlessResultIs(first(observed), ['ENOSYS'], UNKNOWN_CALLS.length - 1),
  },
  {
    id: 'syscalls.foreign',
    sentence: 'A system call of another architecture ends the process.',
    attempts: probe('i386'),
    wrong: (observed) => {
      if (first(observed).stdout.includes('absent'))
        return { kind: 'cannot', why: 'there are no system calls of another architecture here' }
      return [unless(first(observed).reason === 'seccomp' || first(observed).signal === 'SIGSYS', 'it was answered')]
    },
  },
  {
    id: 'syscalls.personality',
    sentence: 'personality may switch off address randomisation, and nothing else.',
    attempts: ({ probe: program }) => [
      { command: [program, 'personality', '0', '0x40000', '0xffffffff'] },
      { command: [program, 'personality', '0x8', '0x20000', '0x400000', '0x100000008'] },
    ],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), ['ok'], 3),
      ...unlessResultIs(first(observed, 1), ['EPERM'], 4),
    ],
  },
]
