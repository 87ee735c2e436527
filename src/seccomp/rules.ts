/**
 * The refusals of each profile and their reasons: data. compile.ts turns it into a filter, backends/docker/seccomp-profile.ts into Docker's
 * words, manual.ts into the manual; tests/seccomp/declared.ts reads it naively and everything is compared with that.
 *
 * A profile is a list of sets. A known system call is allowed unless a refusal of one of the sets fits, the first that fits
 * answers; an unknown number answers ENOSYS (x32 too: its numbers carry bit 30); another machine's calls end the process.
 * A filter sees registers, never the memory that a pointer names. So a call whose flags or mode lie in memory (clone3, openat2) is
 * either harmless for every flag or answers ENOSYS, on which C libraries use the older call.
 */
import type { ErrnoName } from './errno.ts'
import { type Arch, COMPAT, SYSCALLS } from './syscalls.ts'

/** Number of the register, 0 to 5 in the order of the system call's arguments. */
export type Argument = 0 | 1 | 2 | 3 | 4 | 5

/**
 * A question about one 32-bit half of an argument. The kernel reads `int`, `unsigned int` and `umode_t` from the low half
 * only: comparing 64 bits would let a caller hide behind a bit that the kernel then drops. `high` is for real 64-bit words.
 */
export type Test = { readonly argument: Argument; readonly half?: 'low' | 'high' } & (
  | { readonly anyBit: number }
  | { readonly among: readonly number[]; readonly mask?: number }
  | { readonly notAmong: readonly number[]; readonly mask?: number }
)

/** Refuses the named calls when every test holds; without tests, always. */
export interface Refusal {
  readonly names: readonly string[]
  readonly errno: ErrnoName
  readonly when?: readonly Test[]
}

export interface RuleSet {
  /** One line for the manual. */
  readonly why: string
  readonly refusals: readonly Refusal[]
}

const always = (errno: ErrnoName, names: string): Refusal => ({ names: names.split(' '), errno })
const inCase = (errno: ErrnoName, names: string, ...when: readonly Test[]): Refusal => ({
  ...always(errno, names),
  when,
})

/** include/uapi/linux/sched.h: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const CLONE_NEW_FLAGS = 0x7e02_0000
/** Flags of unshare other than namespaces: VM, FS, FILES, SIGHAND, THREAD, SYSVSEM. Anything else, also of the future, is refused. */
const UNSHARE_HARMLESS = 0x0005_0f00
/** Commands of fcntl(2), F_LINUX_SPECIFIC_BASE and up. */
const [F_SETLEASE, F_NOTIFY] = [1024, 1026]
/** S_ISUID | S_ISGID of include/uapi/linux/stat.h. */
const SETUID_BITS = 0o6000
/** O_CREAT and __O_TMPFILE, the flags with which open reads its mode; the same number on x86_64 and aarch64. */
const CREATING_FLAGS = 0x0040_0040

const AF = { UNIX: 1, INET: 2, INET6: 10, NETLINK: 16 } as const
const NETLINK = { ROUTE: 0, SOCK_DIAG: 4 } as const
/** SOCK_TYPE_MASK of include/linux/net.h: the rest of the argument is SOCK_CLOEXEC and SOCK_NONBLOCK. */
const SOCK_TYPE_MASK = 0xf
const SOCK = { STREAM: 1, DGRAM: 2, SEQPACKET: 5, PACKET: 10 } as const
const IPPROTO = { DEFAULT: 0, ICMP: 1, TCP: 6, UDP: 17, ICMPV6: 58 } as const

const setuidBits = (names: string, argument: Argument, ...more: readonly Test[]): Refusal =>
  inCase('EPERM', names, ...more, { argument, anyBit: SETUID_BITS })

/** `which` of setpriority(2) and ioprio_set(2) for a single process. */
const PRIO_PROCESS = 0
const IOPRIO_WHO_PROCESS = 1
/** PID 1 of the sandbox. The kernel reads a pid_t from the low half of the register. */
const INIT_PID = 1

const onInit = (names: string, argument: Argument): Refusal => inCase('EPERM', names, { argument, among: [INIT_PID] })

const onOthers = (names: string, argument: Argument): Refusal => inCase('EPERM', names, { argument, notAmong: [0] })

