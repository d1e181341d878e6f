/* SPDX-License-Identifier: Apache-2.0 */
/* The process of an isolated component (host/isolate/isolated.h), from inside: a host of its own
 * with a graph of what is given → the component → what it gives. So the component has all that a
 * host offers, timers, workers and processes among it, without another implementation of that. */
#pragma once

#include "host/registry.h"

/* Serves the socket that the process has inherited (host/isolate/message.h) until it is drained or
 * its other end closes; never returns. For a process that is as confined as it is to be. */
__attribute__((noreturn)) void isolated_serve(const struct registered_plugin *plugin,
					      const struct andiron_component *component);
/* Says instead why it cannot. */
void isolated_refuse(int code, const char *why);
