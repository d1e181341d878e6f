/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of lib/base. */
#include "base/arena.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/intern.h"
#include "base/json.h"
#include "testing/comma-locale.h"
#include "testing/test.h"
#include "base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Everybody who walks a list by str_cut relies on the empty last part ending the loop and on
 * separators being dropped. */
TEST(cut_walks_a_list)
{
	struct str rest = STR("a,b,,c");

	expect_str(str_cut(&rest, ','), "a");
	expect_str(str_cut(&rest, ','), "b");
	expect_str(str_cut(&rest, ','), "");
	expect_str(str_cut(&rest, ','), "c");
	expect_eq(rest.n, 0);
}

TEST(numbers_refuse_what_is_not_one)
{
	uint64_t v = 7;

	expect(str_u64(STR("18446744073709551615"), &v) && v == UINT64_MAX);
	expect(!str_u64(STR("18446744073709551616"), &v));
	expect(!str_u64(STR(""), &v));
	expect(!str_u64(STR("-1"), &v));
	expect(!str_u64(STR("1 "), &v));
	expect(v == UINT64_MAX);
	expect(str_hex(STR("dEadBeef"), &v) && v == 0xdeadbeef);
	expect(!str_hex(STR("0x1"), &v));
}

TEST(utf8_is_checked_strictly)
{
	expect(str_utf8(STR("aé€😀")));
	expect(!str_utf8(STR("\xc0\x80")));         /* overlong */
	expect(!str_utf8(STR("\xed\xa0\x80")));     /* surrogate */
	expect(!str_utf8(STR("\xf4\x90\x80\x80"))); /* beyond the last */
	expect(!str_utf8(STR("\xe2\x82")));         /* cut off */
	expect(!str_utf8(STR("\xff")));
	for (size_t n = 1; n < 20; n++)
		for (size_t i = 0; i < n; i++) {
			char text[21] = "abcdefghijklmnopqrst";

			expect(str_utf8((struct str){text, n}));
			text[i] = '\x80';
			expect(!str_utf8((struct str){text, n}));
			text[i] = '\xc3'; /* of two bytes, the last of which may be cut off */
			text[i + 1] = '\xa9';
			expect(str_utf8((struct str){text, n}) == (i + 1 < n));
		}
}

TEST(distance_suggests)
{
	expect_eq(str_distance(STR("sample_rat"), STR("sample_rate"), 3), 1);
	expect_eq(str_distance(STR("abc"), STR("abc"), 3), 0);
	expect_eq(str_distance(STR("abc"), STR("xyz"), 2), 3);
}

TEST(durations_are_gos)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {{"15s", 15 * NS_PER_SEC},
		    {"1m30s", 90 * NS_PER_SEC},
		    {"500ms", 500 * NS_PER_MSEC},
		    {"1.5h", 5400 * NS_PER_SEC},
		    {"0", 0},
		    {"-2s", -2 * NS_PER_SEC},
		    {"1µs", 1000},
		    {".5s", 500 * NS_PER_MSEC}};
	static const char *const bad[] = {"", "15", "s", "1x", "1s ", "-", "99999999999h", "1.s2"};
	int64_t ns = 42;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		expect(duration_parse(str_of(good[i].text), &ns));
		expect_eq(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect(!duration_parse(str_of(bad[i]), &ns));
}

static bool equals(const void *context, uint32_t position)
{
	return *(const uint32_t *)context == position;
}

/* The index is tested against the obvious model, with hashes so poor that probing and gap closing
 * happen all the time. */
TEST(index_agrees_with_a_set)
{
	struct index ix = INDEX_NULL;
	bool model[512] = {0};
	uint64_t state = 1;

	for (int step = 0; step < 20000; step++) {
		uint32_t key;

		state = hash_u64(state);
		key = (uint32_t)(state % 512);
		expect_eq(index_find(&ix, key % 61, equals, &key) == key, model[key]);
		if (!model[key])
			expect_eq(index_add(&ix, key % 61, key), 0);
		else
			expect(index_remove(&ix, key % 61, key));
		model[key] = !model[key];
	}
	index_free(&ix);
}

