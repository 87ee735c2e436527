/*
 * Connections to hosts that no rule speaks of, held while a person is asked (net/grants.h). One question at a time is open, the same host
 * and port is asked for once, and there is a bound on all of them: what is beyond it, is not answered in time, or comes when no program
 * answers is refused as it is without questions. A held connection is judged anew after the answer, by the rules as they are then.
 */
#pragma once

#include <stdint.h>

/* From the start on: until a program answers, connections wait. */
void questions_expect(void);
/* A program answers from now on; `ask` puts a question, and returns -1 where that cannot be. */
void questions_begin(int (*ask)(const char *host, uint16_t port, int fd));
/* It has gone: all that wait are refused. */
void questions_end(void);
/* Rules were added. */
void questions_judge_again(void);
void questions_refuse(const char *host, uint16_t port);

/* Whether the name gets an address although no rule speaks of it. Names that do are counted. */
int questions_may_come(const char *name);
/* Takes the connection, for which `judge` is called later: 1; 0 = it is to be judged now. */
int questions_hold(const char *host, uint16_t port, int fd, void (*judge)(int fd));
