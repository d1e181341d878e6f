/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from code. Contract and method in code-rows.h. */
#include "codescan/code-rows.h"

#include "bpfwire/unwind-tables.h"
#include "codescan/bits.h"
#include "codescan/function-starts.h"

#include <errno.h>
#include <stdlib.h>

static const struct rows_stack at_entry = {.known = true, .by_sp = true, .sp = 8};
static const struct rows_stack at_program = {.known = true, .end = true, .by_sp = true, .sp = 8};

static int reserve(struct rows_code *c, uint64_t n)
{
	size_t each = (size_t)n / 8 + 1, round = (size_t)(n / ROWS_CODE_ROUND + 1) / 8 + 1,
	       bytes = each + 2 * round;

	if (!c->jumps)
		c->jumps = calloc(ROWS_CODE_JUMPS, sizeof(*c->jumps));
	if (bytes > c->capacity) {
		free(c->called);
		c->called = malloc(bytes);
		c->capacity = c->called ? bytes : 0;
	}
	if (!c->jumps || !c->called)
		return -ENOMEM;
	memset(c->called, 0, bytes);
	c->supposed = c->called + each;
	c->jumped = c->supposed + round;
	return 0;
}

int rows_code_begin(struct rows_code *c, int fd, uint64_t offset, uint64_t start, uint64_t end)
{
	uint64_t n = end - start;
	int r;

	if (n > ROWS_CODE_MAX)
		return -E2BIG;
	r = reserve(c, n);
	if (r < 0)
		return r;
	/* The window's memory serves on, its bytes do not. */
	c->window = (struct window){.fd = fd, .base = offset, .size = n, .bytes = c->window.bytes};
	c->start = start;
	c->end = end;
	c->enough += n * (c->strict ? ROWS_CODE_WORK_STRICT : ROWS_CODE_WORK);
	for (size_t i = 0; i < ROWS_CODE_LATER; i++)
		if (c->later[i] >= start && c->later[i] < end)
			rows_code_mark(c, c->later[i]);
	/* The entry may stand behind what pads the code before it. */
	if (c->entry >= start && c->entry < end)
		rows_code_mark(c, c->entry);
	c->at = c->function_end = start;
	return rows_code_sweep(c);
}

void rows_code_free(struct rows_code *c)
{
	window_free(&c->window);
	free(c->called);
	free(c->jumps);
	free(c->told);
	*c = ROWS_CODE_NULL;
}

/* Whether an address of the function at hand was told what the stack is there. */
static bool is_told(const struct rows_code *c, uint64_t address)
{
	return bits_has(c->told, address - c->function_start);
}

/* The place of a target, or a free one; NULL: there is none. */
static struct rows_code_jump *find_jump(struct rows_code *c, uint64_t address)
{
	uint32_t target = (uint32_t)(address - c->start), at = target * 2654435761u >> 12;

	for (uint32_t i = 0; i < 16; i++) {
		struct rows_code_jump *j = &c->jumps[(at + i) % ROWS_CODE_JUMPS];

		if (j->function != c->function || j->target == target)
			return j;
	}
	return NULL;
}

/* Tells a target what the stack is there; what it was told first counts. */
static void tell(struct rows_code *c, uint64_t target, const struct rows_stack *state)
{
	struct rows_code_jump *j;

	if (!state->known || target < c->function_start || target >= c->function_end ||
	    is_told(c, target))
		return;
	j = find_jump(c, target);
	if (!j)
		return;
	*j = (struct rows_code_jump){c->function, (uint32_t)(target - c->start), *state};
	/* What has been saved lies in the frame. */
	if (state->by_sp && state->saved > state->sp)
		j->state.saved = 0;
	bits_set(c->told, target - c->function_start);
	bits_set(c->fresh, target - c->function_start);
	/* A later one is told in time. */
	c->late |= target < c->reached;
}

/* Whether a jump within the function at hand leads over the supposed beginning of another. */
static bool crosses(const struct rows_code *c, uint64_t target)
{
	return target >= c->function_start && target < c->function_end &&
	       (c->at <= c->seed) != (target < c->seed);
}

static bool is_at_entry(const struct rows_stack *s)
{
	return s->by_sp && s->sp == at_entry.sp;
}

/* Who jumps away with the return address on top of the stack has called for good; but an
 * assembler's functions share their ends, where others do not begin. */
static void leave_for(struct rows_code *c, uint64_t target)
{
	if (!c->state.known || !is_at_entry(&c->state))
		return;
	if (!c->strict && target >= c->function_end)
		rows_code_mark(c, target);
	c->returns |= target >= c->start && target < c->end &&
		      bits_has(c->called, target - c->start);
}

