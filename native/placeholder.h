/*
 * Placeholders: a protected path that does not exist yet can only be protected by a mount, and a mount needs something to
 * stand on. Launch makes an empty directory for the first missing component before staging and removes it afterwards.
 * Runs that share a zone share its placeholders: each holds a shared lock, and only who gets the exclusive one removes.
 * A run that was killed leaves its placeholders to the janitor, who finds in the run's record where there may be any.
 */
#ifndef LLM_DO_PLACEHOLDER_H
#define LLM_DO_PLACEHOLDER_H

#include "launchfile.h"

#include <limits.h>
#include <sys/stat.h>

#define PLACEHOLDERS_MAX 64
/* Nobody else makes sticky directories without write permission: this tells ours from a user's empty directory. */
#define PLACEHOLDER_MODE 01555

struct placeholder {
  int parent; /* the directory that holds it */
  int fd;     /* itself, locked shared */
  char name[NAME_MAX + 1];
  char path[PATH_MAX];
};
struct placeholders {
  struct placeholder item[PLACEHOLDERS_MAX];
  int count;
};

int is_placeholder(const struct stat *status);

/* Makes or joins one for each V_PROTECT record that needs it. Returns 0, or -1 with errno and *path. */
int placeholders_make(const struct launchfile *file, struct placeholders *all, const char **path);

/* Calls visit with each path at which placeholders_make could make one. */
void placeholders_each_path(const struct launchfile *file, void (*visit)(const char *path, void *data), void *data);

void placeholders_remove(struct placeholders *all);

/* The janitor's way: removes the placeholder at `path` if it is one and no live run holds it. */
void placeholder_remove_stale(const char *path);

#endif
