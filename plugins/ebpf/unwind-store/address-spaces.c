/* SPDX-License-Identifier: Apache-2.0 */
/* See address-spaces.h. */
#include "ebpf/unwind-store/address-spaces.h"

#include "base/check.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

#define NO_SLOT UNWIND_SPACES
/* So many processes all have a slot, but by rare chance. */
#define COMFORTABLE (UNWIND_SPACES / 2)

void address_spaces_init(struct address_spaces *t, struct unwind_space *entries,
			 struct mapping_tables *mapping_tables, const struct files_host *host)
{
	t->entries = entries;
	t->mapping_tables = mapping_tables;
	t->host = host;
}

static void show(struct address_spaces *t, uint32_t at, uint64_t word)
{
	__atomic_store_n(&t->entries[at].word, word, __ATOMIC_RELEASE);
}

static uint32_t position(const struct sampler_process_key *key, uint32_t probe)
{
	return unwind_space_slot(unwind_space_hash(key->start_ns, key->tgid), probe);
}

static uint32_t find(const struct address_spaces *t, const struct sampler_process_key *key)
{
	for (uint32_t probe = 0; probe < UNWIND_PROBES; probe++) {
		uint32_t at = position(key, probe);

		if (t->slots[at].table && t->entries[at].tgid == key->tgid &&
		    t->entries[at].start_ns == key->start_ns)
			return at;
	}
	return NO_SLOT;
}

struct mapping_table *address_spaces_table(const struct address_spaces *t,
					   const struct sampler_process_key *key)
{
	uint32_t at = find(t, key);

	return at == NO_SLOT ? NULL : t->slots[at].table;
}

bool address_spaces_has(const struct address_spaces *t, const struct sampler_process_key *key,
			uint64_t generation)
{
	uint32_t at = find(t, key);

	return at != NO_SLOT && t->entries[at].generation == generation;
}

static void leave(struct address_spaces *t, uint32_t at)
{
	struct address_slot *slot = &t->slots[at];

	check(slot->table && t->n > 0);
	show(t, at, 0);
	mapping_table_release(t->mapping_tables, slot->table);
	*slot = (struct address_slot){.retired = true};
	t->n--;
	t->n_retired++;
}

void address_spaces_fini(struct address_spaces *t)
{
	for (uint32_t i = 0; i < UNWIND_SPACES; i++)
		if (t->slots[i].table)
			leave(t, i);
	vec_free(&t->stamps);
}

void address_spaces_remove(struct address_spaces *t, const struct sampler_process_key *key)
{
	uint32_t at = find(t, key);

	if (at != NO_SLOT)
		leave(t, at);
}

void address_spaces_reclaim(struct address_spaces *t)
{
	for (uint32_t i = 0; t->n_retired > 0 && i < UNWIND_SPACES; i++)
		if (t->slots[i].retired) {
			t->slots[i].retired = false;
			t->n_retired--;
		}
	check(t->n_retired == 0);
}

void address_spaces_refresh(struct address_spaces *t)
{
	for (uint32_t i = 0; i < UNWIND_SPACES; i++)
		if (t->slots[i].table &&
		    t->entries[i].word != mapping_table_word(t->slots[i].table))
			show(t, i, mapping_table_word(t->slots[i].table));
}

void address_spaces_touch(struct address_spaces *t, const struct sampler_process_key *key)
{
	uint32_t at = find(t, key);

	if (at != NO_SLOT)
		t->slots[at].stamp = ++t->clock;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return compare(x, y);
}

/* The stamp below which an eighth of all lies, 0 if memory is short. */
static uint64_t old_eighth(struct address_spaces *t)
{
	t->stamps.n = 0;
	if (!vec_reserve(&t->stamps, UNWIND_SPACES))
		return 0;
	for (uint32_t i = 0; i < UNWIND_SPACES; i++)
		if (t->slots[i].table)
			t->stamps.p[t->stamps.n++] = t->slots[i].stamp;
	qsort(t->stamps.p, t->stamps.n, sizeof(*t->stamps.p), compare_u64);
	return t->stamps.p[t->stamps.n / 8];
}

static void replace(struct address_spaces *t, uint32_t at)
{
	leave(t, at);
	t->n_replaced++;
}

/* Makes room where a key may be, and all over a table that is filling up. Nowhere else in one that
 * is not: all who lose their slots there are sampled again, and would take others'. */
static void make_room(struct address_spaces *t, const struct sampler_process_key *key)
{
	uint32_t oldest = position(key, 0);
	uint64_t limit;

	for (uint32_t probe = 1; probe < UNWIND_PROBES; probe++)
		if (t->slots[position(key, probe)].stamp < t->slots[oldest].stamp)
			oldest = position(key, probe);
	limit = t->n > COMFORTABLE ? old_eighth(t) : 0;
	if (t->slots[oldest].table)
		replace(t, oldest);
	for (uint32_t i = 0; limit && i < UNWIND_SPACES; i++)
		if (t->slots[i].table && t->slots[i].stamp < limit)
			replace(t, i);
}

/* How many are free of a half of the key's slots; *ret: the first of them. */
static uint32_t free_in_half(const struct address_spaces *t, const struct sampler_process_key *key,
			     uint32_t half, uint32_t *ret)
{
	uint32_t n = 0;

	for (uint32_t i = UNWIND_PROBES / 2; i-- > 0;) {
		uint32_t at = position(key, half * (UNWIND_PROBES / 2) + i);

		if (t->slots[at].table || t->slots[at].retired)
			continue;
		*ret = at;
		n++;
	}
	return n;
}

/* In the emptier half, so that all halves fill up alike. */
static uint32_t free_slot(const struct address_spaces *t, const struct sampler_process_key *key)
{
	uint32_t slots[2] = {NO_SLOT, NO_SLOT};
	uint32_t first = free_in_half(t, key, 0, &slots[0]);

	return slots[free_in_half(t, key, 1, &slots[1]) > first];
}

static bool any_retired(const struct address_spaces *t, const struct sampler_process_key *key)
{
	for (uint32_t probe = 0; probe < UNWIND_PROBES; probe++)
		if (t->slots[position(key, probe)].retired)
			return true;
	return false;
}

static int take_slot(struct address_spaces *t, const struct sampler_process_key *key, uint32_t *ret)
{
	*ret = free_slot(t, key);
	if (*ret != NO_SLOT)
		return 0;
	if (!any_retired(t, key))
		make_room(t, key);
	if (t->host->reclaim(t->host->context) != 0)
		return -ENOSPC;
	*ret = free_slot(t, key);
	check(*ret != NO_SLOT);
	return 0;
}

int address_spaces_set(struct address_spaces *t, const struct sampler_process_key *key,
		       uint64_t generation, uint32_t exec_pages, struct mapping_table *v)
{
	uint32_t at = find(t, key);
	struct unwind_space *entry;
	int r;

	check(v->n_refs > 0);
	if (at == NO_SLOT) {
		r = take_slot(t, key, &at);
		if (r != 0)
			return r;
		check(!t->slots[at].table && t->entries[at].word == 0);
		t->n++;
		t->entries[at] =
			(struct unwind_space){.start_ns = key->start_ns, .tgid = key->tgid};
	}
	entry = &t->entries[at];
	if (entry->generation != generation) {
		show(t, at, 0);
		__atomic_store_n(&entry->generation, generation, __ATOMIC_RELEASE);
	}
	entry->exec_pages = exec_pages;
	t->slots[at] = (struct address_slot){.table = v, .stamp = ++t->clock};
	show(t, at, mapping_table_word(v));
	return 0;
}