static void jump(struct rows_code *c, const struct x86_instruction *i)
{
	uint64_t target = c->at + (uint64_t)i->immediate;

	tell(c, target, &c->state);
	c->crossed |= crosses(c, target);
	if (x86_is_near_jump(i) && (target < c->function_start || target >= c->function_end))
		leave_for(c, target);
}

/* The return address must be on top of the stack, or something was misunderstood. */
static void check_return(struct rows_code *c)
{
	if (!c->state.known)
		return;
	c->returns = true;
	if (!c->state.end && !is_at_entry(&c->state)) {
		c->seed = c->seed ? c->seed : c->aligned;
		c->wrong = true;
	}
}

/* Jumps and returns; true: nothing falls through. */
static bool flow(struct rows_code *c, const struct x86_instruction *i)
{
	if (x86_is_conditional(i) || x86_is_near_jump(i))
		jump(c, i);
	if (x86_is_return(i))
		check_return(c);
	if (x86_is_table_jump(i) && c->state.known)
		c->table = c->state;
	return x86_ends(i);
}

/* What an address was told; NULL: nothing. */
static const struct rows_code_jump *known_at(struct rows_code *c, uint64_t address)
{
	return is_told(c, address) ? find_jump(c, address) : NULL;
}

/* What is known at c->at, where `i` stands. */
static void arrive(struct rows_code *c, const struct x86_instruction *i)
{
	const struct rows_code_jump *j = known_at(c, c->at);

	if (j) {
		bits_clear(c->fresh, c->at - c->function_start);
		c->state = j->state;
	} else if (c->stopped) {
		/* Padding goes with what is before it. */
		if (x86_is_padding(i))
			return;
		if (!c->lost) {
			c->lost = c->at;
			c->lost_state = c->table.known ? c->table : at_entry;
		}
		c->state.known = false;
	}
	c->stopped = false;
}

static struct rows_words words_of(const struct rows_stack *s)
{
	struct rows_words words = {0};
	int32_t fp = s->saved ? -(s->saved / 8) : UNWIND_FP_SAME;

	if (!s->known || s->saved % 8 || s->saved < 0)
		return words;
	if (s->end)
		words.rule = unwind_rule(0, UNWIND_CFA_END, 0, 0, 0);
	else if (s->by_sp && s->sp >= 8)
		words.rule = unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_REG, 0, fp, s->sp);
	else if (s->by_slot && s->far >= 0 && s->far < 128)
		words.rule = unwind_rule_more(unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_DEREF, 0, fp,
							  s->slot),
					      0, 0, s->far);
	else if (s->by_fp)
		words.rule = unwind_rule(UNWIND_X86_RBP, UNWIND_CFA_REG, 0, fp, s->fp);
	return words;
}

/* Code at a round address right behind a call, but for padding: the call may never return, and
 * another function begin here. */
static void note_aligned(struct rows_code *c, const struct x86_instruction *i)
{
	if (x86_is_padding(i))
		return;
	if (c->after_call && c->at % 16 == 0)
		c->aligned = c->at;
	c->after_call = x86_is_call(i);
}

/* One instruction: the words that hold at it, where `ret` is not NULL. 1, or an errno. */
static int step(struct rows_code *c, struct rows_words *ret)
{
	uint64_t rest = c->function_end - c->at;
	struct x86_instruction i;
	int r = rows_code_decode(c, c->at, &i);

	if (r < 0)
		return r;
	/* What the next function cuts off was no instruction, but padding. */
	if (i.n > rest)
		i = (struct x86_instruction){.n = (uint8_t)rest};
	arrive(c, &i);
	note_aligned(c, &i);
	if (ret)
		*ret = words_of(&c->state);
	if (!i.n) {
		/* Not code, or none that is known; the last one may be cut off. */
		c->data |= c->end - c->at >= X86_MAX;
		c->at++;
		c->state.known = false;
		c->stopped = true;
		return 1;
	}
	c->at += i.n;
	if (flow(c, &i)) {
		c->stopped = true;
		return 1;
	}
	rows_stack_step(&c->state, &i);
	return 1;
}

/* Whether the function at hand is to be left alone: what is written by hand is not mixed with data. */
static bool is_hopeless(const struct rows_code *c)
{
	return c->work >= c->enough || (c->strict && c->data);
}

static void go_back(struct rows_code *c)
{
	c->at = c->reached = c->function_start;
	c->stopped = true;
	c->late = c->wrong = c->crossed = c->returns = c->data = false;
	c->lost = 0;
	c->table.known = c->after_call = false;
	c->aligned = 0;
}

