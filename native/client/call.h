/*
 * The call as the caller wrote it: where its command is, which program that names, and the key of its plan. Of the options it knows the
 * names alone, to find their end; but for `--env`, whose values are the command's: no plan depends on one, and none is written to a file.
 */
#pragma once

#include "client/program.h"
#include "lib/launch-cache.h"

#include <sys/types.h>

/* A word of the options that names a directory as the source of a zone, with a target. */
struct named_place {
  char **word;
  const char *source; /* in the word */
  size_t length;
  const char *target; /* in the word */
  char *slotted;      /* the word with a slot in the place of the source */
};

struct call {
  const char *root;  /* directory of the package */
  pid_t parent;      /* what started us, as it was at our own start */
  char **words;      /* what the caller wrote, without the verb */
  char **options;    /* first option word; options_end is the first that is none */
  char **options_end;
  const char *script; /* of -c */
  char **command;
  char **given;      /* NAME=VALUE of `--env`, then NULL */
  struct program program;
  struct named_place place[PLACE_ZONES_MAX]; /* in the order of their targets */
  size_t places;
  size_t key_directory, key_options, key_environment; /* where these begin in the key */
};

/*
 * Finds the command: behind our options, after `--`, or where the words of a shell with a script begin
 * (src/launch-cache/shell-call.ts). Where node reads the same words differently, node leaves no plan, and nothing is found. Returns 0 or -1.
 */
int call_split(struct call *call);

/* Selects the variables of a plan: those of its names, or all whose names no layer of the policy knows. */
enum key_variables { KEY_BY_NAME, KEY_FOR_ANY };

/* Makes the key of its plan, as src/launch-cache/cache-key.ts has it. Finds the program and the variables, too. Returns 0 or -1. */
int call_key(struct call *call, enum key_variables variables, struct key *key);

/* That of the plan that serves every directory, from the key of the call for the same variables. Returns 0 or -1. */
int call_key_for_any(struct call *call, enum key_variables variables, const struct key *own, struct key *key);

/* The NAME=VALUE of `--env` in a word of the options, or NULL; `before`: the word before it. */
char *call_variable(char *word, const char *before);
