/*
 * The audit log of a run with an ordinary end: the line that node has prepared (V_RECORD, src/report/result-template.ts), with what is known
 * now, appended as src/report/audit-file.ts does it: under the lock, in one chain. Whatever is not simple - a lock that stays taken, or a
 * holder that has died, a file that is none - is node's.
 */
#pragma once

#include "client/result-template.h"

/* May the run begin? 1 also where none is to be recorded. 0: node says what is wrong with the log. */
int audit_can_record(const struct launchfile *file);

/* Is the run to be recorded? */
int audit_is_on(const struct launchfile *file);

/* 0, or -1 when the line was not written, or not all of it. */
int audit_append(const struct result *result);
