/* The record of a run that has failed, for `llm-do why` (src/run/failed-runs.ts): what the client ends without node. */
#pragma once

#include "client/call.h"
#include "lib/launch-file.h"

/* A record that cannot be written is not kept: the run is over. */
void failed_run_keep(const struct call *call, const struct launchfile *file, int status);
