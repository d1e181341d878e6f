/* SPDX-License-Identifier: Apache-2.0 */
/* See address-spaces.h. */
#include "ebpf/unwind-store/address-spaces.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

#define NO_SEAT UNWIND_SPACES
/* So many processes all have a place, but by rare chance. */
#define COMFORTABLE (UNWIND_SPACES / 2)

void spaces_init(struct spaces *t, struct unwind_space *entries, struct views *views,
		 const struct files_host *host)
{
	t->entries = entries;
	t->views = views;
	t->host = host;
}

static void show(struct spaces *t, uint32_t at, uint64_t word)
{
	__atomic_store_n(&t->entries[at].word, word, __ATOMIC_RELEASE);
}

static uint32_t place(const struct sampler_process_key *key, uint32_t probe)
{
	return unwind_space_place(unwind_space_hash(key->start_ns, key->tgid), probe);
}

static uint32_t find(const struct spaces *t, const struct sampler_process_key *key)
{
	for (uint32_t probe = 0; probe < UNWIND_PROBES; probe++) {
		uint32_t at = place(key, probe);

		if (t->seats[at].view && t->entries[at].tgid == key->tgid &&
		    t->entries[at].start_ns == key->start_ns)
			return at;
	}
	return NO_SEAT;
}

struct view *spaces_view(const struct spaces *t, const struct sampler_process_key *key)
{
	uint32_t at = find(t, key);

	return at == NO_SEAT ? NULL : t->seats[at].view;
}

bool spaces_has(const struct spaces *t, const struct sampler_process_key *key, uint64_t generation)
{
	uint32_t at = find(t, key);

	return at != NO_SEAT && t->entries[at].generation == generation;
}

static void leave(struct spaces *t, uint32_t at)
{
	struct seat *seat = &t->seats[at];

	show(t, at, 0);
	view_release(t->views, seat->view);
	*seat = (struct seat){.left = true};
	t->n--;
	t->n_left++;
}

void spaces_fini(struct spaces *t)
{
	for (uint32_t i = 0; i < UNWIND_SPACES; i++)
		if (t->seats[i].view)
			leave(t, i);
	vec_free(&t->stamps);
}

void spaces_remove(struct spaces *t, const struct sampler_process_key *key)
{
	uint32_t at = find(t, key);

	if (at != NO_SEAT)
		leave(t, at);
}

void spaces_reclaim(struct spaces *t)
{
	for (uint32_t i = 0; t->n_left > 0 && i < UNWIND_SPACES; i++)
		if (t->seats[i].left) {
			t->seats[i].left = false;
			t->n_left--;
		}
}

void spaces_refresh(struct spaces *t)
{
	for (uint32_t i = 0; i < UNWIND_SPACES; i++)
		if (t->seats[i].view && t->entries[i].word != view_word(t->seats[i].view))
			show(t, i, view_word(t->seats[i].view));
}

void spaces_touch(struct spaces *t, const struct sampler_process_key *key)
{
	uint32_t at = find(t, key);

	if (at != NO_SEAT)
		t->seats[at].stamp = ++t->clock;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The stamp below which an eighth of all lies, 0 if memory is short. */
static uint64_t old_eighth(struct spaces *t)
{
	t->stamps.n = 0;
	if (!vec_reserve(&t->stamps, UNWIND_SPACES))
		return 0;
	for (uint32_t i = 0; i < UNWIND_SPACES; i++)
		if (t->seats[i].view)
			t->stamps.p[t->stamps.n++] = t->seats[i].stamp;
	qsort(t->stamps.p, t->stamps.n, sizeof(*t->stamps.p), compare_u64);
	return t->stamps.p[t->stamps.n / 8];
}

static void replace(struct spaces *t, uint32_t at)
{
	leave(t, at);
	t->n_replaced++;
}

/* Makes room where a key may be, and all over a table that is filling up. Nowhere else in one that is not: all who
 * lose their places there are sampled again, and would take others'. */
static void make_room(struct spaces *t, const struct sampler_process_key *key)
{
	uint32_t oldest = place(key, 0);
	uint64_t limit;

	for (uint32_t probe = 1; probe < UNWIND_PROBES; probe++)
		if (t->seats[place(key, probe)].stamp < t->seats[oldest].stamp)
			oldest = place(key, probe);
	limit = t->n > COMFORTABLE ? old_eighth(t) : 0;
	if (t->seats[oldest].view)
		replace(t, oldest);
	for (uint32_t i = 0; limit && i < UNWIND_SPACES; i++)
		if (t->seats[i].view && t->seats[i].stamp < limit)
			replace(t, i);
}

/* How many are free of a half of the key's seats; *ret: the first of them. */
static uint32_t free_in_half(const struct spaces *t, const struct sampler_process_key *key, uint32_t half,
			     uint32_t *ret)
{
	uint32_t n = 0;

	for (uint32_t i = UNWIND_PROBES / 2; i-- > 0;) {
		uint32_t at = place(key, half * (UNWIND_PROBES / 2) + i);

		if (t->seats[at].view || t->seats[at].left)
			continue;
		*ret = at;
		n++;
	}
	return n;
}

/* In the emptier half, so that all halves fill up alike. */
static uint32_t free_seat(const struct spaces *t, const struct sampler_process_key *key)
{
	uint32_t seats[2] = {NO_SEAT, NO_SEAT};
	uint32_t first = free_in_half(t, key, 0, &seats[0]);

	return seats[free_in_half(t, key, 1, &seats[1]) > first];
}

static bool any_left(const struct spaces *t, const struct sampler_process_key *key)
{
	for (uint32_t probe = 0; probe < UNWIND_PROBES; probe++)
		if (t->seats[place(key, probe)].left)
			return true;
	return false;
}

static int take_seat(struct spaces *t, const struct sampler_process_key *key, uint32_t *ret)
{
	*ret = free_seat(t, key);
	if (*ret != NO_SEAT)
		return 0;
	if (!any_left(t, key))
		make_room(t, key);
	if (t->host->reclaim(t->host->context) != 0)
		return -ENOSPC;
	*ret = free_seat(t, key);
	check(*ret != NO_SEAT);
	return 0;
}

int spaces_set(struct spaces *t, const struct sampler_process_key *key, uint64_t generation,
	       uint32_t exec_pages, struct view *v)
{
	uint32_t at = find(t, key);
	struct unwind_space *entry;
	int r;

	if (at == NO_SEAT) {
		r = take_seat(t, key, &at);
		if (r != 0)
			return r;
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
	t->seats[at] = (struct seat){.view = v, .stamp = ++t->clock};
	show(t, at, view_word(v));
	return 0;
}
