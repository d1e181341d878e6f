/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of what `andiron targets` reads and shows. The verb itself is run by
 * tests/scenario/targets.py. */
#include "base/file.h"
#include "base/test.h"
#include "given.h"
#include "matched.h"
#include "seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* A file with that text, given_read of it, and the file gone. */
static int read_text(const char *text, size_t n, struct arena *arena,
		     const struct andiron_value **ret, struct error *err)
{
	char path[] = "/tmp/andiron-test-XXXXXX";
	int fd = mkstemp(path), r;

	expect(fd >= 0);
	expect_eq(write(fd, text, n), n);
	close(fd);
	r = given_read(path, arena, ret, err);
	unlink(path);
	return r;
}

static const char good[] = "[{\"b\": \"2\", \"a\": \"1\"}, {}, {\"a\": \"x\\u0000y\"}]";

/* Order, duplicates and odd characters are kept. */
TEST(reads_targets)
{
	struct arena arena = ARENA_NULL;
	const struct andiron_value *list = NULL;

	expect_eq(read_text(good, strlen(good), &arena, &list, NULL), 0);
	expect_eq(list->n_items, 3);
	expect_eq(list->items[0].n_items, 2);
	expect(memcmp(list->items[0].keys[0].ptr, "b", 1) == 0);
	expect_eq(list->items[1].n_items, 0);
	expect_eq(list->items[2].items[0].string.len, 3);
	arena_free(&arena);
}

/* Any damage to a good text gives targets or an error with a text. */
TEST(damaged_texts)
{
	char text[sizeof(good)];

	srand(9);
	for (int round = 0; round < 2000; round++) {
		struct arena arena = ARENA_NULL;
		const struct andiron_value *list = NULL;
		struct error err = ERROR_NULL;
		size_t n = (size_t)rand() % sizeof(good);

		memcpy(text, good, sizeof(good));
		for (int k = rand() % 3; k > 0; k--)
			text[(size_t)rand() % sizeof(good)] = (char)rand();
		if (read_text(text, n, &arena, &list, &err))
			expect(err.code < 0 && err.text[0]);
		else
			expect(list->kind == ANDIRON_VALUE_LIST);
		arena_free(&arena);
	}
}

static int see(void *context)
{
	const struct target_label labels[] = {{STR("__process_pid__"), STR("1")},
					      {STR("a"), STR("\x1b\xff")}};
	const struct target_row row = {.labels = labels, .n_labels = 2};
	const struct andiron_kv kv = {{"k", 1}, {"v", 1}};
	const struct andiron_dropped_target dropped = {
		.labels = &kv, .n_labels = 1, .file = "c.alloy", .line = 3, .rule = 2};
	const struct andiron_dropped_target large = {
		.labels = &kv, .n_labels = 1, .reason = {"too large", 9}};
	struct seen s = {.failed = false};
	struct buf *out = context;
	int r;

	seen_begin(&s, "discovery.relabel.x");
	seen_add_row(&s, &row);
	seen_add_dropped(&s, &dropped);
	seen_add_dropped(&s, &large);
	seen_begin(&s, "other");
	r = s.failed ? -ENOMEM : seen_match(&s);
	buf_clear(out);
	if (!r)
		seen_json(&s, NULL, out);
	if (!r)
		seen_text(&s, "discovery.relabel.x", out);
	if (!r && (s.failed || out->failed))
		r = -ENOMEM;
	seen_free(&s);
	return r;
}

/* What was seen is shown whole, in both forms, and without control characters. */
TEST(shows_all)
{
	static const char *const words[] = {
		"\"rule\": 2, \"at\": \"c.alloy:3\"",
		"\"rule\": 0, \"reason\": \"too large\"",
		"\"other\": {",
		"\"processes\": [{\"pid\": 1, \"name\": \"",
		"discovery.relabel.x: 1 target, 2 dropped",
		"matches 1 process: 1 (",
		"dropped by rule 2 at c.alloy:3",
		"dropped: too large",
		"a = \"\\x1b\\xff\"",
	};
	struct buf out = BUF_NULL;

	expect_eq(see(&out), 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_search(buf_str(&out), str_of(words[i])) == out.n)
			test_fail(__FILE__, __LINE__, "no %s in\n%.*s", words[i],
				  STR_FMT(buf_str(&out)));
	expect_eq(str_find(buf_str(&out), '\x1b'), out.n);
	buf_free(&out);
}

TEST(out_of_memory)
{
	struct buf out = BUF_NULL;

	test_each_failing_allocation(see, &out);
	buf_free(&out);
}

static int read_good(void *context)
{
	struct arena arena = ARENA_NULL;
	const struct andiron_value *list = NULL;
	int r = given_read(context, &arena, &list, NULL);

	arena_free(&arena);
	return r;
}

TEST(reading_out_of_memory)
{
	char path[] = "/tmp/andiron-test-XXXXXX";
	int fd = mkstemp(path);

	expect(fd >= 0);
	expect_eq(write(fd, good, strlen(good)), strlen(good));
	close(fd);
	test_each_failing_allocation(read_good, path);
	unlink(path);
}