/** On all processes of a group or a user. */
const ON_MANY: readonly Refusal[] = [
  inCase('EPERM', 'setpriority', { argument: 0, notAmong: [PRIO_PROCESS] }),
  inCase('EPERM', 'ioprio_set', { argument: 0, notAmong: [IOPRIO_WHO_PROCESS] }),
]

export const SETS = {
  'module-loading': {
    why: 'Code in the kernel.',
    refusals: [always('EPERM', 'create_module init_module finit_module delete_module get_kernel_syms query_module')],
  },
  kexec: { why: 'Replaces the running kernel.', refusals: [always('EPERM', 'kexec_load kexec_file_load')] },
  bpf: { why: 'Programs in the kernel; a rich source of holes.', refusals: [always('EPERM', 'bpf')] },
  'performance-events': {
    why: 'Sees what other programs do and has had many holes.',
    refusals: [always('EPERM', 'perf_event_open')],
  },
  userfaultfd: {
    why: 'Stops the kernel in the middle of a copy, which makes races reliable; the sysctl leaves its user mode open.',
    refusals: [always('EPERM', 'userfaultfd')],
  },
  mount: {
    why: 'Changes what files are where.',
    refusals: [always('EPERM', 'mount umount2 pivot_root chroot')],
  },
  'new-mount-api': {
    why: 'Mounts by descriptor; programs fall back to mount.',
    refusals: [always('ENOSYS', 'open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr')],
  },
  'mount-listing': {
    why: 'Shows host paths and namespaces that /proc may hide; programs fall back to /proc.',
    refusals: [always('ENOSYS', 'statmount listmount listns')],
  },
  namespaces: {
    why: 'Inside a new user namespace a program has every capability, and with it most of the kernel to attack.',
    refusals: [
      // The old clone reads only the low half of its flags (lower_32_bits in kernel/fork.c).
      inCase('EPERM', 'clone', { argument: 0, anyBit: CLONE_NEW_FLAGS }),
      inCase('EPERM', 'unshare', { argument: 0, anyBit: ~UNSHARE_HARMLESS >>> 0 }),
      inCase('EPERM', 'unshare', { argument: 0, half: 'high', anyBit: 0xffff_ffff }),
      always('EPERM', 'setns'),
    ],
  },
  clone3: {
    why: 'Its flags lie in memory where no filter sees them; C libraries fall back to clone.',
    refusals: [always('ENOSYS', 'clone3')],
  },
  'io-uring': {
    why: 'Does socket, open and more without system calls, so around this filter.',
    refusals: [always('ENOSYS', 'io_uring_setup io_uring_enter io_uring_register')],
  },
  keyring: {
    why: 'Keys belong to the user, not to the sandbox.',
    refusals: [always('EPERM', 'add_key request_key keyctl')],
  },
  'host-control': {
    why: 'Swap, reboot, accounting, quotas, ports and terminals of the machine.',
    refusals: [always('EPERM', 'swapon swapoff reboot acct quotactl quotactl_fd iopl ioperm vhangup')],
  },
  clock: {
    why: 'The clock belongs to the machine.',
    refusals: [always('EPERM', 'settimeofday clock_settime adjtimex clock_adjtime')],
  },
  'host-name': {
    why: 'The name that the sandbox was given stays.',
    refusals: [always('EPERM', 'sethostname setdomainname')],
  },
  'kernel-log': { why: 'Shows addresses and devices of the host.', refusals: [always('EPERM', 'syslog')] },
  'file-handles': {
    why: 'Opens a file by number, past every mount and directory.',
    refusals: [always('EPERM', 'open_by_handle_at')],
  },
  'other-processes': {
    why: 'Takes descriptors and compares kernel addresses of another process.',
    refusals: [always('EPERM', 'kcmp pidfd_getfd')],
  },
  fanotify: {
    why: 'Watches and delays the file accesses of others.',
    refusals: [always('EPERM', 'fanotify_init fanotify_mark')],
  },
  numa: {
    why: 'Moves memory between nodes of the machine; libnuma takes the refusal for "no NUMA here".',
    refusals: [always('EPERM', 'mbind set_mempolicy get_mempolicy migrate_pages move_pages set_mempolicy_home_node')],
  },
  obsolete: {
    why: 'Removed from newer kernels; what is left in old ones is only good for attacks.',
    refusals: [always('ENOSYS', 'uselib _sysctl nfsservctl lookup_dcookie')],
  },
  personality: {
    why: 'Old personalities switch off protections. Allowed: 0, ADDR_NO_RANDOMIZE (debuggers, ASan), 0xffffffff (query).',
    refusals: [inCase('EPERM', 'personality', { argument: 0, notAmong: [0, 0x0004_0000, 0xffff_ffff] })],
  },
  'socket-families': {
    why: 'AF_VSOCK leaves a network namespace, others have had kernel holes. Allowed: UNIX, INET, INET6, and NETLINK with route and sock_diag.',
    refusals: [
      inCase('EAFNOSUPPORT', 'socket', { argument: 0, notAmong: [AF.UNIX, AF.INET, AF.INET6, AF.NETLINK] }),
      inCase(
        'EPROTONOSUPPORT',
        'socket',
        { argument: 0, among: [AF.NETLINK] },
        { argument: 2, notAmong: [NETLINK.ROUTE, NETLINK.SOCK_DIAG] },
      ),
      // __sock_create turns (AF_INET, SOCK_PACKET) into AF_PACKET: a family off the list by another name.
      inCase(
        'EAFNOSUPPORT',
        'socket',
        { argument: 0, among: [AF.INET] },
        { argument: 1, mask: SOCK_TYPE_MASK, among: [SOCK.PACKET] },
      ),
      inCase('EAFNOSUPPORT', 'socketpair', { argument: 0, notAmong: [AF.UNIX] }),
    ],
  },
  'terminal-injection': {
    why: 'TIOCSTI and TIOCLINUX type into the terminal of the caller, TIOCSETD changes its line discipline.',
    refusals: [inCase('EPERM', 'ioctl', { argument: 1, among: [0x5412, 0x541c, 0x5423] })],
  },
  'setuid-bits': {
    why: 'A setuid or setgid file in a zone would work on the host. openat2 keeps its mode in memory; programs fall back to openat.',
    refusals: [
      setuidBits('chmod fchmod creat mknod', 1),
      setuidBits('fchmodat fchmodat2 mknodat', 2),
      setuidBits('open', 2, { argument: 1, anyBit: CREATING_FLAGS }),
      setuidBits('openat', 3, { argument: 2, anyBit: CREATING_FLAGS }),
      always('ENOSYS', 'openat2'),
    ],
  },
  'extended-attributes': {
    why: 'For root only. In a new user namespace the command could write security.capability, which the host honours in a directory of root; the name lies in memory. EOPNOTSUPP is what a file system without attributes answers.',
    refusals: [always('EOPNOTSUPP', 'setxattr lsetxattr fsetxattr setxattrat')],
  },
  'first-process': {
    why: 'PID 1 of the sandbox has the id of the command: these calls would starve it, or end it by RLIMIT_CPU. A user as a whole contains it, too; groups are refused with it, because the words of Docker would need a thousand rules to tell them apart, more than the kernel takes.',
    refusals: [
      onInit('prlimit64 sched_setscheduler sched_setparam sched_setattr sched_setaffinity', 0),
      onInit('setpriority ioprio_set', 1),
      ...ON_MANY,
    ],
  },
  'processes-of-others': {
    why: 'Without a pid namespace: Landlock keeps signals in and memory apart, and these calls ask for no more than the same user. A thread sets its own.',
    refusals: [
      always('EPERM', 'ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp'),
      always('EPERM', 'migrate_pages move_pages perf_event_open'),
      onOthers('prlimit64 sched_setscheduler sched_setparam sched_setattr sched_setaffinity', 0),
      onOthers('setpriority ioprio_set', 1),
      ...ON_MANY,
    ],
  },
  'shared-ipc': {
    why: 'Without an IPC namespace: segments, semaphores and queues are those of the host.',
    refusals: [
      always('EPERM', 'shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl'),
      always('EPERM', 'mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr'),
    ],
  },
  'unix-sockets': {
    why: 'Landlock closes those in files from Linux 7.1 on only. Pairs remain, but for datagrams, which can be sent to any address.',
    refusals: [
      inCase('EAFNOSUPPORT', 'socket', { argument: 0, notAmong: [AF.INET, AF.INET6, AF.NETLINK] }),
      inCase('EPROTONOSUPPORT', 'socketpair', {
        argument: 1,
        mask: SOCK_TYPE_MASK,
        notAmong: [SOCK.STREAM, SOCK.SEQPACKET],
      }),
    ],
  },
  'every-socket': {
    why: 'Without a network namespace, and with no network: all but pairs, which lead nowhere else.',
    refusals: [always('EAFNOSUPPORT', 'socket'), always('EPERM', 'bind connect')],
  },
  'packet-filter-options': {
    why: 'The owner of a network namespace could set the tables of iptables, ip6tables, arptables and ebtables, whose checks have failed before.',
    refusals: [
      inCase(
        'EPERM',
        'setsockopt',
        // SOL_IP and SOL_IPV6; {IPT,ARPT,EBT}_BASE_CTL of include/uapi/linux/netfilter* and the number after each. Not more:
        // 66 and 67 are IPV6_RECVTCLASS and IPV6_TCLASS.
        { argument: 1, among: [0, 41] },
        { argument: 2, mask: 0xffff_fffe, among: [64, 96, 128] },
      ),
    ],
  },
  debugging: {
    why: 'One process of the sandbox reads and writes another.',
    refusals: [always('EPERM', 'ptrace process_vm_readv process_vm_writev process_madvise process_mrelease')],
  },
  'netlink-protocols': {
    why: 'Only routes, which is what C libraries ask for.',
    refusals: [
      inCase(
        'EPROTONOSUPPORT',
        'socket',
        { argument: 0, among: [AF.NETLINK] },
        { argument: 2, notAmong: [NETLINK.ROUTE] },
      ),
    ],
  },
  'inet-protocols': {
    why: 'Only streams and datagrams of TCP, UDP and ping; SCTP, DCCP, L2TP, MPTCP, SMC and raw sockets load rarely used kernel code.',
    refusals: [
      inCase(
        'EPROTONOSUPPORT',
        'socket',
        { argument: 0, among: [AF.INET, AF.INET6] },
        { argument: 1, mask: SOCK_TYPE_MASK, notAmong: [SOCK.STREAM, SOCK.DGRAM] },
      ),
      inCase(
        'EPROTONOSUPPORT',
        'socket',
        { argument: 0, among: [AF.INET, AF.INET6] },
        { argument: 2, notAmong: [IPPROTO.DEFAULT, IPPROTO.ICMP, IPPROTO.TCP, IPPROTO.UDP, IPPROTO.ICMPV6] },
      ),
    ],
  },
  'filter-listener': {
    why: 'SECCOMP_FILTER_FLAG_NEW_LISTENER lets one process hold and answer the system calls of another.',
    refusals: [inCase('EPERM', 'seccomp', { argument: 1, anyBit: 8 })],
  },
  leases: {
    why: 'A lease on a file that can only be read stops each process that opens it for writing for 45 seconds; directory notices are signals to others.',
    refusals: [inCase('EPERM', 'fcntl', { argument: 1, among: [F_SETLEASE, F_NOTIFY] })],
  },
  'segment-descriptors': {
    why: 'Segments of 16-bit programs, in old code of the kernel.',
    refusals: [always('EPERM', 'modify_ldt')],
  },
  'kernel-aio': {
    why: 'The old asynchronous input and output. One quota (fs.aio-max-nr) serves the whole machine, and one process can take all of it; databases fall back to threads.',
    refusals: [always('ENOSYS', 'io_setup io_submit io_cancel io_destroy io_getevents io_pgetevents')],
  },
  'unusual-memory': {
    why: 'Pages lent to pipes, hidden from the kernel or counted in the page cache: holes and side channels, little use.',
    refusals: [always('EPERM', 'vmsplice memfd_secret cachestat remap_file_pages')],
  },
} as const satisfies Readonly<Record<string, RuleSet>>

