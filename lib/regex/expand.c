/* SPDX-License-Identifier: Apache-2.0 */
/* Replacement texts. Contract in pattern.h; source: Go's package regexp, Expand. */
#include "regex/pattern.h"

#include "base/buf.h"
#include "regex/unicode.h"

/* Cuts "name" or "{name}" off the front of *rest. False if there is none. */
static bool cut_name(struct str *rest, struct str *ret_name)
{
	bool brace = rest->n && rest->p[0] == '{';
	struct str s = str_skip(*rest, brace), tail = s;

	while (tail.n) {
		uint32_t c;
		size_t n = rune_decode(tail, &c);

		if (c != '_' && !rune_is_alnum(c))
			break;
		tail = str_skip(tail, n);
	}
	if (tail.n == s.n || (brace && (!tail.n || tail.p[0] != '}')))
		return false;
	*ret_name = str_first(s, s.n - tail.n);
	*rest = str_skip(tail, brace);
	return true;
}

/* The group that a name means: a number without leading zeros and of nine digits at most, or of the
 * groups of this name the first that took part. */
static struct str group_of(const struct match *match, struct str name)
{
	bool number_like = (name.p[0] != '0' || name.n == 1) && name.n <= 9;
	uint64_t number;

	if (number_like && str_u64(name, &number))
		return number < match->n_groups ? match->groups[number] : STR_NULL;
	for (uint32_t i = 1; i < match->n_groups; i++)
		if (match->groups[i].p && str_eq(pattern_group_name(match->pattern, i), name))
			return match->groups[i];
	return STR_NULL;
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
