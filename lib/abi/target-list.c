/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's list. Each row carries what the next flush must say of it; a removed row stays as a
 * tombstone until then, so that removing and setting it again is one change. Contracts in
 * target-list.h. */
#include "abi/target-list.h"

#include "abi/target-row.h"
#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

enum state { CLEAN, ADDED, CHANGED, REMOVED };

struct entry {
	struct target_row row;
	struct target_label *labels;
	enum state state;
};

struct target_list {
	uint64_t producer;
	uint64_t generation; /* of the last flush; 0: none yet */
	VEC(struct entry) entries;
	struct index index;
	bool pending;
};

struct target_list *target_list_new(uint64_t producer)
{
	struct target_list *list = calloc(1, sizeof(*list));

	if (list)
		list->producer = producer;
	return list;
}

void target_list_free(struct target_list *list)
{
	if (!list)
		return;
	vec_each (&list->entries, e)
		free(e->labels);
	vec_free(&list->entries);
	index_free(&list->index);
	free(list);
}

struct probe {
	const struct target_list *list;
	uint64_t row;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *p = context;

	return p->list->entries.p[position].row.row == p->row;
}

static struct entry *find(const struct target_list *list, uint64_t row)
{
	struct probe probe = {list, row};
	uint32_t i = index_find(&list->index, hash_u64(row), same, &probe);

	return i == INDEX_NONE ? NULL : &list->entries.p[i];
}

static struct entry *append(struct target_list *list, uint64_t row)
{
	struct entry e = {.row = {.producer = list->producer, .row = row}, .state = ADDED};

	if (list->entries.n >= INDEX_NONE - 1 || !vec_reserve(&list->entries, 1) ||
	    index_add(&list->index, hash_u64(row), (uint32_t)list->entries.n) < 0)
		return NULL;
	list->entries.p[list->entries.n] = e;
	return &list->entries.p[list->entries.n++];
}

/* The last entry moves into the gap. */
static void erase(struct target_list *list, struct entry *e)
{
	uint32_t at = (uint32_t)(e - list->entries.p), last = (uint32_t)list->entries.n - 1;

	free(e->labels);
	index_remove(&list->index, hash_u64(e->row.row), at);
	if (at != last) {
		*e = list->entries.p[last];
		index_move(&list->index, hash_u64(e->row.row), last, at);
	}
	list->entries.n--;
}

int target_list_set(struct target_list *list, uint64_t row, uint64_t order,
		    const struct target_label *labels, size_t n)
{
	struct entry *e = find(list, row);
	struct target_label *copy;
	uint32_t n_copy;

	copy = target_labels_copy(labels, n, &n_copy);
	if (!copy)
		return -ENOMEM;
	if (e && e->state != REMOVED && e->row.order == order &&
	    target_labels_equal(e->row.labels, e->row.n_labels, copy, n_copy)) {
		free(copy);
		return 0;
	}
	if (!e)
		e = append(list, row);
	if (!e) {
		free(copy);
		return -ENOMEM;
	}
	free(e->labels);
	e->labels = copy;
	e->row.labels = copy;
	e->row.n_labels = n_copy;
	e->row.order = order;
	e->row.fingerprint = target_labels_hash(copy, n_copy);
	if (e->state != ADDED)
		e->state = CHANGED;
	list->pending = true;
	return 0;
}

static void mark_removed(struct target_list *list, struct entry *e)
{
	free(e->labels);
	e->labels = NULL;
	e->row.labels = NULL;
	e->row.n_labels = 0;
	e->state = REMOVED;
	list->pending = true;
}

void target_list_remove(struct target_list *list, uint64_t row)
{
	struct entry *e = find(list, row);

	if (e && e->state == ADDED)
		erase(list, e);
	else if (e)
		mark_removed(list, e);
}

void target_list_clear(struct target_list *list)
{
	/* Backwards, because erase fills the gap from the end. */
	for (size_t i = list->entries.n; i-- > 0;)
		target_list_remove(list, list->entries.p[i].row.row);
}

static void add_state(struct update_builder *u, const struct target_list *list, enum state state)
{
	vec_each (&list->entries, e)
		if (e->state == state)
			update_add(u, &e->row);
}

/* What was said is now clean; tombstones go. */
static void settle(struct target_list *list)
{
	for (size_t i = list->entries.n; i-- > 0;) {
		if (list->entries.p[i].state == REMOVED)
			erase(list, &list->entries.p[i]);
		else
			list->entries.p[i].state = CLEAN;
	}
	list->pending = false;
}

int target_list_flush(struct target_list *list, const struct andiron_targets **ret)
{
	bool first = list->generation == 0;
	struct update_builder u = {0};
	int r;

	if (!list->pending && !first) {
		*ret = NULL;
		return 0;
	}
	add_state(&u, list, ADDED);
	u.n_added = u.rows.n;
	add_state(&u, list, CHANGED);
	vec_each (&list->entries, e)
		if (e->state == REMOVED)
			update_remove(&u, e->row.row);
	check(!first || (u.n_added == u.rows.n && u.removed.n == 0));
	r = update_finish(&u, list->producer, list->generation + 1,
			  first ? ANDIRON_TARGETS_SNAPSHOT : 0, ret);
	if (r < 0)
		return r;
	list->generation++;
	settle(list);
	return 0;
}

int target_list_snapshot(struct target_list *list, const struct andiron_targets **ret)
{
	struct update_builder u = {0};

	check(!list->pending);
	vec_each (&list->entries, e)
		update_add(&u, &e->row);
	u.n_added = u.rows.n;
	return update_finish(&u, list->producer, list->generation, ANDIRON_TARGETS_SNAPSHOT, ret);
}
