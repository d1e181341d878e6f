/* SPDX-License-Identifier: Apache-2.0 */
/* The store of unwind tables: what the walker finds for a process is what its files' rows say,
 * whatever is mapped, unmapped, evicted and read again meanwhile. */
#include "ebpf/tests/test-world.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET (UINT64_C(32) << 20)
#define TEXT   UINT64_C(0x7f0000000000)

static int find_error(struct world *w, uint32_t tgid, uint64_t pc)
{
	struct sampler_process_key key = world_key(tgid);
	struct unwind_found found = {0};

	return test_kernel_look_up(&w->kernel, &key, pc, &found);
}

/* Each kind of mapping is walked as it should be, at its first and last byte too. */
TEST(mappings_lead_to_their_rows)
{
	struct world *w = world_new(BUDGET);
	struct mapset *set = world_set();
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
	world_expect_rows(w, 7, 1, 0x400000, 0x100000, 0x400000);
	world_expect_rows(w, 7, 2, TEXT + 0x10000, 0x3000, 0);
	world_expect_rows(w, 7, 1, TEXT + 0x20000, 0x4000, 0x40f000);
	world_expect_rows(w, 7, 0, TEXT + 0x50000, 0x2000, 0);
	expect_eq(world_find(w, 7, 0x401000).kind, UNWIND_KIND_TABLE);
	expect_eq(world_find(w, 7, TEXT).kind, UNWIND_KIND_FRAMES);
	expect_eq(world_find(w, 7, TEXT + 0x1fff).kind, UNWIND_KIND_FRAMES);
	expect_eq(world_find(w, 7, TEXT + 0x11000).kind, UNWIND_KIND_AUX);
	expect_eq(world_find(w, 7, TEXT + 0x40000).kind, UNWIND_KIND_FRAMES);
	expect_eq(find_error(w, 7, TEXT + 0x2000), -ENOENT);
	expect_eq(find_error(w, 7, 0x3fffff), -ENOENT);
	expect_eq(find_error(w, 7, 0x500000), -ENOENT);
	expect_eq(find_error(w, 8, 0x401000), -ESRCH);
	s = world_stats(w);
	expect_eq(s.tables, 3);
	expect_eq(s.files, 4);
	expect_eq(s.refused[UNWIND_REFUSED_NO_ROWS], 1);
	expect_eq(s.rows, 500 + 30000 + 100 + 3);
	expect_eq(s.address_spaces, 1);
	/* Read once, however often it is mapped. */
	expect_eq(world_map(w, 8, set), 0);
	expect_eq(w->files[1].n_read, 1);
	expect_eq(world_stats(w).mapping_tables, 1);
	mapset_free(set);
	world_free(w);
}

/* A file whose functions have saved a register that somebody else's rule needs is read again, once,
 * for its auxiliary words; others are left alone. What was cached of it holds no more. */
TEST(registers_are_asked_for)
{
	struct world *w = world_new(BUDGET);
	struct mapset *set = world_set();
	struct unwind_found found;
	uint32_t id;

	world_file(w, 1, 0, 11, 3000);
	world_file(w, 2, 0, 7, 3000);
	expect(world_add(w, set, 1, TEXT, 0x8000, 0));
	expect(world_add(w, set, 2, TEXT + 0x10000, 0x4000, 0));
	expect_eq(world_map(w, 1, set), 0);
	id = world_id(w, 1);
	expect_eq(world_find(w, 1, TEXT + 11).kind, UNWIND_KIND_TABLE);
	unwind_want_registers(w->store, set->list.p[0].file);
	for (int i = 0; i < 3; i++)
		world_tick(w);
	found = world_find(w, 1, TEXT + 11);
	expect_eq(found.kind, UNWIND_KIND_AUX);
	expect_eq(found.entry.aux, 2);
	expect_eq(world_find(w, 1, TEXT + 0x10000).kind, UNWIND_KIND_TABLE);
	expect(world_id(w, 1) != id);
	expect_eq(w->files[1].n_read, 2);
	expect_eq(w->files[2].n_read, 1);
	expect_eq(world_stats(w).aux, 1);
	expect_eq(world_stats(w).aux_asked, 1);
	mapset_free(set);
	world_free(w);
}