/* Goes on over the function at hand: to its end or, if `to_lost`, to what nothing leads to. */
static int walk(struct rows_code *c, bool to_lost)
{
	int r = 1;

	c->lost = 0;
	c->stopped = true;
	while (r == 1 && c->at < c->function_end && !is_hopeless(c)) {
		uint64_t at = c->at;
		bool after_call = c->after_call;

		r = step(c, NULL);
		c->reached = c->at;
		if (to_lost && c->lost) {
			c->at = c->reached = at;
			c->after_call = after_call;
			break;
		}
	}
	return r < 0 ? r : 0;
}

/* One pass over the function at hand. */
static int pass(struct rows_code *c)
{
	go_back(c);
	return walk(c, false);
}

#define SCAN 64u /* bytes of a function whose bits are looked at in the time of an instruction */

/* The next place from `at` on that was told something which has not been followed yet; the
 * function's end: there is none. */
static uint64_t next_fresh(struct rows_code *c, uint64_t at)
{
	uint64_t n = c->function_end - c->function_start;
	uint64_t next = bits_next(c->fresh, at - c->function_start, n) + c->function_start;

	c->work += (next - at) / SCAN;
	return next;
}

/* From a place that was told to the next one that was, and has been followed, or to where nothing falls through. */
static int follow_told(struct rows_code *c, uint64_t at)
{
	int r = 1;

	c->at = at;
	c->stopped = true;
	c->after_call = false;
	c->aligned = 0;
	do {
		r = step(c, NULL);
	} while (r == 1 && !c->stopped && c->at < c->function_end && !is_hopeless(c) &&
		 (!is_told(c, c->at) || bits_has(c->fresh, c->at - c->function_start)));
	return r < 0 ? r : 0;
}

/* Follows what was told, until nothing new is: whatever a full pass would find, without one. */
static int spread(struct rows_code *c)
{
	struct rows_stack table = c->table;
	uint64_t aligned = c->aligned, at = next_fresh(c, c->function_start);
	bool after_call = c->after_call;
	int r = 0;

	while (r == 0 && at < c->function_end && !is_hopeless(c)) {
		r = follow_told(c, at);
		at = next_fresh(c, c->at);
		at = at < c->function_end ? at : next_fresh(c, c->function_start);
	}
	c->at = c->reached;
	c->table = table;
	c->aligned = aligned;
	c->after_call = after_call;
	return r;
}

#define FAR (1 << 18) /* a depth to count from where it is not known */

/* A block that nothing leads to, followed to where it leads. */
struct followed {
	struct rows_stack state; /* counted from FAR */
	int32_t popped;          /* where the frame pointer came back from; 0: nowhere */
	bool left;               /* by `leave`: so the frame pointer was set */
};

/* What it was at the block's beginning, from what it is known to be at the end. */
static void resolve(struct rows_code *c, const struct followed *f, int32_t sp, int32_t saved)
{
	struct rows_stack s = {.known = true, .by_sp = true};

	s.sp = FAR + sp - f->state.sp;
	s.saved = f->popped ? f->popped + sp - f->state.sp : f->state.saved ? 0 : saved;
	if (f->left)
		s = (struct rows_stack){.known = true, .by_fp = true, .fp = 16, .saved = 16};
	if (f->left || (f->state.by_sp && s.sp >= 8 && s.sp < FAR && s.saved >= 0))
		c->lost_state = s;
}

/* One jump further: true while the end is not known. */
static bool follow_jump(struct rows_code *c, struct followed *f, const struct x86_instruction *i,
			uint64_t *at)
{
	uint64_t target = *at + (uint64_t)i->immediate;
	const struct rows_code_jump *j = NULL;

	if (target >= c->function_start && target < c->function_end)
		j = known_at(c, target);
	if (j && j->state.by_sp) {
		resolve(c, f, j->state.sp, j->state.saved);
		return false;
	}
	*at = x86_is_near_jump(i) ? target : *at;
	return true;
}

/* One instruction further. */
static bool follow(struct rows_code *c, struct followed *f, const struct x86_instruction *i,
		   uint64_t *at)
{
	bool leaves = x86_is_one_byte(i) && i->op == 0xc9;

	*at += i->n;
	if (x86_is_near_jump(i) || x86_is_conditional(i))
		return follow_jump(c, f, i, at);
	if (leaves || x86_is_return(i)) {
		f->left = leaves;
		resolve(c, f, 8, 0);
		return false;
	}
	if (x86_is_stop(i) || x86_is_table_jump(i))
		return false;
	if (x86_is_one_byte(i) && i->op == 0x5d && !f->state.saved && !f->popped)
		f->popped = f->state.sp;
	rows_stack_step(&f->state, i);
	return f->state.by_sp;
}

