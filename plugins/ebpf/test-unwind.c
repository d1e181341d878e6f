/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of unwind tables: what the walker finds for a process is what its files' rows say,
 * whatever is mapped, unmapped, evicted and read again meanwhile.
 */
#include "test-world.h"

#include "base/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET (UINT64_C(32) << 20)
#define TEXT UINT64_C(0x7f0000000000)

static struct mapset *new_set(void)
{
	return calloc(1, sizeof(struct mapset));
}

static struct unwind_found find(struct world *w, uint32_t tgid, uint64_t pc)
{
	struct sampler_process_key key = world_key(tgid);
	struct unwind_found found = {0};

	expect_eq(unwind_look_up(w->store, &key, pc, &found), 0);
	return found;
}

static int find_error(struct world *w, uint32_t tgid, uint64_t pc)
{
	struct sampler_process_key key = world_key(tgid);
	struct unwind_found found = {0};

	return unwind_look_up(w->store, &key, pc, &found);
}

/* The mapping has the file's rows, at many addresses. */
static void expect_rows(struct world *w, uint32_t tgid, uint32_t number, uint64_t start,
			uint64_t bytes, uint64_t offset)
{
	for (uint64_t at = 0; at < bytes; at += 1 + bytes / 3001) {
		struct unwind_found found = find(w, tgid, start + at);
		struct unwind_entry e = world_entry(w, number, offset + at);

		if (found.entry.rule != e.rule || found.entry.aux != e.aux)
			test_fail(__FILE__, __LINE__,
				  "file %u at %#llx: rule %#llx, expected %#llx", number,
				  (unsigned long long)(offset + at),
				  (unsigned long long)found.entry.rule, (unsigned long long)e.rule);
	}
}

static struct unwind_stats stats_of(const struct world *w)
{
	struct unwind_stats s;

	unwind_get_stats(w->store, &s);
	return s;
}

static struct world *new_world(uint64_t budget_bytes)
{
	struct world *w = malloc(sizeof(*w));

	expect_eq(world_init(w, budget_bytes), 0);
	return w;
}

static void free_world(struct world *w)
{
	world_fini(w);
	free(w);
}

/* Each kind of mapping is walked as it should be, at its first and last byte too. */
TEST(mappings_lead_to_their_rows)
{
	struct world *w = new_world(BUDGET);
	struct mapset *set = new_set();
	struct unwind_stats s;

	world_file(w, 0, 0, 3, 500); /* also the vDSO's rows */
	world_file(w, 1, 0x401000, 11, 30000);
	world_file(w, 2, 0x1000, 5, 100);
	world_file(w, 3, 0, 1, 0);
	w->files[2].aux = true;
	expect(world_add(w, set, 1, 0x400000, 0x100000, 0x400000));
	expect(world_add(w, set, WORLD_ANON, TEXT, 0x2000, 0));
	expect(world_add(w, set, 2, TEXT + 0x10000, 0x3000, 0));
	expect(world_add(w, set, 1, TEXT + 0x20000, 0x4000, 0x40f000));
	expect(world_add(w, set, 3, TEXT + 0x40000, 0x4000, 0));
	expect(world_add(w, set, WORLD_VDSO, TEXT + 0x50000, 0x2000, 0));
	expect_eq(world_map(w, 7, set), 0);
	expect_rows(w, 7, 1, 0x400000, 0x100000, 0x400000);
	expect_rows(w, 7, 2, TEXT + 0x10000, 0x3000, 0);
	expect_rows(w, 7, 1, TEXT + 0x20000, 0x4000, 0x40f000);
	expect_rows(w, 7, 0, TEXT + 0x50000, 0x2000, 0);
	expect_eq(find(w, 7, 0x401000).kind, UNWIND_KIND_TABLE);
	expect_eq(find(w, 7, TEXT).kind, UNWIND_KIND_FRAMES);
	expect_eq(find(w, 7, TEXT + 0x1fff).kind, UNWIND_KIND_FRAMES);
	expect_eq(find(w, 7, TEXT + 0x11000).kind, UNWIND_KIND_AUX);
	expect_eq(find(w, 7, TEXT + 0x40000).kind, UNWIND_KIND_FRAMES);
	expect_eq(find_error(w, 7, TEXT + 0x2000), -ENOENT);
	expect_eq(find_error(w, 7, 0x3fffff), -ENOENT);
	expect_eq(find_error(w, 7, 0x500000), -ENOENT);
	expect_eq(find_error(w, 8, 0x401000), -ESRCH);
	s = stats_of(w);
	expect_eq(s.tables, 3);
	expect_eq(s.files, 4);
	expect_eq(s.refused[UNWIND_REFUSED_NO_ROWS], 1);
	expect_eq(s.rows, 500 + 30000 + 100 + 3);
	expect_eq(s.spaces, 1);
	/* Read once, however often it is mapped. */
	expect_eq(world_map(w, 8, set), 0);
	expect_eq(w->files[1].n_read, 1);
	expect_eq(stats_of(w).views, 1);
	mapset_free(set);
	free_world(w);
}

