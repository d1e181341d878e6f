/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in json-body.h. */
#include "receive-http/json/json-body.h"

#include "base/buf.h"

#include <errno.h>
#include <strings.h>

#define MAX_DIGITS 18 /* whatever they are, 63 bits have them */

/* What can be told before a value is made of it: text that is no JSON is found later. */
struct extent {
	size_t n_values, depth, deepest;
};

/* Behind the string that begins at `at`. */
static size_t skip_string(struct str body, size_t at)
{
	for (at++; at < body.n && body.p[at] != '"'; at++)
		at += body.p[at] == '\\';
	return at;
}

static struct extent measure(struct str body)
{
	struct extent e = {0};

	for (size_t i = 0; i < body.n; i++) {
		char c = body.p[i];

		if (c == '"')
			i = skip_string(body, i);
		e.n_values += c == ',' || c == '[' || c == '{';
		e.depth += c == '[' || c == '{';
		e.depth -= (c == ']' || c == '}') && e.depth > 0;
		e.deepest = e.depth > e.deepest ? e.depth : e.deepest;
	}
	return e;
}

bool json_body_is(struct str content_type)
{
	static const char type[] = "application/json";
	struct str rest = content_type, kind = str_trim(str_cut(&rest, ';'));

	return kind.n == sizeof(type) - 1 && strncasecmp(kind.p, type, kind.n) == 0;
}

/* The end of the number at `at`; *ret_long: it is an integer, of too many digits. */
static size_t skip_number(struct str body, size_t at, bool *ret_long)
{
	size_t start = at + (body.p[at] == '-'), digits = start, end;

	while (digits < body.n && body.p[digits] >= '0' && body.p[digits] <= '9')
		digits++;
	for (end = digits; end < body.n && memchr("0123456789.eE+-", body.p[end], 15);)
		end++;
	*ret_long = end == digits && end - start > MAX_DIGITS && body.p[start] != '0';
	return end;
}

/* The body with its long integers as texts, in `copy`; or as it is, where there are none. */
static struct str quote_long(struct str body, struct buf *copy)
{
	size_t copied = 0, end;
	bool is_long;

	for (size_t i = 0; i < body.n; i = end) {
		end = i + 1;
		if (body.p[i] == '"')
			end = skip_string(body, i) + 1;
		if (body.p[i] != '-' && (body.p[i] < '0' || body.p[i] > '9'))
			continue;
		end = skip_number(body, i, &is_long);
		if (!is_long)
			continue;
		buf_append(copy, body.p + copied, i - copied);
		buf_putc(copy, '"');
		buf_append(copy, body.p + i, end - i);
		buf_putc(copy, '"');
		copied = end;
	}
	if (!copied)
		return body;
	buf_append(copy, body.p + copied, body.n - copied);
	return buf_str(copy);
}

/* jansson says nothing where an object or a list found no memory. Of a string that found none it
 * says that there is none, at the string's end. */
static bool memory_was_short(struct str body, const json_error_t *why)
{
	struct str text = str_of(why->text);
	size_t at = why->position > 0 ? (size_t)why->position : 0;

	if (!text.n || json_error_code(why) == json_error_out_of_memory)
		return true;
	return at > 0 && at <= body.n && body.p[at - 1] == '"' &&
	       (str_starts(text, STR("invalid token")) ||
		str_starts(text, STR("string or '}' expected")));
}

static int load(struct str body, json_t **ret, struct error *err)
{
	json_error_t why = {.position = 0};
	json_t *root = json_loadb(body.n ? body.p : "", body.n, JSON_ALLOW_NUL, &why);

	if (json_is_object(root)) {
		*ret = root;
		return 0;
	}
	if (!root && memory_was_short(body, &why))
		return -ENOMEM;
	error_set(err, -EBADMSG, "the request is no JSON object: %.100s",
		  root ? "it is another value" : why.text);
	json_decref(root);
	return -EBADMSG;
}

int json_body_load(struct str body, json_t **ret, struct error *err)
{
	struct extent extent = measure(body);
	struct buf copy = BUF_NULL;
	int rc;

	if (extent.n_values > JSON_BODY_MAX_VALUES)
		return error_set(err, -E2BIG,
				 "the request has more than %u JSON values; as protobuf it may "
				 "have them",
				 JSON_BODY_MAX_VALUES);
	if (extent.deepest > JSON_BODY_MAX_DEPTH)
		return error_set(err, -EBADMSG, "the request has JSON more than %u levels deep",
				 JSON_BODY_MAX_DEPTH);
	body = quote_long(body, &copy);
	rc = copy.failed ? -ENOMEM : load(body, ret, err);
	buf_free(&copy);
	return rc;
}
