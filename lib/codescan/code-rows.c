/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from code. Contract and method in code-rows.h. */
#include "codescan/code-rows.h"

#include "base/check.h"
#include "bpfwire/unwind-tables.h"
#include "codescan/bits.h"
#include "codescan/function-starts.h"

#include <errno.h>
#include <stdlib.h>

static const struct tracked_stack at_entry = {.known = true, .by_sp = true, .sp = 8};
static const struct tracked_stack at_program = {.known = true, .end = true, .by_sp = true, .sp = 8};

static int reserve(struct code_rows *c, uint64_t n)
{
	size_t each = (size_t)n / 8 + 1, round = (size_t)(n / FUNCTION_ALIGN + 1) / 8 + 1,
	       bytes = each + 2 * round;

	if (!c->states)
		c->states = calloc(CODE_ROWS_STATES, sizeof(*c->states));
	if (bytes > c->starts.capacity) {
		free(c->starts.known);
		c->starts.known = malloc(bytes);
		c->starts.capacity = c->starts.known ? bytes : 0;
	}
	if (!c->states || !c->starts.known)
		return -ENOMEM;
	memset(c->starts.known, 0, bytes);
	c->starts.aligned = c->starts.known + each;
	c->starts.targets = c->starts.aligned + round;
	return 0;
}

int code_rows_begin(struct code_rows *c, int fd, uint64_t offset, uint64_t start, uint64_t end)
{
	uint64_t n = end - start;
	int r;

	check(start <= end);
	if (n > CODE_ROWS_MAX)
		return -E2BIG;
	r = reserve(c, n);
	if (r < 0)
		return r;
	/* The window's memory serves on, its bytes do not. */
	c->window = (struct window){.fd = fd, .base = offset, .size = n, .bytes = c->window.bytes};
	c->start = start;
	c->end = end;
	c->work_max += n * (c->strict ? CODE_ROWS_WORK_STRICT : CODE_ROWS_WORK);
	for (size_t i = 0; i < CODE_ROWS_BEYOND; i++)
		if (c->starts.beyond[i] >= start && c->starts.beyond[i] < end)
			code_rows_mark(c, c->starts.beyond[i]);
	/* The entry may stand behind what pads the code before it. */
	if (c->entry >= start && c->entry < end)
		code_rows_mark(c, c->entry);
	c->pass.at = c->function.end = start;
	return code_rows_sweep(c);
}

void code_rows_free(struct code_rows *c)
{
	window_free(&c->window);
	free(c->starts.known);
	free(c->states);
	free(c->function.has_state);
	*c = CODE_ROWS_NULL;
}

/* Whether a jump gave an address of the function at hand a state. */
static bool has_state(const struct code_rows *c, uint64_t address)
{
	return bits_has(c->function.has_state, address - c->function.start);
}

/* The slot of a target, or a free one; NULL: there is none. */
static struct target_state *find_state(struct code_rows *c, uint64_t address)
{
	uint32_t target = (uint32_t)(address - c->start), at = target * 2654435761u >> 12;

	for (uint32_t i = 0; i < 16; i++) {
		struct target_state *j = &c->states[(at + i) % CODE_ROWS_STATES];

		if (j->function != c->function.number || j->target == target)
			return j;
	}
	return NULL;
}

/* Gives a target the state of the stack there; the first one counts. */
static void propagate(struct code_rows *c, uint64_t target, const struct tracked_stack *state)
{
	struct target_state *j;

	if (!state->known || target < c->function.start || target >= c->function.end ||
	    has_state(c, target))
		return;
	j = find_state(c, target);
	if (!j)
		return;
	*j = (struct target_state){c->function.number, (uint32_t)(target - c->start), *state};
	/* What was saved lies in the frame. */
	if (state->by_sp && state->saved > state->sp)
		j->stack.saved = 0;
	bits_set(c->function.has_state, target - c->function.start);
	bits_set(c->function.pending, target - c->function.start);
	/* One behind `reached` has it in time. */
	c->pass.changed |= target < c->pass.reached;
}

/* Whether a jump within the function at hand leads over the candidate for another. */
static bool crosses(const struct code_rows *c, uint64_t target)
{
	return target >= c->function.start && target < c->function.end &&
	       (c->pass.at <= c->function.candidate) != (target < c->function.candidate);
}

static bool is_at_entry(const struct tracked_stack *s)
{
	return s->by_sp && s->sp == at_entry.sp;
}

/* A jump away with the return address on top of the stack is a tail call, whose target begins a
 * function; but an assembler's functions share their ends, where no function begins. */
