/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in function-name.h. */
#include "export/function-name.h"

#include "base/ascii.h"

static bool is_word(char c)
{
	return ascii_is_alnum(c) || c == '_';
}

/* Whether compilers of machine code named it. Rust's and C's names have no dot of their own. */
static bool is_compiled(struct str type)
{
	return type.n == 0 || str_is(type, "native") || str_is(type, "rust") ||
	       str_is(type, "kernel");
}

/* Of a word behind a name's dot. */
static bool is_clone(struct str word, bool numbered)
{
	static const char *const alone[] = {"cold", "localalias"};
	static const char *const counted[] = {"cold", "part",  "isra",   "constprop", "lto_priv",
					      "llvm", "clone", "__uniq", "localalias"};

	for (size_t i = 0; !numbered && i < sizeof(alone) / sizeof(alone[0]); i++)
		if (str_is(word, alone[i]))
			return true;
	for (size_t i = 0; numbered && i < sizeof(counted) / sizeof(counted[0]); i++)
		if (str_is(word, counted[i]))
			return true;
	return false;
}

static struct str cut_number(struct str s)
{
	size_t n = s.n;

	while (n && ascii_is_digit(s.p[n - 1]))
		n--;
	return n < s.n && n && s.p[n - 1] == '.' ? str_first(s, n - 1) : s;
}

/* One suffix less, or the same. */
static struct str cut_suffix(struct str s)
{
	struct str base = cut_number(s);
	size_t dot = str_rfind(base, '.');

	if (dot && dot < base.n && is_clone(str_skip(base, dot + 1), base.n < s.n))
		return str_first(base, dot);
	if (str_ends(s, STR("]"))) { /* foo(int) [clone .isra.0] */
		size_t open = str_rfind(s, '[');

		if (open > 1 && str_starts(str_skip(s, open), STR("[clone .")))
			return str_first(s, open - 1);
	}
	if (s.n > 19 && str_starts(str_skip(s, s.n - 19), STR("::h"))) {
		size_t i = s.n - 16;

		while (i < s.n && ascii_hex_value(s.p[i]) >= 0)
			i++;
		if (i == s.n)
			return str_first(s, s.n - 19);
	}
	return s;
}

static size_t digits_at(struct str s, size_t at)
{
	size_t n = 0;

	while (at + n < s.n && ascii_is_digit(s.p[at + n]))
		n++;
	return n;
}

/* An address behind "/", "+" or "." up to the end or the method's dot; 0: there is none. */
static size_t address_at(struct str s, size_t at)
{
	size_t i = at + 3;

	if (!str_starts(str_skip(s, at + 1), STR("0x")))
		return 0;
	while (i < s.n && ascii_hex_value(s.p[i]) >= 0)
		i++;
	return i > at + 3 && (i == s.n || s.p[i] == '.' || s.p[i] == '/') ? i - at : 0;
}

/* Where what HotSpot makes up begins; the name's length where it does not. Looked for once, as
 * names may be as long as a stranger likes. */
struct marks {
	size_t hidden, generated;
	size_t lambda; /* where "lambda$METHOD" ends */
};

static size_t lambda_end(struct str s)
{
	size_t i = str_search(s, STR("lambda$"));

	if (i == s.n)
		return i;
	i += 7;
	while (i < s.n && is_word(s.p[i]))
		i++;
	return i;
}

static size_t made_up_number_at(struct str s, const struct marks *marks, size_t at)
{
	struct str before = str_first(s, at);
	size_t digits = digits_at(s, at);
	bool generated = marks->generated < at && str_ends(before, STR("Accessor"));

	return generated || str_ends(before, STR("$Proxy")) ||
			       str_ends(before, STR("LambdaForm$MH$"))
		       ? digits
		       : 0;
}

/* How much of it stands at `at`, 0: nothing. */
static size_t made_up_at(struct str s, const struct marks *marks, size_t at)
{
	char c = s.p[at];

	if (c == '/' || ((c == '+' || c == '.') && marks->hidden < at))
		return address_at(s, at);
	if (c == '$') { /* lambda$main$0, $$Lambda$14 */
		size_t end = at + 1 + digits_at(s, at + 1);
		bool ends = end == s.n || !is_word(s.p[end]);

		if (end > at + 1 &&
		    (str_ends(str_first(s, at), STR("$$Lambda")) || (marks->lambda == at && ends)))
			return end - at;
	}
	return ascii_is_digit(c) ? made_up_number_at(s, marks, at) : 0;
}

void function_name_plain(struct str name, struct str type, struct buf *out)
{
	struct str s = name;
	struct marks marks;
	size_t start = out->n;

	while (is_compiled(type)) {
		struct str shorter = cut_suffix(s);

		if (shorter.n == s.n || shorter.n == 0)
			break;
		s = shorter;
	}
	marks = (struct marks){.hidden = str_search(s, STR("Lambda")),
			       .generated = str_search(s, STR("Generated")),
			       .lambda = lambda_end(s)};
	for (size_t i = 0; i < s.n;) {
		size_t skip = i ? made_up_at(s, &marks, i) : 0;

		if (!skip)
			buf_putc(out, s.p[i++]);
		i += skip;
	}
	if (out->n == start)
		buf_str_append(out, name);
}
