/* SPDX-License-Identifier: Apache-2.0 */
/* The state of each input target, by producer and row. Labels are not kept (relabel.h). */
#pragma once

#include "base/index.h"
#include "base/vec.h"

#include <stdint.h>

struct input {
	uint64_t producer, row;
	uint64_t hash;        /* of the labels and the order sent last */
	uint64_t output : 47; /* the id of its row in the output; 0: it has none */
	uint64_t round : 16;  /* the resend that it was sent in last */
	uint64_t seen : 1;    /* in the SNAPSHOT that is being applied */
};

#define INPUT_OUTPUT_MAX ((UINT64_C(1) << 47) - 1) /* a million a second for four years */

struct inputs {
	VEC(struct input) list;
	struct index index;
};

void inputs_free(struct inputs *inputs);

/* The input of that id, NULL if there is none; borrowed until the next is added or removed. O(1) */
struct input *inputs_find(struct inputs *inputs, uint64_t producer, uint64_t row);
/* The same, made if need be; NULL when memory is short. */
struct input *inputs_get(struct inputs *inputs, uint64_t producer, uint64_t row);
/* The last one takes its place. */
void inputs_remove(struct inputs *inputs, struct input *input);
