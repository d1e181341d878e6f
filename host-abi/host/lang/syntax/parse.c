/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: statements, and how it goes on after an error. */
#include "host/lang/syntax/parser.h"

#include "base/ascii.h"
#include "base/check.h"

bool parser_first(struct parser *p, uint32_t line)
{
	bool first = p->error_line != line;

	p->error_line = line;
	p->n_errors += first;
	return first;
}

void parser_advance(struct parser *p)
{
	p->before = p->token;
	p->token = scan(&p->scanner);
	/* More would not be shown; this is no configuration. */
	if (p->n_errors > PARSE_MAX_ERRORS)
		p->token.kind = TOKEN_EOF;
	if (p->token.kind != TOKEN_ILLEGAL)
		return;
	parser_error(p, p->token.place, p->token.hint, "%s", p->token.problem);
	/* YAML begins so, and each line of it would be an error. */
	if (p->n_nodes <= 1 && str_is(p->token.text, ":"))
		p->token.kind = TOKEN_EOF;
}

bool parser_accept(struct parser *p, uint8_t kind)
{
	bool is = p->token.kind == kind;

	if (is)
		parser_advance(p);
	return is;
}

void parser_unexpected(struct parser *p, const char *what)
{
	if (p->before.kind == TOKEN_ASSIGN && p->token.place.line > p->before.place.line) {
		struct place end = p->before.place;

		end.column++;
		parser_error(p, end, NULL, "expected %s, but the line ends here", what);
	} else if (p->token.kind == TOKEN_TERMINATOR)
		parser_error(p, p->token.place, NULL, "expected %s, but the line ends here", what);
	else if (p->token.kind == TOKEN_EOF)
		parser_error(p, p->token.place, NULL, "expected %s, but the file ends here", what);
	else
		parser_error(p, p->token.place, NULL, "expected %s, not %.*s", what,
			     STR_FMT(str_first(p->token.text, 200)));
}

bool parser_expect(struct parser *p, uint8_t kind, const char *what)
{
	if (parser_accept(p, kind))
		return true;
	parser_unexpected(p, what);
	return false;
}

bool parser_enter(struct parser *p)
{
	if (p->depth++ < PARSE_MAX_DEPTH)
		return true;
	parser_error(p, p->token.place, NULL, "nested more than %d levels deep", PARSE_MAX_DEPTH);
	return false;
}

void parser_leave(struct parser *p)
{
	check(p->depth > 0);
	p->depth--;
}

bool parser_count(struct parser *p)
{
	if (p->n_nodes++ < PARSE_MAX_NODES)
		return !p->l->no_memory;
	if (p->n_nodes == PARSE_MAX_NODES + 1)
		parser_error(p, p->token.place, "split what it describes",
			     "this file has more than %d values", PARSE_MAX_NODES);
	return false;
}

int parser_ahead(const struct parser *p)
{
	struct scanner s = p->scanner;
	struct token t = scan(&s);

	while (t.kind == TOKEN_TERMINATOR)
		t = scan(&s);
	if (t.kind == TOKEN_EOF)
		return AHEAD_END;
	if (t.kind != TOKEN_IDENT)
		return AHEAD_OTHER;
	for (t = scan(&s); t.kind == TOKEN_DOT; t = scan(&s))
		if (scan(&s).kind != TOKEN_IDENT)
			return AHEAD_OTHER;
	if (t.kind == TOKEN_ASSIGN)
		return AHEAD_ARGUMENT;
	return t.kind == TOKEN_LBRACE || t.kind == TOKEN_STRING ? AHEAD_BLOCK : AHEAD_OTHER;
}

/* Skips the rest of a broken statement: to a line end with a statement behind it, or to the brace
 * that closes the block around it. While an object is open NAME = VALUE may be its field, and only
 * a block ends it. */