static void map_one(struct world *w, uint32_t tgid, uint32_t number, uint64_t start, uint64_t bytes,
		    uint64_t offset)
{
	struct mapset *set = new_set();

	expect(world_add(w, set, number, start, bytes, offset));
	expect_eq(world_map(w, tgid, set), 0);
	mapset_free(set);
}

static uint32_t id_of(const struct world *w, uint32_t tgid)
{
	return (uint32_t)(world_word(w, tgid) >> 48);
}

/* An id is kept while mappings are only added, and is another as soon as an address leads elsewhere
 * or nowhere; processes with the same mappings have the same. */
TEST(ids_tell_address_spaces_apart)
{
	struct world *w = new_world(BUDGET);
	struct mapset *set = new_set(), *other = new_set(), *moved = new_set();
	uint32_t id;

	world_file(w, 1, 0, 11, 3000);
	world_file(w, 2, 0, 7, 3000);
	expect(world_add(w, set, 1, TEXT, 0x8000, 0));
	expect_eq(world_map(w, 1, set), 0);
	id = id_of(w, 1);
	expect(id != 0);
	expect(world_add(w, set, 2, TEXT + 0x10000, 0x4000, 0));
	expect(world_add(w, set, WORLD_ANON, TEXT + 0x20000, 0x1000, 0));
	expect_eq(world_map(w, 1, set), 0);
	expect_eq(id_of(w, 1), id);
	set->list.p[2].limit += 0x1000; /* code made at run time grows */
	expect_eq(world_map(w, 1, set), 0);
	expect_eq(id_of(w, 1), id);
	/* A child that was forked; what it maps from then on is its own. */
	expect_eq(world_map(w, 2, set), 0);
	expect_eq(id_of(w, 2), id);
	expect(world_add(w, set, 1, TEXT + 0x30000, 0x4000, 0));
	expect_eq(world_map(w, 2, set), 0);
	expect(id_of(w, 2) != id);
	expect_eq(id_of(w, 1), id);
	/* The other file in its place. */
	expect(world_add(w, other, 2, TEXT, 0x8000, 0));
	expect_eq(world_map(w, 1, other), 0);
	expect(id_of(w, 1) != id && id_of(w, 1) != id_of(w, 2));
	/* The same file, but another part of it. */
	id = id_of(w, 1);
	expect(world_add(w, moved, 2, TEXT, 0x8000, 0x1000));
	expect_eq(world_map(w, 1, moved), 0);
	expect(id_of(w, 1) != id);
	expect_rows(w, 1, 2, TEXT, 0x4000, 0x1000);
	/* Less of it. */
	id = id_of(w, 1);
	moved->list.p[0].limit -= 0x1000;
	expect_eq(world_map(w, 1, moved), 0);
	expect(id_of(w, 1) != id);
	mapset_free(set);
	mapset_free(other);
	mapset_free(moved);
	free_world(w);
}

