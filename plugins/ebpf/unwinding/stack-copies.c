/* SPDX-License-Identifier: Apache-2.0 */
/* See stack-copies.h. */
#include "ebpf/unwinding/stack-copies.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)SAMPLER_SNAPSHOT_PARTS * SAMPLER_SNAPSHOT_BYTES)

void stack_copies_free(struct stack_copies *c)
{
	for (size_t i = 0; i < STACK_COPIES_MAX; i++)
		for (size_t k = 0; k < SAMPLER_COPIES; k++)
			free(c->of[i].bytes[k]);
	*c = (struct stack_copies){0};
}

static struct stack_copies_of *find(struct stack_copies *c, const struct sampler_snapshot *record)
{
	for (size_t i = 0; i < STACK_COPIES_MAX; i++)
		if (c->of[i].used && c->of[i].id == record->id && c->of[i].buffer == record->buffer)
			return &c->of[i];
	return NULL;
}

/* A slot for a stack whose first part has come; one whose snapshot never came is replaced. */
static struct stack_copies_of *begin(struct stack_copies *c, const struct sampler_snapshot *part)
{
	struct stack_copies_of *of = &c->of[c->n_begun++ % STACK_COPIES_MAX];

	of->id = part->id;
	of->buffer = part->buffer;
	of->used = 1;
	for (size_t k = 0; k < SAMPLER_COPIES; k++) {
		of->stacks[k] = (struct walk_stack){0};
		of->n_parts[k] = k == SAMPLER_COPY_STACK;
	}
	return of;
}

void stack_copies_add(struct stack_copies *c, const struct sampler_snapshot *part)
{
	struct stack_copies_of *of = find(c, part);
	uint64_t k = part->part / SAMPLER_SNAPSHOT_PARTS,
		 number = part->part % SAMPLER_SNAPSHOT_PARTS;

	if (k >= SAMPLER_COPIES || part->n > SAMPLER_SNAPSHOT_BYTES)
		return;
	if (!of && number == (k == SAMPLER_COPY_STACK))
		of = begin(c, part);
	if (!of || number != of->n_parts[k])
		return;
	if (!of->bytes[k])
		of->bytes[k] = malloc(BYTES_MAX);
	if (!of->bytes[k])
		return;
	if (number == 0)
		of->stacks[k].at = part->at;
	check((number + 1) * SAMPLER_SNAPSHOT_BYTES <= BYTES_MAX);
	memcpy(of->bytes[k] + number * SAMPLER_SNAPSHOT_BYTES, part->stack, part->n);
	of->stacks[k].p = of->bytes[k];
	of->stacks[k].n = number * SAMPLER_SNAPSHOT_BYTES + part->n;
	of->n_parts[k]++;
}

void stack_copies_take(struct stack_copies *c, const struct sampler_snapshot *snapshot,
		       struct walk_stack ret[SAMPLER_COPIES])
{
	struct stack_copies_of *of = find(c, snapshot);
	uint64_t at = sampler_snapshot_start(snapshot->regs[WALK_STACK_POINTER]);

	ret[SAMPLER_COPY_STACK] = (struct walk_stack){snapshot->stack, snapshot->n, at};
	for (size_t k = SAMPLER_COPY_STACK + 1; k < SAMPLER_COPIES; k++)
		ret[k] = of ? of->stacks[k] : (struct walk_stack){0};
	if (!of)
		return;
	if (snapshot->n == SAMPLER_SNAPSHOT_BYTES && of->stacks[SAMPLER_COPY_STACK].n) {
		check(of->bytes[SAMPLER_COPY_STACK]);
		memcpy(of->bytes[SAMPLER_COPY_STACK], snapshot->stack, snapshot->n);
		ret[SAMPLER_COPY_STACK] = (struct walk_stack){of->bytes[SAMPLER_COPY_STACK],
							      of->stacks[SAMPLER_COPY_STACK].n, at};
	}
	of->used = 0;
}

void stack_copies_rest(struct stack_copies *c)
{
	if (c->n_begun == 0)
		stack_copies_free(c);
	c->n_begun = 0;
}
