/* SPDX-License-Identifier: Apache-2.0 */
/* Replacement texts. Contract in pattern.h; source: Go's package regexp, Expand. */
#include "pattern.h"

#include "base/buf.h"

#include <errno.h>

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

/* Cuts "name" or "{name}" off the front of *rest. False if there is none. */
static bool cut_name(struct str *rest, struct str *ret_name)
{
	bool brace = rest->n && rest->p[0] == '{';
	struct str s = str_skip(*rest, brace);
	size_t n = 0;

	while (n < s.n && is_word(s.p[n]))
		n++;
	if (!n || (brace && (n == s.n || s.p[n] != '}')))
		return false;
	*ret_name = str_first(s, n);
	*rest = str_skip(s, n + brace);
	return true;
}

/* The group that a name means: a number without leading zeros. */
static struct str group_of(const struct match *match, struct str name)
{
	uint64_t number;

	if ((name.p[0] == '0' && name.n > 1) || !str_u64(name, &number) ||
	    number >= match->n_groups)
		return STR_NULL;
	return match->groups[number];
}

int pattern_expand(const struct match *match, struct str text, struct buf *out)
{
	int r = 0;

	while (!r && text.n) {
		size_t dollar = str_find(text, '$');
		struct str name;

		r = buf_str_append(out, str_first(text, dollar));
		if (r || dollar == text.n)
			break;
		text = str_skip(text, dollar + 1);
		if (text.n && text.p[0] == '$') {
			text = str_skip(text, 1);
			r = buf_putc(out, '$');
		} else if (cut_name(&text, &name)) {
			r = buf_str_append(out, group_of(match, name));
		} else {
			r = buf_putc(out, '$');
		}
	}
	return r;
}
