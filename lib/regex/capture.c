/* SPDX-License-Identifier: Apache-2.0 */
/* What the groups of a match hold. Contract in automaton.h.
 *
 * A long text is cut into segments. One pass from its end to its beginning keeps the set at each
 * segment's end; then, segment by segment from the beginning, the sets inside of it are computed
 * again and followed. So what must be kept is the states of one segment, which always fit, and one
 * set per segment. */
#include "regex/automaton.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

#define LENGTH_MAX 4 /* of a character */

/* A position and the set there. */
struct stop {
	size_t at;
	uint8_t right;
	uint64_t bits[];
};

struct stops {
	char *p; /* n of them, from the text's end to its beginning */
	size_t n, size;
};

/* A text, and how far its program has come. */
struct walk {
	struct automaton *a;
	struct str text;
	size_t at;
	uint32_t next; /* instruction */
	size_t *slots;
};

static struct stop *get_stop(const struct stops *stops, size_t i)
{
	check(i < stops->n);
	return (struct stop *)(void *)(stops->p + i * stops->size);
}

static void add_stop(struct automaton *a, struct stops *stops, size_t at, uint32_t state)
{
	struct stop *stop = get_stop(stops, (stops->n++, stops->n - 1));

	stop->at = at;
	stop->right = a->right.p[state];
	memcpy(stop->bits, a->bits.p + (size_t)state * a->n_words,
	       a->n_words * sizeof(*stop->bits));
}

/* One pass over all of the text: 1 if it matches, and then the stops are to be freed; 0 or -ENOMEM.
 */
static int find_stops(struct automaton *a, struct str text, struct stops *ret)
{
	struct stops stops = {.size = sizeof(struct stop) + a->n_words * sizeof(uint64_t)};
	size_t step = a->segment - LENGTH_MAX, last = text.n;
	uint32_t state = STATE_END;
	int r;

	stops.p = malloc((text.n / step + 2) * stops.size);
	if (!stops.p || automaton_room(a, 0)) {
		free(stops.p);
		return -ENOMEM;
	}
	r = 0;
	add_stop(a, &stops, text.n, state);
	while (!r && text.n && state != STATE_DEAD) {
		size_t length;
		uint16_t letter = alphabet_last(&a->alphabet, text, &length);

		r = automaton_step(a, &state, letter);
		text.n -= length;
		if (!r && last - text.n >= step) {
			add_stop(a, &stops, text.n, state);
			last = text.n;
		}
	}
	if (!r && automaton_accepts(a, state)) {
		*ret = stops;
		return 1;
	}
	free(stops.p);
	return r;
}

/* The states of the positions from..to, given the one at `to`; there is room for all of them. 1, 0
 * if nothing that matches ends so, or -ENOMEM. */
static int fill_segment(struct automaton *a, struct str text, size_t from, uint32_t state)
{
	check(text.n >= from && text.n - from <= a->segment);
	a->state_at[text.n - from] = state;
	while (text.n > from && state != STATE_DEAD) {
		size_t length;
		uint16_t letter = alphabet_last(&a->alphabet, text, &length);

		if (automaton_step(a, &state, letter))
			return -ENOMEM;
		text.n -= length;
		a->state_at[text.n - from] = state;
	}
	return state != STATE_DEAD;
}

/* What assertions see to the left and right of the position. */
static void look_around(const struct walk *w, uint8_t *ret_left, uint8_t *ret_right)
{
	const struct alphabet *alphabet = &w->a->alphabet;
	struct str before = str_first(w->text, w->at), after = str_skip(w->text, w->at);
	size_t ignored;

	*ret_left = *ret_right = LETTER_NONE;
	if (!w->a->program->asserts)
		return;
	if (before.n)
		*ret_left = alphabet->kinds[alphabet_last(alphabet, before, &ignored)];
	if (after.n)
		*ret_right = alphabet->kinds[alphabet_first(alphabet, after, &ignored)];
}

static bool in_state(const struct automaton *a, uint32_t state, uint32_t place)
{
	uint32_t bit = a->bit_of[place];

	return a->bits.p[(size_t)state * a->n_words + bit / 64] >> bit % 64 & 1;
}

/* What it does at one instruction: */
enum outcome { GO_ON, GIVE_UP, FOUND };

static enum outcome try(struct walk *w, uint32_t state, size_t *n, uint32_t *at)
{
	struct automaton *a = w->a;
	struct instruction in = a->program->code.p[*at];
	uint8_t left, right;

