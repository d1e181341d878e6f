/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what is shown of frames without a name. */
#include "abi/unsymbolized.h"
#include "base/cleanup.h"
#include "testing/test.h"

static void shown_as(const char *file, uint64_t function, const char *text)
{
	_cleanup_(buf_free) struct buf b = BUF_NULL;

	expect_eq(unsymbolized_put(&b, str_of(file), function), 0);
	expect_str(buf_str(&b), text);
	expect(unsymbolized_is(buf_str(&b), str_of(file)));
	expect(!unsymbolized_is(buf_str(&b), STR("/lib/other.so")));
}

/* One function is one name; what is shown is known again. */
TEST(a_function_without_a_name_is_known_by_its_start)
{
	shown_as("/usr/lib/libcrypto.so.3", 0x1a2b30, "[libcrypto.so.3 fn 0x1a2b30]");
	shown_as("/usr/lib/libcrypto.so.3", 0, "[libcrypto.so.3]");
	shown_as("[vdso]", 0xc30, "[vdso fn 0xc30]");
	shown_as("[anon:v8]", 0, "[anon:v8]");
	shown_as("relative", 1, "[relative fn 0x1]");
}

/* A name is none, and a marker is none, whatever file it stands in. */
TEST(names_are_not_taken_for_missing_ones)
{
	expect(!unsymbolized_is(STR("main"), STR("/bin/a")));
	expect(!unsymbolized_is(STR(""), STR("/bin/a")));
	expect(!unsymbolized_is(STR("["), STR("/bin/a")));
	expect(!unsymbolized_is(STR("[]"), STR("")));
	expect(!unsymbolized_is(STR("[stack truncated]"), STR("[andiron]")));
	expect(!unsymbolized_is(STR("[abc]"), STR("/bin/a")));
}

/* A file may be called anything: what is shown stays short. */
TEST(long_file_names_are_cut)
{
	static char path[8192];
	_cleanup_(buf_free) struct buf b = BUF_NULL;

	memset(path, 'x', sizeof(path) - 1);
	expect_eq(unsymbolized_put(&b, str_of(path), UINT64_MAX), 0);
	expect(b.n < 300);
	expect(unsymbolized_is(buf_str(&b), str_of(path)));
}