static void recover(struct parser *p)
{
	for (; p->token.kind != TOKEN_EOF; parser_advance(p)) {
		int ahead = AHEAD_OTHER;

		if (p->token.kind == TOKEN_TERMINATOR)
			ahead = parser_ahead(p);
		if (ahead == AHEAD_BLOCK || (ahead == AHEAD_ARGUMENT && !p->braces))
			break;
		if (p->token.kind == TOKEN_LBRACE)
			p->braces++;
		if (p->token.kind == TOKEN_RBRACE && p->braces-- == 0)
			break;
	}
	p->braces = 0;
}

static struct stmt *parse_body(struct parser *p, bool top);

/* IDENT { "." IDENT }. The pieces may stand apart, so the name is put together again. */
static bool parse_name(struct parser *p, struct stmt *s)
{
	const char *start = p->token.text.p;

	s->place = p->token.place;
	s->name = p->token.text;
	if (!parser_expect(p, TOKEN_IDENT, "the name of a block or an argument"))
		return false;
	while (p->token.kind == TOKEN_DOT) {
		struct str piece;
		char *joined;

		parser_advance(p);
		piece = p->token.text;
		if (!parser_expect(p, TOKEN_IDENT, "a name behind the dot"))
			return false;
		if (piece.p == s->name.p + s->name.n + 1) {
			s->name.n += piece.n + 1;
			continue;
		}
		/* Quadratic in the pieces, so these are bounded like depth. */
		if (s->name.n + piece.n > 4096) {
			parser_error(p, s->place, NULL, "this name is too long");
			return false;
		}
		joined = arena_printf(p->l->arena, "%.*s.%.*s", STR_FMT(s->name), STR_FMT(piece));
		p->l->no_memory |= !joined;
		if (!joined)
			return false;
		s->name = str_of(joined);
	}
	s->place.length = parser_length(p, start);
	return true;
}

#define LABELS "a label begins with a letter or _ and goes on with letters, digits and _"

/* Most often there is a hyphen in it. */
static const char *label_hint(struct parser *p, struct str label)
{
	char *fit = label.n > 200 ? NULL : arena_printf(p->l->arena, "%.*s", STR_FMT(label));

	for (char *c = fit; c && *c; c++) {
		if (*c & '\x80')
			return LABELS;
		*c = ascii_is_alnum(*c) ? *c : '_';
	}
	return fit && scan_is_ident(str_of(fit))
		       ? arena_printf(p->l->arena, LABELS ": write \"%s\"", fit)
		       : LABELS;
}

/* A label is empty or one identifier. */
static void parse_label(struct parser *p, struct stmt *s)
{
	struct str text = p->token.text;
	struct str label = str_first(str_skip(text, 1), text.n - 2);

	check(text.n >= 2);
	s->labelled = true;
	s->label = label;
	s->label_place = p->token.place;
	if (label.n && !scan_is_ident(label))
		parser_error(p, p->token.place, label_hint(p, label), "\"%.*s\" cannot be a label",
			     STR_FMT(str_first(label, 200)));
	parser_advance(p);
}

static bool parse_block(struct parser *p, struct stmt *s)
{
	bool closed;

	s->block = true;
	if (p->token.kind == TOKEN_STRING)
		parse_label(p, s);
	if (!parser_expect(p, TOKEN_LBRACE, "\"{\"") || !parser_enter(p))
		return false;
	s->body = parse_body(p, false);
	parser_leave(p);
	closed = p->token.kind == TOKEN_RBRACE;
	if (!closed)
		parser_error(p, s->place, "end it with }", "the block %.*s is never closed",
			     STR_FMT(str_first(s->name, 200)));
	else
		parser_advance(p);
	return closed;
}

/* Behind a name that nothing belongs to. */
static void refuse_statement(struct parser *p)
{
	if (p->token.kind == TOKEN_RAW || p->token.kind == TOKEN_IDENT)
		parser_error(p, p->token.place, "write \"NAME\"",
			     "a label stands in double quotes");
	else
		parser_unexpected(p, "\"=\" and a value, or \"{\"");
}

/* NULL if not even a name is left of it; what is broken behind its name keeps that, so that nobody
 * misses it. */