/* An id is kept while mappings are only added, and is another as soon as an address leads elsewhere
 * or nowhere; processes with the same mappings have the same. */
TEST(ids_distinguish_address_spaces)
{
	struct world *w = world_new(BUDGET);
	struct mapset *set = world_set(), *other = world_set(), *moved = world_set();
	uint32_t id;

	world_file(w, 1, 0, 11, 3000);
	world_file(w, 2, 0, 7, 3000);
	expect(world_add(w, set, 1, TEXT, 0x8000, 0));
	expect_eq(world_map(w, 1, set), 0);
	id = world_id(w, 1);
	expect(id != 0);
	expect(world_add(w, set, 2, TEXT + 0x10000, 0x4000, 0));
	expect(world_add(w, set, WORLD_ANON, TEXT + 0x20000, 0x1000, 0));
	expect_eq(world_map(w, 1, set), 0);
	expect_eq(world_id(w, 1), id);
	set->list.p[2].limit += 0x1000; /* code made at run time grows */
	expect_eq(world_map(w, 1, set), 0);
	expect_eq(world_id(w, 1), id);
	/* A child that was forked; what it maps from then on is its own. */
	expect_eq(world_map(w, 2, set), 0);
	expect_eq(world_id(w, 2), id);
	expect(world_add(w, set, 1, TEXT + 0x30000, 0x4000, 0));
	expect_eq(world_map(w, 2, set), 0);
	expect(world_id(w, 2) != id);
	expect_eq(world_id(w, 1), id);
	/* The other file in its place. */
	expect(world_add(w, other, 2, TEXT, 0x8000, 0));
	expect_eq(world_map(w, 1, other), 0);
	expect(world_id(w, 1) != id && world_id(w, 1) != world_id(w, 2));
	/* The same file, but another part of it. */
	id = world_id(w, 1);
	expect(world_add(w, moved, 2, TEXT, 0x8000, 0x1000));
	expect_eq(world_map(w, 1, moved), 0);
	expect(world_id(w, 1) != id);
	world_expect_rows(w, 1, 2, TEXT, 0x4000, 0x1000);
	/* Less of it. */
	id = world_id(w, 1);
	moved->list.p[0].limit -= 0x1000;
	expect_eq(world_map(w, 1, moved), 0);
	expect(world_id(w, 1) != id);
	mapset_free(set);
	mapset_free(other);
	mapset_free(moved);
	world_free(w);
}

/* A process image that another has replaced is not found by the new one's generation. */
TEST(a_generation_distinguishes_execs)
{
	struct world *w = world_new(BUDGET);
	struct sampler_process_key key = world_key(1);
	struct mapset *set = world_set();

	world_file(w, 1, 0, 11, 3000);
	expect(world_add(w, set, 1, TEXT, 0x8000, 0));
	expect_eq(world_map_layout(w, &key, 5, set), 0);
	expect(unwind_knows(w->store, &key, 5) && !unwind_knows(w->store, &key, 6));
	expect(unwind_word(w->store, &key, 5) != 0);
	expect_eq(unwind_word(w->store, &key, 6), 0);
	expect_eq(world_map_layout(w, &key, 6, set), 0);
	expect(!unwind_knows(w->store, &key, 5) && unwind_knows(w->store, &key, 6));
	unwind_unmap(w->store, &key);
	expect(!unwind_knows(w->store, &key, 6));
	expect_eq(unwind_word(w->store, &key, 6), 0);
	unwind_unmap(w->store, &key);
	mapset_free(set);
	world_free(w);
}

