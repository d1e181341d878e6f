/* SPDX-License-Identifier: Apache-2.0 */
/* string.*, but for string.format. */
#include "host/lang/values/library-text.h"

LIBRARY_FUNCTION(join)
{
	struct buf out = library_text();
	struct str separator, text;
	uint32_t flags = args[1].flags;

	if (args[0].kind != ANDIRON_VALUE_LIST && args[0].kind != ANDIRON_VALUE_NULL)
		return library_refuse(l, e, 0, "a list of strings", &args[0]);
	if (!library_string(l, e, 1, "a string", &args[1], &separator))
		return false;
	for (uint64_t i = 0; args[0].kind == ANDIRON_VALUE_LIST && i < args[0].n_items; i++) {
		const struct andiron_value *item = &args[0].items[i];

		if (!library_string(l, e, 0, "a list of strings alone", item, &text)) {
			buf_free(&out);
			return false;
		}
		if (i)
			buf_str_append(&out, separator);
		buf_str_append(&out, text);
		flags |= item->flags;
	}
	return library_give(l, e, &out, flags, ret);
}

/* Go's: an empty `old` stands before each character and at the end. */
LIBRARY_FUNCTION(replace)
{
	struct buf out = library_text();
	struct str s[3] = {STR_NULL, STR_NULL, STR_NULL}, rest;

	if (!library_strings(l, e, args, 3, s))
		return false;
	for (rest = s[0]; rest.n && !out.failed;) {
		size_t at = s[1].n ? str_search(rest, s[1]) : 0;
		size_t next = str_utf8_length(rest);

		buf_str_append(&out, str_first(rest, at));
		if (at == rest.n)
			break;
		buf_str_append(&out, s[2]);
		if (!s[1].n)
			buf_str_append(&out, str_first(rest, next ? next : 1));
		rest = str_skip(rest, s[1].n ? at + s[1].n : next ? next : 1);
	}
	if (!s[1].n)
		buf_str_append(&out, s[2]);
	return library_give(l, e, &out, args[0].flags | args[2].flags, ret);
}

LIBRARY_FUNCTION(split)
{
	struct andiron_value *items;
	struct str s[2] = {STR_NULL, STR_NULL}, rest;
	size_t n = 1, i = 0;

	if (!library_strings(l, e, args, 2, s))
		return false;
	for (rest = s[0]; rest.n; n++) {
		size_t at = s[1].n ? str_search(rest, s[1]) : str_utf8_length(rest);

		if (at == rest.n)
			break;
		rest = str_skip(rest, s[1].n ? at + s[1].n : at ? at : 1);
	}
	items = lang_array(l, struct andiron_value, n);
	for (rest = s[0]; items && i < n; i++) {
		size_t step = str_utf8_length(rest);
		size_t at = s[1].n ? str_search(rest, s[1]) : step ? step : rest.n;

		items[i] = eval_value(e, ANDIRON_VALUE_STRING);
		items[i].string = (struct andiron_str){rest.p, at};
		items[i].flags = args[0].flags & ANDIRON_VALUE_SECRET;
		rest = str_skip(rest, at + s[1].n);
	}
	*ret = eval_value(e, ANDIRON_VALUE_LIST);
	ret->items = items;
	/* "" by "" is no character at all. */
	ret->n_items = s[0].n || s[1].n ? i : 0;
	return items;
}

/* ASCII only: letters of other scripts stay as they are. */
static bool change_case(struct lang *l, const struct expr *e, const struct andiron_value *args,
			char from, char to, struct andiron_value *ret)
{
	struct buf out = library_text();
	struct str s = STR_NULL;

	if (!library_strings(l, e, args, 1, &s))
		return false;
	buf_str_append(&out, s);
	for (size_t i = 0; i < out.n; i++)
		if (out.p[i] >= from && out.p[i] < from + 26)
			out.p[i] = (char)(out.p[i] - from + to);
	return library_give(l, e, &out, args[0].flags, ret);
}

LIBRARY_FUNCTION(lower)
{
	return change_case(l, e, args, 'A', 'a', ret);
}

LIBRARY_FUNCTION(upper)
{
	return change_case(l, e, args, 'a', 'A', ret);
}

static bool holds(struct str set, struct str character)
{
	return character.n && str_search(set, character) < set.n;
}

LIBRARY_FUNCTION(trim)
{
	struct str s[2] = {STR_NULL, STR_NULL};
	size_t n;

	if (!library_strings(l, e, args, 2, s))
		return false;
	while ((n = str_utf8_length(s[0])) && holds(s[1], str_first(s[0], n)))
		s[0] = str_skip(s[0], n);
	while (s[0].n) {
		for (n = 1; n < s[0].n && ((unsigned char)s[0].p[s[0].n - n] & 0xc0) == 0x80;)
			n++;
		if (!holds(s[1], str_skip(s[0], s[0].n - n)))
			break;
		s[0].n -= n;
	}
	return library_give_str(l, e, s[0], args[0].flags, ret);
}

LIBRARY_FUNCTION(trim_prefix)
{
	struct str s[2] = {STR_NULL, STR_NULL};

	if (!library_strings(l, e, args, 2, s))
		return false;
	if (str_starts(s[0], s[1]))
		s[0] = str_skip(s[0], s[1].n);
	return library_give_str(l, e, s[0], args[0].flags, ret);
}

LIBRARY_FUNCTION(trim_suffix)
{
	struct str s[2] = {STR_NULL, STR_NULL};

	if (!library_strings(l, e, args, 2, s))
		return false;
	if (str_ends(s[0], s[1]))
		s[0].n -= s[1].n;
	return library_give_str(l, e, s[0], args[0].flags, ret);
}

LIBRARY_FUNCTION(trim_space)
{
	struct str s = STR_NULL;

	return library_strings(l, e, args, 1, &s) &&
	       library_give_str(l, e, str_trim(s), args[0].flags, ret);
}
