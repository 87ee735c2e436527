/*
 * The JSON answer for a run that ended in an ordinary way. Node has left it in the launch file as segments of text with slots
 * between them (src/report/result-template.ts); what stands in the slots is known here: the streams, the numbers of launch's report, the
 * command. Every other end is reported by node, from the same outcome.
 */
#pragma once

#include "client/capture.h"

/* Are the V_RESULT records of a checked file such as can be filled in? A file without any is one whose streams pass through. */
int result_is_sound(const struct launchfile *file);

struct result {
  const struct launchfile *file;
  const char *status; /* the line of launch */
  char **command;
  const struct capture *capture;
};

/* Nothing to say: the command ended by itself, no limit was met, and nothing may deserve a hint. */
int result_needs_no_words(const struct result *result);

/* Is something reported that is worth a message of its own: a refused limit, an attempt on a protected path? */
int result_has_events(const struct result *result);

/* Does a word of the command name what is here and not inside? */
int result_names_hidden_path(const struct result *result);

/* A number of launch's report, -1 where it is not there; and whether a text of it is this one, which needs no escape. */
long long status_number(const char *status, const char *key);
int status_says(const char *status, const char *key, const char *text);

/* Is everything that is reported complete, and text? */
int result_is_text(const struct result *result);

/* Writes the answer, one line. 0, or an errno. */
int result_write(const struct result *result, int fd);
