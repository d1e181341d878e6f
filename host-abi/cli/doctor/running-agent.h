/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent that runs on this machine says of its processes, by its status socket. */
#pragma once

#include "base/buf.h"

#include <jansson.h>

#define RUNNING_AGENT_STATUS "/run/andiron/status" /* as packages start it */

/* The processes with a language runtime, an array of {"pid", "name", "runtime"}; waits at most some
 * seconds. NULL: no agent answers at this path, or it is at work for longer than that. The caller
 * releases it. */
json_t *running_agent_runtimes(const char *path);
