/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that continue unwinding through language runtimes in task work (bpf/continuation.bpf.c).
 * They share the session's maps. Without them such stacks end in `[runtime switches]`. */
#pragma once

#include <stdint.h>

struct bpf_object;
struct continuation_program;

/* Of the session, loaded; descriptors, borrowed. */
struct continuation_maps {
	int cpus, walks, ring, programs;
};

/* Loads them, puts them into their slots and opens their events: 0 and *ret, the caller's to free,
 * or NULL there where the kernel has no task work; or a negative errno. Some 20 ms. */
int continuation_program_load(const struct continuation_maps *maps,
			      struct continuation_program **ret);
/* What was loaded. */
const struct bpf_object *continuation_program_object(const struct continuation_program *o);
/* NULL is none. */
void continuation_program_free(struct continuation_program *o);
