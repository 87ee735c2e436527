/* Prints the texts of `--help` and `--version` that the build has left in dist/help-texts (scripts/help-texts.mjs), so that node need not start. */
#pragma once

/*
 * Prints the answer where the words ask for nothing but one of those texts. `words` without the program; `is_exec`: it was called as llm-do-exec.
 * Returns 1 when stdout has it, or its reader is gone; 0 when node has to answer, and nothing was printed of which it does not print more.
 */
int print_help(const char *root, int is_exec, char *const *words);
