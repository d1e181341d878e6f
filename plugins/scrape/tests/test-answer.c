/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken for a profile. */
#include "scrape/answer.h"

#include "pprof/gzip.h"
#include "scrape/tests/test-profile.h"
#include "testing/test.h"

#include <errno.h>

static int read_it(struct str body, struct profile_size *size, struct error *err)
{
	struct buf copy = BUF_NULL, scratch = BUF_NULL;
	struct str raw;
	int r;

	buf_str_append(&copy, body);
	r = answer_read(&copy, &scratch, size, &raw, err);
	buf_free(&copy);
	buf_free(&scratch);
	return r;
}

static struct buf packed(struct str raw)
{
	struct buf out = BUF_NULL;
	struct gzip_writer w;

	expect_eq(gzip_open(&w, &out, 1), 0);
	gzip_write(&w, raw);
	expect_eq(gzip_close(&w), 0);
	return out;
}

/* A profile is one with gzip and without. */
TEST(a_profile_is_taken)
{
	struct buf raw = profile_of((struct counted[]){{1, 10, 100}, {2, 20, 200}}, 2);
	struct buf gzip = packed(buf_str(&raw));
	struct profile_size size;
	struct error err = ERROR_NULL;

	expect_eq(read_it(buf_str(&raw), &size, &err), 0);
	expect_eq(size.n_stacks, 2);
	expect_eq(size.raw_bytes, raw.n);
	size = (struct profile_size){0};
	expect_eq(read_it(buf_str(&gzip), &size, &err), 0);
	expect_eq(size.n_stacks, 2);
	expect_eq(size.raw_bytes, raw.n);
	buf_free(&raw);
	buf_free(&gzip);
}

/* A file with gzip that a server compressed on its way is sent on as the file was; what is
 * compressed once more is none. */
TEST(gzip_within_gzip_is_unwrapped)
{
	struct buf raw = profile_of((struct counted[]){{1, 10, 100}}, 1);
	struct buf once = packed(buf_str(&raw)), twice = packed(buf_str(&once));
	struct buf thrice = packed(buf_str(&twice)), scratch = BUF_NULL;
	struct profile_size size;
	struct error err = ERROR_NULL;
	struct str seen;

	expect_eq(read_it(buf_str(&thrice), &size, &err), -EBADMSG);
	expect_eq(answer_read(&twice, &scratch, &size, &seen, &err), 0);
	expect_eq(size.raw_bytes, raw.n);
	expect(str_eq(seen, buf_str(&raw)));
	expect(str_eq(buf_str(&twice), buf_str(&once)));
	buf_free(&raw);
	buf_free(&once);
	buf_free(&twice);
	buf_free(&thrice);
	buf_free(&scratch);
}

/* What is small only outside is not taken in: its body would be larger than anybody counts. */
TEST(gzip_within_gzip_is_as_small)
{
	static char zeros[1 << 20] = "\x1f\x8b\x08";
	struct buf bomb = packed((struct str){zeros, sizeof(zeros)}), scratch = BUF_NULL;
	struct profile_size size;
	struct error err = ERROR_NULL;
	struct str seen;
	size_t n = bomb.n;

	expect_eq(answer_read(&bomb, &scratch, &size, &seen, &err), -EBADMSG);
	expect_eq(bomb.n, n);
	buf_free(&bomb);
	buf_free(&scratch);
}

/* Whatever else a server says with status 200 is refused with a reason. */
TEST(anything_else_is_refused)
{
	static const struct {
		struct str body;
		const char *why;
	} cases[] = {
		{STR(""), "empty"},
		{STR("<!DOCTYPE html>\n<html>"), "a text and not a profile: \"<!DOCTYPE"},
		{STR("{\"error\": 1}"), "a text"},
		{STR("\x1f\x8bgarbage"), "begins like gzip"},
		{STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "not a pprof"},
		{STR("\x0a\x7f\x01"), "cut off"},
		{STR("\x32\x00"), "no sample type"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile_size size;
		struct error err = ERROR_NULL;

		expect_eq(read_it(cases[i].body, &size, &err), -EBADMSG);
		if (!strstr(err.text, cases[i].why))
			test_fail(__FILE__, __LINE__, "%zu: %s", i, err.text);
	}
}

/* Wherever a profile breaks off, and whichever bit is wrong, there is an answer. */
TEST(a_damaged_profile_is_harmless)
{
	struct buf raw = profile_of((struct counted[]){{1, 10, 100}, {2, 20, 200}}, 2);
	struct profile_size size;
	struct error err = ERROR_NULL;

	for (size_t n = 0; n < raw.n; n++)
		(void)read_it(str_first(buf_str(&raw), n), &size, &err);
	for (size_t bit = 0; bit < raw.n * 8; bit++) {
		raw.p[bit / 8] = (char)(raw.p[bit / 8] ^ 1 << bit % 8);
		(void)read_it(buf_str(&raw), &size, &err);
		raw.p[bit / 8] = (char)(raw.p[bit / 8] ^ 1 << bit % 8);
	}
	buf_free(&raw);
}

/* A few kilobytes that become gigabytes end at the limit. */
TEST(what_inflates_too_far_is_refused)
{
	struct buf zeros = {.limit = ANSWER_MAX_RAW + 1}, gzip;
	struct profile_size size;
	struct error err = ERROR_NULL;
	char *p = buf_reserve(&zeros, ANSWER_MAX_RAW + 1);

	expect(p);
	memset(p, 0, ANSWER_MAX_RAW + 1);
	zeros.n = ANSWER_MAX_RAW + 1;
	gzip = packed(buf_str(&zeros));
	expect_eq(read_it(buf_str(&gzip), &size, &err), -E2BIG);
	expect(strstr(err.text, "48 MiB") != NULL);
	buf_free(&zeros);
	buf_free(&gzip);
}
