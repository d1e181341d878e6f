/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of statuses, and the texts of answers; see answer.h.
 *
 * In Pyroscope only the text tells kinds of one status apart; it sends no Retry-After. A status 200
 * counts only with a Connect content type: a login page has stored nothing. A refused request can
 * have stored its good series; sent again they are the same bytes with the same time, which the
 * server keeps once. */
#include "push-protocols/answer.h"

#include "base/clock.h"
#include "http/grpc.h"

#include <stdio.h>

#define HTTP (ANSWERS_CONNECT | ANSWERS_OTLP | ANSWERS_PROXY)
#define GRPC (ANSWERS_GRPC | ANSWERS_UPLOAD)

/* The first row that fits counts. */
/* clang-format off */
static const struct {
	unsigned tables;
	int first, last;  /* status: HTTP's, or gRPC's in its tables */
	const char *text; /* in the message; NULL: any */
	enum answer_action action;
} rows[] = {
	/* All that /ingest cannot read or will not keep. */
	{ANSWERS_INGEST, 422, 422, NULL, ANSWER_ISOLATE},
	{ANSWERS_INGEST, 415, 415, NULL, ANSWER_ISOLATE},
	{ANSWERS_OTLP, 200, 299, NULL, ANSWER_ACCEPTED},
	{ANSWERS_CONNECT | ANSWERS_OTLP, 400, 400, NULL, ANSWER_ISOLATE},
	{ANSWERS_CONNECT, 408, 408, NULL, ANSWER_RETRY},
	{HTTP, 408, 408, NULL, ANSWER_UNKNOWN},
	{HTTP, 413, 413, NULL, ANSWER_ISOLATE},
	{ANSWERS_CONNECT | ANSWERS_OTLP, 429, 429, "larger than configured max", ANSWER_ISOLATE},
	{ANSWERS_CONNECT, 429, 429, "next reset at ", ANSWER_PAUSE},
	{HTTP, 429, 429, NULL, ANSWER_LIMITED},
	{HTTP, 300, 499, NULL, ANSWER_REFUSED},
	/* Bytes that a Pyroscope cannot decode: as 500, though for ever. */
	{ANSWERS_CONNECT, 500, 500, "gzip reset: ", ANSWER_ISOLATE},
	{ANSWERS_CONNECT, 500, 500, "copy to buffer: ", ANSWER_ISOLATE},
	{ANSWERS_CONNECT, 500, 500, "proto: ", ANSWER_ISOLATE},
	{ANSWERS_CONNECT, 500, 500, "nil pointer dereference", ANSWER_ISOLATE},
	{ANSWERS_OTLP, 500, 500, "InvalidArgument", ANSWER_ISOLATE},
	{ANSWERS_CONNECT | ANSWERS_OTLP, 501, 501, NULL, ANSWER_REFUSED},
	{ANSWERS_OTLP | ANSWERS_PROXY, 502, 503, NULL, ANSWER_RETRY},
	{ANSWERS_PROXY, 505, 505, NULL, ANSWER_REFUSED},
	{ANSWERS_OTLP | ANSWERS_PROXY, 500, 599, NULL, ANSWER_UNKNOWN},
	{ANSWERS_CONNECT, 500, 599, NULL, ANSWER_RETRY},

	{GRPC, 0, 0, NULL, ANSWER_ACCEPTED},
	{ANSWERS_GRPC, 1, 1, NULL, ANSWER_UNKNOWN}, /* cancelled */
	{ANSWERS_GRPC, 2, 3, NULL, ANSWER_ISOLATE}, /* unknown, invalid argument */
	{ANSWERS_UPLOAD, 3, 3, NULL, ANSWER_REFUSED},
	{ANSWERS_GRPC, 4, 4, NULL, ANSWER_UNKNOWN}, /* deadline exceeded */
	{ANSWERS_GRPC, 5, 5, NULL, ANSWER_REFUSED}, /* not found */
	{ANSWERS_GRPC, 6, 6, NULL, ANSWER_ISOLATE}, /* already exists */
	{GRPC, 7, 7, NULL, ANSWER_REFUSED},         /* permission denied */
	{ANSWERS_GRPC, 8, 8, "larger than max", ANSWER_ISOLATE},
	{ANSWERS_GRPC, 8, 8, NULL, ANSWER_LIMITED}, /* resource exhausted */
	{ANSWERS_GRPC, 9, 9, NULL, ANSWER_ISOLATE}, /* failed precondition */
	{GRPC, 10, 10, NULL, ANSWER_RETRY},         /* aborted */
	{ANSWERS_GRPC, 11, 11, NULL, ANSWER_ISOLATE}, /* out of range */
	{GRPC, 12, 12, NULL, ANSWER_REFUSED},       /* unimplemented */
	{ANSWERS_GRPC, 13, 13, NULL, ANSWER_ISOLATE}, /* internal */
	{GRPC, 14, 14, NULL, ANSWER_RETRY},         /* unavailable */
	{ANSWERS_GRPC, 15, 15, NULL, ANSWER_ISOLATE}, /* data loss */
	{GRPC, 16, 16, NULL, ANSWER_REFUSED},       /* unauthenticated */
};
/* clang-format on */

static bool holds(struct str body, const char *text)
{
	return !text || str_search(body, str_of(text)) < body.n;
}

