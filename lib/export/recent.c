/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of the last time. Contract in recent.h. */
#include "export/recent.h"

#include "abi/batch-view.h"

/* The oldest n. */
static void forget(struct recent *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		r->bytes -= r->batches.p[i]->bytes;
		r->batches.p[i]->release(r->batches.p[i]->owner);
	}
	for (size_t i = n; i < r->batches.n; i++)
		r->batches.p[i - n] = r->batches.p[i];
	r->batches.n -= n;
}

static bool has_rows(const struct andiron_batch *batch)
{
	struct batch_view view;

	return batch_view_init(&view, batch) == 0 && batch_count(&view, ANDIRON_COL_ROW) > 0;
}

void recent_take(struct recent *r, const struct andiron_batch *batch)
{
	size_t old = 0;
	uint64_t bytes;

	if (batch->bytes > r->max_bytes || !has_rows(batch) || !vec_push(&r->batches, batch))
		return;
	batch->retain(batch->owner);
	r->bytes += batch->bytes;
	bytes = r->bytes;
	/* A clock that was set back leaves some in the future. */
	while (bytes > r->max_bytes || r->batches.p[old]->end_ns < batch->end_ns - r->keep_ns ||
	       r->batches.p[old]->end_ns > batch->end_ns + r->keep_ns)
		bytes -= r->batches.p[old++]->bytes;
	forget(r, old);
}

void recent_forget(struct recent *r, int64_t before_ns)
{
	size_t old = 0;

	while (old < r->batches.n && r->batches.p[old]->end_ns < before_ns)
		old++;
	forget(r, old);
}

void recent_fini(struct recent *r)
{
	forget(r, r->batches.n);
	vec_free(&r->batches);
}
