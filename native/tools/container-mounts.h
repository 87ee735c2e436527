/* Whether the mounts of a container are those that the runner meant; for container-init. */
#pragma once

/*
 * Words of one mount: TARGET PATH DEV INO ro|rw. TARGET is the zone inside, PATH is "." or a path below it, DEV and INO are
 * what the runner saw on the host.
 */
#define MOUNT_WORDS 5
/* As DEV: a mount of the container's own, such as a scratch directory, of which only the target is known. */
#define ANY_DEVICE "-"

/*
 * Checks `count` mounts: each must be a separate mount and that very inode, no component below a target may be a symbolic
 * link, and below a read-only one nothing may be writable but other mounts of the list. Returns NULL, or the path that is
 * wrong with *error; the text is in static memory or in `words`.
 */
const char *container_mounts_problem(char **words, int count, int *error);
