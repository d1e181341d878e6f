/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle calls of one instance (andiron/component.h), as jobs of its strand. On the loop
 * thread; the scheduler decides when. */
#pragma once

#include "host/state.h"

/* Makes the instance of a node and calls `create`. 0; or a negative errno with the cause. It is in
 * host->instances, without edges. */
int lifecycle_create(struct host *host, const struct plan_node *node, struct instance **ret,
		     struct error *err);

/* Post the job that makes the call. */
void lifecycle_start(struct instance *i);
void lifecycle_drain(struct instance *i);
void lifecycle_stop(struct instance *i);
/* False while its work is still out. */
bool lifecycle_destroy(struct instance *i);

/* Frees those that are gone, all together. Not from within a call of one of them. [loop] */
void lifecycle_reap(struct host *host);
