/* SPDX-License-Identifier: Apache-2.0 */
/* States and transitions. Contract in automaton.h. */
#include "regex/automaton.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

#define STATES_MIN   256u
#define STATES_MAX   8192u
#define SEGMENT_MAX  1024u
#define SPARE_STATES 4u

bool assertion_holds(int32_t assertion, uint8_t left, uint8_t right)
{
	switch ((enum assertion)assertion) {
	case AT_TEXT_BEGIN:
		return left & LETTER_NONE;
	case AT_TEXT_END:
		return right & LETTER_NONE;
	case AT_LINE_BEGIN:
		return left & (LETTER_NONE | LETTER_NEWLINE);
	case AT_LINE_END:
		return right & (LETTER_NONE | LETTER_NEWLINE);
	case AT_WORD_EDGE:
		return (left ^ right) & LETTER_WORD;
	case AT_NO_WORD_EDGE:
		return !((left ^ right) & LETTER_WORD);
	}
	absurd("an unknown assertion");
}

uint32_t automaton_stamp(struct automaton *a)
{
	if (++a->stamp == 0) {
		memset(a->seen, 0, a->program->code.n * sizeof(*a->seen));
		a->stamp = 1;
	}
	return a->stamp;
}

/* --- Setting up --- */

static int number_places(struct automaton *a)
{
	const struct program *p = a->program;

	a->bit_of = calloc(p->code.n, sizeof(*a->bit_of));
	if (!a->bit_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->code.n; i++) {
		uint32_t op = p->code.p[i].op;

		if (op != OP_SET && op != OP_MATCH)
			continue;
		a->bit_of[i] = (uint32_t)a->places.n;
		if (!vec_push(&a->places, i))
			return -ENOMEM;
	}
	check(a->places.n > 0); /* the match, at least */
	a->n_words = (uint32_t)(a->places.n + 63) / 64;
	return 0;
}

/* Where instruction i leads without a character: up to two places. */
static size_t targets_of(const struct program *p, uint32_t i, uint32_t ret[2])
{
	struct instruction in = p->code.p[i];

	switch ((enum op)in.op) {
	case OP_SPLIT:
		ret[0] = (uint32_t)((int32_t)i + in.x);
		ret[1] = (uint32_t)((int32_t)i + in.y);
		return 2;
	case OP_JUMP:
		ret[0] = (uint32_t)((int32_t)i + in.x);
		return 1;
	case OP_SAVE:
	case OP_ASSERT:
		ret[0] = i + 1;
		return 1;
	case OP_SET:
	case OP_MATCH:
		return 0;
	}
	absurd("an unknown instruction");
}

static int find_sources(struct automaton *a)
{
	uint32_t n = (uint32_t)a->program->code.n, targets[2];

	a->source_starts = calloc(n + 2, sizeof(*a->source_starts));
	a->sources = calloc(2 * (size_t)n, sizeof(*a->sources));
	if (!a->source_starts || !a->sources)
		return -ENOMEM;
	/* Counts two places up, sums, and fills one place up, which leaves the starts where they
	 * belong. */
	for (uint32_t i = 0; i < n; i++)
		for (size_t k = targets_of(a->program, i, targets); k-- > 0;) {
			check(targets[k] < n);
			a->source_starts[targets[k] + 2]++;
		}
	for (uint32_t i = 2; i < n + 2; i++)
		a->source_starts[i] += a->source_starts[i - 1];
	for (uint32_t i = 0; i < n; i++)
		for (size_t k = targets_of(a->program, i, targets); k-- > 0;)
			a->sources[a->source_starts[targets[k] + 1]++] = i;
	return 0;
}

