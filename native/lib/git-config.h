/*
 * The syntax of git's configuration files (git-config(1), "CONFIGURATION FILE"; config.c of git), without git: nothing is executed and
 * nothing is included.
 */
#pragma once

#include <stddef.h>

/* `key` is "section.name" or "section.subsection.name", all but the subsection in small letters; `value` is NULL for a name alone. A
 * result other than 0 ends the reading. */
typedef int git_config_value(void *data, const char *key, const char *value);

/* 0, what the callback returned, or -1 with errno: EBADMSG where git would not read on either, ENOMEM. */
int git_config_read(const char *text, size_t size, git_config_value *on_value, void *data);
