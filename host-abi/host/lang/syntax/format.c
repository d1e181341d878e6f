/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over the tokens of a source that has parsed, and the check of what came out.
 *
 * It walks tokens, not the tree: the tree has no parentheses, no brackets and no strings as they
 * were written, and the grammar without its errors is small. Nesting is bounded by the parser. */
#include "host/lang/syntax/format.h"

#include "host/lang/syntax/parse.h"
#include "host/lang/syntax/typeset.h"

#include <errno.h>

struct format {
	const struct lexeme *at; /* the next token; EOF ends them */
	struct typeset typeset;
	struct buf name;
	bool exact;  /* comments stay between the tokens where they stand in the source */
	bool failed; /* no memory */
};

static void space(struct format *f, uint8_t kind)
{
	typeset_space(&f->typeset, kind);
}

static void token(struct format *f)
{
	typeset_at(&f->typeset, f->at);
	typeset_text(&f->typeset, f->at->text);
	f->at++;
}

/* A token whose place Alloy's formatter guesses. */
static void loose_token(struct format *f)
{
	if (f->exact)
		typeset_at(&f->typeset, f->at);
	typeset_text(&f->typeset, f->at->text);
	f->at++;
}

static bool is(const struct format *f, uint8_t kind)
{
	return f->at->kind == kind;
}

/* The line on which the token before ends. */
static uint32_t line_before(const struct format *f)
{
	return f->at[-1].end_line;
}

static bool in_name(const struct lexeme *at)
{
	return at->kind == TOKEN_DOT || at[-1].kind == TOKEN_DOT;
}

/* The parts of a name are one text. */
static void name(struct format *f)
{
	if (f->exact) {
		do
			token(f);
		while (in_name(f->at));
		return;
	}
	buf_clear(&f->name);
	typeset_at(&f->typeset, f->at);
	do {
		f->failed |= buf_str_append(&f->name, f->at->text) < 0;
		f->at++;
	} while (in_name(f->at));
	if (!f->failed)
		typeset_text(&f->typeset, buf_str(&f->name));
}

/* Text that is the same in double quotes. */
static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == '"' || s.p[i] == '\\')
			return false;
	return s.n > 0;
}

static struct str unquoted(struct str s)
{
	return s.n < 2 ? s : (struct str){s.p + 1, s.n - 2};
}

/* Keys stand in double quotes, unless they would need escapes, which keys do not have in Alloy. */
static void key(struct format *f)
{
	struct str text = f->at->text, inside = unquoted(text);

	typeset_at(&f->typeset, f->at);
	f->at++;
	buf_clear(&f->name);
	if (f->at[-1].kind == TOKEN_RAW && is_plain(inside)) {
		f->failed |= buf_printf(&f->name, "\"%.*s\"", STR_FMT(inside)) < 0;
		text = buf_str(&f->name);
	}
	if (!f->failed)
		typeset_text(&f->typeset, text);
}

static void expression(struct format *f);

/* A comma, unless it is the last; whether another element follows. */
static bool another(struct format *f, uint8_t closer)
{
	if (is(f, closer))
		return false;
	if (f->at[1].kind == closer) {
		f->at++;
		return false;
	}
	loose_token(f);
	return true;
}

/* The comma behind the last element of a line; it may stand there already. */
static void last_comma(struct format *f)
{
	if (f->exact && f->at[-1].kind == TOKEN_COMMA)
		typeset_at(&f->typeset, &f->at[-1]);
	typeset_text(&f->typeset, STR(","));
}

static void list(struct format *f)
{
	uint32_t line = f->at->line;
	bool more = f->at[1].kind != TOKEN_RBRACKET, any = more;

	token(f);
	for (bool first = true; more; first = false) {
		bool breaks = f->at->line != line;

		if (breaks) {
			space(f, SPACE_INDENT);
			space(f, SPACE_BREAK);
		} else if (!first) {
			space(f, SPACE_BLANK);
		}
		expression(f);
		line = line_before(f);
		more = another(f, TOKEN_RBRACKET);
		if (breaks)
			space(f, SPACE_UNINDENT);
	}
	if (any && f->at->line != line) {
		last_comma(f);
		space(f, SPACE_INDENT);
		space(f, SPACE_BREAK);
		space(f, SPACE_UNINDENT);
	}
	token(f);
}

