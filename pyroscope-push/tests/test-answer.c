/* SPDX-License-Identifier: Apache-2.0 */
/* Every answer that was recorded from a real server, and what follows. */
#include "base/clock.h"
#include "testing/test.h"
#include "push-protocols/answer.h"
#include "push-protocols/protocol.h"

#include <stdlib.h>

#define ERROR(code, text) "{\"code\":\"" code "\",\"message\":\"" text "\"}"
#define BAD(text)         ERROR("invalid_argument", text)

static const struct {
	int status;
	const char *body;
	enum answer_action action;
} rows[] = {
	{200, "", ANSWER_ACCEPTED},
	{400, BAD("profile series '{…}' has 31 label names; limit 30"), ANSWER_ISOLATE},
	{400, BAD("profile with labels '{…}' is outside of ingestion window"), ANSWER_ISOLATE},
	{400, BAD("empty profile"), ANSWER_ISOLATE},
	{400, BAD("uncompressed profile payload size exceeds limit of 4.2 MB"), ANSWER_ISOLATE},
	{400, "", ANSWER_ISOLATE},
	{401, ERROR("unauthenticated", "no org id"), ANSWER_REFUSED},
	{403, "forbidden", ANSWER_REFUSED},
	{404, "404 page not found", ANSWER_REFUSED},
	{405, "", ANSWER_REFUSED},
	{408, "", ANSWER_RETRY},
	{413, "", ANSWER_ISOLATE},
	{415, "", ANSWER_REFUSED},
	{302, "", ANSWER_REFUSED},
	{429,
	 ERROR("resource_exhausted", "push rate limit (4.0 MiB) exceeded while adding 2.0 MiB"),
	 ANSWER_LIMITED},
	{429, ERROR("resource_exhausted", "message size 3053 is larger than configured max 2000"),
	 ANSWER_ISOLATE},
	{429,
	 ERROR("resource_exhausted", "limit of 1.0 MiB/hour reached, next reset at "
				     "2100-01-02T03:04:05Z"),
	 ANSWER_PAUSE},
	{499, ERROR("canceled", "context canceled"), ANSWER_REFUSED},
	{500, ERROR("unknown", "gzip reset: EOF"), ANSWER_ISOLATE},
	{500, ERROR("unknown", "gzip reset: unexpected EOF"), ANSWER_ISOLATE},
	{500, ERROR("unknown", "copy to buffer: unexpected EOF"), ANSWER_ISOLATE},
	{500, ERROR("unknown", "proto: integer overflow"), ANSWER_ISOLATE},
	{500, ERROR("unknown", "proto: Profile: wiretype end group for non-group"), ANSWER_ISOLATE},
	{500, ERROR("unknown", "runtime error: invalid memory address or nil pointer dereference"),
	 ANSWER_ISOLATE},
	{500, ERROR("unknown", "failed to push to segment writer"), ANSWER_RETRY},
	{500, "", ANSWER_RETRY},
	{501, ERROR("unimplemented", "unknown compression"), ANSWER_REFUSED},
	{502, "<html>Bad Gateway</html>", ANSWER_RETRY},
	{503, ERROR("unavailable", "no healthy ingesters"), ANSWER_RETRY},
	{504, ERROR("deadline_exceeded", "context deadline exceeded"), ANSWER_RETRY},
	{0, "", ANSWER_LOST},
};

TEST(each_recorded_answer_has_its_action)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_response r = {.status = rows[i].status,
					  .body = str_of(rows[i].body),
					  .content_type = STR("application/proto"),
					  .error = "connection refused by pyroscope:4040"};
		struct answer a = answer_push(&r);

		if (a.action != rows[i].action)
			test_fail(__FILE__, __LINE__, "row %zu: %d \"%s\" gives %u", i,
				  rows[i].status, rows[i].body, a.action);
		expect((a.text[0] == '\0') == (a.action == ANSWER_ACCEPTED));
	}
}

