/* SPDX-License-Identifier: Apache-2.0 */
/* See rule-table.h. */
#include "ebpf/unwind-store/rule-table.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>

struct sought {
	const struct rule_table *table;
	struct unwind_entry entry;
};

static bool same_rule(const void *context, uint32_t number)
{
	const struct sought *sought = context;
	const struct unwind_entry *e = &sought->table->entries[number];

	return e->rule == sought->entry.rule && e->aux == sought->entry.aux;
}

static uint64_t entry_hash(struct unwind_entry e)
{
	return hash_mix(e.rule, e.aux);
}

static struct rule_table_use *use(struct rule_table *b, uint32_t number)
{
	check(number > 0 && number <= b->uses.n);
	return &b->uses.p[number - 1];
}

void rule_table_init(struct rule_table *b, struct unwind_entry *entries)
{
	*b = (struct rule_table){.entries = entries};
}

void rule_table_fini(struct rule_table *b)
{
	vec_free(&b->uses);
	index_free(&b->index);
}

static void list(struct rule_table *b, uint32_t *head, uint32_t number)
{
	struct rule_table_use *u = use(b, number);

	if (u->listed)
		return;
	u->listed = true;
	u->next = *head;
	*head = number;
}

static int32_t add(struct rule_table *b, struct unwind_entry entry)
{
	uint32_t number = b->free;

	if (!number) {
		if (b->uses.n == UNWIND_RULES_MAX)
			return -ENOSPC;
		if (!vec_reserve(&b->uses, 1))
			return -ENOMEM;
		number = (uint32_t)b->uses.n + 1;
	}
	if (index_add(&b->index, entry_hash(entry), number) != 0)
		return -ENOMEM;
	if (number == b->free)
		b->free = use(b, number)->next;
	else
		b->uses.n++;
	*use(b, number) = (struct rule_table_use){0};
	check(b->entries[number].rule == 0);
	b->entries[number] = entry;
	b->n++;
	list(b, &b->fresh, number);
	return (int32_t)number;
}

int32_t rule_table_find(const struct rule_table *b, uint64_t rule, uint64_t aux)
{
	struct sought sought = {b, {rule, aux}};
	uint32_t number;

	if (rule == 0)
		return 0;
	number = index_find(&b->index, entry_hash(sought.entry), same_rule, &sought);
	return number == INDEX_NONE ? -ENOSPC : (int32_t)number;
}

int32_t rule_table_number(struct rule_table *b, uint64_t rule, uint64_t aux)
{
	int32_t number = rule_table_find(b, rule, aux);

	return number < 0 ? add(b, (struct unwind_entry){rule, aux}) : number;
}

void rule_table_retain(struct rule_table *b, uint16_t number)
{
	if (number)
		check(++use(b, number)->n_refs > 0);
}

void rule_table_release(struct rule_table *b, uint16_t number)
{
	if (!number)
		return;
	check(use(b, number)->n_refs > 0);
	if (--use(b, number)->n_refs == 0)
		list(b, &b->idle, number);
}

bool rule_table_has_idle(const struct rule_table *b)
{
	return b->idle != 0;
}

/* Frees those of a list that nobody uses, and ends it. */
static void sweep(struct rule_table *b, uint32_t *head)
{
	while (*head) {
		uint32_t number = *head;
		struct rule_table_use *u = use(b, number);

		*head = u->next;
		u->listed = false;
		if (u->n_refs > 0)
			continue;
		check(index_remove(&b->index, entry_hash(b->entries[number]), number));
		b->entries[number] = (struct unwind_entry){0};
		u->next = b->free;
		b->free = number;
		b->n--;
	}
}

void rule_table_settle(struct rule_table *b)
{
	sweep(b, &b->fresh);
}

void rule_table_reclaim(struct rule_table *b)
{
	sweep(b, &b->idle);
}
