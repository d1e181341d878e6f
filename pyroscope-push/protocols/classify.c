/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tables of answers share, and Push's. Pyroscope tells kinds of one status
 * apart only by its text, and gives no Retry-After. A status 200 is believed
 * only with a Connect content type: a login page has stored nothing. A refused
 * request can have stored its good series: sent again they are the same bytes
 * with the same time, which the server keeps once.
 */
#include "pyroscope-push/protocols/classify.h"

#include "base/clock.h"

#include <stdio.h>

static const struct answer_row rows[] = {
	{400, 400, NULL, ANSWER_ISOLATE},
	{408, 408, NULL, ANSWER_RETRY},
	{413, 413, NULL, ANSWER_ISOLATE},
	{429, 429, "larger than configured max", ANSWER_ISOLATE},
	{429, 429, "next reset at ", ANSWER_PAUSE},
	{429, 429, NULL, ANSWER_LIMITED},
	{300, 499, NULL, ANSWER_REFUSED},
	/* Bytes that the server cannot decode: as 500, though for ever. */
	{500, 500, "gzip reset: ", ANSWER_ISOLATE},
	{500, 500, "copy to buffer: ", ANSWER_ISOLATE},
	{500, 500, "proto: ", ANSWER_ISOLATE},
	{500, 500, "nil pointer dereference", ANSWER_ISOLATE},
	{501, 501, NULL, ANSWER_REFUSED},
	{500, 599, NULL, ANSWER_RETRY},
};

static bool holds(struct str body, const char *text)
{
	return !text || str_search(body, str_of(text)) < body.n;
}

int answer_find(const struct answer_row *table, size_t n, int status, struct str text)
{
	for (size_t i = 0; i < n; i++)
		if (status >= table[i].first && status <= table[i].last &&
		    holds(text, table[i].text))
			return table[i].action;
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

int64_t answer_resume(struct str body)
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

static struct answer judge(const struct http_response *r)
{
	struct answer a = {.action = ANSWER_RETRY};
	char text[256];

	a.action = answer_find(rows, sizeof(rows) / sizeof(rows[0]), r->status, r->body);
	if (a.action == ANSWER_PAUSE)
		a.resume_ns = answer_resume(r->body);
	copy_text(r->body, text, sizeof(text));
	snprintf(a.text, sizeof(a.text), "status %d%s%s", r->status, text[0] ? ": " : "", text);
	return a;
}

struct answer classify_push(const struct http_response *r)
{
	struct answer a = {.action = ANSWER_LOST};

	if (r->status == 0)
		snprintf(a.text, sizeof(a.text), "%.300s", r->error);
	else if (r->status >= 200 && r->status < 300)
		a = accepted(r);
	else
		a = judge(r);
	answer_clean(&a);
	return a;
}
