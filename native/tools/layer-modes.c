#include "tools/layer-modes.h"

#include "lib/files.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PERMISSIONS 0777
#define OWNER 0700
#define GROUP 0070
#define READ_BY_OTHERS 0044
#define ACCESS_LIST "system.posix_acl_access"
#define LIST_MAX (64 << 10) /* XATTR_SIZE_MAX of linux/limits.h */

/* Bits by which others may execute a file because they may read it. */
static mode_t executable_by_others(mode_t was) { return (was & READ_BY_OTHERS) >> 2; }

static ssize_t read_access_list(const struct change *change, char list[LIST_MAX]) {
  char path[64];
  int fd = open_beneath(change->host, change->name, O_PATH);
  if (fd < 0) return -1;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  ssize_t size = getxattr(path, ACCESS_LIST, list, LIST_MAX);
  return close_with(fd, size < 0 ? -1 : 0) < 0 ? -1 : size;
}

/* Of the file on the host, in the bits of a mode. A list that cannot be read lets the group do nothing. */
static mode_t rights_of_group(const struct change *change) {
  static union {
    char bytes[LIST_MAX];
    struct posix_acl_xattr_header header;
  } list;
  ssize_t size = read_access_list(change, list.bytes);
  if (size < 0) return errno == ENODATA || errno == EOPNOTSUPP ? change->origin.st_mode & GROUP : 0;
  const struct posix_acl_xattr_entry *entry = (const void *)(&list.header + 1);
  for (; (const char *)(entry + 1) <= list.bytes + size; entry++)
    if (le16toh(entry->e_tag) == ACL_GROUP_OBJ) return change->origin.st_mode & GROUP & (mode_t)(le16toh(entry->e_perm) << 3);
  return 0;
}

static mode_t group_may(const struct layer *layer, const struct change *change) {
  gid_t group = geteuid() == 0 ? layer->zone[change->zone].root.st_gid : getegid();
  mode_t may = group == change->origin.st_gid ? rights_of_group(change) : (change->origin.st_mode << 3) & GROUP;
  return may | executable_by_others(may);
}

static int is_written_anew(const struct change *change) {
  return change->kind != MODE && change->host >= 0 && S_ISREG(change->now.st_mode) && S_ISREG(change->origin.st_mode);
}

static mode_t mode_by_bits(const struct change *change, const struct mode_rule *rule) {
  mode_t now = change->now.st_mode & PERMISSIONS, was = change->origin.st_mode & PERMISSIONS;
  int had = (change->origin.st_mode & S_IFMT) == (change->now.st_mode & S_IFMT);
  if (change->kind == KEPT) return now;
  if (change->is_privileged && had) return now & was;
  if (change->is_privileged) return now & ~rule->umask;
  if (rule->is_wide) return now;
  if (!had) return now & ~rule->umask;
  return now & (OWNER | was | (S_ISREG(change->now.st_mode) ? executable_by_others(was) : 0));
}

mode_t mode_to_apply(const struct layer *layer, const struct change *change, const struct mode_rule *rule) {
  mode_t mode = mode_by_bits(change, rule);
  return (mode & GROUP) && !rule->is_wide && is_written_anew(change) ? mode & (~(mode_t)GROUP | group_may(layer, change)) : mode;
}