static int make_room_for_work(struct automaton *a)
{
	size_t n = a->program->code.n;
	size_t state_bytes = a->alphabet.n_letters * sizeof(uint32_t) + a->n_words * 8 + 16;

	a->max_states = (uint32_t)(STATES_BYTES / state_bytes);
	if (a->max_states < STATES_MIN)
		a->max_states = STATES_MIN;
	if (a->max_states > STATES_MAX)
		a->max_states = STATES_MAX;
	a->segment = a->max_states - SPARE_STATES;
	if (a->segment > SEGMENT_MAX)
		a->segment = SEGMENT_MAX;
	a->made = calloc(a->n_words, sizeof(*a->made));
	a->seen = calloc(n, sizeof(*a->seen));
	a->stack = calloc(n, sizeof(*a->stack));
	a->state_at = calloc(a->segment + 1, sizeof(*a->state_at));
	a->pending = calloc(2 * n + 1, sizeof(*a->pending));
	a->memos = calloc(MEMOS, sizeof(*a->memos));
	return a->made && a->seen && a->stack && a->state_at && a->pending && a->memos ? 0
										       : -ENOMEM;
}

int automaton_init(struct automaton *a, const struct program *program)
{
	int r;

	*a = (struct automaton){.program = program};
	r = alphabet_init(&a->alphabet, program);
	if (!r)
		r = number_places(a);
	if (!r)
		r = find_sources(a);
	if (!r)
		r = make_room_for_work(a);
	return r ? r : automaton_room(a, a->max_states);
}

void automaton_fini(struct automaton *a)
{
	alphabet_fini(&a->alphabet);
	vec_free(&a->places);
	vec_free(&a->next);
	vec_free(&a->bits);
	vec_free(&a->right);
	vec_free(&a->accepts);
	index_free(&a->index);
	free(a->bit_of);
	free(a->source_starts);
	free(a->sources);
	free(a->made);
	free(a->seen);
	free(a->stack);
	free(a->state_at);
	free(a->pending);
	free(a->memos);
}

/* --- States --- */

