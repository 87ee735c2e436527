#include "lib/observed-calls.h"

#include <sys/syscall.h>

/* Under SYS_open: what x86-64 has and arm64 has not. */
const struct observed_call observed_calls[] = {
    {SYS_openat, ACT_OPEN, 0, 1, 2},
    {SYS_openat2, ACT_OPEN_HOW, 0, 1, 2},
    {SYS_execve, ACT_EXECUTE, -1, 0, -1},
    {SYS_execveat, ACT_EXECUTE, 0, 1, -1},
    {SYS_chdir, ACT_ENTER, -1, 0, -1},
    {SYS_connect, ACT_CONNECT, -1, 1, 2},
    {SYS_sendto, ACT_CONNECT, -1, 4, 5},
    {SYS_mkdirat, ACT_CREATE, 0, 1, -1},
    {SYS_mknodat, ACT_CREATE, 0, 1, -1},
    {SYS_symlinkat, ACT_CREATE, 1, 2, -1},
    {SYS_linkat, ACT_CREATE, 2, 3, -1},
    {SYS_unlinkat, ACT_REMOVE, 0, 1, -1},
    {SYS_renameat2, ACT_REMOVE, 0, 1, -1},
    {SYS_renameat2, ACT_REPLACE, 2, 3, -1},
    {SYS_truncate, ACT_CHANGE, -1, 0, -1},
    {SYS_fchmodat, ACT_CHANGE, 0, 1, -1},
    {SYS_fchownat, ACT_CHANGE, 0, 1, -1},
    {SYS_utimensat, ACT_CHANGE, 0, 1, -1},
    {SYS_setxattr, ACT_CHANGE, -1, 0, -1},
    {SYS_lsetxattr, ACT_CHANGE, -1, 0, -1},
    {SYS_removexattr, ACT_CHANGE, -1, 0, -1},
#ifdef SYS_fchmodat2
    {SYS_fchmodat2, ACT_CHANGE, 0, 1, -1},
#endif
#ifdef SYS_renameat
    {SYS_renameat, ACT_REMOVE, 0, 1, -1},
    {SYS_renameat, ACT_REPLACE, 2, 3, -1},
#endif
#ifdef SYS_open
    {SYS_open, ACT_OPEN, -1, 0, 1},
    {SYS_creat, ACT_REPLACE, -1, 0, -1},
    {SYS_mkdir, ACT_CREATE, -1, 0, -1},
    {SYS_mknod, ACT_CREATE, -1, 0, -1},
    {SYS_symlink, ACT_CREATE, -1, 1, -1},
    {SYS_link, ACT_CREATE, -1, 1, -1},
    {SYS_unlink, ACT_REMOVE, -1, 0, -1},
    {SYS_rmdir, ACT_REMOVE, -1, 0, -1},
    {SYS_rename, ACT_REMOVE, -1, 0, -1},
    {SYS_rename, ACT_REPLACE, -1, 1, -1},
    {SYS_chmod, ACT_CHANGE, -1, 0, -1},
    {SYS_chown, ACT_CHANGE, -1, 0, -1},
    {SYS_lchown, ACT_CHANGE, -1, 0, -1},
    {SYS_utime, ACT_CHANGE, -1, 0, -1},
    {SYS_utimes, ACT_CHANGE, -1, 0, -1},
    {SYS_futimesat, ACT_CHANGE, 0, 1, -1},
#endif
    {SYS_newfstatat, ACT_LOOK, 0, 1, 3},
    {SYS_statx, ACT_LOOK, 0, 1, 2},
    {SYS_faccessat, ACT_LOOK, 0, 1, -1},
    {SYS_readlinkat, ACT_LOOK, 0, 1, -1},
#ifdef SYS_faccessat2
    {SYS_faccessat2, ACT_LOOK, 0, 1, 3},
#endif
#ifdef SYS_open
    {SYS_stat, ACT_LOOK, -1, 0, -1},
    {SYS_lstat, ACT_LOOK, -1, 0, -1},
    {SYS_access, ACT_LOOK, -1, 0, -1},
    {SYS_readlink, ACT_LOOK, -1, 0, -1},
#endif
};

const size_t OBSERVED_CALLS = sizeof observed_calls / sizeof *observed_calls;
