/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in redact.h. */
#include "host/lang/syntax/redact.h"

#include "base/check.h"
#include "host/lang/syntax/scan.h"
#include "host/registry/describe-check.h"

#include <errno.h>
#include <strings.h>

#define MAX_DEPTH 8

/* Parts of names that are secrets wherever they stand. */
static const char *const telling[] = {"password", "passwd",      "secret",        "token",
				      "api_key",  "credential",  "authorization", "apikey",
				      "api-key",  "private_key", "cookie"};

struct redactor {
	const struct diags *d;
	const struct source *source;
	struct redact_spans *spans;
	struct token before[2]; /* the last token, and the one before it */
	int depth;              /* of brackets */
	int secret_depth;       /* at which the secret's value began; -1: none */
	bool failed;
};

/* --- Names --- */

static int declare(struct diags *d, const struct andiron_options *options, int depth)
{
	for (uint32_t i = 0; options && depth < MAX_DEPTH && i < options->count; i++) {
		const struct andiron_option *o = option_at(options, i);
		bool secret = o &&
			      (o->type == ANDIRON_TYPE_SECRET || o->type == ANDIRON_TYPE_SECRETS);

		if (secret && !vec_push(&d->secrets, o->name))
			return -ENOMEM;
		if (o && o->type == ANDIRON_TYPE_BLOCK && declare(d, o->block, depth + 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

int redact_declare(struct diags *d, const struct registry *registry)
{
	const struct registered_component *components;
	size_t n = registry_components(registry, &components);
	int r = 0;

	d->secrets.n = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = declare(d, components[i].component->options, 0);
	return r;
}

/* The end of the first telling part in s, 0 if there is none. */
static size_t telling_end(struct str s)
{
	for (size_t at = 0; at < s.n; at++)
		for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
			size_t n = strlen(telling[i]);

			if (s.n - at >= n && strncasecmp(s.p + at, telling[i], n) == 0)
				return at + n;
		}
	return 0;
}

static bool is_secret(const struct diags *d, struct str name)
{
	vec_each (&d->secrets, declared)
		if (str_is(name, *declared))
			return true;
	return !str_ends(name, STR("_file")) && telling_end(name) > 0;
}

/* --- Spans --- */

static void hide(struct redactor *r, size_t from, size_t to)
{
	struct redact_span span = {from, to};

	check(to <= r->source->text.n);
	if (from >= to)
		return;
	while (r->spans->list.n && r->spans->list.p[r->spans->list.n - 1].to >= span.from) {
		struct redact_span last = r->spans->list.p[--r->spans->list.n];

		span.from = last.from < span.from ? last.from : span.from;
		span.to = last.to > span.to ? last.to : span.to;
	}
	r->failed |= !vec_push(&r->spans->list, span);
}

/* Quotes out of balance turn values into code: hides what follows a telling name on the line. */
static void hide_line(struct redactor *r, size_t at)
{
	struct str text = r->source->text;
	size_t from = at, end, n;

	while (from > 0 && text.p[from - 1] != '\n')
		from--;
	end = from + str_find(str_skip(text, from), '\n');
	n = telling_end(str_first(str_skip(text, from), end - from));
	if (n)
		hide(r, from + n, end);
}

static bool is_string(const struct token *t)
{
	return t->kind == TOKEN_STRING || t->kind == TOKEN_RAW;
}

static struct str inside(const struct token *t)
{
	char quote = t->text.n ? t->text.p[0] : '\0';
	struct str s = str_skip(t->text, 1);

	if (quote != '"' && quote != '\'' && quote != '`')
		return t->text;
	return s.n && s.p[s.n - 1] == quote ? str_first(s, s.n - 1) : s;
}

/* The argument of sys.env or env. */
static bool names_variable(const struct redactor *r)
{
	return r->before[0].kind == TOKEN_LPAREN && r->before[1].kind == TOKEN_IDENT &&
	       str_is(r->before[1].text, "env");
}

static bool is_value(const struct redactor *r, const struct token *t, uint8_t next)
{
	uint8_t last = r->before[0].kind;
	bool key = next == TOKEN_ASSIGN && r->depth > r->secret_depth &&
		   (last == TOKEN_LBRACE || last == TOKEN_COMMA || last == TOKEN_TERMINATOR);

	if (is_string(t))
		return !key && !names_variable(r);
	if (t->kind == TOKEN_IDENT)
		return !key && last != TOKEN_DOT && next != TOKEN_DOT && next != TOKEN_LPAREN &&
		       next != TOKEN_LBRACE;
	return t->kind == TOKEN_NUMBER || (t->kind == TOKEN_ILLEGAL && t->text.n > 4);
}

static bool begins_secret(const struct redactor *r, const struct token *t, uint8_t next)
{
	if (t->kind == TOKEN_IDENT)
		return r->before[0].kind != TOKEN_DOT && is_secret(r->d, t->text);
	return is_string(t) && (next == TOKEN_ASSIGN || next == TOKEN_ILLEGAL) &&
	       is_secret(r->d, inside(t));
}

/* Follows brackets, and ends the value where its statement or its item ends. */
static void follow(struct redactor *r, const struct token *t)
{
	uint8_t kind = t->kind;

	if (kind == TOKEN_LBRACE || kind == TOKEN_LBRACKET || kind == TOKEN_LPAREN)
		r->depth++;
	else if (kind == TOKEN_RBRACE || kind == TOKEN_RBRACKET || kind == TOKEN_RPAREN)
		r->depth--;
	if (r->depth < r->secret_depth ||
	    (r->depth == r->secret_depth && (kind == TOKEN_TERMINATOR || kind == TOKEN_COMMA)))
		r->secret_depth = -1;
	if (r->depth < 0)
		r->depth = 0;
}

static void redact_token(struct redactor *r, const struct token *t, uint8_t next)
{
	struct str value = inside(t);
	size_t at = (size_t)(value.n ? value.p - r->source->text.p : 0);

	if (r->secret_depth >= 0 && is_value(r, t, next))
		hide(r, at, at + value.n);
	else if (r->secret_depth < 0 && begins_secret(r, t, next))
		r->secret_depth = r->depth;
	if (t->kind == TOKEN_ILLEGAL)
		hide_line(r, (size_t)(t->text.p - r->source->text.p));
	follow(r, t);
	r->before[1] = r->before[0];
	r->before[0] = *t;
}

int redact_find(const struct diags *d, const struct source *source, struct redact_spans *spans)
{
	struct redactor r = {.d = d, .source = source, .spans = spans, .secret_depth = -1};
	struct scanner scanner = scanner_of(source);
	struct token t, next;

	spans->list.n = 0;
	if (!str_utf8(source->text)) { /* the scanner cannot read it */
		for (size_t at = 0; at < source->text.n;
		     at += str_find(str_skip(source->text, at), '\n') + 1)
			hide_line(&r, at);
		return r.failed ? -ENOMEM : 0;
	}
	for (t = scan(&scanner); t.kind != TOKEN_EOF; t = next) {
		next = scan(&scanner);
		redact_token(&r, &t, next.kind);
	}
	return r.failed ? -ENOMEM : 0;
}