/* Lines are compared with that of the key before, also behind a value of several lines. */
static void object(struct format *f)
{
	uint32_t key_line = f->at->line, value_lines = 2;
	bool more = f->at[1].kind != TOKEN_RBRACE, any = more;

	token(f);
	space(f, SPACE_INDENT);
	for (bool first = true; more; first = false) {
		uint32_t value_line;

		if (f->at->line != key_line)
			space(f, value_lines == 1 ? SPACE_LINE : SPACE_BREAK);
		else if (!first)
			space(f, SPACE_BLANK);
		key_line = f->at->line;
		key(f);
		space(f, SPACE_CELL);
		loose_token(f);
		space(f, SPACE_BLANK);
		value_line = f->at->line;
		expression(f);
		value_lines = line_before(f) - value_line + 1;
		more = another(f, TOKEN_RBRACE);
	}
	if (any && f->at->line != key_line) {
		last_comma(f);
		space(f, SPACE_BREAK);
	}
	space(f, SPACE_UNINDENT);
	token(f);
}

static void call(struct format *f)
{
	uint32_t line = f->at->line;
	bool more = f->at[1].kind != TOKEN_RPAREN, any = more;

	loose_token(f);
	while (more) {
		bool breaks = f->at->line != line;

		if (breaks) {
			space(f, SPACE_BREAK);
			space(f, SPACE_INDENT);
		}
		expression(f);
		line = line_before(f);
		more = another(f, TOKEN_RPAREN);
		if (more)
			space(f, SPACE_BLANK);
		if (breaks)
			space(f, SPACE_UNINDENT);
	}
	if (any && f->at->line != line) {
		last_comma(f);
		space(f, SPACE_BREAK);
	}
	loose_token(f);
}

static void primary(struct format *f)
{
	if (is(f, TOKEN_LBRACKET)) {
		list(f);
	} else if (is(f, TOKEN_LBRACE)) {
		object(f);
	} else if (is(f, TOKEN_LPAREN)) {
		loose_token(f);
		expression(f);
		loose_token(f);
	} else {
		token(f);
	}
}

static void operand(struct format *f)
{
	while (is(f, TOKEN_NOT) || is(f, TOKEN_SUB))
		token(f);
	primary(f);
	for (;;) {
		if (is(f, TOKEN_DOT)) {
			loose_token(f);
			loose_token(f);
		} else if (is(f, TOKEN_LBRACKET)) {
			token(f);
			expression(f);
			token(f);
		} else if (is(f, TOKEN_LPAREN)) {
			call(f);
		} else {
			return;
		}
	}
}

static void expression(struct format *f)
{
	operand(f);
	while (f->at->kind >= TOKEN_OR && f->at->kind <= TOKEN_POW) {
		space(f, SPACE_BLANK);
		token(f);
		space(f, SPACE_BLANK);
		operand(f);
	}
}

static void body(struct format *f);

static void block(struct format *f)
{
	if (is(f, TOKEN_STRING) && f->at->text.n > 2) {
		space(f, SPACE_BLANK);
		token(f);
	} else if (is(f, TOKEN_STRING)) {
		f->at++;
	}
	space(f, SPACE_BLANK);
	token(f);
	space(f, SPACE_INDENT);
	if (is(f, TOKEN_RBRACE)) {
		space(f, SPACE_BLANK);
	} else {
		space(f, SPACE_BREAK);
		body(f);
	}
	space(f, SPACE_UNINDENT);
	token(f);
}

static bool is_block(const struct lexeme *at)
{
	while (at->kind == TOKEN_IDENT || at->kind == TOKEN_DOT)
		at++;
	return at->kind != TOKEN_ASSIGN;
}

static void statement(struct format *f)
{
	name(f);
	if (!is(f, TOKEN_ASSIGN)) {
		block(f);
		return;
	}
	space(f, SPACE_CELL);
	loose_token(f);
	space(f, SPACE_BLANK);
	expression(f);
}

static void body(struct format *f)
{
	for (bool first = true; !is(f, TOKEN_RBRACE) && !is(f, TOKEN_EOF); first = false) {
		uint32_t line = f->at->line;

		if (!first && (is_block(f->at) || line > line_before(f) + 1))
			space(f, SPACE_BREAK);
		statement(f);
		space(f, line_before(f) > line ? SPACE_BREAK : SPACE_LINE);
	}
}