export type SetName = keyof typeof SETS

const EVERYWHERE = [
  'module-loading',
  'kexec',
  'bpf',
  'performance-events',
  'userfaultfd',
  'new-mount-api',
  'mount-listing',
  'io-uring',
  'keyring',
  'host-control',
  'clock',
  'kernel-log',
  'file-handles',
  'other-processes',
  'fanotify',
  'numa',
  'obsolete',
  'personality',
  'socket-families',
  'terminal-injection',
  'setuid-bits',
  'first-process',
  'leases',
  'segment-descriptors',
  'kernel-aio',
] as const satisfies readonly SetName[]

const DEFAULT = [...EVERYWHERE, 'mount', 'namespaces', 'clone3', 'host-name'] as const satisfies readonly SetName[]

export const PROFILES = {
  default: {
    meaning: 'Compilers, interpreters, package managers and debuggers work; the rest of the kernel is closed.',
    sets: DEFAULT,
  },
  strict: {
    meaning: 'As default, without debugging, rare sockets and rare memory calls.',
    sets: [...DEFAULT, 'debugging', 'netlink-protocols', 'inet-protocols', 'filter-listener', 'unusual-memory'],
  },
  nested: {
    meaning: 'As default, but sandboxes inside work: Chromium, bazel, nix, bubblewrap.',
    sets: [...EVERYWHERE, 'packet-filter-options'],
  },
} as const satisfies Readonly<Record<string, { meaning: string; sets: readonly SetName[] }>>

