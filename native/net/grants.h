/*
 * A socket for the owner of the run, who may allow more hosts while it runs, answer questions (net/questions.h) and see connections as they happen. His
 * programs connect to a socket next to the record of the run (lib/run-record.h), which no sandbox can reach; the kernel says whose they are
 * (SO_PEERCRED). Each speaks lines, whose fields are separated by tabs:
 *
 *   allow PATTERN PORTS|* RULE   the words of a net-allow entry; answered by `allowed`, `denied RULE` or `invalid`
 *   watch                        answered by `watching`, then an `event` for each judgement and each end of a connection:
 *                                event begin|end HOST PORT VERDICT RULE SOURCE BYTES-IN BYTES-OUT
 *   ask                          answered by `asking`, or `taken` where another program asks; then `question HOST PORT SOURCE`, one at a time
 *   refuse HOST PORT             the answer no; the answer yes is an `allow` that covers the host
 *
 * SOURCE is the port inside from which the command has connected, 0 without a connection. A program that reads too slowly, or sends
 * another line, is cut off.
 */
#pragma once

#include "lib/launch-file.h"

void grants_read(const struct launchfile *file);
/* Takes the listener where the plan has one, and closes it elsewhere. -1 with errno. */
int grants_on(int fd);