static struct stmt *parse_statement(struct parser *p)
{
	struct stmt *s = parser_count(p) ? lang_array(p->l, struct stmt, 1) : NULL;
	unsigned int depth = p->depth;
	bool named = s && parse_name(p, s);

	if (named && parser_accept(p, TOKEN_ASSIGN)) {
		s->value = parser_expression(p);
		s->broken = !s->value;
	} else if (named && (p->token.kind == TOKEN_LBRACE || p->token.kind == TOKEN_STRING)) {
		s->broken = !parse_block(p, s);
	} else if (named) {
		refuse_statement(p);
		named = false;
	}
	p->depth = depth;
	if (!named || s->broken)
		recover(p);
	return named ? s : NULL;
}

/* Up to the closing brace, which it leaves, or the end. */
static struct stmt *parse_body(struct parser *p, bool top)
{
	struct stmt *first = NULL, **tail = &first;

	while (p->token.kind != TOKEN_EOF) {
		struct stmt *s;

		if (parser_accept(p, TOKEN_TERMINATOR))
			continue;
		if (p->token.kind == TOKEN_RBRACE) {
			if (!top)
				break;
			parser_unexpected(p, "a block");
			parser_advance(p);
			continue;
		}
		s = parse_statement(p);
		if (!s)
			continue;
		*tail = s;
		tail = &s->next;
		if (!s->broken && p->token.kind != TOKEN_TERMINATOR && p->token.kind != TOKEN_EOF &&
		    (top || p->token.kind != TOKEN_RBRACE))
			parser_unexpected(p, "a new line before the next statement");
	}
	return first;
}

static struct parser parser_of(struct lang *l, const struct source *source)
{
	struct parser p = {.l = l, .scanner = scanner_of(source)};

	p.token.text = str_first(source->text, 0);
	parser_advance(&p);
	return p;
}

struct stmt *parse_source(struct lang *l, const struct source *source)
{
	struct parser p = parser_of(l, source);

	return parse_body(&p, true);
}

struct expr *parse_expression(struct lang *l, const struct source *source)
{
	struct parser p = parser_of(l, source);
	struct expr *e = parser_expression(&p);

	parser_accept(&p, TOKEN_TERMINATOR);
	return e && parser_expect(&p, TOKEN_EOF, "nothing more") ? e : NULL;
}

/* Where text stops being text: the line, for an editor. */
static struct place bad_place(const struct source *source, bool (*bad)(struct str line))
{
	struct str rest = source->text;
	struct place place = {source, 0, 1, 1};

	while (rest.n) {
		place.line++;
		if (bad(str_cut(&rest, '\n')))
			break;
	}
	return place;
}

static bool holds_nul(struct str line)
{
	return str_find(line, '\0') < line.n;
}

static bool not_utf8(struct str line)
{
	return !str_utf8(line);
}

#define TO_UTF8 "iconv -f UTF-16 -t UTF-8 FILE >NEW"

bool parse_is_text(struct lang *l, const struct source *source)
{
	struct place whole = {.source = source};

	if (source->text.n > PARSE_MAX_SOURCE)
		lang_error(l, whole, NULL, "is %zu bytes long; a configuration has at most %zu",
			   source->text.n, PARSE_MAX_SOURCE);
	else if (str_starts(source->text, STR("\xff\xfe")) ||
		 str_starts(source->text, STR("\xfe\xff")))
		lang_error(l, whole, "save it as UTF-8: " TO_UTF8,
			   "is UTF-16 text");
	else if (holds_nul(source->text))
		lang_error(l, whole, "is it a configuration? UTF-16 becomes UTF-8 by " TO_UTF8,
			   "is not text: line %u holds a NUL byte",
			   bad_place(source, holds_nul).line);
	else if (!str_utf8(source->text))
		lang_error(l, whole, "save it as UTF-8", "is not UTF-8 text: line %u breaks it",
			   bad_place(source, not_utf8).line);
	else
		return true;
	return false;
}
