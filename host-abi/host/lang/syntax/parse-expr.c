/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: expressions. A node's depth counts everything beneath it, also long chains (a + b + c
 * …) that the parser reads in a loop but that a walker recurses into. */
#include "host/lang/syntax/parser.h"

#include "base/check.h"

static struct expr *new_expr(struct parser *p, uint8_t kind)
{
	struct expr *e = parser_count(p) ? lang_array(p->l, struct expr, 1) : NULL;

	if (!e)
		return NULL;
	e->kind = kind;
	e->depth = 1;
	e->place = p->token.place;
	e->text = p->token.text;
	return e;
}

/* Makes a part one of e's; false, and an error, if that is too deep. */
static bool adopt(struct parser *p, struct expr *e, const struct expr *part)
{
	if (part->depth >= e->depth)
		e->depth = (uint16_t)(part->depth + 1);
	if (e->depth <= PARSE_MAX_DEPTH)
		return true;
	parser_error(p, e->place, NULL, "this expression is more than %d levels deep",
		     PARSE_MAX_DEPTH);
	return false;
}

static bool append(struct parser *p, struct expr *e, struct expr ***tail, struct expr *item)
{
	if (!adopt(p, e, item))
		return false;
	**tail = item;
	*tail = &item->next;
	e->n_items++;
	return true;
}

static void put_utf8(char **out, uint32_t point)
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	int n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	if (n == 1) {
		*(*out)++ = (char)point;
		return;
	}
	for (int i = n - 1; i >= 0; i--)
		*(*out)++ = (char)(i == n - 1 ? lead[n] | point >> (6 * i)
					      : 0x80 | (point >> (6 * i) & 0x3f));
}

/* The text between the quotes with its escapes replaced, which never grows. */
static bool decode_string(struct parser *p, struct expr *e)
{
	struct str rest = str_first(str_skip(e->text, 1), e->text.n - 2);
	char *text = lang_array(p->l, char, rest.n + 1), *out = text;

	if (!text)
		return false;
	while (rest.n) {
		size_t n = str_find(rest, '\\');
		uint32_t point;
		bool byte;

		memcpy(out, rest.p, n);
		out += n;
		rest = str_skip(rest, n);
		if (!rest.n)
			break;
		n = scan_escape(rest, &point, &byte);
		if (!n) {
			struct place at = e->place;

			at.column += (uint32_t)(rest.p - e->text.p);
			at.length = rest.n < 2 ? 1 : 2;
			parser_error(
				p, at,
				"a backslash itself is \\\\, text without escapes goes between "
				"backticks",
				"\"%.*s\" is no escape sequence", STR_FMT(str_first(rest, 2)));
			return false;
		}
		if (byte)
			*out++ = (char)point;
		else
			put_utf8(&out, point);
		rest = str_skip(rest, n);
	}
	e->text = (struct str){text, (size_t)(out - text)};
	check(e->text.n + 2 <= e->place.length);
	if (str_utf8(e->text) && !memchr(text, '\0', e->text.n))
		return true;
	parser_error(p, e->place, NULL, "the escapes of this string do not make UTF-8 text");
	return false;
}

/* Between backticks nothing is replaced, but a carriage return is dropped. */
static bool decode_raw(struct parser *p, struct expr *e)
{
	struct str raw = str_first(str_skip(e->text, 1), e->text.n - 2);
	char *text = lang_array(p->l, char, raw.n + 1), *out = text;

	if (!text)
		return false;
	for (size_t i = 0; i < raw.n; i++)
		if (raw.p[i] != '\r')
			*out++ = raw.p[i];
	e->text = (struct str){text, (size_t)(out - text)};
	return true;
}

static struct expr *parse_literal(struct parser *p, uint8_t kind)
{
	struct expr *e = new_expr(p, kind);
	bool good = e;

	if (good && p->token.kind == TOKEN_STRING)
		good = decode_string(p, e);
	else if (good && p->token.kind == TOKEN_RAW)
		good = decode_raw(p, e);
	if (good)
		parser_advance(p);
	return good ? e : NULL;
}

