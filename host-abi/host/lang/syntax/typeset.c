/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts in typeset.h. */
#include "host/lang/syntax/typeset.h"

#include "base/check.h"

#include <errno.h>

/* Empty lines that stay: one. */
#define MAX_LINE_ENDS 2

struct typeset typeset_into(struct buf *out, const struct lexemes *lexemes)
{
	return (struct typeset){
		.layout = layout_into(out),
		.lexemes = lexemes,
		.line = 1,
		.at_line_start = true,
	};
}

void typeset_free(struct typeset *t)
{
	layout_free(&t->layout);
	buf_free(&t->scratch);
}

static void put_indent(struct typeset *t)
{
	for (unsigned int i = 0; t->at_line_start && i < t->indent; i++)
		layout_cell(&t->layout, true);
	t->at_line_start = false;
	t->started = true;
}

static void put_blank(struct typeset *t)
{
	put_indent(t);
	layout_blank(&t->layout);
}

static void put_cell_end(struct typeset *t, bool hard)
{
	put_indent(t);
	layout_cell(&t->layout, hard);
}

static void put_line_ends(struct typeset *t, uint32_t n, bool breaks)
{
	put_indent(t);
	for (uint32_t i = 0; i < n && i < MAX_LINE_ENDS; i++)
		layout_line(&t->layout, breaks);
	t->at_line_start = true;
}

/* The first n spaces that are held. */
static void release(struct typeset *t, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		switch (t->held[i]) {
		case SPACE_BLANK:
			put_blank(t);
			break;
		case SPACE_CELL:
			put_cell_end(t, false);
			break;
		case SPACE_LINE:
		case SPACE_BREAK:
			put_line_ends(t, 1, t->held[i] == SPACE_BREAK);
			break;
		case SPACE_INDENT:
			t->indent++;
			break;
		case SPACE_NONE:
			break;
		default:
			check(t->indent > 0);
			t->indent--;
		}
	}
	t->n_held -= n;
	memmove(t->held, t->held + n, t->n_held);
}

void typeset_space(struct typeset *t, uint8_t space)
{
	check(t->n_held < TYPESET_MAX_HELD);
	t->held[t->n_held++] = space;
	t->behind_integer = false;
}

static bool is_indent(uint8_t space)
{
	return space == SPACE_INDENT || space == SPACE_UNINDENT;
}

/* Before a comment on a line of its own: levels that change first apply, the space behind them is
 * dropped. Line ends are kept as written. */
static void separate_line(struct typeset *t, const struct comment *c)
{
	unsigned int n = 0;

	while (n < t->n_held && is_indent(t->held[n]))
		n++;
	if (n < t->n_held) {
		t->held[n] = SPACE_NONE;
		release(t, n);
	}
	if (c->line > t->written_line)
		put_line_ends(t, c->line - t->written_line, true);
}

static void separate(struct typeset *t, const struct comment *c, uint32_t next_line)
{
	if (!t->started)
		return;
	if (c->line != t->written_line)
		separate_line(t, c);
	else if (c->line == next_line)
		put_blank(t);
	else
		put_cell_end(t, true);
}

/* Without carriage returns. */
static void put_comment(struct typeset *t, const struct comment *c)
{
	struct str rest = c->text;

	put_indent(t);
	buf_clear(&t->scratch);
	while (rest.n) {
		/* One that would join a star and a slash stays. */
		bool star = t->scratch.n > 2 && t->scratch.p[t->scratch.n - 1] == '*';
		bool joins = comment_is_block(c) && star && rest.n > 1 && rest.p[1] == '/';

		if (rest.p[0] != '\r' || joins)
			t->failed |= buf_putc(&t->scratch, rest.p[0]) < 0;
		rest = str_skip(rest, 1);
	}
	layout_text(&t->layout, buf_str(&t->scratch));
	t->written_line = c->end_line;
}

/* Between the last comment and the token: line ends as in the source, in place of the spaces that
 * are held. */
static void resume(struct typeset *t, const struct comment *last, uint32_t next_line)
{
	bool block = comment_is_block(last), breaks = false;
	uint32_t n_lines = next_line > t->written_line ? next_line - t->written_line : 0;
	unsigned int n = 0;

	if (block && next_line == last->end_line)
		put_blank(t);
	for (unsigned int i = 0; i < t->n_held; i++) {
		breaks |= t->held[i] == SPACE_BREAK;
		if (is_indent(t->held[i]))
			t->held[n++] = t->held[i];
	}
	t->n_held = n;
	release(t, n);
	if (!n_lines && !block)
		n_lines = 1;
	if (n_lines)
		put_line_ends(t, n_lines, breaks);
}

/* The comments before an offset; NULL if there is none, else the last. */
static const struct comment *put_comments(struct typeset *t, size_t offset, uint32_t line)
{
	const struct lexemes *x = t->lexemes;
	const struct comment *last = NULL;
	bool before = false;

	for (; t->n_comments < x->comments.n; t->n_comments++) {
		const struct comment *c = &x->comments.p[t->n_comments];

		/* What follows another goes with it. */
		before = (before && c->follows) || c->offset <= offset;
		if (!before)
			break;
		separate(t, c, line);
		put_comment(t, c);
		last = c;
	}
	return last;
}

/* The lines of a raw string are lines to the layout. Tabs in front of one are cells there, all
 * other blanks are text. */
static void put_token(struct typeset *t, struct str text)
{
	put_indent(t);
	while (text.n) {
		size_t n = str_find(text, '\n');

		layout_text(&t->layout, str_first(text, n));
		text = str_skip(text, n);
		if (!text.n)
			break;
		layout_line(&t->layout, false);
		text = str_skip(text, 1);
		t->line++;
		for (; text.n && text.p[0] == '\t'; text = str_skip(text, 1))
			layout_tab(&t->layout);
	}
}

void typeset_at(struct typeset *t, const struct lexeme *token)
{
	t->offset = token->offset;
	t->line = token->line;
}

static bool is_integer(struct str s)
{
	return s.p[0] >= '0' && s.p[0] <= '9' && str_find(s, '.') == s.n &&
	       str_find(s, 'e') == s.n && str_find(s, 'E') == s.n;
}

void typeset_text(struct typeset *t, struct str text)
{
	const struct comment *last;

	check(text.n);
	if (t->behind_integer && text.p[0] == '.')
		typeset_space(t, SPACE_BLANK);
	last = put_comments(t, t->offset, t->line);
	if (last)
		resume(t, last, t->line);
	else
		release(t, t->n_held);
	put_token(t, text);
	t->offset += text.n;
	t->written_line = t->line;
	t->behind_integer = is_integer(text);
}

int typeset_finish(struct typeset *t)
{
	put_comments(t, SIZE_MAX, UINT32_MAX);
	if (t->failed)
		return -ENOMEM;
	return layout_finish(&t->layout);
}
