/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one plan to another. On the loop thread.
 */
#ifndef HOST_GRAPH_RELOAD_H
#define HOST_GRAPH_RELOAD_H

#include "host/state.h"

/* Replaces what runs by a plan, all or nothing; see host_load and host_reload. */
int reload_plan(struct host *host, struct plan *plan, struct error *err);

#endif
