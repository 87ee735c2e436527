/* The changes of a run with copy-on-write zones, where `--apply on-success` lets the client decide about them. */
#pragma once

#include "client/result.h"

/*
 * Applies them by a process of their own, `ROOT/bin/llm-do __layers end` (tools/layers.c). 0, with the line that people read in `text` (""
 * without changes). -1: nothing was applied, and Node decides.
 */
int layer_apply_at_end(const struct result *result, const char *root, char *text, size_t room);