/* A process id that is given again is another process. */
TEST(a_reused_pid_is_another_process)
{
	struct world *w = world_new(BUDGET);
	struct sampler_process_key old = {.start_ns = 5, .tgid = 9},
				   new = {.start_ns = 6, .tgid = 9};
	struct mapset *set = world_set(), *other = world_set();
	struct unwind_found found;

	world_file(w, 1, 0, 11, 3000);
	world_file(w, 2, 0, 7, 3000);
	expect(world_add(w, set, 1, TEXT, 0x8000, 0) && world_add(w, other, 2, TEXT, 0x5000, 0));
	expect_eq(world_map_layout(w, &old, 1, set), 0);
	expect_eq(world_map_layout(w, &new, 1, other), 0);
	expect_eq(test_kernel_look_up(&w->kernel, &old, TEXT + 0x4000, &found), 0);
	expect_eq(found.entry.rule, world_entry(w, 1, 0x4000).rule);
	expect_eq(test_kernel_look_up(&w->kernel, &new, TEXT + 0x4000, &found), 0);
	expect_eq(found.entry.rule, world_entry(w, 2, 0x4000).rule);
	unwind_unmap(w->store, &old);
	expect(!unwind_knows(w->store, &old, 1) && unwind_knows(w->store, &new, 1));
	expect_eq(test_kernel_look_up(&w->kernel, &new, TEXT + 0x4000, &found), 0);
	mapset_free(set);
	mapset_free(other);
	world_free(w);
}

/* Whether a chain of address space `id` begins with `pc` under another rule than `brief`. */
static bool chain_is_wrong(struct world *w, uint16_t id, uint64_t pc, uint64_t brief)
{
	uint64_t seal = unwind_chain_seal(id);
	__u64 *word = &w->kernel.chains[unwind_chain_slot(pc, seal)].words[0];
	uint64_t was = *word ^ seal;

	*word = (pc | brief << 48) ^ seal;
	return (was ^ pc) << 16 == 0 && was >> 48 != brief;
}

/* Ids come back after 65,535; caches never keep what another address space had under one. */
TEST(ids_are_given_again_only_when_forgotten)
{
	struct world *w = world_new(BUDGET);
	struct mapset *sets[2] = {world_set(), world_set()};

	world_file(w, 1, 0, 16, 2000);
	world_file(w, 2, 3, 16, 2000);
	w->files[2].n_rules = 77;
	for (uint32_t i = 0; i < 2; i++)
		expect(world_add(w, sets[i], 1 + i, TEXT, 0x7000, 0));
	for (uint32_t i = 0; i < 150000; i++) {
		uint64_t pc;

		expect_eq(world_map(w, 1, sets[i % 2]), 0);
		/* The same for the same id, so that the cache can be wrong. */
		pc = TEXT + 10000 + world_id(w, 1) * UINT64_C(2654435761) % 18000;
		expect_eq(world_step(w, world_word(w, 1), pc),
			  world_entry(w, 1 + i % 2, pc - TEXT).rule);
		expect(!chain_is_wrong(w, (uint16_t)world_id(w, 1), pc, 4 + i % 2));
		if (i % 1000 == 0)
			world_tick(w);
	}
	expect_eq(world_stats(w).mapping_tables, 1);
	mapset_free(sets[0]);
	mapset_free(sets[1]);
	world_free(w);
}

/* What runtimes claim of a file is theirs wherever it is mapped, and its own again when they let
 * go; the cache of rows does not answer for the time before. */
