/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP in JSON: what a Collector writes, and what is forged. */
#include "receive-http/json/otlp-json.h"

#include "receive-http/json/json-body.h"
#include "receive-http/tests/test-otlp-build.h"

#include "pprof/decode.h"
#include "testing/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As a Collector writes it: 64 bits in texts, ids in hexadecimal, and members that nobody reads. */
static const char whole[] =
	"{\"resourceProfiles\":[{\"resource\":{\"attributes\":["
	"{\"key\":\"service.name\",\"value\":{\"stringValue\":\"sh\\u00f6p\"}},"
	"{\"key\":\"process.pid\",\"value\":{\"intValue\":\"-7\"}},"
	"{\"keyStrindex\":10,\"value\":{\"stringValueStrindex\":3}},"
	"{\"key\":\"ratio\",\"value\":{\"doubleValue\":1.5}}],\"entityRefs\":[]},"
	"\"scopeProfiles\":[{\"scope\":{\"name\":\"x\"},\"profiles\":[{"
	"\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},"
	"\"samples\":[{\"stackIndex\":1,\"values\":[\"7\",2]},"
	"{\"stackIndex\":1,\"timestampsUnixNano\":[\"1\",\"2\",\"3\"],\"linkIndex\":null}],"
	"\"timeUnixNano\":\"1795883000000000001\",\"durationNano\":\"15000000000\","
	"\"periodType\":{\"typeStrindex\":3,\"unitStrindex\":4},\"period\":50000000,"
	"\"profileId\":\"01020300000000000000000000000000\","
	"\"originalPayload\":\"AAAA\"}]}],\"schemaUrl\":\"x\"}],"
	"\"dictionary\":{\"mappingTable\":[{},{\"memoryStart\":\"4096\","
	"\"memoryLimit\":\"18446744073709486080\",\"fileOffset\":\"1\","
	"\"filenameStrindex\":8,\"attributeIndices\":[1]}],"
	"\"locationTable\":[{},{\"mappingIndex\":1,\"address\":\"18446744073709420544\","
	"\"lines\":[{\"functionIndex\":1,\"line\":\"12\",\"column\":\"3\"}]}],"
	"\"functionTable\":[{},{\"nameStrindex\":5,\"systemNameStrindex\":6,"
	"\"filenameStrindex\":7,\"startLine\":\"3\"}],\"linkTable\":[{}],"
	"\"stringTable\":[\"\",\"samples\",\"count\",\"cpu\",\"nanoseconds\",\"main\",\"_main\","
	"\"a.go\",\"/bin/shop\",\"process.executable.build_id.gnu\",\"zone\"],"
	"\"attributeTable\":[{},{\"keyStrindex\":9,\"value\":{\"stringValue\":\"beef\"}}],"
	"\"stackTable\":[{},{\"locationIndices\":[1]}]}}";

static int take(const char *text, struct buf *ret, struct error *err)
{
	*ret = BUF_NULL;
	*err = ERROR_NULL;
	return otlp_json_read(str_of(text), ret, err);
}

/* Each name of a field that is read, and each spelling of a number. */
TEST(a_collectors_request_is_read)
{
	struct push_request r = {0};
	const struct profile_location *l;
	const struct profile_function *f;
	struct otlp_rejected rejected;
	struct profile *p;
	struct error err;
	struct buf wire;

	expect_eq(take(whole, &wire, &err), 0);
	expect_eq(otlp_request_parse(buf_str(&wire), &r, &rejected, &err), 0);
	expect_eq(rejected.n, 0);
	expect_eq(r.profiles.n, 1);
	expect_str(test_otlp_label(&r, 0, "service_name"), "sh\xc3\xb6p");
	expect_str(test_otlp_label(&r, 0, "process_pid"), "-7");
	expect_str(test_otlp_label(&r, 0, "zone"), "cpu");
	expect(!test_otlp_label(&r, 0, "ratio").n);
	expect_eq(profile_decode(r.profiles.p[0].profile, &p, NULL), 0);
	expect_str(p->types[0].type, "cpu");
	expect(p->period == 50000000 && p->time_ns == 1795883000000000001 &&
	       p->duration_ns == 15000000000);
	expect_eq(p->n_samples, 1);
	expect_eq(p->values[0], 12 * 50000000LL);
	expect_eq(p->samples[0].n_frames, 1);
	l = &p->locations[p->frames[p->samples[0].frame_start]];
	expect(l->address == UINT64_C(18446744073709420544));
	expect_str(p->mappings[l->mapping].file, "/bin/shop");
	expect_str(p->mappings[l->mapping].build_id, "beef");
	expect_eq(l->n_lines, 1);
	expect_eq(p->lines[l->line_start].line, 12);
	f = &p->functions[p->lines[l->line_start].function];
	expect_str(f->name, "main");
	expect_str(f->file, "a.go");
	expect_eq(f->start_line, 3);
	profile_free(p);
	push_request_fini(&r);
	buf_free(&wire); /* the request borrows from it */
}

