/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments for a component that is checked, by the host's own language: what is required gets a
 * value of its type, the command line's --with comes before that, and a check may set one option
 * more. They go through `validate` of the component as those of a configuration do. */
#pragma once

#include "cli/conformance/check.h"
#include "host/plan.h"

#define OPTION_DEPTH 8u

/* An option by its way through blocks, and an expression for it; a block that is set has "". */
struct setting {
	const struct andiron_option *path[OPTION_DEPTH];
	size_t n;
	const char *value;
};

struct part_arguments {
	struct buf text; /* the configuration */
	struct source source;
	struct registry *registry;
	struct plan *plan;
	struct diags diags;
	const struct andiron_value *values; /* NULL: they were refused */
	const char *refusal;                /* the first error; "" */
};

/* 0, also where they were refused; -ENOMEM. `setting` may be NULL. They live until
 * part_arguments_fini, which is also called after a failure. */
int part_arguments_make(const struct trial *t, const struct setting *setting,
			struct part_arguments *ret);
void part_arguments_fini(struct part_arguments *a);
