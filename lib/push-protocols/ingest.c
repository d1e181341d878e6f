/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to /ingest. Contract in ingest.h. */
#include "push-protocols/ingest.h"

#include <endian.h>

#define HEAD 9 /* bytes */

/* The server takes names and values apart at these, and knows no way to quote them. */
static void put_part(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		bool apart = memchr("{},=", s.p[i], 4) != NULL;

		buf_percent_append(b, apart ? STR("_") : (struct str){s.p + i, 1}, "");
	}
}

static void put_name(struct buf *b, const struct ingest *in, const struct label *labels, size_t n)
{
	bool any = false;

	put_part(b, in->name);
	for (size_t i = 0; i < n; i++) {
		if (str_starts(labels[i].name, STR("__")) || str_is(labels[i].name, "service_name"))
			continue;
		buf_percent_append(b, any ? STR(",") : STR("{"), "");
		put_part(b, labels[i].name);
		buf_percent_append(b, STR("="), "");
		put_part(b, labels[i].value);
		any = true;
	}
	if (any)
		buf_percent_append(b, STR("}"), "");
}

/* It is from a URL already: only what could not be in one is escaped. */
static void put_query(struct buf *b, struct str query)
{
	for (size_t i = 0; i < query.n; i++) {
		unsigned char c = (unsigned char)query.p[i];

		if (c > ' ' && c < 0x7f && c != '#')
			buf_putc(b, query.p[i]);
		else
			buf_percent_append(b, (struct str){query.p + i, 1}, "");
	}
}

static void put_number(struct buf *b, size_t n)
{
	uint32_t number = htole32((uint32_t)n);

	buf_append(b, &number, sizeof(number));
}

void ingest_put(struct buf *out, const struct ingest *in, const struct label *labels, size_t n)
{
	struct str type = in->content_type.n ? in->content_type : STR("application/octet-stream");
	struct buf path = BUF_NULL;

	buf_str_append(&path, STR("/ingest?name="));
	put_name(&path, in, labels, n);
	buf_printf(&path, "&from=%lld&until=%lld", (long long)in->start_ns, (long long)in->end_ns);
	if (in->query.n)
		buf_putc(&path, '&');
	put_query(&path, in->query);
	buf_putc(out, '\0');
	put_number(out, path.n);
	put_number(out, type.n);
	buf_str_append(out, buf_str(&path));
	buf_str_append(out, type);
	buf_str_append(out, in->body);
	out->failed |= path.failed;
	buf_free(&path);
}

bool ingest_is(struct str message)
{
	return message.n > 0 && message.p[0] == '\0';
}

bool ingest_parse(struct str message, struct ingest_request *ret)
{
	uint32_t lengths[2];
	struct str rest = str_skip(message, HEAD);
	size_t path, type;

	if (!ingest_is(message) || message.n < HEAD)
		return false;
	memcpy(lengths, message.p + 1, sizeof(lengths));
	path = le32toh(lengths[0]);
	type = le32toh(lengths[1]);
	if (path > rest.n || type > rest.n - path || !str_starts(rest, STR("/")))
		return false;
	ret->path = str_first(rest, path);
	ret->content_type = str_first(str_skip(rest, path), type);
	ret->body = str_skip(rest, path + type);
	return true;
}
