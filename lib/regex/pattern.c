/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in pattern.h. What the shape tells whole needs no automaton. */
#include "regex/pattern.h"

#include "regex/automaton.h"
#include "base/cleanup.h"
#include "regex/literal-shape.h"

#include <errno.h>
#include <stdlib.h>

struct pattern {
	struct program program;
	struct shape shape;
	struct automaton automaton; /* unless shape.whole */
	size_t *slots;
	struct str *groups;
};

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	if (p->automaton.program)
		automaton_fini(&p->automaton);
	shape_free(&p->shape);
	program_free(&p->program);
	free(p->slots);
	free(p->groups);
	free(p);
}
DEFINE_CLEANUP(struct pattern *, pattern_free);

int pattern_compile(struct str text, struct pattern **ret, struct error *err)
{
	_cleanup_(pattern_freep) struct pattern *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = program_parse(text, &p->program, err);
	if (r)
		return r;
	r = shape_find(&p->program, &p->shape);
	if (!r && !p->shape.whole)
		r = automaton_init(&p->automaton, &p->program);
	if (r == -E2BIG)
		return error_set(err, r,
				 "regex \"%.*s\" tells more characters apart than the %u that are "
				 "allowed; use ranges or fewer classes",
				 STR_FMT(str_first(text, 60)), LETTERS_MAX);
	if (r)
		return r;
	p->slots = calloc(p->program.n_groups, 2 * sizeof(*p->slots));
	p->groups = calloc(p->program.n_groups, sizeof(*p->groups));
	if (!p->slots || !p->groups)
		return -ENOMEM;
	for (uint32_t i = 0; i < 2 * p->program.n_groups; i++)
		p->slots[i] = SLOT_NONE;
	*ret = take_ptr(p);
	return 0;
}

int pattern_test(struct pattern *p, struct str text)
{
	if (!shape_fits(&p->shape, text))
		return 0;
	return p->shape.whole ? 1 : automaton_test(&p->automaton, text);
}

static void place_groups(struct pattern *p, struct str text)
{
	p->slots[0] = 0;
	p->slots[1] = text.n;
	vec_each (&p->shape.places, place)
		p->slots[place->slot] = place->from_end ? text.n - place->offset : place->offset;
}

int pattern_match(struct pattern *p, struct str text, struct match *ret)
{
	int r = shape_fits(&p->shape, text);

	if (!text.p)
		text = STR("");
	if (r && p->shape.whole)
		place_groups(p, text);
	else if (r)
		r = automaton_match(&p->automaton, text, p->slots);
	if (r <= 0)
		return r;
	for (uint32_t i = 0; i < p->program.n_groups; i++) {
		size_t from = p->slots[2 * (size_t)i], to = p->slots[2 * (size_t)i + 1];

		p->groups[i] = from == SLOT_NONE || to == SLOT_NONE
				       ? STR_NULL
				       : (struct str){text.p + from, to - from};
	}
	*ret = (struct match){p, p->groups, p->program.n_groups};
	return 1;
}

struct str pattern_group_name(const struct pattern *p, uint32_t group)
{
	return p->program.names.p[group];
}
