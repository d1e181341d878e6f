/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in flight while the store changes: each walks by the word that it has read, until the
 * quiesce. None is ever led to memory that has been freed, or to the rule of another address. And a
 * store whose own memory ends at any point. */
#include "ebpf/tests/test-world.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

#define TEXT UINT64_C(0x7f0000000000)

/* What a program holds that began before the store changed something: it may go on until the
 * quiesce. */
struct reader {
	uint64_t word;
	uint32_t set;
};

#define SOAK_FILES     60
#define SOAK_PROCESSES 40
#define SOAK_SETS      200

struct soak {
	struct world *w;
	struct mapset *sets[SOAK_SETS];
	uint32_t numbers[SOAK_SETS][8];  /* of the files, by mapping */
	uint32_t set_of[SOAK_PROCESSES]; /* plus 1; 0: none */
	struct reader readers[2 * SOAK_PROCESSES];
	uint32_t n_readers;
	uint32_t busy; /* the process that is being mapped; plus 1 */
	uint64_t state;
	uint64_t n_steps, n_hidden;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One step of a program that has read `word` when the process had this set: what it applies is the
 * file's rule or, where that was not admitted, that of frame pointers; or nothing. */
static void soak_step(struct soak *s, uint64_t word, uint32_t number)
{
	const struct mapset *set = s->sets[number];
	uint64_t r = next_random(&s->state), at, rule, expected;
	const struct mapping *m = &set->list.p[r % set->list.n];
	uint32_t file = s->numbers[number][r % set->list.n];

	at = (r >> 8) % (m->limit - m->start);
	rule = world_step(s->w, word, m->start + at);
	expected = file == WORLD_ANON ? world_by_frames()
				      : world_entry(s->w, file, m->offset + at).rule;
	s->n_steps++;
	s->n_hidden += rule == 0 && expected != 0;
	if (rule != expected && rule != 0 && rule != world_by_frames())
		test_fail(__FILE__, __LINE__, "file %u at %#llx: rule %#llx, expected %#llx", file,
			  (unsigned long long)(m->offset + at), (unsigned long long)rule,
			  (unsigned long long)expected);
}

static void soak_begin(struct soak *s, uint32_t process)
{
	struct reader now = {world_word(s->w, process), s->set_of[process] - 1};

	if (s->n_readers < 2 * SOAK_PROCESSES)
		s->readers[s->n_readers++] = now;
}

/* All programs that run come to their end, and others begin with what is there then. */
static void soak_quiesce(void *context)
{
	struct soak *s = context;

	for (uint32_t i = 0; i < s->n_readers; i++)
		for (uint32_t k = 0; k < 20; k++)
			soak_step(s, s->readers[i].word, s->readers[i].set);
	s->n_readers = 0;
	for (uint32_t i = 0; i < UNWIND_SPACES; i++) {
		const struct unwind_space *space = &s->w->kernel.spaces[i];
		struct reader now = {space->word, s->set_of[space->tgid % SOAK_PROCESSES] - 1};

		if (space->word && space->tgid + 1 != s->busy)
			s->readers[s->n_readers++] = now;
	}
}

static void soak_make_sets(struct soak *s)
{
	for (uint32_t i = 0; i < SOAK_SETS; i++) {
		uint32_t n = 1 + (uint32_t)(next_random(&s->state) % 8);
		uint64_t start = TEXT + (next_random(&s->state) % 4) * 0x100000;

		s->sets[i] = calloc(1, sizeof(struct mapset));
		for (uint32_t k = 0; k < n; k++) {
			uint64_t r = next_random(&s->state);
			uint64_t bytes = 0x10000 * (1 + r % 16);

			s->numbers[i][k] = r % 11 == 0 ? WORLD_ANON
						       : 1 + (uint32_t)(r >> 8) % SOAK_FILES;
			expect(world_add(s->w, s->sets[i], s->numbers[i][k], start, bytes,
					 0x1000 * (r >> 20 & 31)));
			start += bytes + 0x1000 * (r >> 40 & 7);
		}
	}
}

static void soak_act(struct soak *s)
{
	uint64_t r = next_random(&s->state);
	uint32_t process = (uint32_t)(r >> 8) % SOAK_PROCESSES,
		 set = (uint32_t)(r >> 20) % SOAK_SETS;
	struct sampler_process_key key = world_key(process);
	int error;

	switch (r % 16) {
	case 0:
		unwind_unmap(s->w->store, &key);
		s->set_of[process] = 0;
		break;
	case 1:
		world_tick(s->w);
		break;
	case 2:
	case 3:
	case 4:
		s->busy = process + 1;
		error = world_map(s->w, process, s->sets[set]);
		s->busy = 0;
		expect(error == 0 || error == -ENOSPC);
		if (error == 0)
			s->set_of[process] = set + 1;
		break;
	case 5:
		s->w->kernel.quiesce_fails = r >> 60 == 0;
		s->w->kernel.map_fails = r >> 62 == 1;
		break;
	default:
		unwind_used(s->w->store, s->w->files[1 + (r >> 30) % SOAK_FILES].file,
			    (r >> 40) % 0x100000);
	}
	if (s->set_of[process] && world_word(s->w, process)) {
		soak_step(s, world_word(s->w, process), s->set_of[process] - 1);
		soak_begin(s, process);
	}
}

/* Programs that run while the store maps, unmaps, evicts and reads again, and while the kernel
 * fails now and then: none ever applies a rule that is not its address's, or reads what has been
 * freed. */
TEST(programs_in_flight_read_what_was)
{
	struct soak *s = calloc(1, sizeof(*s));
	struct unwind_stats stats;

	s->state = 20261121;
	s->w = malloc(sizeof(*s->w));
	expect_eq(world_init(s->w, 2 * SLABS_COST), 0);
	/* About 2.5 MB together, and one alone more than there is. */
	for (uint32_t i = 1; i <= SOAK_FILES; i++) {
		world_file(s->w, i, 0x800 * i, 25 + i % 9, i == 7 ? 1000000 : 20000);
		s->w->files[i].n_rules = 20 + i;
		s->w->files[i].aux = i % 13 == 0;
	}
	soak_make_sets(s);
	s->w->kernel.on_quiesce = soak_quiesce;
	s->w->kernel.context = s;
	for (uint32_t i = 0; i < 5000; i++)
		soak_act(s);
	soak_quiesce(s);
	unwind_get_stats(s->w->store, &stats);
	printf("# %llu steps, %llu without a rule, %llu evictions, %llu quiesces\n",
	       (unsigned long long)s->n_steps, (unsigned long long)s->n_hidden,
	       (unsigned long long)stats.evictions, (unsigned long long)stats.quiesces);
	expect(stats.evictions > 20 && stats.degraded > 0);
	expect(s->n_hidden < s->n_steps);
	expect_eq(s->w->kernel.n_slabs_most, 2);
	s->w->kernel.map_fails = s->w->kernel.quiesce_fails = false;
	for (uint32_t i = 0; i < SOAK_SETS; i++)
		mapset_free(s->sets[i]);
	world_fini(s->w);
	free(s->w);
	free(s);
}

/* A process of which the mappings alone take n times 32 bytes. */
static int occupy(struct world *w, uint32_t tgid, uint64_t n)
{
	struct mapset *set = calloc(1, sizeof(struct mapset));
	int r = set ? 0 : -ENOMEM;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		if (!world_add(w, set, WORLD_ANON, TEXT + i * 0x2000, 0x1000, 0))
			r = -ENOMEM;
	if (r == 0)
		r = world_map(w, tgid, set);
	mapset_free(set);
	return r;
}

/* A file and a process of it, which is hit. */
static int use_file(struct world *w, uint32_t number, uint32_t n)
{
	struct mapset *set;
	int r = world_file(w, number, 0, 18, n);

	if (r != 0)
		return r;
	set = calloc(1, sizeof(*set));
	if (!set || !world_add(w, set, number, TEXT, 0x10000, 0) ||
	    !world_add(w, set, WORLD_ANON, TEXT + 0x10000, 0x1000, 0))
		r = -ENOMEM;
	if (r == 0)
		r = world_map(w, number % 2, set);
	mapset_free(set);
	unwind_used(w->store, w->files[number].file, 0x100);
	world_tick(w);
	return r;
}

/* Of a slab 20 KB are left; the last file needs 32. */
static int live_a_little(void *context)
{
	struct world *w = context;
	struct unwind_stats s;
	int r = world_init(w, SLABS_COST);

	if (r != 0)
		return r;
	r = occupy(w, 10, 16383);
	if (r == 0)
		r = occupy(w, 11, 15700);
	for (uint32_t i = 1; r == 0 && i < 4; i++)
		r = use_file(w, i, i == 3 ? 14560 : 100);
	unwind_get_stats(w->store, &s);
	if (r == 0 && s.no_memory)
		r = -ENOMEM;
	if (r == 0)
		expect(s.degraded == 1 && s.tables == 2 && s.evictions == 1);
	world_fini(w);
	return r;
}

TEST(the_store_survives_out_of_memory)
{
	struct world *w = malloc(sizeof(*w));

	test_each_failing_allocation(live_a_little, w);
	free(w);
}
