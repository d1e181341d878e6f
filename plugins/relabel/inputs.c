/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that came in. Contract in inputs.h. */
#include "relabel/inputs.h"

#include "abi/target-key.h"
#include "base/check.h"

#include <stdlib.h>

void inputs_free(struct inputs *inputs)
{
	vec_free(&inputs->list);
	index_free(&inputs->index);
}

static struct target_key key_at(const void *array, uint32_t position)
{
	const struct input *input = &((const struct input *)array)[position];

	return (struct target_key){input->producer, input->row};
}

struct input *inputs_find(struct inputs *inputs, uint64_t producer, uint64_t row)
{
	uint32_t at = target_key_find(&inputs->index, (struct target_key){producer, row}, key_at,
				      inputs->list.p);

	return at == INDEX_NONE ? NULL : &inputs->list.p[at];
}

struct input *inputs_get(struct inputs *inputs, uint64_t producer, uint64_t row)
{
	struct input *input = inputs_find(inputs, producer, row);
	size_t n = inputs->list.n;

	if (input)
		return input;
	if (!vec_reserve(&inputs->list, 1) ||
	    target_key_add(&inputs->index, (struct target_key){producer, row}, n) < 0)
		return NULL;
	inputs->list.p[inputs->list.n++] = (struct input){.producer = producer, .row = row};
	return &inputs->list.p[n];
}

void inputs_remove(struct inputs *inputs, struct input *input)
{
	uint32_t at = (uint32_t)(input - inputs->list.p), last = (uint32_t)inputs->list.n - 1;

	check(at <= last);
	target_key_remove(&inputs->index, at, last, key_at, inputs->list.p);
	*input = inputs->list.p[last];
	inputs->list.n--;
}
