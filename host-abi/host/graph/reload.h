/* SPDX-License-Identifier: Apache-2.0 */
/* From one plan to another. On the loop thread. */
#pragma once

#include "host/state.h"

/* Replaces what runs by a plan, all or nothing; see host_load and host_reload. */
int reload_plan(struct host *host, struct plan *plan, struct error *err);