/* A process image that another has replaced is not found by the new one's layout. */
TEST(a_layout_tells_program_images_apart)
{
	struct world *w = new_world(BUDGET);
	struct sampler_process_key key = world_key(1);
	struct mapset *set = new_set();

	world_file(w, 1, 0, 11, 3000);
	expect(world_add(w, set, 1, TEXT, 0x8000, 0));
	expect_eq(unwind_map(w->store, &key, 5, set), 0);
	expect(unwind_knows(w->store, &key, 5) && !unwind_knows(w->store, &key, 6));
	expect(unwind_word(w->store, &key, 5) != 0);
	expect_eq(unwind_word(w->store, &key, 6), 0);
	expect_eq(unwind_map(w->store, &key, 6, set), 0);
	expect(!unwind_knows(w->store, &key, 5) && unwind_knows(w->store, &key, 6));
	unwind_unmap(w->store, &key);
	expect(!unwind_knows(w->store, &key, 6));
	expect_eq(unwind_word(w->store, &key, 6), 0);
	unwind_unmap(w->store, &key);
	mapset_free(set);
	free_world(w);
}

/* A process id that is given again is another process. */
TEST(a_reused_pid_is_another_process)
{
	struct world *w = new_world(BUDGET);
	struct sampler_process_key old = {.start_ns = 5, .tgid = 9}, new = {.start_ns = 6, .tgid = 9};
	struct mapset *set = new_set(), *other = new_set();
	struct unwind_found found;

	world_file(w, 1, 0, 11, 3000);
	world_file(w, 2, 0, 7, 3000);
	expect(world_add(w, set, 1, TEXT, 0x8000, 0) && world_add(w, other, 2, TEXT, 0x5000, 0));
	expect_eq(unwind_map(w->store, &old, 1, set), 0);
	expect_eq(unwind_map(w->store, &new, 1, other), 0);
	expect_eq(unwind_look_up(w->store, &old, TEXT + 0x4000, &found), 0);
	expect_eq(found.entry.rule, world_entry(w, 1, 0x4000).rule);
	expect_eq(unwind_look_up(w->store, &new, TEXT + 0x4000, &found), 0);
	expect_eq(found.entry.rule, world_entry(w, 2, 0x4000).rule);
	unwind_unmap(w->store, &old);
	expect(!unwind_knows(w->store, &old, 1) && unwind_knows(w->store, &new, 1));
	expect_eq(unwind_look_up(w->store, &new, TEXT + 0x4000, &found), 0);
	mapset_free(set);
	mapset_free(other);
	free_world(w);
}

/* Ids are 65,535 and come back; what the cache of returns keeps under one is never what another
 * space had under it. */
TEST(ids_are_given_again_only_when_forgotten)
{
	struct world *w = new_world(BUDGET);
	struct mapset *sets[2] = {new_set(), new_set()};

	world_file(w, 1, 0, 16, 2000);
	world_file(w, 2, 3, 16, 2000);
	w->files[2].n_rules = 77;
	for (uint32_t i = 0; i < 2; i++)
		expect(world_add(w, sets[i], 1 + i, TEXT, 0x7000, 0));
	for (uint32_t i = 0; i < 150000; i++) {
		uint64_t pc;

		expect_eq(world_map(w, 1, sets[i % 2]), 0);
		/* The same for the same id, so that the cache can be wrong. */
		pc = TEXT + 10000 + id_of(w, 1) * UINT64_C(2654435761) % 18000;
		expect_eq(world_step(w, world_word(w, 1), pc),
			  world_entry(w, 1 + i % 2, pc - TEXT).rule);
		if (i % 1000 == 0)
			unwind_tick(w->store);
	}
	expect_eq(stats_of(w).views, 1);
	mapset_free(sets[0]);
	mapset_free(sets[1]);
	free_world(w);
}

/* Reads made while the budget has room for some files only. */
static void fill(struct world *w, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		/* 60,000 rows are 130 KB: eight files to a slab. */
		world_file(w, i, 0x1000, 9, 60000);
		map_one(w, i, i, TEXT, 0x90000, 0);
	}
}

/* Under pressure that goes first which was hit longest ago; a file that was hit of late stays, and
 * one that went comes back when it is hit. */