static int intern_some(void *context)
{
	struct intern t = INTERN_NULL;
	char text[16];
	int r = 0;

	(void)context;
	for (int i = 0; i < 300 && r == 0; i++) {
		uint32_t id;

		snprintf(text, sizeof(text), "s%d", i % 200);
		id = intern_add(&t, str_of(text));
		if (id == INDEX_NONE)
			r = -ENOMEM;
		else
			expect_str(intern_get(&t, id), text);
	}
	if (r == 0)
		expect_eq(t.strings.n, 201);
	intern_free(&t);
	return r;
}

TEST(intern_survives_failing_allocations)
{
	test_each_failing_allocation(intern_some, NULL);
}

TEST(buffer_keeps_its_limit)
{
	struct buf b = {.limit = 4};

	expect_eq(buf_append(&b, "abcd", 4), 0);
	expect_eq(buf_putc(&b, 'e'), -E2BIG);
	expect(b.failed && b.n == 4);
	expect(buf_take(&b) == NULL);
}

TEST(buffer_prints)
{
	struct buf b = BUF_NULL;
	char *text;

	expect_eq(buf_printf(&b, "%s-%d", "x", 7), 0);
	text = buf_take(&b);
	expect_str(str_of(text), "x-7");
	free(text);
}

TEST(base64_comes_back)
{
	static const char all[] = "\xfb\xff\0any carnal pleas";
	static const char *const bad[] = {"a",	   "a===",  "ab=",   "ab=c",	"ab==c",
					  "=",	   "abcd=", "abc d", "abc\x80"};
	char out[40];

	for (size_t n = 0; n < sizeof(all); n++) {
		_cleanup_(buf_free) struct buf b = BUF_NULL;
		struct str text;

		buf_base64_append(&b, (struct str){all, n}, BUF_BASE64_URL);
		text = buf_str(&b);
		for (;;) { /* with padding, and without */
			expect_eq(base64_decode(out, text, BUF_BASE64_URL, false), (ssize_t)n);
			expect(!memcmp(out, all, n));
			if (!text.n || text.p[text.n - 1] != '=')
				break;
			while (text.p[text.n - 1] == '=')
				text.n--;
		}
	}
	expect_eq(base64_decode(out, STR("aG\r\nk=\n"), BUF_BASE64, true), 2);
	expect_eq(base64_decode(out, STR("aGk\n"), BUF_BASE64, true), -1);
	expect_eq(base64_decode(out, STR("-_+/"), BUF_BASE64, false), -1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_eq(base64_decode(out, str_of(bad[i]), BUF_BASE64, false), -1);
}

/* Whatever stands in a URL's part ends neither the part nor the URL; the borders of ASCII's ranges
 * are those of <ctype.h> in the locale C. */
TEST(a_part_of_a_url_is_escaped)
{
	struct buf b = BUF_NULL;
	char all[256];

	buf_percent_append(&b, (struct str){"a-z._~ /\0%\xc3\xa9", 12}, "/");
	expect_str(buf_str(&b), "a-z._~%20/%00%25%C3%A9");
	buf_clear(&b);
	for (int c = 0; c < 256; c++)
		all[c] = (char)c;
	for (int c = 0; c < 256; c++) {
		expect_eq(ascii_is_digit(all[c]), c >= '0' && c <= '9');
		expect_eq(ascii_is_alnum(all[c]), c < 128 && isalnum(c) != 0);
		expect_eq(ascii_is_letter(c), c < 128 && isalpha(c) != 0);
		expect_eq(ascii_hex_value(all[c]) >= 0, c < 128 && isxdigit(c) != 0);
		expect_eq((unsigned char)ascii_lower(all[c]), c < 128 ? tolower(c) : c);
	}
	expect(ascii_hex_value('f') == 15 && ascii_hex_value('A') == 10);
	buf_percent_append(&b, (struct str){all, sizeof(all)}, "");
	expect_eq(b.n, 66 + 190 * 3);
	buf_free(&b);
}

TEST(errors_grow_outward)
{
	struct error e = ERROR_NULL;

	expect_eq(error_set(&e, -ENOENT, "no file %s", "x"), -ENOENT);
	expect_eq(error_wrap(&e, -EIO, "reading"), -ENOENT);
	expect_str(str_of(e.text), "reading: no file x");
	expect_eq(error_set(NULL, -EIO, "x"), -EIO);
}

TEST(files_are_bounded)
{
	char path[] = "/tmp/andiron-test-XXXXXX";
	int fd = mkstemp(path);
	struct buf b = BUF_NULL;
	char two[2];

	expect(fd >= 0);
	expect_eq(file_replace(path, "hello", 5, NULL), 0);
	expect_eq(file_read(AT_FDCWD, path, &b, 5), 0);
	expect_str(buf_str(&b), "hello");
	buf_clear(&b);
	expect_eq(file_read(AT_FDCWD, path, &b, 4), -E2BIG);
	expect_eq(b.n, 4);
	expect_eq(file_pread(fd, two, 2, 0), -ENODATA);
	buf_free(&b);
	close(fd);
	unlink(path);
}

/* A person's file keeps its mode and its place behind a link; what is no file is left alone. */
TEST(a_file_is_rewritten_as_it_was)
{
	char dir[] = "/tmp/andiron-test-XXXXXX", path[64], linked[64];
	struct buf b = BUF_NULL;
	struct stat st;

	expect(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(linked, sizeof(linked), "%s/link", dir);
	expect_eq(file_replace(path, "before", 6, NULL), 0);
	expect_eq(chmod(path, 0604), 0);
	expect_eq(symlink("file", linked), 0);
	expect_eq(file_rewrite(linked, "after", 5, NULL), 0);
	expect_eq(file_read(AT_FDCWD, path, &b, 9), 0);
	expect_str(buf_str(&b), "after");
	expect_eq(stat(path, &st), 0);
	expect_eq(st.st_mode & 07777, 0604);
	expect_eq(lstat(linked, &st), 0);
	expect(S_ISLNK(st.st_mode));
	expect_eq(file_rewrite(dir, "x", 1, NULL), -EINVAL);
	buf_free(&b);
	unlink(linked);
	expect_eq(file_rewrite(linked, "x", 1, NULL), -ENOENT);
	unlink(path);
	expect_eq(rmdir(dir), 0);
}

TEST(arena_aligns_and_zeroes)
{
	struct arena a = ARENA_NULL;

	for (size_t n = 1; n < 5000; n += 97) {
		char *p = arena_alloc(&a, n);

		expect(p && ((uintptr_t)p & 15) == 0 && p[0] == 0 && p[n - 1] == 0);
		memset(p, 0xff, n);
	}
	arena_free(&a);
}

/* Nothing that a JSON string holds can end it, or the script element around it. */
TEST(json_strings_stay_closed)
{
	struct buf b = BUF_NULL;

	json_put_str(&b, STR("a\"\\</script>&\n\x7f"));
	expect_str(buf_str(&b), "\"a\\\"\\\\\\u003c/script\\u003e\\u0026\\n\\u007f\"");
	buf_clear(&b);
	json_put_str(&b, STR("\xe2\x80\xa8 \xe2\x80\xa9 \xc3\xa9 \xff\xc3"));
	expect_str(buf_str(&b), "\"\\u2028 \\u2029 \xc3\xa9 \\ufffd\\ufffd\"");
	buf_clear(&b);
	json_put_str(&b, STR_NULL);
	expect_str(buf_str(&b), "\"\"");
	buf_free(&b);
}

/* An agent that we are a part of may have set any locale; another library's numbers stay as they
 * are in it. */
TEST(fractions_have_a_point_in_every_locale)
{
	char text[32], *end;

	test_comma_locale();
	expect(str_print_fraction(text, sizeof(text), 17, 0.5) == 3);
	expect_str(str_of(text), "0.5");
	expect(str_parse_fraction("1.25x", &end) >= 1.25 && *end == 'x');
	snprintf(text, sizeof(text), "%g", 0.5);
	expect_str(str_of(text), "0,5");
}
