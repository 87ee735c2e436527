/* Selects the permission bits of a layer that reach the host. Set-id and sticky bits of the host's own stay where its file or directory stays. */
#pragma once

#include "tools/layer-changes.h"

struct mode_rule {
  int is_wide;  /* the caller has asked for the modes as they are */
  mode_t umask; /* of the caller */
};

/*
 * The permission bits that an apply gives to a changed file. A file that is new on the host gets the bits that the caller's umask leaves.
 * For one that the host had, the owner's bits are the command's, and all others may do no more than before, except execute a file that
 * they may read, as git has it. A file that is written anew loses its access list (acl(5)), whose mask stands in the bits of the group, and gets
 * the group of the zone: the group may do what it could do before. `is_wide` lifts all this. A set-id program, and one with capabilities, is
 * never opened to others.
 */
mode_t mode_to_apply(const struct layer *layer, const struct change *change, const struct mode_rule *rule);
