/*
 * Records of live runs: one file a run in a directory that only this user can reach. Launch writes it and holds an exclusive
 * lock on it while it lives. A record that can be locked belongs to a run whose launcher was killed: the process that gets the lock
 * removes what the record names (cgroup, processes that
 * bear the id), then the record. Content: pairs of words, each ended by NUL.
 */
#pragma once

#include "lib/launch-file.h"

#include <stdio.h>
#include <sys/types.h>

#define RUN_ID_MAX 64
/* With the id behind it, all of the environment of an engine. */
#define RUN_MARK "LLM_DO_RUN="

struct run_record {
  const char *id;
  const char *profile;
  const char *caller; /* the caller's working directory, "" where it was not given */
  const char *cgroup; /* absolute path of the run's own group, "" without one */
  char **command; /* NULL = a warm sandbox that has none yet: the janitor's business, but no run */
};

/* Opens the directory; it and its parent are made 0700 if missing, and refused when others own or may reach them.
 * Returns its descriptor or -1. */
int records_open(const char *directory);

/* Makes and locks the record; it holds nothing yet. Returns its descriptor or -1. */
int record_create(int directory, const char *id);
int record_write(int fd, const struct run_record *record);
void record_remove(int directory, const char *id, int fd);

/* A listener next to the record, for the owner of the run: only this user can enter the directory. -1 with errno. */
int record_listen(int directory, const char *id);
void record_unlisten(int directory, const char *id);

/* Cleans up after dead runs; returns how many are off the record. Waits up to patience_ms for the processes of each to end. */
int records_prune(int directory, int patience_ms);

/* A pair of words, as records hold them. */
void record_put(FILE *out, const char *key, const char *value);
void record_put_number(FILE *out, const char *key, long long number);

/* The directory `below` another one, of whichever user it is: for reading, and for nothing that a record asks to be done. No link and no
 * other file system is on the way. Returns its descriptor, or -1 where it is not its owner's alone. */
int records_look(int above, const char *below);

/* 1 while the launcher that wrote the record lives. */
int record_is_live(int fd);

/* Calls visit with the content of each live record. */
struct record_content {
  const char *bytes;
  size_t size;
};
int records_each(int directory, int (*visit)(const struct record_content *content, int fd, void *data), void *data);
/* The value of the n-th pair with that key, or NULL. */
const char *record_value(const struct record_content *content, const char *key, int n);

int is_run_id(const char *id);