enum answer_action answer_find(unsigned table, int status, struct str text)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((rows[i].tables & table) && status >= rows[i].first && status <= rows[i].last &&
		    holds(text, rows[i].text))
			return rows[i].action;
	return ANSWER_RETRY;
}

void answer_clean(struct answer *a)
{
	char *text = a->text;
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = ' ';
	if (str_utf8(str_of(text)))
		return;
	while (n && (text[n - 1] & 0x80)) /* cut within a character */
		text[--n] = '\0';
	for (size_t i = 0; i < n && !str_utf8(str_of(text)); i++) /* never was text */
		if (text[i] & 0x80)
			text[i] = '?';
}

/* The error's own text out of {"code": …, "message": …}, else the body. */
static void copy_text(struct str body, char *out, size_t n)
{
	static const char key[] = "\"message\":\"";
	size_t at = str_search(body, str_of(key)), used = 0;
	bool quoted = at < body.n;
	struct str text = quoted ? str_skip(body, at + sizeof(key) - 1) : str_trim(body);

	for (size_t i = 0; i < text.n && used + 1 < n; i++) {
		char c = text.p[i];

		if (quoted && c == '"')
			break;
		if (quoted && c == '\\' && i + 1 < text.n)
			c = text.p[++i];
		out[used++] = c ? c : ' ';
	}
	out[used] = '\0';
}

static bool is_connect(struct str type)
{
	return str_starts(type, STR("application/proto")) ||
	       str_starts(type, STR("application/json"));
}

/* The end of "… next reset at DATE": CLOCK_REALTIME; an hour from now where the date cannot be
 * read. */
static int64_t resume_time(struct str body)
{
	static const char key[] = "next reset at ";
	struct str rest = str_skip(body, str_search(body, str_of(key)) + sizeof(key) - 1);
	char text[40], sign;
	const char *zone;
	struct tm tm = {0};
	int hours = 0, minutes = 0;

	snprintf(text, sizeof(text), "%.*s", STR_FMT(str_first(rest, sizeof(text) - 1)));
	zone = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!zone)
		return clock_real() + 3600 * NS_PER_SEC;
	if (*zone == '.')
		zone += 1 + strspn(zone + 1, "0123456789");
	if (sscanf(zone, "%c%2d:%2d", &sign, &hours, &minutes) == 3 && sign == '+')
		hours = -hours, minutes = -minutes;
	return (timegm(&tm) + hours * 3600 + minutes * 60) * NS_PER_SEC;
}

static struct answer accepted(const struct http_response *r)
{
	struct answer a = {.action = ANSWER_ACCEPTED};

	if (is_connect(r->content_type))
		return a;
	a.action = ANSWER_RETRY;
	snprintf(a.text, sizeof(a.text),
		 "status %d with content type \"%.*s\" is not the answer of a Pyroscope server",
		 r->status, STR_FMT(str_first(r->content_type, 80)));
	return a;
}

static struct answer judge(const struct http_response *r, unsigned tables)
{
	struct answer a = {.action = ANSWER_RETRY};
	char text[256];

	a.action = answer_find(tables, r->status, r->body);
	if (a.action == ANSWER_PAUSE)
		a.resume_ns = resume_time(r->body);
	copy_text(r->body, text, sizeof(text));
	snprintf(a.text, sizeof(a.text), "status %d%s%s", r->status, text[0] ? ": " : "", text);
	return a;
}

struct answer answer_push(const struct http_response *r)
{
	struct answer a = {.action = ANSWER_LOST};

	if (r->status == 0)
		snprintf(a.text, sizeof(a.text), "%.300s", r->error);
	else if (r->status >= 200 && r->status < 300)
		a = accepted(r);
	else
		a = judge(r, ANSWERS_CONNECT);
	answer_clean(&a);
	return a;
}

/* The server says nothing but its status; who shows a page is another. */
struct answer answer_ingest(const struct http_response *r)
{
	struct answer a = {.action = ANSWER_ACCEPTED};

	if (r->status < 200 || r->status >= 300) {
		a = r->status ? judge(r, ANSWERS_CONNECT | ANSWERS_INGEST) : answer_push(r);
	} else if (str_starts(r->content_type, STR("text/html"))) {
		a.action = ANSWER_RETRY;
		snprintf(a.text, sizeof(a.text),
			 "status %d with a page of HTML is not the answer of a Pyroscope server",
			 r->status);
	}
	answer_clean(&a);
	return a;
}

/* Of an answer that has no gRPC status. */
static enum answer_action judge_proxy(const struct http_response *r)
{
	if (r->status == 0)
		return ANSWER_LOST;
	if (r->status != 200)
		return answer_find(ANSWERS_PROXY, r->status, r->body);
	/* Without its trailers it broke off; of another type it is another server. */
	return str_starts(r->content_type, STR("application/grpc")) ? ANSWER_UNKNOWN
								    : ANSWER_REFUSED;
}

struct answer answer_grpc(const struct http_response *r, unsigned table)
{
	struct answer a = {0};
	char text[320];
	int code = grpc_status(r, text, sizeof(text));

	a.action = code < 0 ? judge_proxy(r) : answer_find(table, code, str_of(text));
	if (code < 0)
		snprintf(a.text, sizeof(a.text), "%s", text);
	else if (a.action != ANSWER_ACCEPTED)
		snprintf(a.text, sizeof(a.text), "gRPC status %d%s%.255s", code,
			 text[0] ? ": " : "", text);
	answer_clean(&a);
	return a;
}
