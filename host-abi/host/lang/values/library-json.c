/* SPDX-License-Identifier: Apache-2.0 */
/* encoding.from_json and encoding.to_json. The text may come from anywhere (a variable, a file), so
 * its depth and its size are bounded, and what is wrong with it is told with its place. Of two
 * members with one key the later counts.
 *
 * Source: RFC 8259. */
#include "host/lang/values/library-text.h"

#include "base/ascii.h"
#include "base/json.h"

#define MAX_DEPTH 100
#define MAX_ITEMS 100000 /* of all lists and objects */

struct reader {
	struct lang *l;
	const struct expr *e;
	struct str whole, rest;
	const char *problem;
	uint32_t n_items;
};

static bool fail(struct reader *r, const char *problem)
{
	r->problem = r->problem ? r->problem : problem;
	return false;
}

static void skip_blanks(struct reader *r)
{
	while (r->rest.n && strchr(" \t\r\n", r->rest.p[0]) && r->rest.p[0])
		r->rest = str_skip(r->rest, 1);
}

static bool accept(struct reader *r, char c)
{
	skip_blanks(r);
	if (!r->rest.n || r->rest.p[0] != c)
		return false;
	r->rest = str_skip(r->rest, 1);
	return true;
}

void library_utf8(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_putc(out, (char)c);
	} else if (c < 0x800) {
		buf_putc(out, (char)(0xc0 | c >> 6));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_putc(out, (char)(0xe0 | c >> 12));
		buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_putc(out, (char)(0xf0 | c >> 18));
		buf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	}
}

/* Four digits behind \u; the rest moves on. */
static bool read_unit(struct reader *r, uint32_t *ret)
{
	uint64_t code;

	if (r->rest.n < 4 || !str_hex(str_first(r->rest, 4), &code))
		return fail(r, "a \\u is followed by four hexadecimal digits");
	r->rest = str_skip(r->rest, 4);
	*ret = (uint32_t)code;
	return true;
}

