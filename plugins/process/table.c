/* SPDX-License-Identifier: Apache-2.0 */
/* Processes by pid. Contract in table.h. */
#include "process/table.h"

#include "base/check.h"
#include "base/hash.h"

#include <stddef.h>
#include <stdlib.h>

struct probe {
	const struct table *table;
	uint32_t pid;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *p = context;

	return p->table->processes.p[position]->pid == p->pid;
}

void table_fini(struct table *t)
{
	vec_each (&t->processes, p)
		free(*p);
	vec_free(&t->processes);
	index_free(&t->by_pid);
}

struct process *table_find(const struct table *t, uint32_t pid)
{
	const struct probe probe = {t, pid};
	uint32_t position = index_find(&t->by_pid, hash_u64(pid), same, &probe);

	return position == INDEX_NONE ? NULL : t->processes.p[position];
}

struct process *table_add(struct table *t, uint32_t pid, uint64_t start_ns)
{
	struct process *p;

	check(!table_find(t, pid));
	if (!vec_reserve(&t->processes, 1))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct process){.pid = pid,
			      .position = (uint32_t)t->processes.n,
			      .start_ns = start_ns,
			      .born = ++t->last_born};
	if (index_add(&t->by_pid, hash_u64(pid), p->position)) {
		free(p);
		return NULL;
	}
	t->processes.p[t->processes.n++] = p;
	return p;
}

void table_remove(struct table *t, struct process *p)
{
	struct process *last = t->processes.p[t->processes.n - 1];

	check(t->processes.p[p->position] == p);
	check(index_remove(&t->by_pid, hash_u64(p->pid), p->position));
	if (last != p) {
		index_move(&t->by_pid, hash_u64(last->pid), last->position, p->position);
		t->processes.p[p->position] = last;
		last->position = p->position;
	}
	t->processes.n--;
	free(p);
}

struct process *process_of(struct join_member *member)
{
	return (struct process *)(void *)((char *)member - offsetof(struct process, member));
}