/* It is said what is wrong, and where a field is, by its name. */
TEST(damage_is_named)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "no JSON object"},
		{"[]", "it is another value"},
		{"{\"resourceProfiles\":[5]}", "\"resourceProfiles\" is no object"},
		{"{\"dictionary\":{\"stringTable\":[{}]}}", "\"stringTable\" is no text"},
		{"{\"dictionary\":{\"stackTable\":[{\"locationIndices\":[1.5]}]}}",
		 "\"locationIndices\" is no integer"},
		{"{\"dictionary\":{\"mappingTable\":[{\"memoryStart\":\"\"}]}}",
		 "\"memoryStart\" is no integer"},
		{"{\"dictionary\":{\"mappingTable\":[{\"memoryStart\":\"0x1\"}]}}",
		 "\"memoryStart\" is no integer"},
		{"{\"dictionary\":{\"mappingTable\":[{\"memoryStart\":18446744073709551616}]}}",
		 "\"memoryStart\" is no integer"},
		{"{\"dictionary\":{\"mappingTable\":[{\"memoryStart\":01234567890123456789}]}}",
		 "no JSON object: invalid token"},
		{"{\"dictionary\":{\"mappingTable\":[{\"memoryStart\":[4096]}]}}",
		 "\"memoryStart\" is no integer"},
		{"{\"dictionary\":[{}]}", "\"dictionary\" is no object"},
		{"{\"dictionary\":{\"stringTable\":\"a\"}}", "\"stringTable\" is no list"},
		{"{\"resourceProfiles\":{}}", "\"resourceProfiles\" is no list"},
		{"{\"dictionary\":{\"attributeTable\":[{\"value\":{\"boolValue\":[]}}]}}",
		 "\"boolValue\" is no integer"},
	};
	struct error err;
	struct buf wire;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		expect_eq(take(rows[i].text, &wire, &err), -EBADMSG);
		if (!strstr(err.text, rows[i].says))
			test_fail(__FILE__, __LINE__, "row %zu: %s", i, err.text);
		buf_free(&wire);
	}
	expect_eq(take("{\"other\":[{}],\"dictionary\":null}", &wire, &err), 0);
	expect_eq(wire.n, 0);
}

/* A request of `begin`, n pieces, which are the two of `many` in turn, and `end`. */
static int take_many(const char *begin, const char *const many[2], uint32_t n, const char *end,
		     struct error *err)
{
	struct buf text = BUF_NULL, wire = BUF_NULL;
	int rc;

	buf_str_append(&text, str_of(begin));
	for (uint32_t i = 0; i < n; i++)
		buf_str_append(&text, str_of(many[i % 2]));
	buf_str_append(&text, str_of(end));
	*err = ERROR_NULL;
	rc = otlp_json_read(buf_str(&text), &wire, err);
	buf_free(&text);
	buf_free(&wire);
	return rc;
}

/* What the smallest bytes make of themselves is bounded. */
TEST(values_are_counted)
{
	static const char *const zeros[] = {",0", ",0"};
	struct error err;

	expect_eq(take_many("{\"x\":[0", zeros, JSON_BODY_MAX_VALUES, "]}", &err), -E2BIG);
	expect(strstr(err.text, "more than 200000 JSON values"));
}

