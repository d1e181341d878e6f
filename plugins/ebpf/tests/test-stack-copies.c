/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of stacks that come in parts: what belongs together is put together, and nothing else is;
 * and walks over them. */
#include "ebpf/unwinding/stack-copies.h"

#include "testing/test.h"

#include <stdlib.h>
#include <string.h>

#define SP       UINT64_C(0x7ff000000a08)
#define START    UINT64_C(0x7ff000000a00)
#define OUTER    UINT64_C(0x7ff000090000)
#define OTHER    UINT64_C(0xc000012000)
#define WHOLE    SAMPLER_SNAPSHOT_BYTES
#define IN_OUTER (SAMPLER_COPY_OUTER * SAMPLER_SNAPSHOT_PARTS) /* the number of its first part */
#define IN_OTHER (SAMPLER_COPY_OTHER * SAMPLER_SNAPSHOT_PARTS)

#if defined(__aarch64__)
#define FP UNWIND_ARM_FP
#else
#define FP UNWIND_X86_RBP
#endif

struct desk {
	uint16_t slot; /* of a claim on all code */
	struct stack_copies copies;
	struct sampler_snapshot *record;
	struct walk_stack stacks[SAMPLER_COPIES];
};

static struct desk desk_new(void)
{
	struct desk d = {.record = calloc(1, sizeof(*d.record))};

	expect(d.record != NULL);
	d.record->regs[WALK_STACK_POINTER] = SP;
	return d;
}

static void desk_free(struct desk *d)
{
	stack_copies_free(&d->copies);
	free(d->record);
}

/* What each copy begins at. */
static const uint64_t starts[SAMPLER_COPIES] = {START, OUTER, OTHER};

static void fill(struct desk *d, uint64_t id, uint64_t part, uint32_t n)
{
	d->record->id = id;
	d->record->part = part;
	d->record->n = n;
	d->record->at = starts[part / SAMPLER_SNAPSHOT_PARTS % SAMPLER_COPIES] +
			part % SAMPLER_SNAPSHOT_PARTS * WHOLE;
	memset(d->record->stack, (int)part + 1, sizeof(d->record->stack));
}

static void add(struct desk *d, uint64_t id, uint64_t part, uint32_t n)
{
	fill(d, id, part, n);
	stack_copies_add(&d->copies, d->record);
}

static void take(struct desk *d, uint64_t id, uint32_t n)
{
	fill(d, id, 0, n);
	stack_copies_take(&d->copies, d->record, d->stacks);
}

/* Bytes of the stack, and of which part each is. */
static void expect_parts(const struct walk_stack *stack, uint64_t at, uint64_t n, int first)
{
	expect_eq(stack->at, at);
	expect_eq(stack->n, n);
	for (uint64_t i = 0; i < n && i < stack->n; i++)
		expect_eq(stack->p[i], first + 1 + (int)(i / WHOLE));
}

/* A snapshot alone is its own copy. */
TEST(one_part_is_a_stack)
{
	struct desk d = desk_new();

	take(&d, 1, 512);
	expect_parts(&d.stacks[SAMPLER_COPY_STACK], START, 512, 0);
	expect(d.stacks[SAMPLER_COPY_STACK].p == d.record->stack);
	expect_eq(d.stacks[SAMPLER_COPY_OTHER].n, 0);
	desk_free(&d);
}

/* Parts come upwards, the first one last. */
TEST(deep_stacks_are_put_together)
{
	struct desk d = desk_new();

	add(&d, 1, 1, WHOLE);
	add(&d, 2, 1, 512);
	add(&d, 1, 2, 1024);
	take(&d, 1, WHOLE);
	expect_parts(&d.stacks[SAMPLER_COPY_STACK], START, 2 * WHOLE + 1024, 0);
	take(&d, 2, WHOLE);
	expect_parts(&d.stacks[SAMPLER_COPY_STACK], START, WHOLE + 512, 0);
	take(&d, 2, WHOLE); /* what was taken is gone */
	expect_parts(&d.stacks[SAMPLER_COPY_STACK], START, WHOLE, 0);
	desk_free(&d);
}

/* The outer end and the other stack come before, and need no whole first part beside them. */
TEST(other_copies_come_with_it)
{
	struct desk d = desk_new();

	add(&d, 1, IN_OTHER, WHOLE);
	add(&d, 1, IN_OTHER + 1, 512);
	add(&d, 1, IN_OUTER, WHOLE);
	add(&d, 1, IN_OUTER + 1, 1024);
	add(&d, 1, 1, 2048);
	take(&d, 1, WHOLE);
	expect_parts(&d.stacks[SAMPLER_COPY_STACK], START, WHOLE + 2048, 0);
	expect_parts(&d.stacks[SAMPLER_COPY_OUTER], OUTER, WHOLE + 1024, IN_OUTER);
	expect_parts(&d.stacks[SAMPLER_COPY_OTHER], OTHER, WHOLE + 512, IN_OTHER);
	add(&d, 2, IN_OTHER, 512);
	take(&d, 2, 1024);
	expect_parts(&d.stacks[SAMPLER_COPY_STACK], START, 1024, 0);
	expect_parts(&d.stacks[SAMPLER_COPY_OTHER], OTHER, 512, IN_OTHER);
	expect_eq(d.stacks[SAMPLER_COPY_OUTER].n, 0);
	add(&d, 3, 1, 512);
	take(&d, 3, WHOLE);
	expect_eq(d.stacks[SAMPLER_COPY_OTHER].n, 0); /* nobody else's */
	desk_free(&d);
}