/* Half of a pair alone is no character: U+FFFD. */
static bool read_unicode(struct reader *r, struct buf *out)
{
	uint32_t c, low;

	if (!read_unit(r, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00 && str_starts(r->rest, STR("\\u"))) {
		struct str before = r->rest;

		r->rest = str_skip(r->rest, 2);
		if (!read_unit(r, &low))
			return false;
		if (low >= 0xdc00 && low < 0xe000)
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		else
			r->rest = before;
	}
	library_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	return true;
}

static bool read_escape(struct reader *r, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = r->rest.n && r->rest.p[0] ? strchr(from, r->rest.p[0]) : NULL;
	bool unicode = r->rest.n && r->rest.p[0] == 'u';

	if (!at && !unicode)
		return fail(r, "a string holds an unknown escape");
	r->rest = str_skip(r->rest, 1);
	if (unicode)
		return read_unicode(r, out);
	buf_putc(out, to[at - from]);
	return true;
}

/* Behind the quote. */
static bool read_string(struct reader *r, struct andiron_str *ret)
{
	struct buf out = library_text();
	bool good = true;
	struct str copy;

	while (good && r->rest.n && r->rest.p[0] != '"') {
		char c = r->rest.p[0];

		r->rest = str_skip(r->rest, 1);
		if (c == '\\')
			good = read_escape(r, &out);
		else if ((unsigned char)c < ' ')
			good = fail(r, "a string holds a control character");
		else
			buf_putc(&out, c);
	}
	if (good && !accept(r, '"'))
		good = fail(r, "a string is not closed");
	if (good && out.failed)
		good = fail(r, "a string is too long");
	copy = good ? lang_str(r->l, buf_str(&out)) : STR_NULL;
	buf_free(&out);
	*ret = (struct andiron_str){copy.p, copy.n};
	return copy.p;
}

static bool read_value(struct reader *r, unsigned int depth, struct andiron_value *ret);

/* Twice as much as before, so that a list costs what it holds. */
static bool grow(struct reader *r, struct andiron_value *v, struct andiron_str **keys,
		 struct andiron_value **items, size_t *room)
{
	size_t n = *room ? *room * 2 : 8;
	struct andiron_value *more = lang_array(r->l, struct andiron_value, n);
	struct andiron_str *names = keys ? lang_array(r->l, struct andiron_str, n) : NULL;

	if (!more || (keys && !names))
		return false;
	if (v->n_items)
		memcpy(more, *items, v->n_items * sizeof(*more));
	if (keys && v->n_items)
		memcpy(names, *keys, v->n_items * sizeof(*names));
	*items = more;
	v->items = more;
	if (keys) {
		*keys = names;
		v->keys = names;
	}
	*room = n;
	return true;
}

static bool read_key(struct reader *r, struct andiron_str *ret)
{
	if (!accept(r, '"'))
		return fail(r, "an object's member begins with its name in quotes");
	return read_string(r, ret) &&
	       (accept(r, ':') || fail(r, "behind a member's name stands :"));
}

/* Behind the bracket. */
static bool read_items(struct reader *r, unsigned int depth, char end, struct andiron_value *ret)
{
	struct andiron_value *items = NULL;
	struct andiron_str *keys = NULL;
	bool map = end == '}';
	size_t room = 0;

	*ret = eval_value(r->e, map ? ANDIRON_VALUE_MAP : ANDIRON_VALUE_LIST);
	if (accept(r, end))
		return true;
	do {
		if (r->n_items++ >= MAX_ITEMS)
			return fail(r, "it holds too many items");
		if (ret->n_items == room && !grow(r, ret, map ? &keys : NULL, &items, &room))
			return false;
		if ((map && !read_key(r, &keys[ret->n_items])) ||
		    !read_value(r, depth + 1, &items[ret->n_items]))
			return false;
		ret->n_items++;
	} while (accept(r, ','));
	return accept(r, end) || fail(r, map ? "behind a member stands , or }"
					     : "behind an item stands , or ]");
}

static bool is_of_word(char c)
{
	return ascii_is_alnum(c) || c == '-' || c == '+' || c == '.';
}

static bool read_word(struct reader *r, struct andiron_value *ret)
{
	size_t n = 0;
	struct str word;

	while (n < r->rest.n && is_of_word(r->rest.p[n]))
		n++;
	word = str_first(r->rest, n);
	r->rest = str_skip(r->rest, n);
	if (str_is(word, "null"))
		return true;
	if (str_is(word, "true") || str_is(word, "false")) {
		ret->kind = ANDIRON_VALUE_BOOL;
		ret->integer = str_is(word, "true");
		return true;
	}
	return (n && eval_number(r->l, word, false, ret)) || fail(r, "this is no value");
}

static bool read_value(struct reader *r, unsigned int depth, struct andiron_value *ret)
{
	*ret = eval_value(r->e, ANDIRON_VALUE_NULL);
	if (depth > MAX_DEPTH)
		return fail(r, "it is nested too deep");
	if (accept(r, '{'))
		return read_items(r, depth, '}', ret);
	if (accept(r, '['))
		return read_items(r, depth, ']', ret);
	if (!accept(r, '"'))
		return read_word(r, ret);
	ret->kind = ANDIRON_VALUE_STRING;
	return read_string(r, &ret->string);
}

bool library_json(struct lang *l, const struct expr *e, struct str text, struct andiron_value *ret)
{
	struct reader r = {.l = l, .e = e, .whole = text, .rest = text};
	bool good = read_value(&r, 0, ret);

	skip_blanks(&r);
	if (good && r.rest.n)
		good = fail(&r, "something stands behind its end");
	if (!good && !l->no_memory)
		lang_error(l, library_argument(e, 0)->place, NULL,
			   "this is not JSON: %s (byte %zu)", r.problem ? r.problem : "no value",
			   r.whole.n - r.rest.n);
	return good;
}

LIBRARY_FUNCTION(from_json)
{
	struct str text;

	return library_open_strings(l, e, args, 1, &text) && library_json(l, e, text, ret);
}

/* *flags gets what the parts have: a text with a secret in it is one. */
static bool put_value(struct lang *l, const struct expr *e, struct buf *out,
		      const struct andiron_value *v, uint32_t *flags)
{
	struct str text;

	*flags |= v->flags;
	if (v->kind == ANDIRON_VALUE_STRING) {
		json_put_str(out, (struct str){v->string.ptr, v->string.len});
		return true;
	}
	if (v->kind != ANDIRON_VALUE_LIST && v->kind != ANDIRON_VALUE_MAP) {
		if (!library_scalar(l, v, &text))
			return !l->no_memory && library_refuse(l, e, 0, "values", v);
		buf_str_append(out, text);
		return true;
	}
	buf_putc(out, v->kind == ANDIRON_VALUE_MAP ? '{' : '[');
	for (uint64_t i = 0; i < v->n_items && !out->failed; i++) {
		if (i)
			buf_putc(out, ',');
		if (v->kind == ANDIRON_VALUE_MAP) {
			json_put_str(out, (struct str){v->keys[i].ptr, v->keys[i].len});
			buf_putc(out, ':');
		}
		if (!put_value(l, e, out, &v->items[i], flags))
			return false;
	}
	buf_putc(out, v->kind == ANDIRON_VALUE_MAP ? '}' : ']');
	return true;
}

LIBRARY_FUNCTION(to_json)
{
	struct buf out = library_text();
	uint32_t flags = 0;

	if (args[0].kind != ANDIRON_VALUE_MAP)
		return library_refuse(l, e, 0, "an object", &args[0]);
	if (!put_value(l, e, &out, &args[0], &flags)) {
		buf_free(&out);
		return false;
	}
	return library_give(l, e, &out, flags, ret);
}
