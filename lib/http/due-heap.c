/* SPDX-License-Identifier: Apache-2.0 */
/* The heap. Contract in due-heap.h. */
#include "http/due-heap.h"

#include "base/check.h"

static void put(struct due_heap *heap, uint32_t at, struct due *item)
{
	heap->items.p[at] = item;
	item->place = at;
}

static void sift_up(struct due_heap *heap, uint32_t at, struct due *item)
{
	while (at > 0 && heap->items.p[(at - 1) / 2]->at_ns > item->at_ns) {
		put(heap, at, heap->items.p[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(heap, at, item);
}

static void sift_down(struct due_heap *heap, uint32_t at, struct due *item)
{
	uint32_t n = (uint32_t)heap->items.n, child;

	while ((child = 2 * at + 1) < n) {
		child += child + 1 < n &&
			 heap->items.p[child + 1]->at_ns < heap->items.p[child]->at_ns;
		if (heap->items.p[child]->at_ns >= item->at_ns)
			break;
		put(heap, at, heap->items.p[child]);
		at = child;
	}
	put(heap, at, item);
}

bool due_add(struct due_heap *heap, struct due *item)
{
	check(item->place == DUE_NOWHERE);
	if (!vec_push(&heap->items, item))
		return false;
	sift_up(heap, (uint32_t)heap->items.n - 1, item);
	return true;
}

void due_remove(struct due_heap *heap, struct due *item)
{
	uint32_t at = item->place;
	struct due *last;

	if (at == DUE_NOWHERE)
		return;
	check(at < heap->items.n && heap->items.p[at] == item);
	last = heap->items.p[--heap->items.n];
	item->place = DUE_NOWHERE;
	if (last == item)
		return;
	if (at > 0 && heap->items.p[(at - 1) / 2]->at_ns > last->at_ns)
		sift_up(heap, at, last);
	else
		sift_down(heap, at, last);
}