export type ProfileName = keyof typeof PROFILES
export const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[]

/** A filter written by a user: a profile with calls taken out of its refusals, and more refusals. Deny wins over allow. */
export interface SeccompRules {
  readonly extends: ProfileName | 'off'
  /** These names are not refused by the profile that is extended, under no condition. */
  readonly allow: readonly string[]
  readonly deny: readonly { readonly names: readonly string[]; readonly errno: ErrnoName }[]
}

/** A refusal as one system call sees it. */
export type Clause = Omit<Refusal, 'names'>

function refusalsOf(rules: SeccompRules, always: readonly SetName[]): readonly Refusal[] {
  const kept = always.flatMap((name): readonly Refusal[] => SETS[name].refusals)
  const denied = rules.deny.map(({ names, errno }): Refusal => ({ names, errno: errno }))
  const sets: readonly SetName[] = rules.extends === 'off' ? [] : PROFILES[rules.extends].sets
  // A set that is kept is asked about once.
  const inherited = sets
    .filter((name) => !always.includes(name))
    .flatMap((name): readonly Refusal[] => SETS[name].refusals)
  const remaining = inherited.map((refusal) => ({
    ...refusal,
    names: refusal.names.filter((name) => !rules.allow.includes(name)),
  }))
  return [...kept, ...denied, ...remaining]
}

