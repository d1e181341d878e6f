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

static int map_process(struct world *w, uint32_t tgid, struct mapset *set)
{
	struct sampler_process_key key = world_key(tgid);

	return unwind_map(w->store, &key, 1, set);
}

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
	expect_eq(map_process(w, 7, set), 0);
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
	expect_eq(map_process(w, 8, set), 0);
	expect_eq(w->files[1].n_read, 1);
	expect_eq(stats_of(w).views, 1);
	mapset_free(set);
	free_world(w);
}
