/* Idmapped mounts (Linux 5.12): one owner on disk appears as one other id, all others as the overflow id. */
#pragma once

#include <sys/types.h>

/* First of the ids that a sandbox of root runs as; the pid of the launcher is added, so that live sandboxes never share
 * one. systemd's UIDS-GIDS page lists 1879048192..2147483647 as unused. */
#define FIRST_FRESH_ID 0x70000000u
/* The helper of a restricted network, in the same way: no pid is so large (PID_MAX_LIMIT is 2^22). */
#define NET_HELPER_ID (FIRST_FRESH_ID + 0x01000000u)
/* The observer, likewise. */
#define OBSERVER_ID (FIRST_FRESH_ID + 0x02000000u)
/* The owner of files that apply prepares in a zone of root, which no sandbox may enter (tools/layer-stage.h). */
#define STAGE_ID (FIRST_FRESH_ID + 0x03000000u)

/* A user namespace in which `uid`:`gid` on disk are `to_uid`:`to_gid`. Returns its descriptor, or -1 with errno. It leaves a child that
 * ends at once, which idmap_reap waits for. */
int idmap_open(uid_t uid, gid_t gid, uid_t to_uid, gid_t to_gid);

/* Waits until the caller has no children: a zombie counts among the processes of a cgroup. */
void idmap_reap(void);

/* Gives the detached `tree` that map: 0, or -1 with errno, EINVAL where a file system in the tree cannot be idmapped. */
int idmap_apply(int tree, int map);
