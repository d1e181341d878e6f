/* SPDX-License-Identifier: Apache-2.0 */
/* A component that is checked, on the small host that is installed with the headers (host-min.h).
 * One thread is everything. What it sends is looked at when it comes. */
#pragma once

#include "cli/conformance/check.h"
#include "cli/conformance/part-arguments.h"

#include <andiron/host-min-objects.h>
#include <andiron/host-min.h>

/* Which table it is given. */
enum host_kind {
	HOST_PLAIN,    /* up to `extension`: version 1.0 */
	HOST_NEWER,    /* the rest is there and NULL, and behind it stands what nobody knows yet */
	HOST_REFUSING, /* without watches, timers, work, calls and extensions */
};

struct part {
	struct trial *t;
	struct andiron_min_loop loop;
	const struct andiron_host *host;
	struct andiron_min *min; /* another for each instance: `instance` is its address */
	struct part_arguments arguments;
	bool is_open, started;
	bool judges_output; /* whether the check is about what it sends */
	/* What it has sent. */
	uint64_t n_updates, n_batches, n_samples;
	atomic_uint n_drained; /* how often it has said so */
	struct target_table *targets;
	struct andiron_min_objects *objects;
};

/* Arguments, loop and instance. False: none was made, and the trial has its verdict, unless
 * `may_fail` (then why is in min.error). part_end also after a failure. */
bool part_open(struct part *p, struct trial *t, enum host_kind host);
bool part_create(struct part *p, bool may_fail);

/* What host-min.h calls a part, for one instance more. Thousands are there, so what a thread of an
 * earlier one still asks for is refused. */
void part_renew(struct part *p);

/* A capability that the component names and this process has not; NULL: it has all. */
const char *part_capability(const struct part *p);

/* `start`, as the host calls it. False: it failed; where it gave no reason that is the verdict. */
bool part_start(struct part *p);

/* Serves it until nothing has happened for so long, or it has been busy for a fifth of a second. */
void part_serve(struct part *p, int32_t quiet_ms);

/* Asks for its metrics, and judges them. */
void part_metrics(struct part *p);

/* stop, and its work comes back, and destroy. */
void part_stop(struct part *p);
void part_destroy(struct part *p);
void part_end(struct part *p);