/* Behind an element inside brackets: a comma, or nothing before the closing bracket (false). A line
 * end there is the commonest mistake of all; it is reported and taken for the comma, unless the
 * next statement follows. */
static bool another(struct parser *p, uint8_t closer, const char *what, bool *ret_good)
{
	int ahead;

	*ret_good = true;
	if (parser_accept(p, TOKEN_COMMA))
		return true;
	if (p->token.kind == closer)
		return false;
	if (p->token.kind == TOKEN_TERMINATOR) {
		parser_error(p, p->token.place,
			     "inside brackets every element that ends its line needs one",
			     "expected %s, but the line ends here", what);
		ahead = parser_ahead(p);
		if (ahead == AHEAD_OTHER || (ahead == AHEAD_ARGUMENT && closer == TOKEN_RBRACE)) {
			parser_advance(p);
			return true;
		}
	} else {
		parser_unexpected(p, what);
	}
	*ret_good = false;
	return false;
}

/* Elements up to the closer, and past it. */
static bool parse_list(struct parser *p, struct expr *e, uint8_t closer)
{
	const char *what = closer == TOKEN_RPAREN ? "\",\" or \")\"" : "\",\" or \"]\"";
	struct expr **tail = &e->items;
	bool good = true;

	while (good && p->token.kind != closer) {
		struct expr *item = parser_expression(p);

		good = item && append(p, e, &tail, item);
		if (!good || !another(p, closer, what, &good))
			break;
	}
	return good && parser_expect(p, closer, what);
}

/* Keys keep their escapes as written, and "" its quotes, as in Alloy. */
static struct expr *parse_field(struct parser *p)
{
	struct expr *e = new_expr(p, EXPR_FIELD);

	if (!e)
		return NULL;
	if ((p->token.kind == TOKEN_STRING || p->token.kind == TOKEN_RAW) && e->text.n > 2)
		e->text = str_first(str_skip(e->text, 1), e->text.n - 2);
	else if (p->token.kind != TOKEN_STRING && p->token.kind != TOKEN_RAW &&
		 p->token.kind != TOKEN_IDENT) {
		parser_unexpected(p, "a key or \"}\"");
		return NULL;
	}
	parser_advance(p);
	if (!parser_expect(p, TOKEN_ASSIGN, "\"=\" behind the key"))
		return NULL;
	e->left = parser_expression(p);
	return e->left && adopt(p, e, e->left) ? e : NULL;
}

static bool parse_fields(struct parser *p, struct expr *e)
{
	struct expr **tail = &e->items;
	bool good = true;

	p->braces++;
	while (good && p->token.kind != TOKEN_RBRACE) {
		struct expr *field = parse_field(p);

		good = field && append(p, e, &tail, field);
		if (!good || !another(p, TOKEN_RBRACE, "\",\" or \"}\"", &good))
			break;
	}
	/* What is open stays counted, for recover(). */
	if (!good || !parser_expect(p, TOKEN_RBRACE, "\"}\""))
		return false;
	p->braces--;
	return true;
}

static struct expr *parse_bracketed(struct parser *p)
{
	uint8_t opener = p->token.kind;
	const char *start = p->token.text.p;
	struct expr *e = new_expr(p, opener == TOKEN_LBRACE ? EXPR_MAP : EXPR_LIST);

	if (!e)
		return NULL;
	parser_advance(p);
	if (opener == TOKEN_LPAREN) {
		e = parser_expression(p);
		return e && parser_expect(p, TOKEN_RPAREN, "\")\"") ? e : NULL;
	}
	if (!(opener == TOKEN_LBRACE ? parse_fields(p, e) : parse_list(p, e, TOKEN_RBRACKET)))
		return NULL;
	e->place.length = parser_length(p, start);
	return e;
}