static void note_tail_call(struct code_rows *c, uint64_t target)
{
	if (!c->pass.state.known || !is_at_entry(&c->pass.state))
		return;
	if (!c->strict && target >= c->function.end)
		code_rows_mark(c, target);
	c->pass.returns |= target >= c->start && target < c->end &&
			   bits_has(c->starts.known, target - c->start);
}

static void jump(struct code_rows *c, const struct x86_instruction *i)
{
	uint64_t target = c->pass.at + (uint64_t)i->immediate;

	propagate(c, target, &c->pass.state);
	c->pass.crossed |= crosses(c, target);
	if (x86_is_near_jump(i) && (target < c->function.start || target >= c->function.end))
		note_tail_call(c, target);
}

/* The return address must be on top of the stack, or something was misunderstood. */
static void check_return(struct code_rows *c)
{
	if (!c->pass.state.known)
		return;
	c->pass.returns = true;
	if (!c->pass.state.end && !is_at_entry(&c->pass.state)) {
		c->function.candidate = c->function.candidate ? c->function.candidate
							      : c->pass.aligned;
		c->pass.unbalanced = true;
	}
}

/* Jumps and returns; true: nothing falls through. */
static bool flow(struct code_rows *c, const struct x86_instruction *i)
{
	if (x86_is_conditional(i) || x86_is_near_jump(i))
		jump(c, i);
	if (x86_is_return(i))
		check_return(c);
	if (x86_is_table_jump(i) && c->pass.state.known)
		c->pass.table = c->pass.state;
	return x86_ends(i);
}

/* The state that jumps gave an address; NULL: none. */
static const struct target_state *state_at(struct code_rows *c, uint64_t address)
{
	return has_state(c, address) ? find_state(c, address) : NULL;
}

/* Sets the state at c->pass.at, where `i` stands. */
static void enter(struct code_rows *c, const struct x86_instruction *i)
{
	const struct target_state *j = state_at(c, c->pass.at);

	if (j) {
		bits_clear(c->function.pending, c->pass.at - c->function.start);
		c->pass.state = j->stack;
	} else if (c->pass.unreachable) {
		/* Padding goes with what is before it. */
		if (x86_is_padding(i))
			return;
		if (!c->pass.lost) {
			c->pass.lost = c->pass.at;
			c->pass.lost_state = c->pass.table.known ? c->pass.table : at_entry;
		}
		c->pass.state.known = false;
	}
	c->pass.unreachable = false;
}

static struct rows_words words_of(const struct tracked_stack *s)
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
static void note_aligned(struct code_rows *c, const struct x86_instruction *i)
{
	if (x86_is_padding(i))
		return;
	if (c->pass.after_call && c->pass.at % 16 == 0)
		c->pass.aligned = c->pass.at;
	c->pass.after_call = x86_is_call(i);
}

/* One instruction: the words that hold at it, where `ret` is not NULL. 1, or an errno. */
static int step(struct code_rows *c, struct rows_words *ret)
{
	uint64_t rest = c->function.end - c->pass.at;
	struct x86_instruction i;
	int r = code_rows_decode(c, c->pass.at, &i);

	if (r < 0)
		return r;
	/* What the next function cuts off was no instruction, but padding. */
	if (i.n > rest)
		i = (struct x86_instruction){.n = (uint8_t)rest};
	enter(c, &i);
	note_aligned(c, &i);
	if (ret)
		*ret = words_of(&c->pass.state);
	if (!i.n) {
		/* Not code, or none that is known; the last one may be cut off. */
		c->pass.data |= c->end - c->pass.at >= X86_MAX;
		c->pass.at++;
		c->pass.state.known = false;
		c->pass.unreachable = true;
		return 1;
	}
	c->pass.at += i.n;
	if (flow(c, &i)) {
		c->pass.unreachable = true;
		return 1;
	}
	tracked_stack_step(&c->pass.state, &i);
	return 1;
}

/* Whether the function at hand is given up. Code written by hand is not mixed with data. */
static bool is_hopeless(const struct code_rows *c)
{
	return c->work >= c->work_max || (c->strict && c->pass.data);
}

static void begin_pass(struct code_rows *c)
{
	uint64_t start = c->function.start;

	c->pass = (struct function_pass){.at = start, .reached = start, .unreachable = true};
}

/* Continues over the function at hand: to its end or, if `to_lost`, to an instruction that nothing
 * leads to. */
static int walk(struct code_rows *c, bool to_lost)
{
	int r = 1;

	c->pass.lost = 0;
	c->pass.unreachable = true;
	while (r == 1 && c->pass.at < c->function.end && !is_hopeless(c)) {
		uint64_t at = c->pass.at;
		bool after_call = c->pass.after_call;

		r = step(c, NULL);
		c->pass.reached = c->pass.at;
		if (to_lost && c->pass.lost) {
			c->pass.at = c->pass.reached = at;
			c->pass.after_call = after_call;
			break;
		}
	}
	return r < 0 ? r : 0;
}