TEST(what_is_not_hit_makes_room)
{
	struct world *w = new_world(3 * SLABS_COST);
	uint16_t kind;

	fill(w, 1, 18);
	for (uint32_t i = 1; i < 18; i++)
		unwind_used(w->store, w->files[i].image, 0x2000);
	expect_eq(stats_of(w).evictions, 0);
	unwind_tick(w->store);
	unwind_tick(w->store);
	for (uint32_t i = 5; i < 18; i++)
		unwind_used(w->store, w->files[i].image, 0x2000);
	fill(w, 18, 30);
	expect(stats_of(w).evictions > 0);
	expect(w->kernel.n_slabs_most <= 3);
	for (uint32_t i = 5; i < 18; i++)
		expect_rows(w, i, i, TEXT, 0x90000, 0);
	kind = find(w, 1, TEXT + 0x2000).kind;
	expect_eq(kind, UNWIND_KIND_UNKNOWN);
	/* The others are not hit any more, so there is room for it. */
	unwind_tick(w->store);
	unwind_tick(w->store);
	unwind_used(w->store, w->files[1].image, 0x2000);
	expect_eq(find(w, 1, TEXT + 0x2000).kind, UNWIND_KIND_UNKNOWN);
	unwind_tick(w->store);
	expect_rows(w, 1, 1, TEXT, 0x90000, 0);
	expect_eq(w->files[1].n_read, 2);
	expect(w->kernel.n_slabs_most <= 3);
	free_world(w);
}

/* Of a file that is larger than the budget, pages that were hit have rows, and the rest is walked
 * by frame pointers; what the cache remembers of the one is not taken for the other. */
TEST(a_huge_file_is_admitted_by_what_is_hit)
{
	struct world *w = new_world(2 * SLABS_COST);
	const uint64_t hot = UINT64_C(0x300000);
	uint64_t before;
	struct unwind_stats s;

	world_file(w, 1, 0, 4, 2000000); /* 4.2 MB of table for 8 MB of text */
	map_one(w, 1, 1, TEXT, 8000000, 0);
	s = stats_of(w);
	expect_eq(s.degraded, 1);
	expect_eq(s.tables, 0);
	expect_eq(find(w, 1, TEXT + hot).kind, UNWIND_KIND_FRAMES);
	before = world_word(w, 1);
	expect_eq(world_step(w, before, TEXT + hot), world_by_frames());
	unwind_used(w->store, w->files[1].image, hot);
	unwind_tick(w->store);
	expect_eq(stats_of(w).degraded, 1);
	expect_eq(stats_of(w).tables, 1);
	expect_rows(w, 1, 1, TEXT + hot, 0x10000, hot);
	expect(world_word(w, 1) >> 48 != before >> 48);
	expect_eq(world_step(w, world_word(w, 1), TEXT + hot), world_entry(w, 1, hot).rule);
	expect_eq(find(w, 1, TEXT + hot + 0x10000).entry.rule, world_by_frames());
	/* More of it, while it is hit: as often as that is worth it. */
	for (uint32_t i = 0; i < 64; i++) {
		unwind_used(w->store, w->files[1].image, 0x10000 * (i % 10));
		unwind_used(w->store, w->files[1].image, hot);
		unwind_tick(w->store);
	}
	for (uint32_t i = 0; i < 10; i++)
		expect_rows(w, 1, 1, TEXT + 0x10000 * i, 0x10000, 0x10000 * i);
	expect_rows(w, 1, 1, TEXT + hot, 0x10000, hot);
	expect(w->files[1].n_read < 12);
	/* All of it is hit: what fits is there, no more, and all else goes on. */
	for (uint64_t at = 0; at < 8000000; at += 0x10000)
		unwind_used(w->store, w->files[1].image, at);
	for (uint32_t i = 0; i < 200; i++) {
		unwind_used(w->store, w->files[1].image, 8000000 - i);
		unwind_tick(w->store);
	}
	s = stats_of(w);
	expect(s.bytes > SLABS_COST && s.slabs == 2 && w->kernel.n_slabs_most == 2);
	expect_rows(w, 1, 1, TEXT + hot, 0x10000, hot);
	/* Forgotten, it makes room for others. */
	unwind_tick(w->store);
	fill(w, 2, 9);
	for (uint32_t i = 2; i < 9; i++)
		expect_rows(w, i, i, TEXT, 0x90000, 0);
	expect_eq(find(w, 1, TEXT + hot).kind, UNWIND_KIND_FRAMES);
	free_world(w);
}

/* More processes than there are places: each new one is known at once, those that were sampled of
 * late stay, and the table does not grow. */
