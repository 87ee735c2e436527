/* Copies of what a layer holds, with nothing that must not reach the host: content, permission bits and modification time. No set-id or
 * sticky bit, no attribute, capability, label or mark of overlay; devices, FIFOs and sockets are refused (EPERM). */
#pragma once

#include <sys/stat.h>

/* A source, and the attributes that its copy gets. */
struct object {
  int from;
  const char *name;
  struct stat status; /* with the mode and the times that the copy gets */
  int host;           /* directory of the file of that name that it takes the place of, whose attributes user.* it keeps; -1 = none */
};

/* One object: a file with its content, a link, or an empty directory of mode 0700, which copy_attributes finishes. root gives it to
 * `owner`. 0, or -1 with errno. */
int copy_object(const struct object *object, int to, const char *new_name, const struct stat *owner);
/* A file or a link for who only reads it, as the caller's own: content alone, mode 0600, or 0700 where somebody may execute it. */
int copy_to_read(int from, const char *name, const struct stat *status, int to, const char *new_name);
/* A name with everything below it as it is: owner, all mode bits and all attributes. For what was the host's already. */
int copy_whole(int from, const char *name, int to, const char *new_name);
/* The same of an open directory. */
int copy_tree(int source, int to, const char *new_name);
/* Permission bits and times of a directory that is filled. */
int copy_attributes(int directory, const struct stat *status);
