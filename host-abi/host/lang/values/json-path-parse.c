/* SPDX-License-Identifier: Apache-2.0 */
/* json_path: text → steps. Contract in json-path.h. Blanks stand only within brackets, as in the
 * library that Alloy uses. That one reads a || b && c from left to right, unlike everybody else, so
 * such a condition is refused until parentheses say what is meant. */
#include "base/ascii.h"
#include "host/lang/values/json-path.h"
#include "host/lang/values/library-text.h"

#define MAX_BYTES  16384
#define MAX_STEPS  1000 /* and conditions */
#define MAX_DEPTH  50 /* of conditions within each other */
#define MAX_NUMBER ((int64_t)1 << 40)

struct parser {
	struct lang *l;
	const struct expr *e;
	struct str rest;
	const char *problem; /* what is wrong with it … */
	const char *lacking; /* … or what is not supported */
	unsigned int n, depth;
};

static bool fail(struct parser *p, const char *problem)
{
	if (!p->problem && !p->lacking)
		p->problem = problem;
	return false;
}

static bool lack(struct parser *p, const char *what)
{
	if (!p->problem && !p->lacking)
		p->lacking = what;
	return false;
}

static char peek(const struct parser *p)
{
	return p->rest.n ? p->rest.p[0] : '\0';
}

static bool accept(struct parser *p, const char *text)
{
	if (!str_starts(p->rest, str_of(text)))
		return false;
	p->rest = str_skip(p->rest, strlen(text));
	return true;
}

static void skip_blanks(struct parser *p)
{
	while (accept(p, " "))
		;
}

static bool accept_within(struct parser *p, const char *text)
{
	skip_blanks(p);
	return accept(p, text);
}

static bool is_of_name(char c)
{
	return ascii_is_alnum(c) || c == '_' || ((unsigned char)c & 0x80);
}

static bool count(struct parser *p)
{
	return p->n++ < MAX_STEPS || fail(p, "it has too many parts");
}

static struct json_path *step_new(struct parser *p, uint8_t kind)
{
	struct json_path *step = count(p) ? lang_array(p->l, struct json_path, 1) : NULL;

	if (step)
		*step = (struct json_path){.kind = kind, .from = 0, .to = INT64_MAX, .by = 1};
	return step;
}

static struct json_path *parse_name(struct parser *p)
{
	struct json_path *step;
	size_t n = 0;

	while (n < p->rest.n && is_of_name(p->rest.p[n]))
		n++;
	if (n == 0) {
		fail(p, "here stands a name, or * or [; other names stand in brackets: "
			"['a-b']");
		return NULL;
	}
	step = step_new(p, PATH_NAME);
	if (step)
		step->name = str_first(p->rest, n);
	p->rest = str_skip(p->rest, n);
	return step;
}

/* Behind the quote. */
static bool parse_text(struct parser *p, char quote, struct str *ret)
{
	char *copy = lang_array(p->l, char, p->rest.n + 1);
	size_t n = 0;

	while (copy && p->rest.n && p->rest.p[0] != quote) {
		char c = p->rest.p[0];

		p->rest = str_skip(p->rest, 1);
		if (c == '\\') {
			c = peek(p);
			if (c != '\\' && c != '\'' && c != '"')
				return lack(p, "an escape other than \\\\, \\' and \\\"");
			p->rest = str_skip(p->rest, 1);
		}
		copy[n++] = c;
	}
	if (!copy || !p->rest.n)
		return fail(p, "the quotes are not closed");
	p->rest = str_skip(p->rest, 1);
	*ret = (struct str){copy, n};
	return true;
}

/* Beyond any list's length numbers do not differ. */
static bool parse_integer(struct parser *p, int64_t *ret)
{
	bool negative = accept(p, "-");
	int64_t number = 0;

	if (!ascii_is_digit(peek(p)))
		return fail(p, "here stands a number");
	for (; ascii_is_digit(peek(p)); p->rest = str_skip(p->rest, 1))
		number = number < MAX_NUMBER ? number * 10 + (peek(p) - '0') : MAX_NUMBER;
	*ret = negative ? -number : number;
	return true;
}

