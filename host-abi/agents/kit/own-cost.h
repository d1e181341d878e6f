/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time that andiron takes within another program: of its threads, by their names, and of
 * its children. What a thread used between the last look and its end is missed. */
#pragma once

#include "base/vec.h"

#include <stdint.h>
#include <sys/types.h>

struct own_cost_task {
	pid_t id;
	uint64_t ticks;
};

struct own_cost {
	VEC(struct own_cost_task) tasks; /* as the last look found them */
	uint64_t threads, children;      /* ticks so far */
};

/* Looks at the process's tasks: 0, or a negative errno, and then nothing was added. */
int own_cost_look(struct own_cost *c);

/* Of threads and of children, in milliseconds; these only grow. */
uint64_t own_cost_threads_ms(const struct own_cost *c);
uint64_t own_cost_children_ms(const struct own_cost *c);

void own_cost_free(struct own_cost *c);
