/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program over whole texts, in time linear in the text, in memory that is bounded whatever
 * the text.
 *
 * It goes over the text from its end to its beginning, and knows at each position the set of those
 * instructions from which the end can still be reached. That answers whether the text matches. For
 * what the groups hold it then follows the program from the beginning, always the first choice that
 * is in the set: so the choice is leftmost-first, as in Go, and nothing is ever tried twice.
 *
 * Sets that were met are numbered and kept with their transitions (a lazy DFA, reversed), at most
 * as many as fit into STATES_BYTES; when these are used up all are forgotten. Not for two threads
 * at once. */
#pragma once

#include "regex/alphabet.h"
#include "base/index.h"

#define STATES_BYTES (1u << 20)

struct automaton {
	const struct program *program;
	struct alphabet alphabet;

	/* What a set is made of: instructions that take a character, and the match. */
	VEC(uint32_t) places; /* instruction of each bit */
	uint32_t *bit_of;     /* by instruction */
	uint32_t n_words;     /* of a set, 64 bits each */

	/* The instructions that lead to an instruction without taking anything:
	 * sources[source_starts[i] .. source_starts[i + 1]). */
	uint32_t *source_starts, *sources;

	/* States. Number 0 is the empty set, 1 the one behind the text's end. */
	uint32_t n_states, max_states, segment;
	VEC(uint32_t) next;  /* [state · n_letters + letter] */
	VEC(uint64_t) bits;  /* [state · n_words …] */
	VEC(uint8_t) right;  /* what assertions see on the right, LETTER_* */
	VEC(int8_t) accepts; /* -1: not known yet */
	struct index index;

	/* For the work of one call. */
	uint64_t *made;
	uint32_t *seen, stamp, *stack;
	uint32_t *state_at; /* by position in the segment */
	struct choice *pending;

	struct memo *memos; /* MEMOS of them */
};

/* What follows from standing at instruction `next` where the set is `state`: the instruction that
 * takes the character, and the slots noted on the way. Without assertions it depends on nothing
 * else. One place for each hash; state 0: none. */
#define MEMOS          256u
#define MEMO_SLOTS_MAX 6

struct memo {
	uint32_t state, next, place, n_slots;
	uint32_t slots[MEMO_SLOTS_MAX];
};

/* What is left to do of a search: to try an instruction, or to give a slot its old value back. */
struct choice {
	uint32_t at; /* the instruction; the slot */
	bool restore;
	size_t old;
};

#define SLOT_NONE SIZE_MAX

/* Borrows the program. 0, -E2BIG or -ENOMEM; to be freed in any case. */
int automaton_init(struct automaton *a, const struct program *program);
void automaton_fini(struct automaton *a);

/* Whether the program matches all of the text: 1, 0, or -ENOMEM. */
int automaton_test(struct automaton *a, struct str text);

/* The same; and slots[2 · n_groups] is where each group begins and ends, SLOT_NONE for one that
 * took no part. */
int automaton_match(struct automaton *a, struct str text, size_t *slots);

/* For automaton.c and capture.c. */

/* The state to the left of `letter`, 0 or -ENOMEM. Numbers of states are void after it if
 * `a->n_states` was `a->max_states`. */
int automaton_make(struct automaton *a, uint32_t state, uint16_t letter, uint32_t *ret);

/* The number of a set with what is right of it, 0 or -ENOMEM. May void numbers as automaton_make.
 */
int automaton_intern(struct automaton *a, const uint64_t *bits, uint8_t right, uint32_t *ret);

/* Forgets all states unless there is room for `n` more. 0 or -ENOMEM. */
int automaton_room(struct automaton *a, uint32_t n);

/* Starts a new round of `seen`. */
uint32_t automaton_stamp(struct automaton *a);

/* Whether a state that stands at the text's beginning holds the program's. */
bool automaton_accepts(struct automaton *a, uint32_t state);

bool assertion_holds(int32_t assertion, uint8_t left, uint8_t right);

#define STATE_DEAD    0u
#define STATE_END     1u
#define STATE_UNKNOWN UINT32_MAX

static inline int automaton_step(struct automaton *a, uint32_t *state, uint16_t letter)
{
	uint32_t next = a->next.p[(size_t)*state * a->alphabet.n_letters + letter];

	if (next == STATE_UNKNOWN)
		return automaton_make(a, *state, letter, state);
	*state = next;
	return 0;
}
