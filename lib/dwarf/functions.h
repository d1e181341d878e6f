/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a unit, and the calls that are inlined in one of them. */
#pragma once

#include "dwarf/unit.h"

#define FUNCTIONS_MAX     (1u << 20)
#define FUNCTION_RANGES   1024u /* that one function may have */
#define INLINES_MAX       (1u << 18)
#define INLINES_MAX_DEPTH 512u

struct function {
	uint64_t low, high;
	uint64_t entry; /* offset of its entry */
};

struct functions {
	VEC(struct function) list; /* by low */
};

/* Goes through all entries of the unit, a step each. -E2BIG, -ETIME (out of steps), -ENOEXEC,
 * -ENOMEM or pread's errno. */
int functions_load(struct functions *ret, const struct unit *u, uint64_t *steps);

/* The one that covers an address; of nested ones the inner; or NULL. */
const struct function *functions_find(const struct functions *f, uint64_t address);

/* Node 0 is the function itself. */
struct inline_node {
	uint32_t parent;
	uint32_t line, column; /* of the call */
	uint64_t file;
	struct form_value origin; /* FORM_NONE: unknown */
};

struct inline_span {
	uint64_t low, high;
	uint32_t node;
};

struct inlines {
	uint64_t entry;
	VEC(struct inline_node) nodes;
	VEC(struct inline_span) spans; /* outer ones before those inside them */
};

/* Goes through the entries below `entry`. As functions_load. */
int inlines_load(struct inlines *ret, const struct unit *u, uint64_t entry, uint64_t *steps);
void inlines_free(struct inlines *i);

/* The innermost call that covers the address; 0: none does. O(spans). */
uint32_t inlines_find(const struct inlines *i, uint64_t address);
