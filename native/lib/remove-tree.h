#pragma once

/* Removes a name with everything below it, however deep; no link is followed. 0, also where there is nothing, or -1 with errno. */
int remove_tree(int directory, const char *name);
/* All that is in a directory. */
int remove_contents(int directory);
