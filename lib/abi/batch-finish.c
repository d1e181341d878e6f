/* SPDX-License-Identifier: Apache-2.0 */
/* Finishing a batch: all new columns in one segment, the rest borrowed from the parent. From here
 * on it is immutable, and counted. Contract in batch-build.h. */
#include "abi/batch-parts.h"

#include "base/check.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A finished batch: the header, its tables and its one segment in a block, freed by the last
 * release. */
struct owned {
	struct andiron_batch batch;
	atomic_uint references;
	const struct andiron_batch *parent;
	struct held_object *held;
	size_t n_held;
	void *data;
	struct andiron_column columns[N_COLUMNS];
	struct andiron_segment segments[];
};

static void owned_retain(void *owner)
{
	struct owned *o = owner;

	atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
}

static void owned_release(void *owner)
{
	struct owned *o = owner;

	unsigned int before = atomic_fetch_sub_explicit(&o->references, 1, memory_order_acq_rel);

	check(before > 0);
	if (before > 1)
		return;
	for (size_t i = 0; i < o->n_held; i++)
		o->held[i].objects->release(o->held[i].self, o->held[i].id);
	free(o->held);
	if (o->parent)
		batch_release(o->parent);
	free(o->data);
	free(o);
}

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Whether this builder, not its parent, provides the column. */
static bool provides(const struct batch_builder *b, uint32_t column)
{
	return b->tables[column].n > 0;
}

static size_t layout_size(const struct batch_builder *b)
{
	size_t size = align8(b->bytes.n);

	for (uint32_t c = 1; c < N_COLUMNS; c++)
		size += align8(b->tables[c].n * b->tables[c].elem_size);
	return size;
}

/* Strings' bytes come first, so that their offsets hold as they are. */
static void lay_out(const struct batch_builder *b, struct owned *o, char *data)
{
	size_t at = align8(b->bytes.n);

	if (b->bytes.n)
		memcpy(data, b->bytes.p, b->bytes.n);
	for (uint32_t c = 1; c < N_COLUMNS; c++) {
		const struct table *t = &b->tables[c];

		if (!provides(b, c))
			continue;
		memcpy(data + at, t->p, t->n * t->elem_size);
		check(o->batch.n_columns < N_COLUMNS);
		o->columns[o->batch.n_columns++] = (struct andiron_column){
			.id = c,
			.elem_size = t->elem_size,
			.segment = b->segment,
			.offset = at,
			.count = t->n,
		};
		at += align8(t->n * t->elem_size);
	}
}

static void borrow_parent(const struct batch_builder *b, struct owned *o)
{
	const struct andiron_batch *p = b->parent;

	for (uint32_t i = 0; i < p->n_columns; i++)
		if (p->columns[i].id < N_COLUMNS && !provides(b, p->columns[i].id) &&
		    !b->tables[p->columns[i].id].replaced)
			o->columns[o->batch.n_columns++] = p->columns[i];
	memcpy(o->segments, p->segments, p->n_segments * sizeof(*p->segments));
}

static void fill_header(const struct batch_builder *b, const struct batch_head *head,
			struct owned *o, size_t bytes)
{
	o->batch = (struct andiron_batch){
		.size = sizeof(o->batch),
		.demangle = head->demangle,
		.n_segments = b->segment + 1,
		.columns = o->columns,
		.segments = o->segments,
		.start_ns = head->start_ns,
		.end_ns = head->end_ns,
		.samples = b->samples,
		.bytes = bytes + sizeof(*o),
		.producer = head->producer,
		.sequence = head->sequence,
		.owner = o,
		.retain = owned_retain,
		.release = owned_release,
	};
	atomic_init(&o->references, 1);
	o->held = b->held.p;
	o->n_held = b->held.n;
	o->parent = b->parent;
}

int batch_finish(struct batch_builder *b, const struct batch_head *head,
		 const struct andiron_batch **ret)
{
	size_t size = layout_size(b);
	struct batch_head inherited;
	struct owned *o = NULL;
	void *data = NULL;
	int r = b->failed;

	if (!r && size > ANDIRON_BATCH_MAX_BYTES)
		r = -E2BIG;
	if (!r) {
		o = calloc(1, sizeof(*o) + (b->segment + 1) * sizeof(*o->segments));
		data = malloc(size ? size : 8);
	}
	if (!r && (!o || !data))
		r = -ENOMEM;
	if (r < 0) {
		free(o);
		free(data);
		batch_builder_free(b);
		return r;
	}
	if (b->parent) {
		inherited = (struct batch_head){b->parent->start_ns, b->parent->end_ns,
						b->parent->producer, b->parent->sequence,
						b->parent->demangle};
		head = &inherited;
	}
	fill_header(b, head, o, size);
	o->data = data;
	if (b->parent)
		borrow_parent(b, o);
	check(b->segment == 0 || b->parent);
	o->segments[b->segment] = (struct andiron_segment){data, size, -1, 0};
	lay_out(b, o, data);
	/* These have passed over to the batch. */
	b->held.p = NULL;
	b->held.n = 0;
	b->parent = NULL;
	batch_builder_free(b);
	*ret = &o->batch;
	return 0;
}