#define FOLLOW_MAX 400

/* Improves what is told to the first lost instruction. 0 or an errno. */
static int follow_lost(struct rows_code *c)
{
	struct followed f = {.state = {.known = true, .by_sp = true, .sp = FAR}};
	uint64_t at = c->lost;

	for (int n = 0; n < FOLLOW_MAX; n++) {
		const struct rows_code_jump *j;
		struct x86_instruction i;
		int r;

		if (at < c->function_start || at >= c->function_end)
			return 0;
		j = known_at(c, at);
		if (j && j->state.by_sp) {
			resolve(c, &f, j->state.sp, j->state.saved);
			return 0;
		}
		r = rows_code_decode(c, at, &i);
		if (r < 0)
			return r;
		if (!i.n || !follow(c, &f, &i, &at))
			return 0;
	}
	return 0;
}

/* Empty maps for the function at hand. */
static int reserve_told(struct rows_code *c)
{
	size_t each = (size_t)(c->function_end - c->function_start) / 8 + 1, bytes = 2 * each;

	if (bytes > c->told_capacity) {
		free(c->told);
		c->told = malloc(bytes);
		c->told_capacity = c->told ? bytes : 0;
	}
	if (!c->told)
		return -ENOMEM;
	memset(c->told, 0, bytes);
	c->fresh = c->told + each;
	return 0;
}

static int begin_function(struct rows_code *c, uint64_t at)
{
	int r;

	c->function_start = at;
	c->function_end = bits_next(c->called, at + 1 - c->start, c->end - c->start) + c->start;
	r = reserve_told(c);
	if (r < 0)
		return r;
	c->function++;
	c->guesses = 0;
	c->seed = 0;
	c->distrust = false;
	tell(c, c->function_start, c->function_start == c->entry ? &at_program : &at_entry);
	return 0;
}

/* Tells what nothing leads to what its stack may be. */
static int guess(struct rows_code *c)
{
	int r = follow_lost(c);

	if (r < 0)
		return r;
	if (c->lost_state.by_sp && c->lost_state.sp == at_entry.sp &&
	    (!c->seed || c->lost < c->seed))
		c->seed = c->lost;
	tell(c, c->lost, &c->lost_state);
	c->guesses++;
	return 0;
}

/* Goes on to the next instruction that nothing leads to. 1: it has been told; 0: it cannot be, or
 * there is none; or an errno. */
static int settle_next(struct rows_code *c)
{
	int r = walk(c, true);

	if (r == 0 && (c->late || c->lost))
		r = spread(c);
	if (r < 0 || !c->lost || is_hopeless(c))
		return r;
	if (!is_told(c, c->lost) && c->guesses < ROWS_CODE_GUESSES)
		r = guess(c);
	return r < 0 ? r : is_told(c, c->lost);
}

/* Goes over the function until all that can be known is known. */
static int settle(struct rows_code *c)
{
	int r;

	go_back(c);
	while ((r = settle_next(c)) == 1)
		continue;
	/* What was found on the way may not hold with what is known now. */
	return r == 0 && (c->late || c->lost) && !is_hopeless(c) ? pass(c) : r;
}

/* What was misunderstood may be two functions taken for one. */
static int solve(struct rows_code *c)
{
	uint64_t at = c->function_end;
	bool suspect = at == c->split;
	int r;

	r = begin_function(c, at);
	while (r == 0 && (r = settle(c)) == 0 && !is_hopeless(c) && c->wrong && c->seed &&
	       (r = pass(c)) == 0 && !c->crossed) {
		c->split = c->seed;
		rows_code_mark(c, c->seed);
		r = begin_function(c, at);
	}
	/* A part that was split off must prove that it is a function. */
	c->distrust = is_hopeless(c) || c->wrong || ((suspect || c->strict) && !c->returns);
	c->at = c->function_start;
	c->stopped = true;
	return r;
}

int rows_code_next(struct rows_code *c, struct rows_piece *ret)
{
	int r = 0;

	if (c->at >= c->end)
		return 0;
	if (c->at >= c->function_end)
		r = solve(c);
	if (r < 0)
		return r;
	*ret = (struct rows_piece){.start = c->at, .end = c->function_end};
	if (c->distrust) {
		c->at = c->function_end;
		return 1;
	}
	r = step(c, &ret->words);
	ret->end = c->at;
	return r;
}