TEST(runtimes_claim_code)
{
	static const struct code_claim claims[] = {
		{0x800, 0x1800, 3}, {0x1800, 0x1801, 4}, {0x4ff0, 0x9000, 5}};
	static const struct code_claim crossed[] = {{0x10, 0x20, 1}, {0x1f, 0x30, 2}};
	static const struct code_claim empty[] = {{0x10, 0x10, 1}};
	struct world *w = world_new(BUDGET);
	uint32_t id;

	world_file(w, 1, 0x1000, 11, 1000);
	world_map_one(w, 1, 1, TEXT, 0x6000, 0);
	id = world_id(w, 1);
	expect_eq(unwind_claim(w->store, w->files[1].file, crossed, 2), -EINVAL);
	expect_eq(unwind_claim(w->store, w->files[1].file, empty, 1), -EINVAL);
	expect_eq(world_id(w, 1), id);
	expect_eq(unwind_claim(w->store, w->files[1].file, claims, 3), 0);
	expect(world_id(w, 1) != id);
	world_map_one(w, 2, 1, TEXT, 0x1000, 0x1000);
	for (uint64_t at = 0; at < 0x6000; at++) {
		uint16_t slot = at >= 0x800 && at < 0x1800 ? 3
				: at == 0x1800             ? 4
				: at >= 0x4ff0             ? 5
							   : 0;
		struct unwind_found found = world_find(w, 1, TEXT + at);

		expect_eq(found.kind, UNWIND_KIND_TABLE);
		expect_eq(found.slot, slot);
		expect_eq(found.entry.rule, world_entry(w, 1, at).rule);
	}
	expect_eq(world_find(w, 2, TEXT + 0x7ff).slot, 3);
	expect_eq(world_find(w, 2, TEXT + 0x800).slot, 4);
	expect_eq(world_find(w, 2, TEXT + 0x801).kind, UNWIND_KIND_TABLE);
	id = world_id(w, 1);
	expect_eq(unwind_claim(w->store, w->files[1].file, NULL, 0), 0);
	expect(world_id(w, 1) != id);
	world_expect_rows(w, 1, 1, TEXT, 0x6000, 0);
	world_expect_rows(w, 2, 1, TEXT, 0x1000, 0x1000);
	world_free(w);
}

/* Nobody waits for a large file to be read: the process is mapped when it has been, and others are
 * mapped and sampled at once. */
TEST(files_are_read_beside)
{
	struct world *w = world_new(BUDGET);
	struct sampler_process_key large = world_key(1), small = world_key(2);
	struct mapset *set = world_set();

	world_file(w, 1, 0, 1, 3000000); /* more pages than the queue holds */
	world_file(w, 2, 0, 1, 10);
	world_map_one(w, 3, 2, TEXT, 0x1000, 0);
	expect(world_add(w, set, 1, TEXT, 3000000 & ~4095, 0));
	expect_eq(unwind_map(w->store, &large, 1, set), 1);
	expect(unwind_reading(w->store));
	expect(!unwind_knows(w->store, &large, 1));
	mapset_free(set);
	set = world_set();
	expect(world_add(w, set, 2, TEXT, 0x1000, 0));
	expect_eq(unwind_map(w->store, &small, 1, set), 0);
	world_expect_rows(w, 2, 2, TEXT, 10, 0);
	unwind_tick(w->store); /* asks for it once */
	mapset_free(set);
	unwind_wait(w->store);
	world_map_one(w, 1, 1, TEXT, 3000000 & ~4095, 0);
	world_expect_rows(w, 1, 1, TEXT, 3000000 & ~4095, 0);
	expect_eq(w->files[1].n_read, 1);
	world_free(w);
}

/* A store ends while files are read, and leaves nothing. */
TEST(reading_is_broken_off)
{
	for (uint32_t n = 0; n < 30; n++) {
		struct world *w = world_new(BUDGET);
		struct mapset *set = world_set();
		struct sampler_process_key key = world_key(1);

		world_file(w, 1, 0, 1, 1000000);
		world_file(w, 2, 0, 1, 1000000);
		expect(world_add(w, set, 1, TEXT, 1000000 & ~4095, 0));
		expect(world_add(w, set, 2, 2 * TEXT, 1000000 & ~4095, 0));
		expect_eq(unwind_map(w->store, &key, 1, set), 1);
		for (uint32_t i = 0; i < n; i++)
			unwind_take(w->store);
		mapset_free(set);
		world_free(w);
	}
}

/* What the kernel refuses is a budget, too: stacks end earlier, and it is tried again. */
TEST(a_kernel_that_gives_nothing_is_survived)
{
	struct world *w = world_new(BUDGET);

	w->kernel.creates_left = 0;
	world_fill(w, 1, 3);
	expect_eq(find_error(w, 1, TEXT), -ESRCH);
	expect_eq(world_word(w, 1), 0);
	world_tick(w);
	expect_eq(world_word(w, 1), 0);
	w->kernel.creates_left = 1;
	world_tick(w);
	expect(world_word(w, 1) != 0);
	expect_eq(world_find(w, 1, TEXT + 0x2000).kind, UNWIND_KIND_FRAMES);
	/* What is hit is read again, after a while. */
	for (uint32_t i = 0; i < 4; i++) {
		unwind_used(w->store, w->files[1].file, 0x2000);
		world_tick(w);
	}
	world_expect_rows(w, 1, 1, TEXT, 0x90000, 0);
	world_free(w);
}