/* What a Parca v0.28.0 answered, and what gRPC says of the other codes. */
static const struct {
	const char *code, *message;
	enum answer_action action;
} statuses[] = {
	{"0", "", ANSWER_ACCEPTED},
	{"1", "", ANSWER_UNKNOWN},
	{"2", "invalid profile type at row 0 (process-cpu:…): parse error", ANSWER_ISOLATE},
	{"2", "decompressing profile: unexpected EOF", ANSWER_ISOLATE},
	{"3", "missing __name__ label", ANSWER_ISOLATE},
	{"3", "duplicate label name: x", ANSWER_ISOLATE},
	{"3", "failed to parse profile: proto: integer overflow", ANSWER_ISOLATE},
	{"3", "invalid profile: function id is not sequential", ANSWER_ISOLATE},
	{"4", "context deadline exceeded", ANSWER_UNKNOWN},
	{"5", "", ANSWER_REFUSED},
	{"7", "", ANSWER_REFUSED},
	{"8", "grpc: received message larger than max (68157503 vs. 67108864)", ANSWER_ISOLATE},
	{"8", "slow down", ANSWER_LIMITED},
	{"9", "", ANSWER_ISOLATE},
	{"10", "", ANSWER_RETRY},
	{"12", "unknown method WriteRaw", ANSWER_REFUSED},
	{"13", "grpc: error unmarshalling request: unexpected EOF", ANSWER_ISOLATE},
	{"14", "no healthy upstream", ANSWER_RETRY},
	{"16", "no token", ANSWER_REFUSED},
	{"77", "a code of the future", ANSWER_ISOLATE},
	{"", "", ANSWER_UNKNOWN},
	{"x", "", ANSWER_UNKNOWN},
};

TEST(each_grpc_status_has_its_action)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct http_response r = {.status = 200, .content_type = STR("application/grpc")};
		struct answer a;

		r.wanted[0] = str_of(statuses[i].code);
		r.wanted[1] = str_of(statuses[i].message);
		a = answer_grpc(&r, ANSWERS_GRPC);
		if (a.action != statuses[i].action)
			test_fail(__FILE__, __LINE__, "status \"%s\" \"%s\" gives %u",
				  statuses[i].code, statuses[i].message, a.action);
		expect((a.text[0] == '\0') == (a.action == ANSWER_ACCEPTED));
	}
}

/* What stands in front of a gRPC server speaks HTTP, and messages are encoded. */
TEST(what_is_no_grpc_answer_is_judged_by_its_status)
{
	static const struct {
		int status;
		enum answer_action action;
	} https[] = {{0, ANSWER_LOST},      {302, ANSWER_REFUSED}, {404, ANSWER_REFUSED},
		     {413, ANSWER_ISOLATE}, {429, ANSWER_LIMITED}, {500, ANSWER_UNKNOWN},
		     {502, ANSWER_RETRY},   {503, ANSWER_RETRY},   {504, ANSWER_UNKNOWN},
		     {505, ANSWER_REFUSED}, {408, ANSWER_UNKNOWN}};
	struct http_response r = {.error = "connection refused by parca:7070"};

	for (size_t i = 0; i < sizeof(https) / sizeof(https[0]); i++) {
		r.status = https[i].status;
		expect_eq(answer_grpc(&r, ANSWERS_GRPC).action, https[i].action);
	}
	r.status = 200;
	r.content_type = STR("text/html");
	expect_eq(answer_grpc(&r, ANSWERS_GRPC).action, ANSWER_REFUSED);
	r.content_type = STR("application/grpc+proto");
	r.wanted[0] = STR("3");
	r.wanted[1] = STR("caf%C3%A9 100%25%0a %zz %4");
	expect_str(str_of(answer_grpc(&r, ANSWERS_GRPC).text), "gRPC status 3: café 100%  %zz %4");
}

