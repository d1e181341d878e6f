/* SPDX-License-Identifier: Apache-2.0 */
/* Groups, their flags and their alternatives. Contracts in parser.h. */
#include "regex/parser.h"

#include "base/ascii.h"
#include "base/check.h"

#include <errno.h>

#define DEPTH_MAX 1000 /* as in Go */

static int push_group(struct parser *p, size_t opened, uint32_t capture)
{
	struct group group = {.opened = opened,
			      .begin = p->program->code.n,
			      .bars = p->bars.n,
			      .capture = capture,
			      .flags = p->flags,
			      .product = 1};

	int r = 0;

	if (p->groups.n > DEPTH_MAX)
		return parser_wrong(p, opened, 0, "groups are nested too deeply");
	if (capture)
		r = parser_emit(p, OP_SAVE, (int32_t)(2 * capture), 0);
	if (r)
		return r;
	parser_settle(p);
	return vec_push(&p->groups, group) ? 0 : -ENOMEM;
}

static int push_capture(struct parser *p, size_t opened, struct str name)
{
	struct str copy = STR_NULL;

	if (name.n) {
		copy = arena_str(&p->program->arena, name);
		if (!copy.p)
			return -ENOMEM;
	}
	if (!vec_push(&p->program->names, copy))
		return -ENOMEM;
	return push_group(p, opened, p->program->n_groups++);
}

static bool is_name(struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!ascii_is_alnum(c) && c != '_')
			return false;
	}
	return name.n > 0;
}

/* "(?P<name>" or "(?<name>", `skip` bytes before the name. */
static int open_named(struct parser *p, size_t skip)
{
	size_t at = parser_at(p), n = str_find(p->rest, '>');
	struct str name = str_first(str_skip(p->rest, skip), n > skip ? n - skip : 0);

	if (n == p->rest.n || !is_name(name))
		return parser_wrong(p, at, n + 1, "invalid named capture");
	p->rest = str_skip(p->rest, n + 1);
	return push_capture(p, at, name);
}

static uint32_t flag_of(uint32_t c)
{
	switch (c) {
	case 'i':
		return FLAG_FOLD;
	case 'm':
		return FLAG_LINES;
	case 's':
		return FLAG_DOT;
	case 'U':
		return FLAG_LAZY;
	default:
		return 0;
	}
}

/* "(?flags)" or "(?flags:": flags, then perhaps a minus and flags to clear. */
static int open_flags(struct parser *p)
{
	size_t at = parser_at(p);
	uint32_t flags = p->flags, c = 0;
	bool clear = false, seen = false;
	int r = 0;

	p->rest = str_skip(p->rest, 2);
	while (p->rest.n) {
		c = parser_next(p);
		if (flag_of(c)) {
			flags = clear ? flags & ~flag_of(c) : flags | flag_of(c);
			seen = true;
		} else if (c == '-' && !clear) {
			clear = true;
			seen = false;
		} else {
			break;
		}
		c = 0;
	}
	if ((c != ':' && c != ')') || (clear && !seen))
		return parser_wrong(p, at, parser_at(p) - at, "invalid or unsupported Perl syntax");
	if (c == ':')
		r = push_group(p, at, 0);
	p->quantified = false;
	p->flags = flags;
	return r;
}

int parse_open(struct parser *p)
{
	if (p->rest.n > 4 && str_starts(p->rest, STR("(?P<")))
		return open_named(p, 4);
	if (p->rest.n > 3 && str_starts(p->rest, STR("(?<")))
		return open_named(p, 3);
	if (str_starts(p->rest, STR("(?")))
		return open_flags(p);
	p->rest = str_skip(p->rest, 1);
	return push_capture(p, parser_at(p) - 1, STR_NULL);
}

int parse_bar(struct parser *p)
{
	struct group *group = &p->groups.p[p->groups.n - 1];

	p->rest = str_skip(p->rest, 1);
	parser_settle(p);
	group->nullable |= !group->filled;
	group->filled = false;
	return vec_push(&p->bars, p->program->code.n) ? 0 : -ENOMEM;
}

/* A|B|C becomes SPLIT A JUMP SPLIT B JUMP C. From the last to the first, since each moves to the
 * right to make room for the instructions of those before it. */
int parse_alternatives(struct parser *p, const struct group *group)
{
	size_t n_bars = p->bars.n - group->bars, end = p->program->code.n;
	size_t first = group->begin + (group->capture ? 1 : 0), new_end = end + 2 * n_bars;
	const size_t *bars = p->bars.p + group->bars;
	struct instruction *code;
	int r = 0;

	check(group->bars <= p->bars.n && first <= end);
	for (size_t i = 0; !r && i < 2 * n_bars; i++)
		r = parser_emit(p, OP_JUMP, 0, 0);
	if (r)
		return r;
	code = p->program->code.p;
	for (size_t i = n_bars + 1; n_bars && i-- > 0;) {
		size_t from = i ? bars[i - 1] : first, to = i < n_bars ? bars[i] : end;
		size_t at = from + 2 * i + (i < n_bars);

		check(from <= to && to <= end);
		memmove(code + at, code + from, (to - from) * sizeof(*code));
		if (i == n_bars)
			continue;
		code[at - 1] = (struct instruction){OP_SPLIT, 1, (int32_t)(to - from + 2)};
		at += to - from;
		code[at] = (struct instruction){OP_JUMP, (int32_t)(new_end - at), 0};
	}
	p->bars.n = group->bars;
	return 0;
}

int parse_close(struct parser *p)
{
	struct group group;
	int r;

	parser_settle(p);
	group = p->groups.p[p->groups.n - 1];
	if (p->groups.n == 1)
		return parser_wrong(p, parser_at(p), 0, "unexpected )");
	r = parse_alternatives(p, &group);
	if (!r && group.capture)
		r = parser_emit(p, OP_SAVE, (int32_t)(2 * group.capture + 1), 0);
	if (r)
		return r;
	p->rest = str_skip(p->rest, 1);
	p->flags = group.flags;
	p->groups.n--;
	parser_atom(p, group.begin, group.product, group.nullable || !group.filled);
	return 0;
}