static struct expr *parse_primary(struct parser *p)
{
	switch (p->token.kind) {
	case TOKEN_IDENT:
		return parse_literal(p, EXPR_NAME);
	case TOKEN_NUMBER:
		return parse_literal(p, EXPR_NUMBER);
	case TOKEN_STRING:
	case TOKEN_RAW:
		return parse_literal(p, EXPR_STRING);
	case TOKEN_NULL:
		return parse_literal(p, EXPR_NULL);
	case TOKEN_TRUE:
	case TOKEN_FALSE:
		return parse_literal(p, EXPR_BOOL);
	case TOKEN_LPAREN:
	case TOKEN_LBRACKET:
	case TOKEN_LBRACE:
		return parse_bracketed(p);
	default:
		parser_unexpected(p, "a value");
		return NULL;
	}
}

/* One of .name [index] (arguments) behind `left`. */
static struct expr *parse_suffix(struct parser *p, struct expr *left)
{
	uint8_t kind = p->token.kind;
	struct expr *e = new_expr(p, kind == TOKEN_DOT        ? EXPR_ACCESS
				     : kind == TOKEN_LBRACKET ? EXPR_INDEX
							      : EXPR_CALL);
	if (!e)
		return NULL;
	e->place = left->place;
	e->left = left;
	parser_advance(p);
	if (!adopt(p, e, left))
		return NULL;
	if (kind == TOKEN_LPAREN)
		return parse_list(p, e, TOKEN_RPAREN) ? e : NULL;
	if (kind == TOKEN_DOT) {
		e->text = p->token.text;
		return parser_expect(p, TOKEN_IDENT, "a name behind the dot") ? e : NULL;
	}
	e->right = parser_expression(p);
	if (!e->right || !adopt(p, e, e->right) || !parser_expect(p, TOKEN_RBRACKET, "\"]\""))
		return NULL;
	return e;
}

static struct expr *parse_unary(struct parser *p)
{
	const char *start = p->token.text.p;
	struct expr *e;

	if (p->token.kind == TOKEN_NOT || p->token.kind == TOKEN_SUB) {
		e = new_expr(p, EXPR_UNARY);
		if (!e || !parser_enter(p))
			return NULL;
		e->op = p->token.kind;
		parser_advance(p);
		e->left = parse_unary(p);
		parser_leave(p);
		if (!e->left || !adopt(p, e, e->left))
			return NULL;
		e->place.length = parser_length(p, start);
		return e;
	}
	e = parse_primary(p);
	while (e && (p->token.kind == TOKEN_DOT || p->token.kind == TOKEN_LBRACKET ||
		     p->token.kind == TOKEN_LPAREN)) {
		e = parse_suffix(p, e);
		if (e)
			e->place.length = parser_length(p, start);
	}
	return e;
}

/* 0: no binary operator. */
static int precedence(uint8_t kind)
{
	switch (kind) {
	case TOKEN_OR:
		return 1;
	case TOKEN_AND:
		return 2;
	case TOKEN_ADD:
	case TOKEN_SUB:
		return 4;
	case TOKEN_MUL:
	case TOKEN_DIV:
	case TOKEN_MOD:
		return 5;
	case TOKEN_POW:
		return 6;
	default:
		return kind >= TOKEN_EQ && kind <= TOKEN_GE ? 3 : 0;
	}
}

static struct expr *parse_binary(struct parser *p, int weakest)
{
	const char *start = p->token.text.p;
	struct place place = p->token.place;
	struct expr *left = parse_unary(p);

	while (left) {
		int strength = precedence(p->token.kind);
		struct expr *e;

		if (strength == 0 || strength < weakest)
			return left;
		e = new_expr(p, EXPR_BINARY);
		if (!e)
			return NULL;
		e->op = p->token.kind;
		e->place = place;
		e->left = left;
		parser_advance(p);
		if (!adopt(p, e, left) || !parser_enter(p))
			return NULL;
		e->right = parse_binary(p, strength + (e->op != TOKEN_POW));
		parser_leave(p);
		if (!e->right || !adopt(p, e, e->right))
			return NULL;
		e->place.length = parser_length(p, start);
		left = e;
	}
	return NULL;
}

struct expr *parser_expression(struct parser *p)
{
	struct expr *e = NULL;

	if (parser_enter(p))
		e = parse_binary(p, 1);
	parser_leave(p);
	return e;
}