	switch ((enum op)in.op) {
	case OP_SET:
	case OP_MATCH:
		return in_state(a, state, *at) ? FOUND : GIVE_UP;
	case OP_SPLIT:
		a->pending[(*n)++] = (struct choice){.at = (uint32_t)((int32_t)*at + in.y)};
		*at = (uint32_t)((int32_t)*at + in.x);
		return GO_ON;
	case OP_JUMP:
		*at = (uint32_t)((int32_t)*at + in.x);
		return GO_ON;
	case OP_SAVE:
		a->pending[(*n)++] = (struct choice){(uint32_t)in.x, true, w->slots[in.x]};
		w->slots[in.x] = w->at;
		++*at;
		return GO_ON;
	case OP_ASSERT:
		look_around(w, &left, &right);
		++*at;
		return assertion_holds(in.x, left, right) ? GO_ON : GIVE_UP;
	}
	absurd("an unknown instruction");
}

/* The first choice from w->next on that is in the state: an instruction that takes the character
 * here, or the match. There is one. *ret_pending is what was left to do. */
static uint32_t search(struct walk *w, uint32_t state, size_t *ret_pending)
{
	struct automaton *a = w->a;
	uint32_t stamp = automaton_stamp(a);
	size_t n = 0;

	a->pending[n++] = (struct choice){.at = w->next};
	while (n) {
		struct choice choice = a->pending[--n];
		enum outcome outcome = GO_ON;
		uint32_t at = choice.at;

		if (choice.restore) {
			w->slots[at] = choice.old;
			continue;
		}
		while (outcome == GO_ON && a->seen[at] != stamp) {
			a->seen[at] = stamp;
			outcome = try(w, state, &n, &at);
		}
		if (outcome == FOUND) {
			*ret_pending = n;
			return at;
		}
	}
	absurd("a text that matches has no match");
}

/* Slots that are still to be restored are those noted on the way. */
static void remember(const struct automaton *a, struct memo *memo, size_t n)
{
	memo->n_slots = 0;
	for (size_t i = 0; i < n; i++) {
		if (!a->pending[i].restore)
			continue;
		if (memo->n_slots == MEMO_SLOTS_MAX) {
			memo->state = STATE_DEAD;
			return;
		}
		memo->slots[memo->n_slots++] = a->pending[i].at;
	}
}

static uint32_t choose(struct walk *w, uint32_t state)
{
	struct memo *memo = &w->a->memos[(state * 31 + w->next) % MEMOS];
	size_t n_pending;

	if (memo->state == state && memo->next == w->next) {
		for (uint32_t i = 0; i < memo->n_slots; i++)
			w->slots[memo->slots[i]] = w->at;
		return memo->place;
	}
	if (w->a->program->asserts)
		return search(w, state, &n_pending);
	*memo = (struct memo){state, w->next, search(w, state, &n_pending), 0, {0}};
	remember(w->a, memo, n_pending);
	return memo->place;
}

/* Follows the program through a segment; behind the last it has matched. */
static void follow_segment(struct walk *w, size_t from, size_t to)
{
	while (w->at < to) {
		uint32_t ignored;

		w->next = choose(w, w->a->state_at[w->at - from]) + 1;
		if ((unsigned char)w->text.p[w->at] < 0x80)
			w->at++;
		else
			w->at += rune_decode(str_skip(w->text, w->at), &ignored);
	}
	check(w->at == to);
	if (to == w->text.n)
		choose(w, w->a->state_at[to - from]);
}

static int match_short(struct walk *w)
{
	struct automaton *a = w->a;
	int r = automaton_room(a, a->segment + 1);

	if (!r)
		r = fill_segment(a, w->text, 0, STATE_END);
	if (r <= 0)
		return r;
	if (!automaton_accepts(a, a->state_at[0]))
		return 0;
	follow_segment(w, 0, w->text.n);
	return 1;
}

static int match_long(struct walk *w)
{
	struct automaton *a = w->a;
	struct stops stops = {0};
	int r = find_stops(a, w->text, &stops);
	bool failed = false;

	if (r <= 0)
		return r;
	for (size_t i = stops.n; i-- > 0 && !failed;) {
		const struct stop *stop = get_stop(&stops, i);
		size_t from = w->at;
		uint32_t state;

		if (stop->at == from)
			continue; /* a stop at the very beginning ends nothing */
		failed = automaton_room(a, a->segment + 2) ||
			 automaton_intern(a, stop->bits, stop->right, &state) ||
			 fill_segment(a, str_first(w->text, stop->at), from, state) != 1;
		if (!failed)
			follow_segment(w, from, stop->at);
	}
	free(stops.p);
	return failed ? -ENOMEM : 1;
}

int automaton_match(struct automaton *a, struct str text, size_t *slots)
{
	struct walk w = {.a = a, .text = text, .slots = slots};

	for (uint32_t i = 0; i < 2 * a->program->n_groups; i++)
		slots[i] = SLOT_NONE;
	slots[0] = 0;
	slots[1] = text.n;
	return text.n <= a->segment ? match_short(&w) : match_long(&w);
}
