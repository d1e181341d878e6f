/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder against files that are broken, foreign or hostile. */
#include "pprof/decode.h"
#include "pprof/encode.h"
#include "pprof/gzip.h"
#include "protobuf/wire.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int decode(struct str data, struct error *err)
{
	struct profile *p = NULL;
	int r = profile_decode(data, &p, err);

	if (r == 0)
		profile_free(p);
	else
		expect(!p);
	return r;
}

static void expect_refused(struct str data, const char *part)
{
	struct error err = ERROR_NULL;

	expect_eq(decode(data, &err), -EBADMSG);
	if (str_search(str_of(err.text), str_of(part)) == strlen(err.text))
		test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", err.text, part);
}

/* Each kind of damage is told apart. */
TEST(refusals_name_their_cause)
{
	expect_refused(STR(""), "empty");
	expect_refused(STR("hello, this is text\n"), "no protocol buffer");
	expect_refused(STR("\x1f\x8b\x08\0\0\0\0\0\0\0"), "gzip");
	expect_refused(STR("\x32\0"), "names no sample type");
	expect_refused(STR("\x0a\x02\x08\x05"), "sample type");
	expect_refused(STR("\x0a\0\x12\x05\x0a\x01\x07\x12\0"), "location that is not there");
	expect_refused(STR("\x0a\0\x12\0"), "number of values");
	expect_refused(STR("\x0a\0\x22\x04\x08\x01\x10\x09"), "mapping that is not there");
	expect_refused(STR("\x0a\0\x22\x06\x08\x01\x22\x02\x08\x09"), "function that is not there");
	expect_refused(STR("\x0a\0\x22\x02\x08\0"), "id is 0");
	expect_refused(STR("\x0a\0\x2a\x02\x08\x01\x2a\x02\x08\x01"), "not unique");
}

/* Ids of any value and order, unpacked lists, parts in any order, unknown
 * fields: all legal. */
TEST(foreign_layouts_are_read)
{
	static const char bytes[] =
		"\x12\x0b\x08\xb9\x60\x10\x05\x1a\x04\x08\x01\x18\x2a" /* sample, num label */
		"\x22\x0b\x08\xb9\x60\x18\x10\x22\x04\x08\x63\x10\x08" /* location 12345 */
		"\x2a\x04\x08\x63\x10\x02"                             /* function 99 */
		"\x0a\x04\x08\x01\x10\x02"                             /* type */
		"\x32\x00\x32\x03pid\x32\x04main"                      /* strings */
		"\x92\x03\x01x\x9d\x03\x01\x02\x03\x04";               /* unknown */
	struct profile *p;

	expect_eq(profile_decode((struct str){bytes, sizeof(bytes) - 1}, &p, NULL), 0);
	expect_eq(p->n_samples, 1);
	expect_eq(p->values[0], 5);
	expect_eq(p->locations[p->frames[0]].address, 16);
	expect_str(p->functions[p->lines[0].function].name, "main");
	expect_eq(p->lines[0].line, 8);
	expect_eq(profile_label(p, &p->samples[0], STR("pid"))->number, 42);
	profile_free(p);
}

static void make_sample_profile(int level, struct buf *out)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {.time_ns = 1, .duration_ns = 1, .period = 1};
	uint32_t stack[3];
	int64_t value = 1;

	pprof_add_type(e, pprof_add_string(e, STR("cpu")), pprof_add_string(e, STR("ns")));
	for (uint32_t i = 0; i < 20; i++) {
		char name[16];
		struct pprof_function f;
		struct pprof_line line;
		struct pprof_mapping m = {.file = pprof_add_string(e, STR("/lib/libc.so.6"))};
		struct pprof_location l = {.address = i, .mapping = pprof_add_mapping(e, &m)};
		struct pprof_label label = {.key = pprof_add_string(e, STR("pid")), .number = i};
		struct pprof_sample s = {stack, &label, &value, 3, 1};

		snprintf(name, sizeof(name), "f%u", i);
		f = (struct pprof_function){.name = pprof_add_string(e, str_of(name))};
		line = (struct pprof_line){pprof_add_function(e, &f), i, 0};
		l.lines = &line;
		l.n_lines = i % 3 ? 1 : 0;
		stack[i % 3] = pprof_add_location(e, &l);
		if (i >= 2)
			pprof_add_sample(e, &s);
	}
	expect_eq(pprof_finish(e, &head, level, out, NULL), 0);
	pprof_encoder_free(e);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Every array of a decoded profile can be walked, whatever it came from. */
static uint64_t walk(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];

		for (uint32_t k = 0; k < s->n_frames; k++) {
			const struct profile_location *l =
				&p->locations[p->frames[s->frame_start + k]];

			sum += p->mappings[l->mapping].file.n;
			for (uint32_t j = 0; j < l->n_lines; j++)
				sum += p->functions[p->lines[l->line_start + j].function].name.n;
		}
		for (uint32_t k = 0; k < s->n_labels; k++)
			sum += p->labels[s->label_start + k].key.n;
		for (size_t k = 0; k < p->n_types; k++)
			sum += (uint64_t)p->values[i * p->n_types + k];
	}
	return sum;
}