/* Behind a part that was lost nothing is next to what is before it. */
TEST(gaps_end_a_copy)
{
	struct desk d = desk_new();

	add(&d, 1, 2, WHOLE);
	add(&d, 1, IN_OTHER + 1, WHOLE);
	take(&d, 1, WHOLE);
	expect_parts(&d.stacks[SAMPLER_COPY_STACK], START, WHOLE, 0);
	expect_eq(d.stacks[SAMPLER_COPY_OTHER].n, 0);
	add(&d, 2, 1, WHOLE);
	add(&d, 2, 3, WHOLE);
	take(&d, 2, WHOLE - 512); /* memory that was not there */
	expect_parts(&d.stacks[SAMPLER_COPY_STACK], START, WHOLE - 512, 0);
	for (uint64_t i = 1; i < 100; i++) {
		add(&d, 3, i, WHOLE);
		add(&d, 3, UINT64_MAX - i, WHOLE);
	}
	take(&d, 3, WHOLE);
	expect_eq(d.stacks[SAMPLER_COPY_STACK].n, SAMPLER_SNAPSHOT_PARTS * (uint64_t)WHOLE);
	expect_eq(d.stacks[SAMPLER_COPY_OTHER].n, SAMPLER_SNAPSHOT_PARTS * (uint64_t)WHOLE);
	desk_free(&d);
}

/* Snapshots that never come take no room for ever, and room that nobody needs is given back. */
TEST(room_is_bounded)
{
	struct desk d = desk_new();

	for (uint64_t id = 1; id <= 3 * STACK_COPIES_MAX; id++)
		add(&d, id, 1, 512);
	take(&d, 1, WHOLE);
	expect_eq(d.stacks[SAMPLER_COPY_STACK].n, WHOLE);
	take(&d, 3 * STACK_COPIES_MAX, WHOLE);
	expect_eq(d.stacks[SAMPLER_COPY_STACK].n, WHOLE + 512);
	stack_copies_rest(&d.copies);
	expect(d.copies.of[0].bytes[0] != NULL);
	stack_copies_rest(&d.copies);
	for (size_t i = 0; i < STACK_COPIES_MAX; i++)
		expect(!d.copies.of[i].bytes[0] && !d.copies.of[i].used);
	desk_free(&d);
}

static const uint8_t *slab_at(void *context, uint32_t number)
{
	return number == 0 ? context : NULL;
}

/* Walks by frame pointers, in one mapping that has all code; why it ended. */
static uint32_t walk(struct desk *d, struct andiron_walk *w)
{
	const struct unwind_mapping mapping = {
		.end = 0x500000, .kind = UNWIND_KIND_FRAMES, .slot = d->slot};
	static const uint64_t start = 0x400000;
	uint8_t *slab = calloc(1, UNWIND_SLAB_BYTES + UNWIND_SLAB_SPARE);
	struct walk_tables tables = {.context = slab, .slab = slab_at, .pc_mask = ~0ull};

	expect(slab != NULL);
	memcpy(slab + 8, &start, sizeof(start));
	memcpy(slab + 16, &mapping, sizeof(mapping));
	d->record->pc = start + 8;
	d->record->known = ~0u;
	d->record->exact = 1;
	walk_snapshot(&tables, d->record, d->stacks, unwind_space_word(unwind_ref(0, 8), 1, 1), w);
	free(slab);
	return w->end;
}

/* Where frame pointers lead to another stack of the thread, as they do where Go calls C and C calls
 * Go, the walk goes on there, and comes back; what lies outside of both is not there, were it next
 * to one. */
TEST(walks_go_to_another_stack_and_back)
{
	enum { CALLED = 0x400010, N = 48 };
	const uint64_t first[] = {OTHER, CALLED}, last[] = {0, 0},
		       other[N / 8] = {OTHER + 32, CALLED, 0, 0, START + 256, CALLED};
	struct andiron_walk w;
	struct desk d = desk_new();

	take(&d, 1, 1024);
	memcpy(d.record->stack + 128, first, sizeof(first));
	memcpy(d.record->stack + 256, last, sizeof(last));
	d.record->regs[FP] = START + 128;
	expect_eq(walk(&d, &w), UNWIND_END_CUT);
	expect_eq(w.n_words, 2);
	d.stacks[SAMPLER_COPY_OTHER] = (struct walk_stack){(const uint8_t *)other, N, OTHER};
	expect_eq(walk(&d, &w), UNWIND_END_COMPLETE);
	expect_eq(w.n_words, 4);
	d.stacks[SAMPLER_COPY_OTHER].n = N - 8; /* half of a frame */
	expect_eq(walk(&d, &w), UNWIND_END_CUT);
	expect_eq(w.n_words, 3);
	d.stacks[SAMPLER_COPY_OTHER].at = OTHER + 8;
	expect_eq(walk(&d, &w), UNWIND_END_CUT);
	expect_eq(w.n_words, 2);
	d.slot = 3; /* a compiler's memory, which may use frame pointers otherwise */
	expect_eq(walk(&d, &w), UNWIND_END_RUNTIME);
	expect_eq(w.n_words, 0);
	desk_free(&d);
}
