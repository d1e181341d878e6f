/* SPDX-License-Identifier: Apache-2.0 */
/* Values that components supply (andiron/values.h). Those that come together change the graph once,
 * or else one by one. What is refused is told in the health of who has sent it, and tried again
 * in another graph; what fails for a reason that may pass is tried again in 10 s. */
#pragma once

#include <andiron/values.h>

struct host;

/* 0 or -ENOMEM. values_fini does nothing if there was no values_init, or it failed. */
int values_init(struct host *host);
void values_fini(struct host *host);

/* Another plan runs, in which a value that was refused may be right. */
void values_changed_graph(struct host *host);

extern const struct andiron_values values_service; /* its `self` is the host */
