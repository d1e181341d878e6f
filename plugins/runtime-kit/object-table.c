/* SPDX-License-Identifier: Apache-2.0 */
/* Chains in buckets, and a list by use: a table in which one entry takes another's place would read
 * two files again at each claim of a process that has both. */
#include "runtime-kit/object-table.h"

#include <andiron/object.h>

#include <errno.h>
#include <stdlib.h>

int object_table_init(struct object_table *t, const struct andiron_extension *objects, uint32_t max,
		      uint32_t n_slots)
{
	uint32_t n = 64;

	while (n < max)
		n *= 2;
	*t = (struct object_table){.objects = objects, .max = max, .n_slots = n_slots};
	t->buckets = calloc(n, sizeof(struct object_entry *));
	t->slots = calloc(n_slots ? n_slots : 1, sizeof(struct object_entry *));
	t->n_buckets = n;
	if (t->buckets && t->slots)
		return 0;
	object_table_fini(t);
	return -ENOMEM;
}

void object_table_fini(struct object_table *t)
{
	free(t->buckets);
	free(t->slots);
	*t = (struct object_table){0};
}

static struct object_entry **bucket_of(const struct object_table *t, uint64_t object)
{
	return &t->buckets[(object * 0x9e3779b97f4a7c15u) >> 32 & (t->n_buckets - 1)];
}

static void link_newest(struct object_table *t, struct object_entry *e)
{
	e->older = t->newest;
	e->newer = NULL;
	if (t->newest)
		t->newest->newer = e;
	else
		t->oldest = e;
	t->newest = e;
}

static void unlink_use(struct object_table *t, struct object_entry *e)
{
	if (e->older)
		e->older->newer = e->newer;
	else
		t->oldest = e->newer;
	if (e->newer)
		e->newer->older = e->older;
	else
		t->newest = e->older;
}

struct object_entry *object_table_find(struct object_table *t, uint64_t object)
{
	struct object_entry *e = *bucket_of(t, object);

	while (e && e->object != object)
		e = e->next;
	if (e && e != t->newest) {
		unlink_use(t, e);
		link_newest(t, e);
	}
	return e;
}

int object_table_open(const struct object_table *t, uint64_t object, int *ret_fd)
{
	const struct andiron_objects *objects = t->objects->table;
	int32_t fd, r = objects->open(t->objects->self, object, ANDIRON_OPEN_FILE, &fd);

	if (r == 0)
		*ret_fd = fd;
	return r;
}

void object_table_add(struct object_table *t, struct object_entry *e, uint64_t object)
{
	struct object_entry **bucket = bucket_of(t, object);

	*e = (struct object_entry){.object = object, .slot = OBJECT_NO_SLOT, .next = *bucket};
	*bucket = e;
	link_newest(t, e);
	t->n++;
}

int object_table_retain(struct object_table *t, struct object_entry *e)
{
	uint32_t at = OBJECT_NO_SLOT;

	if (e->slot != OBJECT_NO_SLOT) {
		e->n_users++;
		return 0;
	}
	for (uint32_t i = 0; i < t->n_slots; i++) {
		if (!t->slots[i]) {
			at = i;
			break;
		}
		if (t->slots[i]->n_users == 0)
			at = i;
	}
	if (at == OBJECT_NO_SLOT)
		return -ENOSPC;
	if (t->slots[at])
		t->slots[at]->slot = OBJECT_NO_SLOT;
	t->slots[at] = e;
	e->slot = at;
	e->n_users++;
	return 1;
}

void object_table_release(struct object_entry *e)
{
	e->n_users--;
}

static struct object_entry *take_out(struct object_table *t, struct object_entry *e)
{
	struct object_entry **at = bucket_of(t, e->object);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	unlink_use(t, e);
	if (e->slot != OBJECT_NO_SLOT)
		t->slots[e->slot] = NULL;
	t->n--;
	return e;
}

struct object_entry *object_table_excess(struct object_table *t)
{
	struct object_entry *e = t->n > t->max ? t->oldest : NULL;

	while (e && (e->n_users > 0 || e == t->newest))
		e = e->newer;
	return e ? take_out(t, e) : NULL;
}

struct object_entry *object_table_take(struct object_table *t)
{
	return t->newest ? take_out(t, t->newest) : NULL;
}
