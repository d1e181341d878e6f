/* SPDX-License-Identifier: Apache-2.0 */
/* Odd batches. Contract in test-odd.h. */
#include "pyroscope-push/tests/test-odd.h"

#include "abi/batch-build.h"
#include "base/clock.h"
#include "testing/test.h"

#include <stdlib.h>

static unsigned int roll(unsigned int *seed, unsigned int n)
{
	return (unsigned int)rand_r(seed) % n;
}

/* Text of n bytes, of any character there is; `plain`: of letters. */
static struct str words(unsigned int *seed, size_t n, bool plain)
{
	static char text[4096];
	static const char *const odd[] = {"ü", "-", ".", " ", "\"", "{", "\\", "€", ":", "=", "\n"};
	size_t used = 0;

	while (used < n && used + 8 < sizeof(text)) {
		if (!plain && roll(seed, 4) == 0) {
			const char *piece = odd[roll(seed, sizeof(odd) / sizeof(odd[0]))];

			memcpy(text + used, piece, strlen(piece));
			used += strlen(piece);
		} else {
			text[used++] = (char)('a' + roll(seed, 26));
		}
	}
	return (struct str){text, used};
}

static uint32_t add_type(struct batch_builder *b, unsigned int *seed, bool plain)
{
	struct andiron_profile_type t = {.period = roll(seed, 5) ? 10000000 : roll(seed, 3)};

	t.name = plain ? batch_add_string(b, STR("process_cpu"))
		       : batch_add_string(b, words(seed, 1 + roll(seed, 12), false));
	t.type = plain ? batch_add_string(b, STR("cpu"))
		       : batch_add_string(b, words(seed, roll(seed, 8), false));
	t.unit =
		batch_add_string(b, plain ? STR("nanoseconds") : words(seed, roll(seed, 8), false));
	t.period_type = plain || roll(seed, 2) ? t.type : 0;
	t.period_unit = plain || roll(seed, 2) ? t.unit : 0;
	return batch_add_type(b, &t);
}

static uint32_t add_labels(struct batch_builder *b, unsigned int *seed, bool plain, uint32_t *out)
{
	static char name[4096]; /* words() has one place */
	uint32_t n = plain ? roll(seed, 6) : roll(seed, 60);

	out[0] = batch_add_str_attribute(b, STR("service_name"), words(seed, 4, true));
	for (uint32_t i = 1; i <= n; i++) {
		/* Of two hundred names: a column each is what Parca makes of them. */
		unsigned int of_name = roll(seed, 100) + (plain ? 1000 : 2000);
		size_t long_name = roll(&of_name, 40) ? 1 + roll(&of_name, 12)
						      : 1000 + roll(&of_name, 60);
		size_t long_value = roll(seed, 20) ? roll(seed, 20) : 2000 + roll(seed, 100);
		struct str key = words(&of_name, plain ? 1 + roll(&of_name, 12) : long_name, plain);

		memcpy(name, key.p, key.n);
		key.p = name;
		out[i] = batch_add_str_attribute(b, key,
						 words(seed, plain ? roll(seed, 20) : long_value,
						       plain));
	}
	return n + 1;
}

/* Of the batch under way: a location beyond it is new, and may get lines. */
static uint32_t highest;

static uint32_t add_stack(struct batch_builder *b, unsigned int *seed, uint32_t map, bool plain)
{
	uint32_t frames[40], depth = plain ? 1 + roll(seed, 20) : roll(seed, 40);

	for (uint32_t i = 0; i < depth; i++) {
		struct andiron_location at = {.kind = ANDIRON_FRAME_NATIVE,
					      .mapping = map,
					      .address = 1 + roll(seed, 1000)};
		struct andiron_line line = {.line = roll(seed, 100)};

		if (!plain) {
			at.kind = (uint16_t)(1 + roll(seed, 4));
			at.mapping = roll(seed, 2) ? map : 0;
			at.address = roll(seed, 3) ? at.address : 0;
		}
		frames[i] = batch_add_location(b, &at);
		line.function = batch_add_function(
			b, &(struct andiron_function){
				   .name = batch_add_string(b, words(seed, roll(seed, 9), plain))});
		if (frames[i] > highest && roll(seed, 2))
			batch_set_lines(b, frames[i], &line, 1);
		if (frames[i] > highest)
			highest = frames[i];
	}
	return batch_add_stack(b, frames, depth);
}

static void add_group(struct batch_builder *b, unsigned int *seed, uint32_t map,
		      struct test_odd_counts *counts)
{
	bool plain = roll(seed, 2);
	uint32_t labels[64], type = add_type(b, seed, plain), rows = roll(seed, 8);

	counts->groups++;
	counts->plain += plain;
	batch_group_begin(b, labels, add_labels(b, seed, plain, labels));
	for (uint32_t i = plain ? 0 : roll(seed, 2); i <= rows; i++) {
		struct andiron_row row = {.samples = 1 + roll(seed, 5), .type = type};

		row.value = (int64_t)row.samples * 10000000;
		if (!plain)
			row.value = roll(seed, 3) ? row.value : (int64_t)roll(seed, 3) - 1;
		row.stack = add_stack(b, seed, map, plain);
		expect(batch_add_row(b, &row));
	}
}

const struct andiron_batch *test_odd_batch(unsigned int *seed, struct test_odd_counts *counts)
{
	static const int64_t off[] = {0, 0, 0, 0, 0, 0, -4000 * NS_PER_SEC, 4000 * NS_PER_SEC};
	struct batch_builder *b = batch_builder_new();
	struct andiron_mapping mapping = {0};
	struct batch_head head = {.end_ns = clock_real() + off[roll(seed, 8)]};
	const struct andiron_batch *batch;
	uint32_t map;

	expect(b);
	highest = 0;
	head.start_ns = roll(seed, 4) ? head.end_ns - NS_PER_SEC : 0;
	mapping.file = batch_add_string(b, roll(seed, 4) ? STR("/bin/x") : STR(""));
	mapping.gnu_build_id = roll(seed, 2) ? batch_add_string(b, STR("ab12cd34")) : 0;
	map = batch_add_mapping(b, &mapping);
	for (unsigned int i = 1 + roll(seed, 4); i > 0; i--)
		add_group(b, seed, map, counts);
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}
