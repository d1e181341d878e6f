/* SPDX-License-Identifier: Apache-2.0 */
/* The store of unwind tables when there is more than it may have: files, processes, rules. */
#include "ebpf/tests/test-world.h"

#include "testing/test.h"

#include <stdlib.h>

#define BUDGET (UINT64_C(32) << 20)
#define TEXT   WORLD_TEXT

/* Under pressure that goes first which was hit longest ago; a file that was hit recently stays, and
 * one that went comes back when it is hit. */
TEST(what_is_not_hit_makes_room)
{
	struct world *w = world_new(3 * SLABS_COST);
	uint16_t kind;

	world_fill(w, 1, 18);
	for (uint32_t i = 1; i < 18; i++)
		unwind_used(w->store, w->files[i].file, 0x2000);
	expect_eq(world_stats(w).evictions, 0);
	world_tick(w);
	world_tick(w);
	for (uint32_t i = 5; i < 18; i++)
		unwind_used(w->store, w->files[i].file, 0x2000);
	world_fill(w, 18, 30);
	expect(world_stats(w).evictions > 0);
	expect(w->kernel.n_slabs_most <= 3);
	for (uint32_t i = 5; i < 18; i++)
		world_expect_rows(w, i, i, TEXT, 0x90000, 0);
	kind = world_find(w, 1, TEXT + 0x2000).kind;
	expect_eq(kind, UNWIND_KIND_UNKNOWN);
	/* The others are not hit any more, so there is room for it. */
	world_tick(w);
	world_tick(w);
	unwind_used(w->store, w->files[1].file, 0x2000);
	expect_eq(world_find(w, 1, TEXT + 0x2000).kind, UNWIND_KIND_UNKNOWN);
	world_tick(w);
	world_expect_rows(w, 1, 1, TEXT, 0x90000, 0);
	expect_eq(w->files[1].n_read, 2);
	expect(w->kernel.n_slabs_most <= 3);
	world_free(w);
}

/* Of a file that is larger than the budget, pages that were hit have rows, and the rest is walked
 * by frame pointers; what the cache remembers of the one is not taken for the other. */
TEST(a_huge_file_is_admitted_by_what_is_hit)
{
	struct world *w = world_new(2 * SLABS_COST);
	const uint64_t hot = UINT64_C(0x300000);
	uint64_t before;
	struct unwind_stats s;

	world_file(w, 1, 0, 4, 2000000); /* 4.2 MB of table for 8 MB of text */
	world_map_one(w, 1, 1, TEXT, 8000000, 0);
	s = world_stats(w);
	expect_eq(s.degraded, 1);
	expect_eq(s.tables, 0);
	expect_eq(world_find(w, 1, TEXT + hot).kind, UNWIND_KIND_FRAMES);
	before = world_word(w, 1);
	expect_eq(world_step(w, before, TEXT + hot), world_by_frames());
	unwind_used(w->store, w->files[1].file, hot);
	world_tick(w);
	expect_eq(world_stats(w).degraded, 1);
	expect_eq(world_stats(w).tables, 1);
	world_expect_rows(w, 1, 1, TEXT + hot, 0x10000, hot);
	expect(world_word(w, 1) >> 48 != before >> 48);
	expect_eq(world_step(w, world_word(w, 1), TEXT + hot), world_entry(w, 1, hot).rule);
	expect_eq(world_find(w, 1, TEXT + hot + 0x10000).entry.rule, world_by_frames());
	/* More of it, while it is hit: as often as that is worth it. */
	for (uint32_t i = 0; i < 64; i++) {
		unwind_used(w->store, w->files[1].file, 0x10000 * (i % 10));
		unwind_used(w->store, w->files[1].file, hot);
		world_tick(w);
	}
	for (uint32_t i = 0; i < 10; i++)
		world_expect_rows(w, 1, 1, TEXT + 0x10000 * i, 0x10000, 0x10000 * i);
	world_expect_rows(w, 1, 1, TEXT + hot, 0x10000, hot);
	expect(w->files[1].n_read < 12);
	/* All of it is hit: what fits is there, no more, and all else goes on. */
	for (uint64_t at = 0; at < 8000000; at += 0x10000)
		unwind_used(w->store, w->files[1].file, at);
	for (uint32_t i = 0; i < 200; i++) {
		unwind_used(w->store, w->files[1].file, 8000000 - i);
		world_tick(w);
	}
	s = world_stats(w);
	expect(s.bytes > SLABS_COST && s.slabs == 2 && w->kernel.n_slabs_most == 2);
	world_expect_rows(w, 1, 1, TEXT + hot, 0x10000, hot);
	/* Forgotten, it makes room for others. */
	world_tick(w);
	world_fill(w, 2, 9);
	for (uint32_t i = 2; i < 9; i++)
		world_expect_rows(w, i, i, TEXT, 0x90000, 0);
	expect_eq(world_find(w, 1, TEXT + hot).kind, UNWIND_KIND_FRAMES);
	world_free(w);
}