/* One pass over the function at hand. */
static int pass(struct code_rows *c)
{
	begin_pass(c);
	return walk(c, false);
}

#define SCAN 64u /* bytes of a function whose bits are looked at in the time of an instruction */

/* The next pending address from `at` on; the function's end: there is none. */
static uint64_t next_pending(struct code_rows *c, uint64_t at)
{
	uint64_t start = c->function.start, next;

	check(at >= start && at <= c->function.end);
	next = start + bits_next(c->function.pending, at - start, c->function.end - start);
	c->work += (next - at) / SCAN;
	return next;
}

/* From a pending address to the next one with a state that was followed, or to where nothing falls
 * through. */
static int follow_pending(struct code_rows *c, uint64_t at)
{
	int r = 1;

	check(has_state(c, at));
	c->pass.at = at;
	c->pass.unreachable = true;
	c->pass.after_call = false;
	c->pass.aligned = 0;
	do {
		r = step(c, NULL);
	} while (r == 1 && !c->pass.unreachable && c->pass.at < c->function.end &&
		 !is_hopeless(c) &&
		 (!has_state(c, c->pass.at) ||
		  bits_has(c->function.pending, c->pass.at - c->function.start)));
	return r < 0 ? r : 0;
}

/* Follows pending addresses until there are none. It finds what a full pass would find. */
static int follow_all_pending(struct code_rows *c)
{
	struct tracked_stack table = c->pass.table;
	uint64_t aligned = c->pass.aligned, at = next_pending(c, c->function.start);
	bool after_call = c->pass.after_call;
	int r = 0;

	while (r == 0 && at < c->function.end && !is_hopeless(c)) {
		r = follow_pending(c, at);
		at = next_pending(c, c->pass.at);
		at = at < c->function.end ? at : next_pending(c, c->function.start);
	}
	c->pass.at = c->pass.reached;
	c->pass.table = table;
	c->pass.aligned = aligned;
	c->pass.after_call = after_call;
	return r;
}

#define FAR (1 << 18) /* a depth to count from where it is not known */

/* A block that nothing leads to, followed to where it leads. */
struct followed {
	struct tracked_stack state; /* counted from FAR */
	int32_t popped;             /* where the frame pointer came back from; 0: nowhere */
	bool left;                  /* by `leave`: so the frame pointer was set */
};

/* The state at the block's beginning, from that at its end. */
static void infer_state(struct code_rows *c, const struct followed *f, int32_t sp, int32_t saved)
{
	struct tracked_stack s = {.known = true, .by_sp = true};

	s.sp = FAR + sp - f->state.sp;
	s.saved = f->popped ? f->popped + sp - f->state.sp : f->state.saved ? 0 : saved;
	if (f->left)
		s = (struct tracked_stack){.known = true, .by_fp = true, .fp = 16, .saved = 16};
	if (f->left || (f->state.by_sp && s.sp >= 8 && s.sp < FAR && s.saved >= 0))
		c->pass.lost_state = s;
}

/* One jump further: true while the end is not known. */
static bool follow_jump(struct code_rows *c, struct followed *f, const struct x86_instruction *i,
			uint64_t *at)
{
	uint64_t target = *at + (uint64_t)i->immediate;
	const struct target_state *j = NULL;

	if (target >= c->function.start && target < c->function.end)
		j = state_at(c, target);
	if (j && j->stack.by_sp) {
		infer_state(c, f, j->stack.sp, j->stack.saved);
		return false;
	}
	*at = x86_is_near_jump(i) ? target : *at;
	return true;
}

/* One instruction further. */
static bool follow(struct code_rows *c, struct followed *f, const struct x86_instruction *i,
		   uint64_t *at)
{
	bool leaves = x86_is_one_byte(i) && i->op == 0xc9;

	*at += i->n;
	if (x86_is_near_jump(i) || x86_is_conditional(i))
		return follow_jump(c, f, i, at);
	if (leaves || x86_is_return(i)) {
		f->left = leaves;
		infer_state(c, f, 8, 0);
		return false;
	}
	if (x86_is_stop(i) || x86_is_table_jump(i))
		return false;
	if (x86_is_one_byte(i) && i->op == 0x5d && !f->state.saved && !f->popped)
		f->popped = f->state.sp;
	tracked_stack_step(&f->state, i);
	return f->state.by_sp;
}

#define FOLLOW_MAX 400

