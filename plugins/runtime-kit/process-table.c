/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets by pid, since all that happens to a process is told by it. */
#include "runtime-kit/process-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int process_table_init(struct process_table *t, uint32_t max_living, uint32_t max_gone)
{
	uint32_t n = 64;

	while (n < max_living + max_gone)
		n *= 2;
	*t = (struct process_table){.max_living = max_living, .max_gone = max_gone};
	t->buckets = calloc(n, sizeof(struct process_entry *));
	t->n_buckets = t->buckets ? n : 0;
	return t->buckets ? 0 : -ENOMEM;
}

void process_table_fini(struct process_table *t)
{
	free(t->buckets);
	*t = (struct process_table){0};
}

static struct process_entry **bucket_of(const struct process_table *t, uint32_t pid)
{
	return &t->buckets[pid & (t->n_buckets - 1)];
}

struct process_entry *process_table_living(const struct process_table *t, uint32_t pid)
{
	struct process_entry *e = *bucket_of(t, pid);

	while (e && (e->key.pid != pid || e->gone))
		e = e->next;
	return e;
}

static bool is_same(const struct andiron_runtime_process *a,
		    const struct andiron_runtime_process *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns;
}

struct process_entry *process_table_find(const struct process_table *t,
					 const struct andiron_runtime_process *key)
{
	struct process_entry *found = NULL;

	for (struct process_entry *e = *bucket_of(t, key->pid); e; e = e->next) {
		if (!is_same(&e->key, key))
			continue;
		if (e->key.exec_generation == key->exec_generation)
			return e;
		if (!found || found->id < e->id)
			found = e;
	}
	return found;
}

static void let_go(struct process_table *t, struct process_entry *e)
{
	e->gone = true;
	e->older = t->newest;
	e->newer = NULL;
	if (t->newest)
		t->newest->newer = e;
	else
		t->oldest = e;
	t->newest = e;
	t->n_living--;
	t->n_gone++;
}

/* Out of the list of those that have gone. */
static void unlink_gone(struct process_table *t, struct process_entry *e)
{
	if (e->older)
		e->older->newer = e->newer;
	else
		t->oldest = e->newer;
	if (e->newer)
		e->newer->older = e->older;
	else
		t->newest = e->older;
	e->older = e->newer = NULL;
	t->n_gone--;
}

struct process_claim process_table_claim(struct process_table *t,
					 const struct andiron_runtime_process *key)
{
	struct process_entry *living = process_table_living(t, key->pid);
	struct process_entry *own = process_table_find(t, key);
	struct process_claim ret = {0};

	if (own && own->key.exec_generation == key->exec_generation)
		ret.entry = own;
	if (living && living != ret.entry) {
		let_go(t, living);
		ret.replaced = true;
	}
	if (ret.entry && ret.entry->gone) {
		unlink_gone(t, ret.entry);
		ret.entry->gone = false;
		t->n_living++;
		ret.revived = true;
	}
	return ret;
}

int process_table_add(struct process_table *t, struct process_entry *e,
		      const struct andiron_runtime_process *key)
{
	struct process_entry **bucket = bucket_of(t, key->pid);

	if (t->n_living >= t->max_living)
		return -ENOSPC;
	*e = (struct process_entry){.key = *key, .id = ++t->last_id, .next = *bucket};
	*bucket = e;
	t->n_living++;
	return 0;
}

struct process_entry *process_table_gone(struct process_table *t,
					 const struct andiron_runtime_process *key)
{
	struct process_entry *e = process_table_living(t, key->pid);

	if (!e || !is_same(&e->key, key))
		return NULL;
	let_go(t, e);
	return e;
}

static struct process_entry *take_out(struct process_table *t, struct process_entry *e)
{
	struct process_entry **at = bucket_of(t, e->key.pid);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	if (e->gone)
		unlink_gone(t, e);
	else
		t->n_living--;
	return e;
}

struct process_entry *process_table_excess(struct process_table *t)
{
	return t->n_gone > t->max_gone ? take_out(t, t->oldest) : NULL;
}

struct process_entry *process_table_take(struct process_table *t)
{
	for (uint32_t i = 0; i < t->n_buckets; i++)
		if (t->buckets[i])
			return take_out(t, t->buckets[i]);
	return NULL;
}
