/*
 * The JSON answer, and the line of the audit log. Node has left them in the launch file as segments of text with slots
 * between them (src/report/result-template.ts); what stands in the slots is known here: the streams, the numbers of launch's report, the
 * command, and what was foreseen of the end (client/foreseen-end.h). Every other end is reported by node, from the same outcome.
 */
#pragma once

#include "client/capture.h"

/* The segments of V_RESULT, or of V_RECORD, in a checked file: 1 when they can be filled in, 0 when there are none, -1 when they are damaged. */
int template_is_sound(const struct launchfile *file, enum verb verb);

/* The V_RESULT records are sound and captured for; a file without any is one whose streams pass through. */
int result_is_sound(const struct launchfile *file);

#define AUDIT_TIME sizeof "2026-01-02T03:04:05.678Z"

/* What is only in a line of the audit log; the hashes are SHA-256 in hexadecimal. */
struct audit_line {
  const char *decided_by; /* a rule of a worker, or `policy` */
  char time[AUDIT_TIME], argv_hash[65], previous_hash[65];
};

struct result {
  const struct launchfile *file;
  const char *status; /* the line of launch */
  char **command;
  const struct capture *capture;
  const char *decided_by;
  const struct audit_line *line; /* NULL but for the audit log */
  const struct foreseen_end *end;
};

/* Nothing to say: the command ended by itself, no limit was met, and nothing may deserve a hint. */
int result_needs_no_words(const struct result *result);

/* Is something reported that is worth a message of its own: a refused limit, an attempt on a protected path? */
int result_has_events(const struct result *result);

/* May stderr, captured to its end, tell of something that the walls have refused? Node finds out. */
int result_tells_of_refusal(const struct result *result);

/* Does a word of the command name what is here and not inside? */
int result_names_hidden_path(const struct result *result);

/* A number of launch's report, -1 where it is not there; and whether a text of it is this one, which needs no escape. */
long long status_number(const char *status, const char *key);
int status_says(const char *status, const char *key, const char *text);

/* Is the command text, and what was captured of its streams complete and text? */
int result_is_text(const struct result *result);

/* Writes the segments of V_RESULT, or of V_RECORD, filled in: one line. 0, or an errno. */
int template_write(const struct result *result, enum verb verb, int fd);