static void fuzz(int level, int runs)
{
	struct buf clean = BUF_NULL;
	uint64_t seed = 7, decoded = 0, sum = 0;
	char *copy;

	make_sample_profile(level, &clean);
	copy = malloc(clean.n);
	for (int run = 0; run < runs; run++) {
		struct profile *p;
		size_t n = clean.n;

		memcpy(copy, clean.p, n);
		for (uint64_t k = next_random(&seed) % 4 + 1; k; k--)
			copy[next_random(&seed) % n] = (char)next_random(&seed);
		if (next_random(&seed) % 4 == 0)
			n = next_random(&seed) % n;
		if (profile_decode((struct str){copy, n}, &p, NULL) < 0)
			continue;
		decoded++;
		sum += walk(p);
		profile_free(p);
	}
	printf("# %d mutations, %llu still decode (%llu)\n", runs, (unsigned long long)decoded,
	       (unsigned long long)sum);
	expect(level || decoded > 0);
	free(copy);
	buf_free(&clean);
}

TEST(mutated_bytes_never_reach_beyond_the_file)
{
	fuzz(0, 20000);
}

TEST(mutated_gzip_never_reaches_beyond_the_file)
{
	fuzz(6, 5000);
}

/* A file of a megabyte that would inflate to a gigabyte stops at the limit. */
TEST(a_bomb_is_refused)
{
	struct buf bomb = BUF_NULL, out = BUF_NULL;
	struct gzip_writer w;
	static char zeros[1 << 16];

	expect_eq(gzip_open(&w, &bomb, 9), 0);
	for (int i = 0; i < 64; i++)
		gzip_write(&w, (struct str){zeros, sizeof(zeros)});
	expect_eq(gzip_close(&w), 0);
	expect_eq(gzip_inflate(buf_str(&bomb), &out, 1 << 20), -E2BIG);
	expect_eq(out.n, 1 << 20);
	buf_clear(&out);
	expect_eq(gzip_inflate(buf_str(&bomb), &out, sizeof(zeros) * 64), 0);
	expect_eq(out.n, sizeof(zeros) * 64);
	buf_free(&bomb);
	buf_free(&out);
}

/* Parts that are empty take little of the file and much memory. */
TEST(a_file_of_empty_parts_is_refused)
{
	struct buf bytes = BUF_NULL;

	for (int i = 0; i < 500000; i++)
		buf_str_append(&bytes, STR("\x12\0"));
	expect_refused(buf_str(&bytes), "too many empty parts");
	buf_free(&bytes);
}

static int decode_whole(void *context)
{
	return decode(buf_str(context), NULL);
}

TEST(each_allocation_can_fail)
{
	struct buf bytes = BUF_NULL;

	make_sample_profile(0, &bytes);
	test_each_failing_allocation(decode_whole, &bytes);
	buf_free(&bytes);
}

TEST(gzip_members_are_joined)
{
	struct buf two = BUF_NULL, out = BUF_NULL;
	struct gzip_writer w;

	for (int i = 0; i < 2; i++) {
		expect_eq(gzip_open(&w, &two, 1), 0);
		gzip_write(&w, STR("abc"));
		expect_eq(gzip_close(&w), 0);
	}
	expect_eq(gzip_inflate(buf_str(&two), &out, 100), 0);
	expect_str(buf_str(&out), "abcabc");
	buf_free(&two);
	buf_free(&out);
}

/* Whole at each size near those of the pieces in which it is read, and damaged wherever it breaks
 * off. */
TEST(gzip_is_whole_or_damaged)
{
	static const char bytes[3 << 16];
	static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 131073};
	struct buf gzip = BUF_NULL, out = BUF_NULL;
	struct gzip_writer w;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		buf_clear(&gzip);
		expect_eq(gzip_open(&w, &gzip, 1), 0);
		gzip_write(&w, (struct str){bytes, sizes[i]});
		expect_eq(gzip_close(&w), 0);
		buf_clear(&out);
		expect_eq(gzip_inflate(buf_str(&gzip), &out, sizes[i]), 0);
		expect_eq(out.n, sizes[i]);
		for (size_t n = 0; n < gzip.n; n++) {
			buf_clear(&out);
			expect_eq(gzip_inflate(str_first(buf_str(&gzip), n), &out, sizes[i]),
				  -EBADMSG);
		}
	}
	buf_free(&gzip);
	buf_free(&out);
}

TEST(a_missing_file_is_named)
{
	struct error err = ERROR_NULL;
	struct profile *p;

	expect_eq(profile_read("/nonexistent/x.pb.gz", &p, &err), -ENOENT);
	expect(strncmp(err.text, "/nonexistent/x.pb.gz: cannot read", 33) == 0);
}