/* More processes than there are slots: each new one is known at once, those that were sampled of
 * late stay, and the table does not grow. */
TEST(fork_storms_cost_bounded_memory)
{
	struct world *w = world_new(BUDGET);
	struct mapset *set = world_set();
	struct unwind_stats s;
	uint64_t quiesces;

	world_file(w, 1, 0, 11, 3000);
	world_file(w, 2, 0, 7, 3000);
	expect(world_add(w, set, 1, TEXT, 0x8000, 0));
	expect_eq(world_map(w, 1, set), 0);
	for (uint32_t i = 2; i < 30000; i++) {
		struct sampler_process_key first = world_key(1);

		/* Forks have their parent's mappings, programs that are started have their own. */
		if (i % 3 == 0)
			world_map_one(w, i, 2, TEXT + i * UINT64_C(0x10000), 0x5000, 0);
		else
			expect_eq(world_map(w, i, set), 0);
		if (i % 100 == 0)
			unwind_touch(w->store, &first);
		expect_eq(world_find(w, i, i % 3 ? TEXT : TEXT + i * UINT64_C(0x10000)).kind,
			  UNWIND_KIND_TABLE);
	}
	s = world_stats(w);
	quiesces = s.quiesces;
	expect(s.address_spaces <= UNWIND_SPACES && s.address_spaces > UNWIND_SPACES / 5);
	expect_eq(s.address_spaces + s.address_spaces_replaced, 29999);
	printf("# %llu quiesces for 30,000 processes\n", (unsigned long long)quiesces);
	expect(quiesces < 300);
	expect(world_id(w, 1) != 0);
	expect(s.slabs <= 8);
	for (uint32_t i = 1; i < 30000; i++) {
		struct sampler_process_key key = world_key(i);

		unwind_unmap(w->store, &key);
	}
	world_tick(w);
	s = world_stats(w);
	expect_eq(s.address_spaces, 0);
	expect_eq(s.mapping_tables, 0);
	mapset_free(set);
	world_free(w);
}

/* Numbers of rules that have run out come back from tables that are not hit; where all are, rows
 * are lost and counted, and no row has another's rule. */
TEST(rules_make_room_for_rules)
{
	const uint32_t n = UNWIND_RULES_MAX / 4 - 50;
	struct world *w = world_new(BUDGET);
	struct unwind_stats s;

	for (uint32_t i = 0; i < 6; i++) {
		world_file(w, i, 0, 300, n);
		w->files[i].n_rules = 0;
		w->files[i].salt = i * n;
		world_map_one(w, i, i, TEXT, n * 300, 0);
		if (i == 3) {
			expect_eq(world_stats(w).rules, 4 * n);
			world_tick(w);
			world_tick(w);
			for (uint32_t k = 1; k < 4; k++)
				unwind_used(w->store, w->files[k].file, 0);
		}
		if (i == 4) {
			unwind_used(w->store, w->files[i].file, 0);
			s = world_stats(w);
			expect_eq(s.evictions, 1);
			expect_eq(s.rows_lost, 0);
			expect_eq(world_find(w, 0, TEXT).kind, UNWIND_KIND_UNKNOWN);
		}
		if (i < 5)
			world_expect_rows(w, i, i, TEXT, n * 300, 0);
	}
	/* The last finds all numbers taken by tables that are hit. */
	for (uint32_t i = 1; i < 5; i++)
		world_expect_rows(w, i, i, TEXT, n * 300, 0);
	s = world_stats(w);
	expect_eq(s.evictions, 1);
	expect(s.rows_lost > 0);
	expect(s.rules <= UNWIND_RULES_MAX);
	for (uint64_t at = 0; at < n * 300; at += 100) {
		uint64_t rule = world_find(w, 5, TEXT + at).entry.rule;

		expect(rule == 0 || rule == world_entry(w, 5, at).rule);
	}
	world_free(w);
}

/* A file that wants more rules than any needs gets a share of the numbers. */
TEST(no_file_takes_all_rules)
{
	struct world *w = world_new(BUDGET);
	struct unwind_stats s;

	world_file(w, 1, 0, 300, UNWIND_RULES_MAX + 1000);
	w->files[1].n_rules = 0;
	world_map_one(w, 1, 1, TEXT, 0x10000, 0);
	s = world_stats(w);
	expect(s.rules < UNWIND_RULES_MAX / 3 && s.rules >= UNWIND_RULES_MAX / 4);
	expect(s.rows_lost > 0);
	expect_eq(s.evictions, 0);
	world_expect_rows(w, 1, 1, TEXT, 0x10000, 0);
	world_free(w);
}
