/* SPDX-License-Identifier: Apache-2.0 */
/* Names are there while they are used, equal ones once, and never more bytes than there may be. */
#include "runtime-kit/name-cache.h"

#include "testing/test.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct name name(const char *function, const char *file, uint32_t line)
{
	return (struct name){
		.function = function,
		.n_function = (uint32_t)strlen(function),
		.file = file,
		.n_file = (uint32_t)strlen(file),
		.first_line = line,
		.table = (const unsigned char *)"table",
		.n_table = 5,
		.kind = 2,
		.extra = 99,
	};
}

static int put(struct name_cache *c, uint64_t id, struct name n)
{
	return name_cache_put(c, id, &n);
}

static bool is_there(struct name_cache *c, uint64_t id)
{
	struct name n;

	name_cache_begin(c);
	return name_cache_find(c, id, &n);
}

/* What was put comes back whole, and the last one counts. */
TEST(names_come_back)
{
	struct name_cache *c = name_cache_new(1 << 20);
	struct name n;

	expect_eq(put(c, 5, name("f", "a.py", 7)), 0);
	expect_eq(put(c, 6, name("g", "", 0)), 0);
	expect(name_cache_find(c, 5, &n));
	expect_str(((struct str){n.function, n.n_function}), "f");
	expect_str(((struct str){n.file, n.n_file}), "a.py");
	expect_str(((struct str){(const char *)n.table, n.n_table}), "table");
	expect_eq(n.first_line + n.kind + n.extra, 7 + 2 + 99);
	expect_eq(put(c, 5, name("h", "b.py", 8)), 0);
	/* Still what was found, until the next beginning. */
	expect_str(((struct str){n.function, n.n_function}), "f");
	expect(name_cache_find(c, 5, &n));
	expect_str(((struct str){n.function, n.n_function}), "h");
	expect(!is_there(c, 7));
	expect_eq(put(c, 0, name("f", "", 0)), -EINVAL);
	expect_eq(put(c, 8, name("", "", 0)), -EINVAL);
	name_cache_free(c);
}

/* Equal names of many workers cost their ids. */
TEST(equal_names_are_kept_once)
{
	struct name_cache *c = name_cache_new(8 << 20);
	char file[4096];
	uint64_t before;

	memset(file, 'x', sizeof(file) - 1);
	file[sizeof(file) - 1] = '\0';
	expect_eq(put(c, 1, name("f", file, 7)), 0);
	before = name_cache_counts(c).bytes;
	for (uint64_t id = 2; id <= 2000; id++)
		expect_eq(put(c, id, name("f", file, 7)), 0);
	expect(name_cache_counts(c).bytes - before < 2000 * 88);
	expect_eq(put(c, 1, name("f", file, 8)), 0);
	expect(name_cache_counts(c).bytes - before > 4096);
	name_cache_free(c);
}

/* A million ids, of equal names or of different ones: the bound holds, counted by malloc, too; what
 * is asked for stays, and each id that had to leave is reported. */
static void fill(bool different)
{
	size_t max = 1 << 20, before = mallinfo2().uordblks;
	struct name_cache *c = name_cache_new(max);
	uint64_t n_evicted = 0, id;
	char text[32];

	expect_eq(put(c, 1000000000, name("kept", "k", 1)), 0);
	for (uint64_t i = 1; i <= 1000000; i++) {
		snprintf(text, sizeof(text), "f%llu", different ? (unsigned long long)i : 0ull);
		expect_eq(put(c, i, name(text, "file", 1)), 0);
		while ((id = name_cache_excess(c)) != 0) {
			expect(id < i && !is_there(c, id));
			n_evicted++;
		}
		expect(name_cache_counts(c).bytes <= max);
		if (i % 1000 == 0) {
			expect(is_there(c, 1000000000));
			expect(mallinfo2().uordblks - before <= max + max / 8);
		}
	}
	expect_eq(name_cache_counts(c).n_evicted, n_evicted);
	expect_eq(name_cache_counts(c).n_names + n_evicted, 1000001);
	expect(n_evicted > 900000);
	name_cache_free(c);
}