/* Parses the source; false when it has errors. */
static bool parses(const struct source *source, struct diags *diags, struct arena *arena,
		   bool *no_memory)
{
	size_t errors_before = diags->n_errors;
	struct lang l = {.arena = arena, .diags = diags};

	if (parse_is_text(&l, source))
		parse_source(&l, source);
	*no_memory |= l.no_memory;
	return diags->n_errors == errors_before && !l.no_memory;
}

/* Skips what formatting may add or leave out: a comma before a closer, an empty label. */
static const struct lexeme *significant(const struct lexeme *at)
{
	bool closes = at[0].kind == TOKEN_COMMA &&
		      (at[1].kind == TOKEN_RBRACE || at[1].kind == TOKEN_RBRACKET ||
		       at[1].kind == TOKEN_RPAREN);
	bool empty_label = at[0].kind == TOKEN_STRING && at[0].text.n == 2 &&
			   at[1].kind == TOKEN_LBRACE;

	return closes || empty_label ? at + 1 : at;
}

/* A key may have changed its quotes. */
static bool same(const struct lexeme *a, const struct lexeme *b)
{
	if (a->kind == TOKEN_RAW && b->kind == TOKEN_STRING && a[1].kind == TOKEN_ASSIGN)
		return str_eq(unquoted(a->text), unquoted(b->text));
	return a->kind == b->kind && str_eq(a->text, b->text);
}

static bool same_tokens(const struct lexemes *a, const struct lexemes *b)
{
	const struct lexeme *x = a->tokens.p, *y = b->tokens.p;

	for (;; x++, y++) {
		x = significant(x);
		y = significant(y);
		if (!same(x, y))
			return false;
		if (x->kind == TOKEN_EOF)
			return a->comments.n == b->comments.n;
	}
}

/* Whether the result says the same as the source. */
static int check_result(const struct source *source, const struct lexemes *x, struct str result)
{
	struct source again = {source->name, result};
	struct diags errors = {.arena = ARENA_NULL};
	struct arena arena = ARENA_NULL;
	struct lexemes y = {0};
	bool no_memory = false;
	bool good = parses(&again, &errors, &arena, &no_memory);

	no_memory |= !lexemes_read(&y, &again);
	good = good && !no_memory && same_tokens(x, &y);
	lexemes_free(&y);
	arena_free(&arena);
	diags_free(&errors);
	return no_memory ? -ENOMEM : good ? 0 : -EINVAL;
}

static int write_out(const struct lexemes *x, bool exact, struct buf *out)
{
	struct format f = {.at = x->tokens.p, .typeset = typeset_into(out, x), .exact = exact};
	int r;

	body(&f);
	r = typeset_finish(&f.typeset);
	typeset_free(&f.typeset);
	buf_free(&f.name);
	if (r == 0 && (f.failed || buf_putc(out, '\n') < 0))
		r = -ENOMEM;
	return r;
}

/* Where Alloy's placement of comments would break the file, they stay where they are. */
static int format_tokens(const struct source *source, const struct lexemes *x, struct buf *out)
{
	size_t before = out->n;
	int r = -EINVAL;

	for (int exact = 0; exact <= 1 && r == -EINVAL; exact++) {
		out->n = before;
		r = write_out(x, exact, out);
		if (r == 0)
			r = check_result(source, x, str_skip(buf_str(out), before));
	}
	if (r < 0)
		out->n = before;
	return r;
}

int format_source(const struct source *source, struct diags *diags, struct buf *out)
{
	struct place whole = {.source = source};
	struct arena arena = ARENA_NULL;
	struct lexemes x = {0};
	bool no_memory = false, good = parses(source, diags, &arena, &no_memory);
	int r = -EINVAL;

	arena_free(&arena);
	if (no_memory)
		return -ENOMEM;
	if (!good)
		return -EINVAL;
	r = lexemes_read(&x, source) ? format_tokens(source, &x, out) : -ENOMEM;
	lexemes_free(&x);
	if (r == -E2BIG)
		diag_add(diags, DIAG_ERROR, whole, "break its longest lines",
			 "would be too long when its columns are aligned");
	else if (r == -EINVAL)
		diag_add(diags, DIAG_ERROR, whole, "move comments out of its expressions",
			 "cannot be formatted without a change of what it means");
	return r == -E2BIG ? -EINVAL : r;
}
