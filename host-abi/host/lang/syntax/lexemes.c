/* SPDX-License-Identifier: Apache-2.0 */
/* Comments are found between tokens, so the scanner needs no second mode: what stands there is
 * blank or a comment. */
#include "host/lang/syntax/lexemes.h"

#include "base/check.h"

static uint32_t count_lines(struct str s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += s.p[i] == '\n';
	return n;
}

/* The comment at the front. */
static struct str comment_text(struct str rest)
{
	struct str text;

	check(rest.n >= 2 && rest.p[0] == '/' && (rest.p[1] == '/' || rest.p[1] == '*'));
	if (rest.p[1] == '*')
		return str_first(rest, 2 + str_search(str_skip(rest, 2), STR("*/")) + 2);
	text = str_first(rest, str_find(rest, '\n'));
	while (text.n && text.p[text.n - 1] == '\r')
		text.n--;
	return text;
}

/* The comments in the gap that begins at `from`, on line `line`. */
static bool read_gap(struct lexemes *x, const struct source *source, struct str gap, uint32_t line)
{
	uint32_t end_line = 0;
	size_t at = 0;

	while (at < gap.n) {
		struct comment c = {.line = line, .offset = (size_t)(gap.p + at - source->text.p)};

		if (gap.p[at] != '/') {
			line += gap.p[at++] == '\n';
			continue;
		}
		c.text = comment_text(str_skip(gap, at));
		c.end_line = line + count_lines(c.text);
		c.follows = end_line && line <= end_line + 1;
		if (!vec_push(&x->comments, c))
			return false;
		end_line = line = c.end_line;
		at += c.text.n;
	}
	return true;
}

bool lexemes_read(struct lexemes *x, const struct source *source)
{
	struct scanner s = scanner_of(source);
	const char *end = source->text.p + s.at;
	uint32_t line = 1;
	struct token t;

	do {
		struct str gap;
		struct lexeme *last;

		t = scan(&s);
		if (t.kind == TOKEN_ILLEGAL)
			t.kind = TOKEN_EOF;
		if (t.kind == TOKEN_TERMINATOR)
			continue;
		gap = (struct str){end, (size_t)(t.text.p - end)};
		if (!read_gap(x, source, gap, line) || !vec_reserve(&x->tokens, 1))
			return false;
		last = &x->tokens.p[x->tokens.n++];
		*last = (struct lexeme){
			.kind = t.kind,
			.text = t.text,
			.offset = (size_t)(t.text.p - source->text.p),
			.line = t.place.line,
			.end_line = t.place.line + count_lines(t.text),
		};
		line = last->end_line;
		end = t.text.p + t.text.n;
	} while (t.kind != TOKEN_EOF);
	return true;
}

void lexemes_free(struct lexemes *x)
{
	vec_free(&x->tokens);
	vec_free(&x->comments);
}