TEST(bound_holds_for_different_names)
{
	fill(true);
}

TEST(bound_holds_for_equal_names)
{
	fill(false);
}

/* A process that fills the cache has all of it while it is alone. Once others' names come, it loses
 * its own, and none of theirs: of a hundred some may share its part, but hardly ten. */
TEST(process_loses_its_own_names)
{
	struct name_cache *c = name_cache_new(1 << 20);
	char big[16000];
	struct name n = name("big", "", 0);
	uint64_t id, n_lost = 0;

	n.table = (unsigned char *)big;
	n.n_table = sizeof(big);
	memset(big, 0, sizeof(big));
	for (uint64_t i = 1; i <= 300; i++) {
		if (i == 200)
			for (uint64_t k = 0; k < 100; k++) {
				struct name other = name("other", "file", (uint32_t)k);

				other.owner = 2 + k;
				expect_eq(put(c, 1000 + k, other), 0);
				while ((id = name_cache_excess(c)) != 0)
					n_lost += id >= 1000;
			}
		n.owner = 1;
		memcpy(big, &i, sizeof(i));
		expect_eq(put(c, i, n), 0);
		while ((id = name_cache_excess(c)) != 0)
			n_lost += id >= 1000;
		expect(is_there(c, i));
	}
	expect(name_cache_counts(c).bytes > 900000);
	expect(n_lost < 10);
	name_cache_free(c);
}

/* Without a caller that lets ids go, nothing comes in any more. */
TEST(full_cache_refuses)
{
	struct name_cache *c = name_cache_new(1 << 16);
	char text[16];
	int r = 0;

	for (uint64_t id = 1; r == 0; id++) {
		expect(id < 100000);
		snprintf(text, sizeof(text), "f%llu", (unsigned long long)id);
		r = put(c, id, name(text, "", 1));
	}
	expect_eq(r, -ENOSPC);
	expect(name_cache_excess(c) != 0);
	name_cache_free(c);
}

struct writer {
	struct name_cache *cache;
	atomic_bool enough;
	atomic_uint_fast64_t last; /* id that came in */
};

static void *put_many(void *context)
{
	struct writer *w = context;
	char text[24];

	for (uint64_t id = 1; !atomic_load(&w->enough); id++) {
		snprintf(text, sizeof(text), "f%llu", (unsigned long long)id);
		put(w->cache, id, name(text, text, 1));
		atomic_store(&w->last, id);
		while (name_cache_excess(w->cache) != 0)
			;
	}
	return NULL;
}

/* A name that is in use stays readable while another thread makes it leave. */
TEST(names_in_use_stay)
{
	struct name_cache *c = name_cache_new(1 << 16);
	struct writer w = {.cache = c};
	pthread_t thread;
	uint64_t n_found = 0;

	expect_eq(pthread_create(&thread, NULL, put_many, &w), 0);
	while (name_cache_counts(c).n_evicted < 90000 || n_found < 100) {
		name_cache_begin(c);
		for (uint64_t back = 0; back < 1000; back += 7) {
			uint64_t last = atomic_load(&w.last);
			struct name n;

			if (last <= back || !name_cache_find(c, last - back, &n))
				continue;
			n_found++;
			expect_eq(n.n_function, n.n_file);
			expect(memcmp(n.function, n.file, n.n_file) == 0);
		}
	}
	atomic_store(&w.enough, true);
	pthread_join(thread, NULL);
	name_cache_free(c);
}

static int use(void *context)
{
	struct name_cache *c = name_cache_new(1 << 20);
	int r = c ? 0 : -ENOMEM;

	for (uint64_t id = 1; id < 600 && r == 0; id++) {
		r = put(c, id, name("f", id % 2 ? "a" : "b", (uint32_t)id));
		if (r == -ENOSPC)
			r = -ENOMEM; /* no memory for slots */
	}
	name_cache_free(c);
	return r;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(use, NULL);
}