/* Improves lost_state by what the code from there leads to. 0 or an errno. */
static int infer_lost(struct code_rows *c)
{
	struct followed f = {.state = {.known = true, .by_sp = true, .sp = FAR}};
	uint64_t at = c->pass.lost;

	for (int n = 0; n < FOLLOW_MAX; n++) {
		const struct target_state *j;
		struct x86_instruction i;
		int r;

		if (at < c->function.start || at >= c->function.end)
			return 0;
		j = state_at(c, at);
		if (j && j->stack.by_sp) {
			infer_state(c, &f, j->stack.sp, j->stack.saved);
			return 0;
		}
		r = code_rows_decode(c, at, &i);
		if (r < 0)
			return r;
		if (!i.n || !follow(c, &f, &i, &at))
			return 0;
	}
	return 0;
}

/* Empty maps for the function at hand. */
static int reserve_states(struct code_rows *c)
{
	size_t each = (size_t)(c->function.end - c->function.start) / 8 + 1, bytes = 2 * each;

	if (bytes > c->function.capacity) {
		free(c->function.has_state);
		c->function.has_state = malloc(bytes);
		c->function.capacity = c->function.has_state ? bytes : 0;
	}
	if (!c->function.has_state)
		return -ENOMEM;
	memset(c->function.has_state, 0, bytes);
	c->function.pending = c->function.has_state + each;
	return 0;
}

static int begin_function(struct code_rows *c, uint64_t at)
{
	int r;

	check(at >= c->start && at < c->end);
	c->function.start = at;
	c->function.end = bits_next(c->starts.known, at + 1 - c->start, c->end - c->start) +
			  c->start;
	check(c->function.end > at && c->function.end <= c->end);
	r = reserve_states(c);
	if (r < 0)
		return r;
	c->function.number++;
	c->function.guesses = 0;
	c->function.candidate = 0;
	c->function.rejected = false;
	propagate(c, c->function.start, c->function.start == c->entry ? &at_program : &at_entry);
	return 0;
}

/* Gives the instruction that nothing leads to a state that it may have. */
static int guess_state(struct code_rows *c)
{
	int r = infer_lost(c);

	if (r < 0)
		return r;
	if (c->pass.lost_state.by_sp && c->pass.lost_state.sp == at_entry.sp &&
	    (!c->function.candidate || c->pass.lost < c->function.candidate))
		c->function.candidate = c->pass.lost;
	propagate(c, c->pass.lost, &c->pass.lost_state);
	c->function.guesses++;
	return 0;
}

/* Continues to the next instruction that nothing leads to. 1: it has a state now; 0: it cannot have
 * one, or there is none; or an errno. */
static int analyze_next(struct code_rows *c)
{
	int r = walk(c, true);

	if (r == 0 && (c->pass.changed || c->pass.lost))
		r = follow_all_pending(c);
	if (r < 0 || !c->pass.lost || is_hopeless(c))
		return r;
	if (!has_state(c, c->pass.lost) && c->function.guesses < CODE_ROWS_GUESSES)
		r = guess_state(c);
	return r < 0 ? r : has_state(c, c->pass.lost);
}

/* Passes over the function until all that can be known is known. */
static int analyze(struct code_rows *c)
{
	int r;

	begin_pass(c);
	while ((r = analyze_next(c)) == 1)
		continue;
	/* What was found on the way may not hold by what is known now. */
	return r == 0 && (c->pass.changed || c->pass.lost) && !is_hopeless(c) ? pass(c) : r;
}

/* Analyzes the next function. One that was misunderstood may be two: it is split, and the first
 * part is analyzed again. */
static int begin_next_function(struct code_rows *c)
{
	uint64_t at = c->function.end;
	bool suspect = at == c->last_split;
	int r;

	r = begin_function(c, at);
	while (r == 0 && (r = analyze(c)) == 0 && !is_hopeless(c) && c->pass.unbalanced &&
	       c->function.candidate && (r = pass(c)) == 0 && !c->pass.crossed) {
		check(c->function.candidate > at && c->function.candidate < c->function.end);
		c->last_split = c->function.candidate;
		code_rows_mark(c, c->function.candidate);
		r = begin_function(c, at);
	}
	/* A part that was split off must prove that it is a function. */
	c->function.rejected = is_hopeless(c) || c->pass.unbalanced ||
			       ((suspect || c->strict) && !c->pass.returns);
	c->pass.at = c->function.start;
	c->pass.unreachable = true;
	return r;
}

int code_rows_next(struct code_rows *c, struct rows_piece *ret)
{
	int r = 0;

	if (c->pass.at >= c->end)
		return 0;
	if (c->pass.at >= c->function.end)
		r = begin_next_function(c);
	if (r < 0)
		return r;
	*ret = (struct rows_piece){.start = c->pass.at, .end = c->function.end};
	if (c->function.rejected) {
		c->pass.at = c->function.end;
		return 1;
	}
	r = step(c, &ret->words);
	ret->end = c->pass.at;
	return r;
}