/** The plain form of a shipped profile. */
export const shippedRules = (profile: ProfileName | 'off'): SeccompRules => ({ extends: profile, allow: [], deny: [] })

/**
 * Every known system call of a machine with what may refuse it, in order: the first clause whose tests all hold answers.
 * @param always sets that no profile and no file can take out
 * No clause: allowed. Names that this machine does not have are left out.
 */
export function clausesFor(
  rules: SeccompRules,
  arch: Arch,
  always: readonly SetName[] = [],
): ReadonlyMap<number, readonly Clause[]> {
  return clausesByNumber(refusalsOf(rules, always), SYSCALLS[arch])
}

/**
 * The same for 32-bit programs, which run under `off` alone, and only where it keeps no set but the one that their numbers are
 * known for. @returns undefined where such a call ends the process
 */
export function compatClausesFor(
  rules: SeccompRules,
  arch: Arch,
  always: readonly SetName[] = [],
): ReadonlyMap<number, readonly Clause[]> | undefined {
  if (rules.extends !== 'off' || always.some((name) => name !== 'first-process')) return undefined
  return clausesByNumber(refusalsOf(rules, always), COMPAT[arch].numbers)
}

function clausesByNumber(
  refusals: readonly Refusal[],
  numbers: ReadonlyMap<string, number>,
): ReadonlyMap<number, readonly Clause[]> {
  const clausesOf = (name: string): readonly Clause[] =>
    refusals.filter((refusal) => refusal.names.includes(name)).map(({ names: _, ...clause }) => clause)
  return new Map([...numbers].map(([name, number]) => [number, clausesOf(name)]))
}