/* What looks like values in a text is none. */
TEST(texts_are_no_values)
{
	static const char *const marks[] = {"{,", ",["};
	struct error err;

	expect_eq(take_many("{\"x\":\"\\\\\\\"", marks, JSON_BODY_MAX_VALUES, "\"}", &err), 0);
}

TEST(levels_are_counted)
{
	static const char *const lists[] = {"[", "["};
	struct error err;

	expect_eq(take_many("{\"x\":", lists, JSON_BODY_MAX_DEPTH, "", &err), -EBADMSG);
	expect(strstr(err.text, "more than 64 levels deep"));
}

/* JSON has no limit of its own: an integer that 63 bits do not hold says the same as its text. */
TEST(long_integers_keep_their_digits)
{
	static const char begin[] = "{\"dictionary\":{\"stringTable\":[\"-1234567890123456789\"],"
				    "\"mappingTable\":[{\"memoryStart\":4096,\"memoryLimit\":";
	static const char *const spelled[] = {
		"18446744073709486080", "\"18446744073709486080\"", "9223372036854775808",
		"\"9223372036854775808\"", "-9223372036854775807", "\"-9223372036854775807\""};
	struct buf text, wires[2];
	struct error err;

	for (size_t i = 0; i < sizeof(spelled) / sizeof(*spelled); i++) {
		text = BUF_NULL;
		buf_printf(&text, "%s%s,\"fileOffset\":1}]}}%c", begin, spelled[i], 0);
		expect_eq(take(text.p, &wires[i % 2], &err), 0);
		buf_free(&text);
		if (i % 2 == 0)
			continue;
		expect(wires[0].n && str_eq(buf_str(&wires[0]), buf_str(&wires[1])));
		buf_free(&wires[0]);
		buf_free(&wires[1]);
	}
}

/* They have digits behind a point, and none of these begins a number. */
TEST(long_fractions_are_numbers)
{
	struct error err;
	struct buf wire;

	expect_eq(take("{\"x\":[0.1234567890123456789,-1.2345678901234567890e-1,"
		       "1234567890123456789.5,1e1]}",
		       &wire, &err),
		  0);
	buf_free(&wire);
}

/* A text is bytes, and NUL is one of them. */
TEST(texts_may_have_nuls)
{
	static const char expected[] = "\x12\x06\x2a\x04"
				       "a\0b\"";
	static const char text[] = "{\"dictionary\":{\"stringTable\":[\"a\\u0000b\\\"\"]}}";
	struct error err;
	struct buf wire;

	expect_eq(take(text, &wire, &err), 0);
	expect(str_eq(buf_str(&wire), (struct str){expected, sizeof(expected) - 1}));
	buf_free(&wire);
}

/* A type is JSON's by its words, not by its first letters. */
TEST(types_are_told_apart)
{
	static const char *const json[] = {"application/json", "Application/JSON",
					   "application/json; charset=utf-8",
					   "application/json ;x"};
	static const char *const other[] = {"", "application/jsonp", "application/json-seq",
					    "application/proto", "text/application/json"};

	for (size_t i = 0; i < sizeof(json) / sizeof(*json); i++)
		expect(json_body_is(str_of(json[i])));
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
		expect(!json_body_is(str_of(other[i])));
}

/* Short memory is no fault of who sent it, and is called nothing else. */
static int take_whole(void *context)
{
	struct error err;
	struct buf wire;
	int rc = take(whole, &wire, &err);

	if (rc && rc != -ENOMEM)
		fprintf(stderr, "# %s\n", err.text);
	buf_free(&wire);
	return rc == 0 || rc == -ENOMEM ? rc : 1;
}

/* jansson's memory fails as ours does: it allocates by calls that are not wrapped. */
static void *fallible(size_t n)
{
	return malloc(n);
}

TEST(survives_failing_allocations)
{
	json_set_alloc_funcs(fallible, free);
	test_each_failing_allocation(take_whole, NULL);
}