static void set_bit(uint64_t *bits, uint32_t bit)
{
	bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

static int add_state(struct automaton *a, const uint64_t *bits, uint8_t right)
{
	size_t n_letters = a->alphabet.n_letters;

	check(a->n_states < a->max_states);
	if (!vec_reserve(&a->next, n_letters) || !vec_reserve(&a->bits, a->n_words) ||
	    !vec_reserve(&a->right, 1) || !vec_reserve(&a->accepts, 1))
		return -ENOMEM;
	/* The empty set stays empty. */
	memset(a->next.p + a->next.n, a->n_states == STATE_DEAD ? 0 : 0xff,
	       n_letters * sizeof(*a->next.p));
	a->next.n += n_letters;
	memcpy(a->bits.p + a->bits.n, bits, a->n_words * sizeof(*bits));
	a->bits.n += a->n_words;
	a->right.p[a->right.n++] = right;
	a->accepts.p[a->accepts.n++] = -1;
	a->n_states++;
	return 0;
}

int automaton_room(struct automaton *a, uint32_t n)
{
	_Static_assert(STATE_UNKNOWN == UINT32_MAX && STATE_DEAD == 0, "memset writes these");
	uint32_t match = (uint32_t)a->places.n - 1, ignored;
	int r;

	if (a->n_states && a->max_states - a->n_states >= n)
		return 0;
	a->n_states = 0;
	a->next.n = a->bits.n = a->right.n = a->accepts.n = 0;
	index_clear(&a->index);
	memset(a->memos, 0, MEMOS * sizeof(*a->memos));
	memset(a->made, 0, a->n_words * sizeof(*a->made));
	r = add_state(a, a->made, 0);
	if (!r) {
		set_bit(a->made, match);
		r = automaton_intern(a, a->made, LETTER_NONE, &ignored);
	}
	if (r)
		a->n_states = 0;
	return r;
}

struct state_probe {
	const struct automaton *a;
	const uint64_t *bits;
	uint8_t right;
};

static bool same_state(const void *context, uint32_t state)
{
	const struct state_probe *p = context;

	return p->a->right.p[state] == p->right &&
	       memcmp(p->a->bits.p + (size_t)state * p->a->n_words, p->bits,
		      p->a->n_words * sizeof(*p->bits)) == 0;
}

int automaton_intern(struct automaton *a, const uint64_t *bits, uint8_t right, uint32_t *ret)
{
	uint64_t hash = hash_mix(hash_bytes(bits, a->n_words * sizeof(*bits)), right);
	struct state_probe probe = {a, bits, right};
	uint32_t state = index_find(&a->index, hash, same_state, &probe);
	int r;

	if (state != INDEX_NONE) {
		*ret = state;
		return 0;
	}
	state = a->n_states;
	r = index_add(&a->index, hash, state);
	if (!r)
		r = add_state(a, bits, right);
	if (r) {
		index_remove(&a->index, hash, state);
		return r;
	}
	*ret = state;
	return 0;
}

/* Marks, with the stamp in `seen`, all instructions from which those of the state are reached
 * without a character, given what is left of the position. */
static void find_reaching(struct automaton *a, uint32_t state, uint8_t left)
{
	const uint64_t *bits = a->bits.p + (size_t)state * a->n_words;
	uint8_t right = a->right.p[state];
	uint32_t stamp = automaton_stamp(a), n = 0;

	check(state < a->n_states);
	for (uint32_t w = 0; w < a->n_words; w++) {
		for (uint64_t rest = bits[w]; rest; rest &= rest - 1) {
			uint32_t place = a->places.p[w * 64 + (uint32_t)__builtin_ctzll(rest)];

			a->seen[place] = stamp;
			a->stack[n++] = place;
		}
	}
	while (n) {
		uint32_t to = a->stack[--n];

		for (uint32_t i = a->source_starts[to]; i < a->source_starts[to + 1]; i++) {
			uint32_t from = a->sources[i];
			struct instruction in = a->program->code.p[from];

			if (a->seen[from] == stamp ||
			    (in.op == OP_ASSERT && !assertion_holds(in.x, left, right)))
				continue;
			a->seen[from] = stamp;
			a->stack[n++] = from;
		}
	}
}

int automaton_make(struct automaton *a, uint32_t state, uint16_t letter, uint32_t *ret)
{
	uint8_t kind = a->program->asserts ? a->alphabet.kinds[letter] : 0;
	bool empty = true;
	uint32_t next = STATE_DEAD;
	int r = 0;

	check(letter < a->alphabet.n_letters);
	find_reaching(a, state, kind);
	memset(a->made, 0, a->n_words * sizeof(*a->made));
	for (uint32_t bit = 0; bit + 1 < a->places.n; bit++) {
		uint32_t place = a->places.p[bit];

		if (a->seen[place + 1] == a->stamp &&
		    alphabet_has(&a->alphabet, (uint32_t)a->program->code.p[place].x, letter)) {
			set_bit(a->made, bit);
			empty = false;
		}
	}
	if (!empty && a->n_states == a->max_states) {
		/* The numbers are used up; this set is all that is still needed. */
		uint64_t *kept = malloc(a->n_words * sizeof(*kept));

		if (!kept)
			return -ENOMEM;
		memcpy(kept, a->made, a->n_words * sizeof(*kept));
		r = automaton_room(a, a->max_states);
		if (!r)
			r = automaton_intern(a, kept, kind, ret);
		free(kept);
		return r;
	}
	if (!empty)
		r = automaton_intern(a, a->made, kind, &next);
	if (r)
		return r;
	a->next.p[(size_t)state * a->alphabet.n_letters + letter] = next;
	*ret = next;
	return 0;
}

bool automaton_accepts(struct automaton *a, uint32_t state)
{
	int8_t *known = &a->accepts.p[state];

	if (*known < 0) {
		find_reaching(a, state, LETTER_NONE);
		*known = a->seen[0] == a->stamp;
	}
	return *known;
}

int automaton_test(struct automaton *a, struct str text)
{
	uint32_t state = STATE_END;

	if (automaton_room(a, 0))
		return -ENOMEM;
	while (text.n && state != STATE_DEAD) {
		size_t length;
		uint16_t letter = alphabet_last(&a->alphabet, text, &length);

		if (automaton_step(a, &state, letter))
			return -ENOMEM;
		text.n -= length;
	}
	return automaton_accepts(a, state);
}
