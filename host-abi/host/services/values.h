/* SPDX-License-Identifier: Apache-2.0 */
/* Values that components supply (andiron/values.h). Those that come together change the graph once;
 * a change that finds it busy is tried again. */
#pragma once

#include <andiron/values.h>

struct host;

/* 0 or -ENOMEM. values_fini does nothing if there was no values_init, or it failed. */
int values_init(struct host *host);
void values_fini(struct host *host);

extern const struct andiron_values values_service; /* its `self` is the host */