/* A name in quotes, or an index; no blank before it. */
static struct json_path *parse_key(struct parser *p)
{
	char quote = peek(p);
	struct json_path *step;

	if (quote == '\'' || quote == '"') {
		p->rest = str_skip(p->rest, 1);
		step = step_new(p, PATH_NAME);
		return step && parse_text(p, quote, &step->name) ? step : NULL;
	}
	if (!ascii_is_digit(quote) && quote != '-') {
		fail(p, "in brackets stands 'name', an index, a range such as 1:3, * or ?(…)");
		return NULL;
	}
	step = step_new(p, PATH_INDEX);
	return step && parse_integer(p, &step->from) ? step : NULL;
}

/* Behind the first colon. */
static struct json_path *parse_slice(struct parser *p, int64_t from)
{
	struct json_path *step = step_new(p, PATH_SLICE);

	if (!step)
		return NULL;
	step->from = from;
	skip_blanks(p);
	if (peek(p) != ']' && peek(p) != ':' && !parse_integer(p, &step->to))
		return NULL;
	if (accept_within(p, ":")) {
		skip_blanks(p);
		if (peek(p) != ']' && !parse_integer(p, &step->by))
			return NULL;
	}
	return step;
}

/* Behind the first comma. */
static struct json_path *parse_union(struct parser *p, struct json_path *first)
{
	struct json_path *step = step_new(p, PATH_UNION), *last = first;

	if (!step)
		return NULL;
	step->of = first;
	do {
		skip_blanks(p);
		last->next = parse_key(p);
		last = last->next;
	} while (last && accept_within(p, ","));
	return last ? step : NULL;
}

static struct json_path_condition *parse_condition(struct parser *p);

static struct json_path *parse_filter(struct parser *p)
{
	struct json_path *step = step_new(p, PATH_FILTER);

	if (step)
		step->condition = parse_condition(p);
	return step && step->condition ? step : NULL;
}

static struct json_path *parse_inside(struct parser *p)
{
	struct json_path *step;

	skip_blanks(p);
	if (accept(p, "*"))
		return step_new(p, PATH_ALL);
	if (accept(p, "?"))
		return parse_filter(p);
	if (accept(p, ":"))
		return parse_slice(p, 0);
	if (peek(p) == '(') {
		lack(p, "scripts in brackets; the last item is [-1]");
		return NULL;
	}
	if (ascii_is_letter(peek(p))) {
		fail(p, "a name in brackets has quotes: ['name']");
		return NULL;
	}
	step = parse_key(p);
	if (!step)
		return NULL;
	if (accept_within(p, ","))
		return parse_union(p, step);
	if (step->kind == PATH_INDEX && accept(p, ":"))
		return parse_slice(p, step->from);
	return step;
}

/* Behind the bracket. */
static struct json_path *parse_bracket(struct parser *p)
{
	struct json_path *step = parse_inside(p);

	if (step && !accept_within(p, "]")) {
		fail(p, "the bracket is not closed");
		return NULL;
	}
	return step;
}

/* The next step, or NULL: at the end of the path if nothing is wrong. */
static struct json_path *parse_step(struct parser *p, bool first, bool deep)
{
	if (accept(p, "["))
		return parse_bracket(p);
	if (accept(p, "*"))
		return step_new(p, PATH_ALL);
	if (accept(p, ".."))
		return step_new(p, PATH_DEEP);
	if (accept(p, "."))
		return accept(p, "*") ? step_new(p, PATH_ALL) : parse_name(p);
	return (first || deep) && p->rest.n ? parse_name(p) : NULL;
}

/* The steps up to what is none. `bare`: the first may be a name without its dot. `one`: in a
 * condition, names and indexes alone, which lead to one value. */
