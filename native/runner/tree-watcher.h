/*
 * Watches large zones for the runs of this user, while a host of runs is up: a pool, or a program with the library.
 *
 * Theory of operation. A run that has looked through a large zone leaves an index of its directories (lib/tree-index.h), and the next one asks for the
 * times of each of them. The watcher reads that index, puts an inotify watch on every directory of it, and then looks itself whether they are as the
 * index says. From then on a directory without an event is unchanged, and a run asks for those that have one (lib/tree-question.h). What is made in a
 * directory that is not in the index needs no watch: the directory above it has changed, and the run lists it.
 *
 * The answer holds all that happened before the question, since events are read first. Where anything is not certain, there is none, and the run asks for
 * the times: the queue overflowed, a mount was made or removed somewhere, or the watches are not there yet.
 *
 * Attributes of files matter to root, and the directory of a name by which a file is changed hears of it. So a directory with a file that had other names when it was listed is
 * looked at by each run.
 *
 * It is one process for each user, started by a host that finds that a run has missed it, and ends with that host. What it holds for a zone is given up after
 * some time without a question.
 */
#pragma once

/* Starts one as a child where a run has missed it. `own` is the directory above that of the runs. The watcher ends with the process of `owner`, a pidfd. */
void tree_watcher_start(const char *own, int owner);