/* Why a file has no table is distinguished. */
TEST(refusals_are_distinct)
{
	static const int errors[] = {-ENODATA, -ENOEXEC, -ENOTSUP, -EIO, -ESTALE, -E2BIG};
	struct world *w = world_new(BUDGET);
	struct unwind_stats s;

	for (uint32_t i = 0; i < 6; i++) {
		world_file(w, i + 1, 0, 1, 100);
		w->files[i + 1].error = errors[i];
		world_map_one(w, i, i + 1, TEXT, 0x1000, 0);
		expect_eq(world_find(w, i, TEXT).kind, UNWIND_KIND_FRAMES);
	}
	world_file(w, 7, 0, UINT64_C(1) << 30, 10); /* too far apart */
	world_map_one(w, 7, 7, TEXT, 0x1000, 0);
	world_tick(w);
	s = world_stats(w);
	expect_eq(s.refused[UNWIND_REFUSED_NO_ROWS], 1);
	expect_eq(s.refused[UNWIND_REFUSED_NOT_ELF], 2);
	expect_eq(s.refused[UNWIND_REFUSED_UNREADABLE], 2);
	expect_eq(s.refused[UNWIND_REFUSED_TOO_LARGE], 2);
	expect_eq(s.tables, 0);
	expect_eq(s.rules, 0);
	/* What could not be read is tried again, ever more rarely; what is not a table never is. */
	for (uint32_t i = 0; i < 20; i++)
		world_tick(w);
	expect(w->files[4].n_read >= 3 && w->files[4].n_read <= 6);
	expect_eq(w->files[2].n_read, 1);
	w->files[4].error = 0;
	for (uint32_t i = 0; i < 40; i++)
		world_tick(w);
	expect_eq(world_find(w, 3, TEXT).kind, UNWIND_KIND_TABLE);
	world_free(w);
}

/* Files that nobody has mapped for long are forgotten, and their rules with them. */
TEST(what_nobody_maps_is_forgotten)
{
	struct world *w = world_new(BUDGET);
	struct sampler_process_key key = world_key(1);
	struct unwind_stats s;

	world_fill(w, 1, 2);
	unwind_unmap(w->store, &key);
	for (uint32_t i = 0; i < 30; i++)
		world_tick(w);
	world_map_one(w, 1, 1, TEXT, 0x90000, 0); /* started again in time */
	expect_eq(w->files[1].n_read, 1);
	unwind_unmap(w->store, &key);
	for (uint32_t i = 0; i < 60; i++)
		world_tick(w);
	s = world_stats(w);
	expect_eq(s.files, 0);
	expect_eq(s.rules, 0);
	expect_eq(s.slabs, 0);
	world_free(w);
}

/* More mappings than fit: the first are there, the rest is counted. */
TEST(mappings_beyond_the_limit_are_cut)
{
	struct world *w = world_new(BUDGET);
	struct mapset *set = world_set();

	world_file(w, 1, 0, 16, 200);
	for (uint32_t i = 0; i < MAPS_MAX; i++)
		expect(world_add(w, set, 1, TEXT + i * UINT64_C(0x2000), 0x1000, 0));
	expect_eq(world_map(w, 1, set), 0);
	world_expect_rows(w, 1, 1, TEXT, 0x1000, 0);
	world_expect_rows(w, 1, 1, TEXT + (UNWIND_MAPPINGS_MAX - 1) * UINT64_C(0x2000), 0x1000, 0);
	expect_eq(find_error(w, 1, TEXT + UNWIND_MAPPINGS_MAX * UINT64_C(0x2000)), -ENOENT);
	expect(world_stats(w).mappings_cut > 0);
	mapset_free(set);
	world_free(w);
}