TEST(fork_storms_cost_bounded_memory)
{
	struct world *w = new_world(BUDGET);
	struct mapset *set = new_set();
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
			map_one(w, i, 2, TEXT + i * UINT64_C(0x10000), 0x5000, 0);
		else
			expect_eq(world_map(w, i, set), 0);
		if (i % 100 == 0)
			unwind_touch(w->store, &first);
		expect_eq(find(w, i, i % 3 ? TEXT : TEXT + i * UINT64_C(0x10000)).kind,
			  UNWIND_KIND_TABLE);
	}
	s = stats_of(w);
	quiesces = s.quiesces;
	expect(s.spaces <= UNWIND_SPACES && s.spaces > UNWIND_SPACES / 5);
	expect_eq(s.spaces + s.spaces_replaced, 29999);
	printf("# %llu quiesces for 30,000 processes\n", (unsigned long long)quiesces);
	expect(quiesces < 300);
	expect(id_of(w, 1) != 0);
	expect(s.slabs <= 8);
	for (uint32_t i = 1; i < 30000; i++) {
		struct sampler_process_key key = world_key(i);

		unwind_unmap(w->store, &key);
	}
	unwind_tick(w->store);
	s = stats_of(w);
	expect_eq(s.spaces, 0);
	expect_eq(s.views, 0);
	mapset_free(set);
	free_world(w);
}

/* Numbers of rules that have run out come back from tables that are not hit; where all are, rows
 * are lost and counted, and no row has another's rule. */
TEST(rules_make_room_for_rules)
{
	const uint32_t n = UNWIND_RULES_MAX / 4 - 50;
	struct world *w = new_world(BUDGET);
	struct unwind_stats s;

	for (uint32_t i = 0; i < 6; i++) {
		world_file(w, i, 0, 300, n);
		w->files[i].n_rules = 0;
		w->files[i].salt = i * n;
		map_one(w, i, i, TEXT, n * 300, 0);
		if (i == 3) {
			expect_eq(stats_of(w).rules, 4 * n);
			unwind_tick(w->store);
			unwind_tick(w->store);
			for (uint32_t k = 1; k < 4; k++)
				unwind_used(w->store, w->files[k].image, 0);
		}
		if (i == 4) {
			unwind_used(w->store, w->files[i].image, 0);
			s = stats_of(w);
			expect_eq(s.evictions, 1);
			expect_eq(s.rows_lost, 0);
			expect_eq(find(w, 0, TEXT).kind, UNWIND_KIND_UNKNOWN);
		}
		if (i < 5)
			expect_rows(w, i, i, TEXT, n * 300, 0);
	}
	/* The last finds all numbers taken by tables that are hit. */
	for (uint32_t i = 1; i < 5; i++)
		expect_rows(w, i, i, TEXT, n * 300, 0);
	s = stats_of(w);
	expect_eq(s.evictions, 1);
	expect(s.rows_lost > 0);
	expect(s.rules <= UNWIND_RULES_MAX);
	for (uint64_t at = 0; at < n * 300; at += 100) {
		uint64_t rule = find(w, 5, TEXT + at).entry.rule;

		expect(rule == 0 || rule == world_entry(w, 5, at).rule);
	}
	free_world(w);
}

/* A file that wants more rules than any needs gets a share of the numbers. */
TEST(no_file_takes_all_rules)
{
	struct world *w = new_world(BUDGET);
	struct unwind_stats s;

	world_file(w, 1, 0, 300, UNWIND_RULES_MAX + 1000);
	w->files[1].n_rules = 0;
	map_one(w, 1, 1, TEXT, 0x10000, 0);
	s = stats_of(w);
	expect(s.rules < UNWIND_RULES_MAX / 3 && s.rules >= UNWIND_RULES_MAX / 4);
	expect(s.rows_lost > 0);
	expect_eq(s.evictions, 0);
	expect_rows(w, 1, 1, TEXT, 0x10000, 0);
	free_world(w);
}

