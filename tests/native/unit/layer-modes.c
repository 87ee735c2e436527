#include "tools/layer-modes.h"
#include "unit.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

/* user::rw-, user:2001:rw-, group::---, mask::rw-, other::--- */
static const struct {
  struct posix_acl_xattr_header header;
  struct posix_acl_xattr_entry entry[5];
} LIST = {{POSIX_ACL_XATTR_VERSION},
          {{ACL_USER_OBJ, 6, ~0u}, {ACL_USER, 6, 2001}, {ACL_GROUP_OBJ, 0, ~0u}, {ACL_MASK, 6, ~0u}, {ACL_OTHER, 0, ~0u}}};

UNIT("the group of a file that is written anew may do no more than before") {
  const char *path = unit_directory();
  int host = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  close(openat(host, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  struct layer_zone zone = {.root.st_gid = getegid()};
  const struct layer layer = {.zone = &zone, .zones = 1};
  struct mode_rule rule = {.umask = 022};
  struct change change = {.kind = MODIFIED, .name = "f", .host = host, .now.st_mode = S_IFREG | 0664, .origin = {.st_mode = S_IFREG | 0664, .st_gid = getegid()}};
  EXPECT_NUMBER(mode_to_apply(&layer, &change, &rule), 0664);
  change.origin.st_gid++;
  EXPECT_NUMBER(mode_to_apply(&layer, &change, &rule), 0644); /* the group of the zone has had the rights of others */
  change.origin.st_gid--;
  char file[PATH_MAX];
  snprintf(file, sizeof file, "%s/f", path);
  EXPECT(setxattr(file, "system.posix_acl_access", &LIST, sizeof LIST, 0) == 0);
  EXPECT_NUMBER(mode_to_apply(&layer, &change, &rule), 0604);
  change.kind = MODE; /* the list stays */
  EXPECT_NUMBER(mode_to_apply(&layer, &change, &rule), 0664);
  change.kind = MODIFIED, rule.is_wide = 1;
  EXPECT_NUMBER(mode_to_apply(&layer, &change, &rule), 0664);
  close(host);
  unit_remove(path);
}
