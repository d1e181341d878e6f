/* SPDX-License-Identifier: Apache-2.0 */
/* A component on a host that does some of its members and refuses the others, as docs/hosts.md says
 * that a host may. */
#pragma once

#include "base/str.h"
#include "testing/test.h"

#include <andiron/host-min.h>

/* What runs a component until it has done its work. */
struct trial {
	struct andiron_min part;
	struct andiron_min_loop loop;
	struct andiron_host host;
	uint64_t n_rows, n_samples; /* what it sent */
};

struct job {
	const char *plugin, *component;            /* "andiron-relabel.so" */
	const struct andiron_value *(*args)(void); /* NULL: none */
	int32_t (*extension)(void *context, const char *id, struct andiron_extension *ret);
	void (*give)(struct trial *t); /* its input, once it has started; may be NULL */
	bool (*is_done)(const struct trial *t);
	bool is_trusting; /* does not look whether the host refuses, and waits until its deadline */
};

/* Gives it one target, of one label. */
void trial_give_target(struct trial *t, struct str name, struct str value);

/* On a host that does what the column of the component in docs/hosts.md (TEST_HOSTS_PAGE) says that
 * it must, and refuses all else, it does its work. On one that refuses one of those, too, it ends
 * and does not. It says so (`create` or `start` fails, or its health is not well), unless it is
 * trusting, or the member is an output or another's undoing. On one that refuses everything it
 * ends. */
void job_check(const struct job *job);
