/**
 * The calls that the shipped filters refuse whatever the arguments are, written by hand a second time from the manual pages and the kernel's
 * tables: a name that is dropped from src/seccomp/rules.ts must make a test fail, so nothing here may be derived from the rules.
 */
import type { ErrnoName } from '../../src/seccomp/errno.ts'
import type { ProfileName } from '../../src/seccomp/rules.ts'

export type Words = Readonly<Partial<Record<ErrnoName, string>>>

/** Refused by default, strict and nested. */
const EVERYWHERE: Words = {
  EPERM: `init_module finit_module delete_module create_module get_kernel_syms query_module
    kexec_load kexec_file_load bpf perf_event_open userfaultfd
    add_key request_key keyctl
    swapon swapoff reboot acct quotactl quotactl_fd iopl ioperm vhangup
    settimeofday clock_settime adjtimex clock_adjtime syslog
    open_by_handle_at kcmp pidfd_getfd fanotify_init fanotify_mark
    mbind set_mempolicy get_mempolicy migrate_pages move_pages set_mempolicy_home_node modify_ldt`,
  ENOSYS: `open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr
    statmount listmount listns
    io_uring_setup io_uring_enter io_uring_register
    io_setup io_submit io_cancel io_destroy io_getevents io_pgetevents
    uselib _sysctl nfsservctl lookup_dcookie openat2`,
}

const DEFAULT_ONLY: Words = {
  EPERM: 'mount umount2 pivot_root chroot setns sethostname setdomainname',
  ENOSYS: 'clone3',
}

const STRICT_ONLY: Words = {
  EPERM: `ptrace process_vm_readv process_vm_writev process_madvise process_mrelease
    vmsplice memfd_secret cachestat remap_file_pages`,
}

const joined = (...lists: readonly Words[]): ReadonlyMap<string, ErrnoName> =>
  new Map(
    lists.flatMap((words) =>
      (Object.entries(words) as [ErrnoName, string][]).flatMap(([errno, names]) =>
        names.split(/\s+/).map((name) => [name, errno] as const),
      ),
    ),
  )

/** Name -> the error that a profile always answers. */
export const REFUSED: Readonly<Record<ProfileName, ReadonlyMap<string, ErrnoName>>> = {
  default: joined(EVERYWHERE, DEFAULT_ONLY),
  strict: joined(EVERYWHERE, DEFAULT_ONLY, STRICT_ONLY),
  nested: joined(EVERYWHERE),
}

/** Calls that root's filter always refuses in addition, `off` and a custom file included. */
export const KEPT_FOR_ROOT: ReadonlyMap<string, ErrnoName> = joined({
  EOPNOTSUPP: 'setxattr lsetxattr fsetxattr setxattrat',
  ENOSYS: 'openat2 io_uring_setup io_uring_enter io_uring_register',
})

/** Number of the argument that is a pid and must not be 1. */
export const PID_ARGUMENT: Readonly<Record<string, 0 | 1>> = {
  prlimit64: 0,
  sched_setscheduler: 0,
  sched_setparam: 0,
  sched_setattr: 0,
  sched_setaffinity: 0,
  setpriority: 1,
  ioprio_set: 1,
}