static bool parse_steps(struct parser *p, bool bare, bool one, struct json_path **last)
{
	bool first = bare, deep = false;
	struct json_path *step;

	while ((step = parse_step(p, first, deep))) {
		if (one && step->kind != PATH_NAME && step->kind != PATH_INDEX)
			return lack(p, "*, .. and lists of items within a condition");
		if (deep && step->kind == PATH_DEEP)
			break;
		deep = step->kind == PATH_DEEP;
		first = false;
		*last = step;
		last = &step->next;
	}
	if (deep)
		fail(p, "behind .. stands what is sought: ..name or ..*");
	return !p->problem && !p->lacking && !p->l->no_memory;
}

static bool parse_literal(struct parser *p, struct andiron_value *ret)
{
	static const char *const words[] = {"null", "false", "true"};
	size_t n = 0;

	*ret = eval_value(p->e, ANDIRON_VALUE_NULL);
	while (n < p->rest.n && ascii_is_letter(p->rest.p[n]))
		n++;
	for (int i = 0; n && i < 3; i++)
		if (str_is(str_first(p->rest, n), words[i])) {
			ret->kind = i ? ANDIRON_VALUE_BOOL : ANDIRON_VALUE_NULL;
			ret->integer = i == 2;
			p->rest = str_skip(p->rest, n);
			return true;
		}
	if (n)
		return lack(p, "functions and words in a condition");
	while (n < p->rest.n && (is_of_name(p->rest.p[n]) || strchr("+-.", p->rest.p[n])))
		n++;
	if (!n || !eval_number(p->l, str_first(p->rest, n), false, ret))
		return fail(p, "here stands a value: @.name, a number, \"text\", true, false or "
			       "null");
	p->rest = str_skip(p->rest, n);
	return true;
}

static bool parse_operand(struct parser *p, struct json_path_operand *ret)
{
	char c;

	skip_blanks(p);
	c = peek(p);
	*ret = (struct json_path_operand){.from = OPERAND_VALUE};
	if (c == '@' || c == '$') {
		struct json_path *path = NULL;

		p->rest = str_skip(p->rest, 1);
		ret->from = c == '@' ? OPERAND_ITEM : OPERAND_DOCUMENT;
		if (!parse_steps(p, false, true, &path))
			return false;
		ret->path = path;
		return true;
	}
	if (c == '\'' || c == '"') {
		struct str text;

		p->rest = str_skip(p->rest, 1);
		if (!parse_text(p, c, &text))
			return false;
		ret->value = eval_value(p->e, ANDIRON_VALUE_STRING);
		ret->value.string = (struct andiron_str){text.p, text.n};
		return true;
	}
	if (c == '/')
		return lack(p, "regular expressions");
	if (c == '[')
		return lack(p, "lists within a condition");
	return parse_literal(p, &ret->value);
}

/* False if none stands here. */
static bool parse_comparison(struct parser *p, struct json_path_condition *c)
{
	/* The longer first. */
	static const struct {
		const char *text;
		uint8_t kind;
	} operators[] = {
		{"==", CONDITION_EQ}, {"!=", CONDITION_NE}, {"<=", CONDITION_LE},
		{">=", CONDITION_GE}, {"<", CONDITION_LT},  {">", CONDITION_GT},
	};

	skip_blanks(p);
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (accept(p, operators[i].text)) {
			c->kind = operators[i].kind;
			return true;
		}
	if (str_starts(p->rest, STR("=~")) || str_starts(p->rest, STR("~=")))
		return lack(p, "regular expressions");
	if (peek(p) == '=')
		return fail(p, "two values are compared by ==");
	if (ascii_is_letter(peek(p)))
		return lack(p, "operators that are words");
	if (peek(p) && strchr("+-*/", peek(p)))
		return lack(p, "arithmetic");
	return false;
}

