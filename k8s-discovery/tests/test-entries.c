/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of Secrets and ConfigMaps, and what is none. */
#include "k8s-discovery/entries.h"

#include "testing/test.h"

#include <errno.h>

/* "KEY=VALUE KEY=VALUE +LEFT_OUT", "?" behind a secret; or the error. */
static void expect_entries(const char *json, bool secret, const char *expected)
{
	struct arena arena = ARENA_NULL;
	struct error err = ERROR_NULL;
	struct andiron_value value;
	size_t left_out = 0;
	char text[256] = "";
	size_t n = 0;
	int r = entries_read(&arena, str_of(json), secret, &value, &left_out, &err);

	for (uint64_t i = 0; r == 0 && i < value.n_items; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s=%.*s%s ",
				      (int)value.keys[i].len, value.keys[i].ptr,
				      (int)value.items[i].string.len, value.items[i].string.ptr,
				      value.items[i].flags & ANDIRON_VALUE_SECRET ? "?" : "");
	if (r == 0)
		snprintf(text + n, sizeof(text) - n, "+%zu", left_out);
	else
		expect_eq(r, -EINVAL);
	expect_str(str_of(r == 0 ? text : err.text), expected);
	arena_free(&arena);
}

/* Entries come in the order of their keys, whatever that of the answer is, so that the same ones
 * are the same value. */
TEST(entries_are_read)
{
	expect_entries("{\"kind\":\"Secret\",\"data\":{\"b\":\"YmI=\",\"a\":\"YWFh\","
		       "\"c\":\"\",\"d\":\"/w==\"}}",
		       true, "a=aaa? b=bb? c=? +1");
	expect_entries("{\"kind\":\"ConfigMap\",\"data\":{\"a\":\"x y\"},"
		       "\"binaryData\":{\"z\":\"/w==\"}}",
		       false, "a=x y +0");
	expect_entries("{\"kind\":\"Secret\"}", true, "+0");
	expect_entries("{\"kind\":\"ConfigMap\",\"data\":null}", false, "+0");
}

/* What is no such object is told, and never shown. */
TEST(other_answers_are_refused)
{
	static const char *const others[] = {
		"", "<html>", "[1]", "{\"kind\":1}", "{", "null", "{\"kind\":\"ConfigMap\"}"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		expect_entries(others[i], true, "the answer is no Secret in JSON");
	expect_entries("{\"kind\":\"Secret\",\"data\":[]}", true,
		       "the data of the answer is no object");
	expect_entries("{\"kind\":\"Secret\",\"data\":{\"a\":\"YWF\"}}", true,
		       "its entry a is not in base64");
	expect_entries("{\"kind\":\"Secret\",\"data\":{\"a\":\"a===\"}}", true,
		       "its entry a is not in base64");
	expect_entries("{\"kind\":\"Secret\",\"data\":{\"a\":{}}}", true,
		       "its entry a is not in base64");
	expect_entries("{\"kind\":\"ConfigMap\",\"data\":{\"a\":1}}", false,
		       "its entry a is not a string");
}