/* What OTLP's specification and a Pyroscope's intake answer. */
TEST(each_otlp_answer_has_its_action)
{
	static const struct {
		int status;
		const char *type, *body;
		enum answer_action action;
	} answers[] = {
		{200, "application/x-protobuf", "", ANSWER_ACCEPTED},
		{200, NULL, "", ANSWER_ACCEPTED},
		{200, "application/x-protobuf", "\x0a\x06\x08\x02\x12\x02no", ANSWER_ISOLATE},
		{200, "application/x-protobuf", "\x0a\x02\x08", ANSWER_ACCEPTED}, /* cut off */
		{200, "text/html", "<html>", ANSWER_REFUSED},
		{400, "text/plain", "outside of ingestion window", ANSWER_ISOLATE},
		{401, "", "", ANSWER_REFUSED},
		{415, "", "", ANSWER_REFUSED},
		{429, "", "", ANSWER_LIMITED},
		{500, "", "rpc error: code = InvalidArgument desc = x", ANSWER_ISOLATE},
		{500, "", "storage", ANSWER_UNKNOWN},
		{502, "", "", ANSWER_RETRY},
		{503, "", "", ANSWER_RETRY},
		{504, "", "", ANSWER_UNKNOWN},
		{0, "", "", ANSWER_LOST},
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct http_response r = {.status = answers[i].status,
					  .content_type = str_of(answers[i].type),
					  .body = str_of(answers[i].body),
					  .error = "connection refused"};

		expect_eq(protocol_otlp.classify(&r).action, answers[i].action);
	}
}

/* A status 200 that is not a Connect answer has stored nothing. */
TEST(a_login_page_is_no_delivery)
{
	struct http_response r = {.status = 200,
				  .body = STR("<html>please log in</html>"),
				  .content_type = STR("text/html; charset=utf-8")};
	struct answer a = answer_push(&r);

	expect_eq(a.action, ANSWER_RETRY);
	expect(strstr(a.text, "text/html"));
	r.content_type = STR_NULL;
	expect_eq(answer_push(&r).action, ANSWER_RETRY);
}

/* The date of a quota's reset in every zone; nonsense is an hour from now. */
TEST(a_pause_ends_when_the_quota_resets)
{
	static const struct {
		const char *date;
		int64_t seconds;
	} dates[] = {
		{"2030-01-01T00:00:00Z", 1893456000},
		{"2030-01-01T02:00:00+02:00", 1893456000},
		{"2029-12-31T19:30:00-04:30", 1893456000},
		{"2030-01-01T00:00:00.123456789Z", 1893456000},
	};
	char body[128];
	struct http_response r = {.status = 429};
	int64_t soon;

	for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
		snprintf(body, sizeof(body), "limit reached, next reset at %s\"}", dates[i].date);
		r.body = str_of(body);
		expect_eq(answer_push(&r).resume_ns / NS_PER_SEC, dates[i].seconds);
	}
	r.body = STR("next reset at some time");
	soon = answer_push(&r).resume_ns - clock_real();
	expect(soon > 3590 * NS_PER_SEC && soon <= 3600 * NS_PER_SEC);
}

/* The text is one printable line whatever the server says. */
TEST(the_text_is_one_clean_line)
{
	struct http_response r = {.status = 400};
	unsigned int seed = 7;
	char body[600];

	r.body = STR("{\"code\":\"x\",\"message\":\"a \\\"b\\\"\\nc\",\"details\":[]}");
	expect_str(str_of(answer_push(&r).text), "status 400: a \"b\"nc");
	for (int i = 0; i < 20000; i++) {
		struct answer a;

		for (size_t k = 0; k < sizeof(body); k++)
			body[k] = (char)rand_r(&seed);
		memcpy(body, "\"message\":\"", i % 2 ? 11 : 0);
		r.body = (struct str){body, (size_t)rand_r(&seed) % sizeof(body)};
		r.status = 100 + rand_r(&seed) % 600;
		r.content_type = str_first(r.body, 40);
		a = answer_push(&r);
		for (const char *c = a.text; *c; c++)
			expect((unsigned char)*c >= 0x20 && *c != 0x7f);
	}
}
