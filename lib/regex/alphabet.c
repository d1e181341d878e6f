/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in alphabet.h. All code points begin as one letter; each set then splits the letters
 * that lie partly in it. So the work is what the sets cover, counted in the pieces between all
 * their borders, and bounded by PIECES_MAX. */
#include "regex/alphabet.h"

#include "base/check.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

#define PIECES_MAX  (1u << 22)
#define MEMBERS_MAX (4u << 20) /* bytes */

/* Numbers for the pieces while they are split; a class is what becomes a letter. */
struct splitting {
	struct alphabet *alphabet;
	VEC(uint32_t) class_of;  /* by piece */
	VEC(uint32_t) n_pieces;  /* by class */
	VEC(uint32_t) n_inside;  /* by class, of the set that is at work */
	VEC(uint32_t) successor; /* by class, of the set that is at work; 0: none yet */
	size_t work;
};

static const struct range newline[] = {{'\n', '\n'}};
static const struct range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

#define N_WORDS (sizeof(words) / sizeof(*words))

static int by_value(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return compare(a, b);
}

static bool add_borders(struct alphabet *a, const struct range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!vec_push(&a->starts, ranges[i].first) ||
		    !vec_push(&a->starts, ranges[i].last + 1))
			return false;
	return true;
}

static int find_borders(struct alphabet *a, const struct program *program)
{
	size_t n = 0;

	if (!vec_push(&a->starts, 0))
		return -ENOMEM;
	vec_each (&program->sets, set)
		if (!add_borders(a, set->p, set->n))
			return -ENOMEM;
	if (program->asserts && (!add_borders(a, newline, 1) || !add_borders(a, words, N_WORDS)))
		return -ENOMEM;
	qsort(a->starts.p, a->starts.n, sizeof(*a->starts.p), by_value);
	vec_each (&a->starts, start)
		if (!n || a->starts.p[n - 1] != *start)
			a->starts.p[n++] = *start;
	a->starts.n = n;
	return 0;
}

/* The piece in which c lies. */
static size_t piece_of(const struct alphabet *a, uint32_t c)
{
	size_t n = search_partition(a->starts.n, i, a->starts.p[i] <= c);

	check(n > 0); /* the first piece begins at 0 */
	return n - 1;
}

/* Calls for each piece of the ranges; the first failure ends it. */
static int each_piece(struct splitting *s, const struct range *ranges, size_t n,
		      int (*visit)(struct splitting *s, size_t piece))
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++) {
		size_t piece = piece_of(s->alphabet, ranges[i].first);

		for (; !r && piece < s->alphabet->starts.n &&
		       s->alphabet->starts.p[piece] <= ranges[i].last;
		     piece++)
			r = ++s->work > PIECES_MAX ? -E2BIG : visit(s, piece);
	}
	return r;
}

static int count_inside(struct splitting *s, size_t piece)
{
	s->n_inside.p[s->class_of.p[piece]]++;
	return 0;
}

static int move_inside(struct splitting *s, size_t piece)
{
	uint32_t class = s->class_of.p[piece];
	uint32_t next = s->successor.p[class];

	if (!next && s->n_inside.p[class] == s->n_pieces.p[class])
		return 0; /* all of it is inside */
	if (!next) {
		next = (uint32_t)s->n_pieces.n;
		if (!vec_push(&s->n_pieces, 0) || !vec_push(&s->n_inside, 0) ||
		    !vec_push(&s->successor, 0))
			return -ENOMEM;
		s->successor.p[class] = next;
	}
	s->class_of.p[piece] = next;
	s->n_pieces.p[next]++;
	s->n_pieces.p[class]--;
	s->n_inside.p[class]--;
	return 0;
}

/* What count_inside and move_inside leave behind goes. */
static int forget(struct splitting *s, size_t piece)
{
	uint32_t class = s->class_of.p[piece];

	s->n_inside.p[class] = s->successor.p[class] = 0;
	return 0;
}

static int split(struct splitting *s, const struct range *ranges, size_t n)
{
	size_t n_classes = s->n_pieces.n;
	int r = each_piece(s, ranges, n, count_inside);

	if (!r)
		r = each_piece(s, ranges, n, move_inside);
	if (!r)
		r = each_piece(s, ranges, n, forget);
	if (!r && s->n_pieces.n > n_classes)
		memset(s->successor.p, 0, s->successor.n * sizeof(*s->successor.p));
	return r ? r : s->n_pieces.n > LETTERS_MAX ? -E2BIG : 0;
}

static int split_all(struct splitting *s, const struct program *program)
{
	int r = 0;

	vec_each (&program->sets, set) {
		if (!r)
			r = split(s, set->p, set->n);
	}
	if (!r && program->asserts)
		r = split(s, newline, 1);
	if (!r && program->asserts)
		r = split(s, words, N_WORDS);
	return r;
}

static int number_letters(struct alphabet *a, const struct splitting *s)
{
	a->n_letters = (uint32_t)s->n_pieces.n;
	if (!vec_reserve(&a->letters, a->starts.n))
		return -ENOMEM;
	vec_each (&s->class_of, class)
		a->letters.p[a->letters.n++] = (uint16_t) * class;
	check(a->letters.n == a->starts.n);
	for (uint32_t c = 0; c < 128; c++)
		a->ascii[c] = a->letters.p[piece_of(a, c)];
	return 0;
}

static int note_members(struct alphabet *a, const struct program *program)
{
	if (program->sets.n > MEMBERS_MAX / a->n_letters)
		return -E2BIG;
	a->members = calloc(program->sets.n * a->n_letters + 1, 1);
	a->kinds = calloc(a->n_letters, 1);
	if (!a->members || !a->kinds)
		return -ENOMEM;
	for (size_t i = 0; i < program->sets.n; i++) {
		vec_each (&program->sets.p[i], range) {
			size_t piece = piece_of(a, range->first);

			for (; piece < a->starts.n && a->starts.p[piece] <= range->last; piece++)
				a->members[i * a->n_letters + a->letters.p[piece]] = 1;
		}
	}
	if (!program->asserts)
		return 0;
	a->kinds[a->ascii['\n']] = LETTER_NEWLINE;
	for (size_t i = 0; i < N_WORDS; i++)
		for (uint32_t c = words[i].first; c <= words[i].last; c++)
			a->kinds[a->ascii[c]] = LETTER_WORD;
	return 0;
}

int alphabet_init(struct alphabet *a, const struct program *program)
{
	struct splitting s = {.alphabet = a};
	int r;

	*a = (struct alphabet){0};
	r = find_borders(a, program);
	for (size_t i = 0; !r && i < a->starts.n; i++)
		r = vec_push(&s.class_of, 0) ? 0 : -ENOMEM;
	if (!r && (!vec_push(&s.n_pieces, (uint32_t)a->starts.n) || !vec_push(&s.n_inside, 0) ||
		   !vec_push(&s.successor, 0)))
		r = -ENOMEM;
	if (!r)
		r = split_all(&s, program);
	if (!r)
		r = number_letters(a, &s);
	if (!r)
		r = note_members(a, program);
	vec_free(&s.class_of);
	vec_free(&s.n_pieces);
	vec_free(&s.n_inside);
	vec_free(&s.successor);
	return r;
}

void alphabet_fini(struct alphabet *a)
{
	vec_free(&a->starts);
	vec_free(&a->letters);
	free(a->kinds);
	free(a->members);
}

uint16_t alphabet_letter(const struct alphabet *a, uint32_t c)
{
	check(a->letters.n > 0);
	return c < 128 ? a->ascii[c] : a->letters.p[piece_of(a, c)];
}
