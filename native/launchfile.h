/*
 * The launch file: words ended by NUL, first LAUNCHFILE_MAGIC, last "end". Each record is a verb and a fixed number of
 * words. Written by src/backends/namespace/launch-file.ts, which holds the same table; read by launch, the stager and init.
 */
#ifndef LLM_DO_LAUNCHFILE_H
#define LLM_DO_LAUNCHFILE_H

#include <stddef.h>
#include <stdint.h>

#define LAUNCHFILE_MAGIC "llm-do-launch-2"
#define LAUNCHFILE_MAX (4u << 20) /* bytes; a plan with a thousand zones has 200 KiB */
#define RECORD_MAX_WORDS 7

enum verb {
  /* name      words                                         read by */
  V_ENGINE,    /* bwrap|unshare                               stager */
  V_WORD,      /* one word of bwrap's argv, its path first    stager */
  V_IDENTITY,  /* self|fresh UID GID (ids inside)             stager */
  V_HOSTNAME,  /* NAME                                        stager (unshare) */
  V_NET,       /* none|host                                   stager (unshare) */
  V_DIRECTORY, /* TARGET MODE                                 stager */
  V_SYMLINK,   /* TARGET LINK                                 stager */
  V_FILE,      /* TARGET MODE CONTENT                         stager */
  V_TMPFS,     /* TARGET SIZE INODES MODE                     stager; init (Landlock) */
  V_BIND,      /* SOURCE TARGET                               stager: system tree, read-only */
  V_ZONE,      /* SOURCE TARGET ro|rw DEV INO open|closed     stager; init (Landlock: sockets open or closed) */
  V_PROTECT,   /* SOURCE TARGET PATH (below the zone)         launch */
  V_GIT,       /* SOURCE TARGET OPEN (names in git directories) launch: git directories of the zone */
  V_LINKED,    /* DEV INO of a file whose other names count   launch */
  V_READONLY,  /* PATH below /proc                            init */
  V_MASK,      /* PATH below /proc                            init */
  V_LANDLOCK,  /* on|off                                      init */
  V_SECCOMP,   /* FILTER (hexadecimal)|off                    init */
  V_RLIMIT,    /* NUMBER SOFT HARD                            init */
  V_WORKDIR,   /* PATH                                        init */
  V_TERMINAL,  /* on|off                                      launch, init */
  V_AFFINITY,  /* COUNT of processors                         launch */
  V_CGROUP,    /* PARENT directory                            launch */
  V_SET,       /* FILE VALUE of the run's cgroup              launch */
  V_NARROW,    /* the same, as soon as the stager has gone    launch */
  V_WATCH,     /* BYTES: memory watchdog                      launch */
  V_CPU_TIME,  /* MILLISECONDS                                launch */
  V_DEADLINE,  /* MILLISECONDS                                launch */
  V_RUNS,      /* DIRECTORY of run records                    launch */
  V_PROFILE,   /* NAME, for people (llm-do ps)                launch */
               /* Only in cached files, see front.c: */
  V_CHECK,     /* SEAL of all bytes after this record (mac.h) front */
  V_KEY,       /* one word of what the file was made for      front */
  V_AT,        /* PATH IDENTITY: what must be there           front */
  V_CONTENT,   /* PATH IDENTITY: what must be in there        front */
  V_VARIABLE,  /* NAME VALUE of the command's environment     front */
  V_LOCALE,    /* NAME VALUE unless the caller has one        front */
  V_INHERIT,   /* NAME, or PREFIX*, taken from the caller     front */
  V_POOL,      /* NAME of the pool that may serve the plan    front */
  V_CAPTURE,   /* BYTES|all: most that is kept of each stream front */
  V_RESULT,    /* TEXT HOLE: a piece of the JSON answer       front */
  V_END,
  VERBS
};

struct record {
  enum verb verb;
  const char *word[RECORD_MAX_WORDS];
  const char *end; /* the byte after its last word */
};

struct launchfile {
  const char *bytes;
  size_t size;
  const struct record *records; /* all but `end`, in the order of the file; never freed */
  size_t count;
};

/* Checks the whole of `bytes`: magic, verbs, word counts, end. Returns 0, or -1 with the reason in *problem. */
int launchfile_check(const char *bytes, size_t size, struct launchfile *file, const char **problem);

/* Steps through the records of a checked file: start with *position = 0, which counts records; returns 0 at the end. */
int launchfile_next(const struct launchfile *file, size_t *position, struct record *record);

/* The first record of that verb, or 0. */
int launchfile_find(const struct launchfile *file, enum verb verb, struct record *record);

/* A decimal number of at most `max`; -1 for anything else. */
int parse_number(const char *word, uint64_t max, uint64_t *number);
/* Octal permission bits. */
int parse_mode(const char *word, unsigned *mode);

/* Reads all of `fd` (file, pipe or socket) into memory that is never freed; NULL with errno, EFBIG above the limit. */
char *read_all(int fd, size_t limit, size_t *size);

#endif
