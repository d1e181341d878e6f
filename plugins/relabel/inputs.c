/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that came in. Contract in inputs.h. */
#include "inputs.h"

#include "base/hash.h"

#include <stdlib.h>

void inputs_free(struct inputs *inputs)
{
	vec_free(&inputs->list);
	index_free(&inputs->index);
}

static uint64_t hash_of(uint64_t producer, uint64_t row)
{
	return hash_mix(producer, row);
}

struct probe {
	const struct inputs *inputs;
	uint64_t producer, row;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *p = context;
	const struct input *input = &p->inputs->list.p[position];

	return input->producer == p->producer && input->row == p->row;
}

struct input *inputs_find(struct inputs *inputs, uint64_t producer, uint64_t row)
{
	const struct probe probe = {inputs, producer, row};
	uint32_t at = index_find(&inputs->index, hash_of(producer, row), same, &probe);

	return at == INDEX_NONE ? NULL : &inputs->list.p[at];
}

struct input *inputs_get(struct inputs *inputs, uint64_t producer, uint64_t row)
{
	struct input *input = inputs_find(inputs, producer, row);
	size_t n = inputs->list.n;

	if (input)
		return input;
	if (n >= INDEX_NONE - 1 || !vec_reserve(&inputs->list, 1) ||
	    index_add(&inputs->index, hash_of(producer, row), (uint32_t)n) < 0)
		return NULL;
	inputs->list.p[inputs->list.n++] = (struct input){.producer = producer, .row = row};
	return &inputs->list.p[n];
}

void inputs_remove(struct inputs *inputs, struct input *input)
{
	uint32_t at = (uint32_t)(input - inputs->list.p), last = (uint32_t)inputs->list.n - 1;

	index_remove(&inputs->index, hash_of(input->producer, input->row), at);
	if (at != last) {
		*input = inputs->list.p[last];
		index_move(&inputs->index, hash_of(input->producer, input->row), last, at);
	}
	inputs->list.n--;
}
