/* Which permission bits of a layer reach the host. Set-id and sticky bits of the host's own stay where its file or directory stays. */
#pragma once

#include "tools/layer-changes.h"

struct mode_rule {
  int is_wide;  /* the caller has asked for the modes as they are */
  mode_t umask; /* of the caller */
};

/*
 * The permission bits that an apply gives to what has changed. What the host never had gets what the caller's umask leaves. Of what it had,
 * the owner's own bits are the command's, and nobody else may do more than before, but for executing a file that they may read, as git
 * has it. `is_wide` lifts both. A set-id program, and one with capabilities, is never opened to anybody.
 */
mode_t mode_to_apply(const struct change *change, const struct mode_rule *rule);
