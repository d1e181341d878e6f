/* SPDX-License-Identifier: Apache-2.0 */
/* Changed objects to updates. Contract in publish.h. */
#include "k8s-discovery/publish.h"

#include "abi/target-row.h"
#include "base/check.h"

#include <errno.h>

#define ROW_BITS 16

void publisher_fini(struct publisher *p)
{
	label_rows_fini(&p->rows);
}

void publisher_use(struct publisher *p, const struct role *role, const struct role_options *options)
{
	p->role = role;
	p->options = *options;
	p->rebuild = true;
}

void publisher_again(struct publisher *p)
{
	p->rebuild = true;
}

static struct builder builder_of(struct publisher *p)
{
	return (struct builder){p->store, p->options, &p->rows};
}

struct touch {
	const struct store *store;
	bool changed;
};

static void on_reference(void *context, enum kind kind, struct str namespace_, struct str name)
{
	struct touch *t = context;

	t->changed = t->changed || store_changed(t->store, kind, namespace_, name);
}

static bool is_primary(const struct publisher *p, const struct slot *s)
{
	return s->kind == p->role->primary;
}

/* Marks primary objects that refer to one that has changed. One look at all of them per update, and
 * only if some other object has changed. */
static int touch_referring(struct publisher *p)
{
	struct builder b = builder_of(p);

	for (uint32_t i = 0; i < p->store->slots.n; i++) {
		const struct slot *s = &p->store->slots.p[i];
		struct touch t = {p->store, false};

		if (!s->object || s->gone || s->dirty || !is_primary(p, s))
			continue;
		role_references(p->role, &b, s->object, on_reference, &t);
		if (t.changed && store_touch(p->store, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int touch_all(struct publisher *p)
{
	for (uint32_t i = 0; i < p->store->slots.n; i++)
		if (p->store->slots.p[i].object && store_touch(p->store, i) < 0)
			return -ENOMEM;
	p->rebuild = false;
	return 0;
}

/* Settles what is no primary object; primary ones move up. With rows of an earlier role it is
 * treated like a primary object that went. */
static int settle_others(struct publisher *p)
{
	struct store *store = p->store;
	size_t kept = 0;
	bool any = false;
	int r = p->rebuild ? touch_all(p) : 0;

	for (size_t i = 0; i < store->dirty.n && r == 0 && !any; i++)
		any = !is_primary(p, &store->slots.p[store->dirty.p[i]]);
	if (r == 0 && any)
		r = touch_referring(p);
	if (r < 0 || !any)
		return r;
	for (size_t i = 0; i < store->dirty.n; i++) {
		uint32_t slot = store->dirty.p[i];

		if (is_primary(p, &store->slots.p[slot]) || store->slots.p[slot].rows)
			store->dirty.p[kept++] = slot;
		else
			store_settle(store, slot);
	}
	store->dirty.n = kept;
	return 0;
}

static struct target_row row_of(const struct publisher *p, uint32_t slot, size_t i)
{
	const struct row *row = &p->rows.rows.p[i];
	uint64_t id = (uint64_t)slot << ROW_BITS | i;
	const struct target_label *labels = p->rows.labels.p + row->first;

	return (struct target_row){.producer = p->producer,
				   .row = id,
				   .order = id,
				   .fingerprint = target_labels_hash(labels, row->n),
				   .labels = labels,
				   .n_labels = row->n};
}

static void make(struct publisher *p, const struct slot *s)
{
	struct builder b = builder_of(p);

	label_rows_begin(&p->rows);
	if (!s->gone && is_primary(p, s))
		p->role->build(&b, s->object);
}

/* Adds what has become of one object. Only new rows or only replaced ones, as
 * `added` says: an update has the new ones first. */
static void add_rows(struct publisher *p, struct update_builder *u, uint32_t slot, bool added)
{
	const struct slot *s = &p->store->slots.p[slot];

	make(p, s);
	for (size_t i = 0; i < p->rows.rows.n; i++) {
		struct target_row row = row_of(p, slot, i);

		if ((i >= s->rows) == added)
			update_add(u, &row);
	}
	for (size_t i = p->rows.rows.n; i < s->rows && !added; i++)
		update_remove(u, (uint64_t)slot << ROW_BITS | i);
	u->failed |= p->rows.failed;
}

/* How many of the dirty objects fit into one update: made once to be counted (into counts), so that
 * what follows knows how many rows each has. */
static size_t fill(struct publisher *p, struct update_builder *u, uint16_t *counts)
{
	size_t n = 0, rows = 0;

	while (n < p->store->dirty.n && n < PUBLISH_ROWS && rows < PUBLISH_ROWS && !u->failed) {
		add_rows(p, u, p->store->dirty.p[n], true);
		rows += p->rows.rows.n;
		counts[n++] = (uint16_t)p->rows.rows.n;
	}
	u->n_added = u->rows.n;
	for (size_t i = 0; i < n && !u->failed; i++)
		if (p->store->slots.p[p->store->dirty.p[i]].rows)
			add_rows(p, u, p->store->dirty.p[i], false);
	return n;
}

/* What has been published is no longer dirty. */
static void settle(struct publisher *p, size_t n, const uint16_t *counts)
{
	struct store *store = p->store;

	for (size_t i = 0; i < n; i++) {
		struct slot *s = &store->slots.p[store->dirty.p[i]];

		p->targets += counts[i];
		p->targets -= s->rows;
		s->rows = counts[i];
		store_settle(store, store->dirty.p[i]);
	}
	check(n <= store->dirty.n);
	store->dirty.n -= n;
	if (store->dirty.n)
		memmove(store->dirty.p, store->dirty.p + n,
			store->dirty.n * sizeof(*store->dirty.p));
	else
		vec_free(&store->dirty);
}

int publisher_next(struct publisher *p, const struct andiron_targets **ret, bool *ret_more)
{
	bool first = p->generation == 0;
	uint16_t counts[PUBLISH_ROWS];
	struct update_builder u = {0};
	size_t n;
	int r = settle_others(p);

	if (r < 0)
		return r;
	*ret = NULL;
	*ret_more = false;
	if (p->store->dirty.n == 0 && !first)
		return 0;
	n = fill(p, &u, counts);
	check(!first || u.n_added == u.rows.n);
	if (!first && !u.failed && u.rows.n == 0 && u.removed.n == 0) {
		update_discard(&u); /* objects without targets */
	} else {
		r = update_finish(&u, p->producer, p->generation + 1,
				  first ? ANDIRON_TARGETS_SNAPSHOT : 0, ret);
		if (r < 0)
			return r;
		p->generation++;
	}
	settle(p, n, counts);
	*ret_more = p->store->dirty.n > 0;
	return 0;
}
