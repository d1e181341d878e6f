/* SPDX-License-Identifier: Apache-2.0 */
/* What was sampled in the last seconds, to be looked at again and again. A component of the command
 * itself, `top.screen`, takes the batches with their names and keeps those of the window; nothing
 * is copied until somebody looks. */
#pragma once

#include "base/error.h"
#include "export/top.h"

#include <andiron/plugin.h>

#include <stdint.h>

struct live_profile;

/* One in a process, since its component finds it by being alone. NULL when memory is short. */
struct live_profile *live_profile_new(int64_t window_ns);
/* Lets go of all batches, and takes no more: before the host is freed, whose memory they are. */
void live_profile_end(struct live_profile *l);
/* After the host. NULL is allowed. */
void live_profile_free(struct live_profile *l);

extern const struct andiron_plugin live_profile_plugin;

struct live_view {
	struct profile *p;
	struct call_tree *tree;
	struct top functions, programs; /* values are ns of processor time */
	int64_t covered_ns;             /* of which that is the sum; 0: nothing was sampled yet */
	uint64_t samples;
};

/* 0 or -ENOMEM; to be freed in any case. [any], O(samples of the window). */
int live_profile_look(struct live_profile *l, struct live_view *ret);
void live_view_fini(struct live_view *v);