static struct json_path_condition *condition_new(struct parser *p, uint8_t kind)
{
	struct json_path_condition *c =
		count(p) ? lang_array(p->l, struct json_path_condition, 1) : NULL;

	if (c)
		c->kind = kind;
	return c;
}

static struct json_path_condition *parse_group(struct parser *p)
{
	struct json_path_condition *c = parse_condition(p);

	if (c && !accept_within(p, ")")) {
		fail(p, "a parenthesis is not closed");
		return NULL;
	}
	return c;
}

/* A value that is or is not there, or two that are compared. */
static struct json_path_condition *parse_test(struct parser *p)
{
	struct json_path_condition *c = condition_new(p, CONDITION_EXISTS);

	if (!c || !parse_operand(p, &c->a))
		return NULL;
	if (parse_comparison(p, c) && !parse_operand(p, &c->b))
		return NULL;
	return p->problem || p->lacking ? NULL : c;
}

static struct json_path_condition *parse_term(struct parser *p)
{
	struct json_path_condition *c;
	bool group;

	if (accept_within(p, "("))
		return parse_group(p);
	if (!accept(p, "!"))
		return parse_test(p);
	c = condition_new(p, CONDITION_NOT);
	group = accept_within(p, "(");
	if (c)
		c->left = group ? parse_group(p) : parse_test(p);
	if (!c || !c->left)
		return NULL;
	if (!group && c->left->kind != CONDITION_EXISTS) {
		fail(p, "what ! denies stands in parentheses: !(@.a == 1)");
		return NULL;
	}
	return c;
}

static struct json_path_condition *parse_terms(struct parser *p)
{
	struct json_path_condition *c = parse_term(p);
	bool or = false;

	while (c) {
		struct json_path_condition *both;
		bool and = accept_within(p, "&&");

		if (!and && !accept(p, "||"))
			return c;
		if (and && or) {
			fail(p, "&& behind || needs parentheses, since Alloy takes (a || b) && c "
				"where most people mean a || (b && c)");
			return NULL;
		}
		or |= !and;
		both = condition_new(p, and ? CONDITION_AND : CONDITION_OR);
		if (!both)
			return NULL;
		both->left = c;
		both->right = parse_term(p);
		c = both->right ? both : NULL;
	}
	return NULL;
}

static struct json_path_condition *parse_condition(struct parser *p)
{
	struct json_path_condition *c = NULL;

	if (++p->depth > MAX_DEPTH)
		fail(p, "its conditions are nested too deep");
	else
		c = parse_terms(p);
	p->depth--;
	return c;
}

static void report(struct parser *p, struct str text)
{
	const struct place place = library_argument(p->e, 1)->place;
	size_t at = text.n - p->rest.n;

	if (p->lacking)
		lang_error(p->l, place,
			   "a path is made of .name, ['name'], [0], [1:3], [0,1], *, .. and "
			   "[?(@.name == \"x\")]",
			   "json_path does not support %s here (byte %zu)", p->lacking, at);
	else
		lang_error(p->l, place, NULL, "this is no path: %s (byte %zu)", p->problem, at);
}

bool json_path_parse(struct lang *l, const struct expr *e, struct str text,
		     const struct json_path **ret)
{
	struct parser p = {.l = l, .e = e, .rest = text};
	struct json_path *self = NULL, *first = NULL;
	bool good = true;

	*ret = NULL;
	if (!text.n)
		return true;
	if (accept(&p, "$") || accept(&p, "@")) {
		self = step_new(&p, PATH_SELF);
		good = self;
	}
	if (good && text.n > MAX_BYTES)
		good = fail(&p, "it is longer than 16384 bytes");
	good = good && parse_steps(&p, !self, false, &first);
	if (good && p.rest.n)
		good = fail(&p, "here stands . or [, or a name begins that needs brackets: "
				"['a-b']");
	if (!good && !l->no_memory)
		report(&p, text);
	if (self)
		self->next = first;
	*ret = self ? self : first;
	return good;
}
