/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of what is due. */
#include "http/due-heap.h"

#include "testing/test.h"

#define N 500

/* Whatever is added and taken out, what is left comes in the order of time. */
TEST(what_is_left_comes_in_order)
{
	static struct due items[N];
	struct due_heap heap = {0};
	uint32_t state = 1, left = 0;
	int64_t last = -1;

	for (size_t i = 0; i < N; i++) {
		state = state * 1664525 + 1013904223;
		items[i] = (struct due){.at_ns = state >> 20, .place = DUE_NOWHERE};
		expect(due_add(&heap, &items[i]));
	}
	for (size_t i = 0; i < N; i += 3)
		due_remove(&heap, &items[i]);
	due_remove(&heap, &items[0]); /* once more: nothing */
	for (struct due *first; (first = due_first(&heap)); left++) {
		expect(first->at_ns >= last);
		last = first->at_ns;
		due_remove(&heap, first);
		expect_eq(first->place, DUE_NOWHERE);
	}
	expect_eq(left, N - (N + 2) / 3);
	vec_free(&heap.items);
}