/* What the kernel refuses is a budget, too: stacks end earlier, and it is tried again. */
TEST(a_kernel_that_gives_nothing_is_survived)
{
	struct world *w = new_world(BUDGET);

	w->kernel.creates_left = 0;
	fill(w, 1, 3);
	expect_eq(find_error(w, 1, TEXT), -ESRCH);
	expect_eq(world_word(w, 1), 0);
	unwind_tick(w->store);
	expect_eq(world_word(w, 1), 0);
	w->kernel.creates_left = 1;
	unwind_tick(w->store);
	expect(world_word(w, 1) != 0);
	expect_eq(find(w, 1, TEXT + 0x2000).kind, UNWIND_KIND_FRAMES);
	/* What is hit is read again, after a while. */
	for (uint32_t i = 0; i < 4; i++) {
		unwind_used(w->store, w->files[1].image, 0x2000);
		unwind_tick(w->store);
	}
	expect_rows(w, 1, 1, TEXT, 0x90000, 0);
	free_world(w);
}

/* Why a file has no table is told apart. */
TEST(refusals_are_told_apart)
{
	static const int errors[] = {-ENODATA, -ENOEXEC, -ENOTSUP, -EIO, -ESTALE, -E2BIG};
	struct world *w = new_world(BUDGET);
	struct unwind_stats s;

	for (uint32_t i = 0; i < 6; i++) {
		world_file(w, i + 1, 0, 1, 100);
		w->files[i + 1].error = errors[i];
		map_one(w, i, i + 1, TEXT, 0x1000, 0);
		expect_eq(find(w, i, TEXT).kind, UNWIND_KIND_FRAMES);
	}
	world_file(w, 7, 0, UINT64_C(1) << 30, 10); /* too far apart */
	map_one(w, 7, 7, TEXT, 0x1000, 0);
	unwind_tick(w->store);
	s = stats_of(w);
	expect_eq(s.refused[UNWIND_REFUSED_NO_ROWS], 1);
	expect_eq(s.refused[UNWIND_REFUSED_NOT_ELF], 2);
	expect_eq(s.refused[UNWIND_REFUSED_UNREADABLE], 2);
	expect_eq(s.refused[UNWIND_REFUSED_TOO_LARGE], 2);
	expect_eq(s.tables, 0);
	expect_eq(s.rules, 0);
	/* What could not be read is tried again, ever more rarely; what is not a table never is. */
	for (uint32_t i = 0; i < 20; i++)
		unwind_tick(w->store);
	expect(w->files[4].n_read >= 3 && w->files[4].n_read <= 6);
	expect_eq(w->files[2].n_read, 1);
	w->files[4].error = 0;
	for (uint32_t i = 0; i < 40; i++)
		unwind_tick(w->store);
	expect_eq(find(w, 3, TEXT).kind, UNWIND_KIND_TABLE);
	free_world(w);
}

/* Files that nobody has mapped for long are forgotten, and their rules with them. */
TEST(what_nobody_maps_is_forgotten)
{
	struct world *w = new_world(BUDGET);
	struct sampler_process_key key = world_key(1);
	struct unwind_stats s;

	fill(w, 1, 2);
	unwind_unmap(w->store, &key);
	for (uint32_t i = 0; i < 30; i++)
		unwind_tick(w->store);
	map_one(w, 1, 1, TEXT, 0x90000, 0); /* started again in time */
	expect_eq(w->files[1].n_read, 1);
	unwind_unmap(w->store, &key);
	for (uint32_t i = 0; i < 60; i++)
		unwind_tick(w->store);
	s = stats_of(w);
	expect_eq(s.files, 0);
	expect_eq(s.rules, 0);
	expect_eq(s.slabs, 0);
	free_world(w);
}

/* More mappings than fit: the first are there, the rest is counted. */
TEST(mappings_beyond_the_limit_are_cut)
{
	struct world *w = new_world(BUDGET);
	struct mapset *set = new_set();

	world_file(w, 1, 0, 16, 200);
	for (uint32_t i = 0; i < MAPS_MAX; i++)
		expect(world_add(w, set, 1, TEXT + i * UINT64_C(0x2000), 0x1000, 0));
	expect_eq(world_map(w, 1, set), 0);
	expect_rows(w, 1, 1, TEXT, 0x1000, 0);
	expect_rows(w, 1, 1, TEXT + (UNWIND_MAPPINGS_MAX - 1) * UINT64_C(0x2000), 0x1000, 0);
	expect_eq(find_error(w, 1, TEXT + UNWIND_MAPPINGS_MAX * UINT64_C(0x2000)), -ENOENT);
	expect(stats_of(w).mappings_cut > 0);
	mapset_free(set);
	free_world(w);
}
