/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a form. Contract in multipart.h. A delimiter is "--" and the boundary at the beginning
 * of a line; the line end before it belongs to it. */
#include "receive-http/multipart.h"

#include <errno.h>
#include <strings.h>

/* Whether s begins with the word, whatever the case of its letters. */
static bool begins(struct str s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && strncasecmp(s.p, word, n) == 0;
}

bool multipart_is(struct str content_type)
{
	return begins(str_trim(content_type), "multipart/form-data");
}

/* The value of `key` among parameters "; key=value; key="value"", STR_NULL: it is not there. */
static struct str parameter(struct str rest, const char *key)
{
	while (rest.n) {
		struct str one = str_trim(str_cut(&rest, ';'));
		struct str name = str_trim(str_cut(&one, '='));

		if (name.n != strlen(key) || !begins(name, key))
			continue;
		one = str_trim(one);
		if (one.n >= 2 && one.p[0] == '"' && one.p[one.n - 1] == '"')
			one = (struct str){one.p + 1, one.n - 2};
		return one;
	}
	return STR_NULL;
}

int multipart_init(struct multipart *m, struct str content_type, struct str body)
{
	struct str rest = content_type;

	str_cut(&rest, ';');
	*m = (struct multipart){.boundary = parameter(rest, "boundary"), .rest = body};
	/* RFC 2046: at most 70 characters. */
	return m->boundary.n && m->boundary.n <= 70 ? 0 : -EBADMSG;
}

/* Where the next delimiter begins in s, its "--" included, and what follows it; s.n: nowhere. */
static size_t find_delimiter(const struct multipart *m, struct str s, struct str *ret_after)
{
	size_t at = 0;

	while (at < s.n) {
		struct str from = str_skip(s, at);
		size_t found = str_search(from, m->boundary);
		size_t begin = at + found;

		if (found == from.n)
			break;
		if (begin >= 2 && s.p[begin - 1] == '-' && s.p[begin - 2] == '-' &&
		    (begin == 2 || s.p[begin - 3] == '\n')) {
			*ret_after = str_skip(s, begin + m->boundary.n);
			return begin - 2;
		}
		at = begin + 1;
	}
	return s.n;
}

/* Behind a delimiter: to the parts' end, or to the line behind it. */
static int end_delimiter(struct multipart *m, struct str after)
{
	struct str line;

	if (str_starts(after, STR("--"))) {
		m->ended = true;
		m->rest = STR_NULL;
		return 0;
	}
	if (str_find(after, '\n') == after.n)
		return -EBADMSG;
	line = str_cut(&after, '\n');
	m->rest = after;
	return str_trim(line).n ? -EBADMSG : 0;
}

static void read_header(struct str line, struct part *ret)
{
	struct str name = str_trim(str_cut(&line, ':'));

	if (name.n == 19 && begins(name, "Content-Disposition")) {
		str_cut(&line, ';');
		ret->name = parameter(line, "name");
	} else if (name.n == 12 && begins(name, "Content-Type")) {
		ret->content_type = str_trim(line);
	}
}

/* The headers, to the empty line. */
static int read_head(struct str *in, struct part *ret)
{
	for (;;) {
		struct str line;

		if (str_find(*in, '\n') == in->n)
			return -EBADMSG;
		line = str_trim(str_cut(in, '\n'));
		if (!line.n)
			return 0;
		read_header(line, ret);
	}
}

static int read_part(struct multipart *m, struct part *ret)
{
	struct str in = m->rest, after;
	struct part part = {0};
	size_t n;
	int rc = read_head(&in, &part);

	if (rc)
		return rc;
	n = find_delimiter(m, in, &after);
	if (n == in.n)
		return -EBADMSG;
	part.data = str_first(in, n);
	if (part.data.n && part.data.p[part.data.n - 1] == '\n')
		part.data.n--;
	if (part.data.n && part.data.p[part.data.n - 1] == '\r')
		part.data.n--;
	rc = end_delimiter(m, after);
	if (rc)
		return rc;
	*ret = part;
	return 1;
}

int multipart_next(struct multipart *m, struct part *ret)
{
	struct str after;
	int rc;

	if (!m->begun) {
		if (find_delimiter(m, m->rest, &after) == m->rest.n)
			return -EBADMSG;
		rc = end_delimiter(m, after);
		if (rc)
			return rc;
		m->begun = true;
	}
	if (m->ended)
		return 0;
	if (++m->n_parts > MULTIPART_MAX_PARTS)
		return -E2BIG;
	return read_part(m, ret);
}

int multipart_find(struct str content_type, struct str body, struct str name, struct str *ret)
{
	struct multipart m;
	struct part part;
	bool found = false;
	int rc = multipart_init(&m, content_type, body);

	while (!rc && (rc = multipart_next(&m, &part)) == 1) {
		if (!found && str_eq(part.name, name)) {
			*ret = part.data;
			found = true;
		}
		rc = 0;
		if (m.ended)
			break;
	}
	return rc ? rc : found;
}
