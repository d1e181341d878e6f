/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the words of the rows that elf_rows_read gives out mean what the full rows mean: both are
 * carried out, at both ends of every full row, on registers and memory of random numbers, and must
 * give the same caller. The machine for expressions here knows nothing of patterns. Besides: every
 * row given out begins where a full row begins or a function ends, and where no function is there
 * is no rule.
 *
 * Which function counts where several overlap is told by a list of all, apart from the code that is
 * judged. */
#include "rows.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "gosym/pclntab.h"
#include "unwind/rows.h"
#include "bpfwire/unwind-tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STATES 3

/* Registers by their number; the program counter is 16 on x86-64. */
struct state {
	uint16_t machine;
	uint64_t regs[33];
	uint64_t seed;
};

/* What a step tells of the caller. */
struct caller {
	bool end;
	uint64_t sp, fp, pc;
	uint64_t preserved[10];
	uint16_t lost; /* bits of preserved registers whose value is not known */
};

static uint64_t scramble(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 29;
}

static uint64_t memory(const struct state *s, uint64_t at)
{
	return scramble(at * UINT64_C(0x9e3779b97f4a7c15) + s->seed);
}

static void random_state(struct state *s, uint16_t machine, uint64_t seed, uint64_t pc)
{
	s->machine = machine;
	s->seed = seed;
	for (size_t i = 0; i < 33; i++)
		s->regs[i] = scramble(seed + 77 * (i + 1));
	if (machine == EM_X86_64)
		s->regs[16] = pc;
}

/* The stack machine of DWARF expressions. False: an operation that is not known here. */
static bool stack_operation(uint8_t op, uint64_t *stack, size_t *depth)
{
	uint64_t b = stack[*depth - 1], *a;

	if (op == 0x13) { /* drop */
		--*depth;
		return true;
	}
	if (op == 0x96) /* nop */
		return true;
	if (*depth < 2)
		return false;
	a = &stack[--*depth - 1];
	switch (op) {
	case 0x1a:
		*a &= b;
		return true;
	case 0x1c:
		*a -= b;
		return true;
	case 0x1e:
		*a *= b;
		return true;
	case 0x22:
		*a += b;
		return true;
	case 0x24:
		*a = b < 64 ? *a << b : 0;
		return true;
	case 0x2a:
		*a = (int64_t)*a >= (int64_t)b;
		return true;
	default:
		return false;
	}
}

static bool push_operation(const struct state *s, uint8_t op, struct cfi_bytes *b, uint64_t *ret)
{
	if (op >= 0x30 && op < 0x50) {
		*ret = op - 0x30u;
		return true;
	}
	if (op >= 0x70 && op < 0x90) {
		*ret = s->regs[op - 0x70] + (uint64_t)cfi_sleb(b);
		return true;
	}
	switch (op) {
	case 0x08:
		*ret = cfi_u8(b);
		return true;
	case 0x0a:
		*ret = cfi_number(b, 2);
		return true;
	case 0x0c:
		*ret = cfi_number(b, 4);
		return true;
	case 0x0d:
		*ret = (uint64_t)(int32_t)cfi_number(b, 4);
		return true;
	case 0x10:
		*ret = cfi_uleb(b);
		return true;
	case 0x11:
		*ret = (uint64_t)cfi_sleb(b);
		return true;
	default:
		return false;
	}
}

/* `stack` holds the CFA already where `depth` is 1. */
static uint64_t evaluate(const struct state *s, const struct cfi_rule *rule, uint64_t cfa,
			 size_t depth)
{
	struct cfi_bytes b = {rule->expression, rule->expression + rule->n, false};
	uint64_t stack[16] = {cfa}, value;

	while (b.p < b.end && depth < 15) {
		uint8_t op = cfi_u8(&b);

		if (push_operation(s, op, &b, &value))
			stack[depth++] = value;
		else if (op == 0x06 && depth)
			stack[depth - 1] = memory(s, stack[depth - 1]);
		else if (op == 0x23 && depth)
			stack[depth - 1] += cfi_uleb(&b);
		else if (!depth || !stack_operation(op, stack, &depth)) {
			printf("# operation %#x is not known to this judge\n", op);
			exit(1);
		}
	}
	return stack[depth - 1];
}

/* A register of the caller by its full rule; `own`: what it is if nothing is said. */
static uint64_t recover(const struct state *s, struct cfi_rule rule, uint64_t cfa, uint64_t own)
{
	switch (rule.how) {
	case CFI_OFFSET:
		return memory(s, cfa + (uint64_t)rule.value);
	case CFI_VAL_OFFSET:
		return cfa + (uint64_t)rule.value;
	case CFI_REGISTER:
		return s->regs[rule.value & 31];
	case CFI_EXPRESSION:
		return memory(s, evaluate(s, &rule, cfa, 1));
	case CFI_VAL_EXPRESSION:
		return evaluate(s, &rule, cfa, 1);
	default:
		return own;
	}
}

static const uint8_t preserved_x86[] = {3, 12, 13, 14, 15};
static const uint8_t preserved_arm[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28};

static struct caller step_by_row(const struct state *s, const struct cfi_row *row)
{
	bool x86 = s->machine == EM_X86_64;
	uint32_t ra = x86 ? 16 : 30, sp = x86 ? 7 : 31, fp = x86 ? 6 : 29;
	const uint8_t *preserved = x86 ? preserved_x86 : preserved_arm;
	struct caller c = {.end = cfi_row_rule(row, ra).how == CFI_UNDEFINED};
	uint64_t cfa = row->cfa.how == CFI_EXPRESSION
			       ? evaluate(s, &row->cfa, 0, 0)
			       : s->regs[row->cfa.value & 31] + (uint64_t)row->cfa_offset;

	c.sp = recover(s, cfi_row_rule(row, sp), cfa, cfa);
	c.fp = recover(s, cfi_row_rule(row, fp), cfa, s->regs[fp]);
	c.pc = recover(s, cfi_row_rule(row, ra), cfa, s->regs[ra]);
	for (size_t i = 0; i < (x86 ? 5 : 10); i++)
		c.preserved[i] =
			recover(s, cfi_row_rule(row, preserved[i]), cfa, s->regs[preserved[i]]);
	return c;
}

static struct caller signal_step(const struct state *s, uint64_t rule)
{
	uint64_t at = s->regs[unwind_rule_base(rule)] + (uint64_t)unwind_rule_offset(rule);
	struct caller c = {0};

	if (s->machine != EM_X86_64)
		return (struct caller){.sp = memory(s, at + 8 * UNWIND_SIGNAL_ARM_SP),
				       .fp = memory(s, at + 8 * UNWIND_ARM_FP),
				       .pc = memory(s, at + 8 * UNWIND_SIGNAL_ARM_PC),
				       .lost = 0x3ff};
	c.sp = memory(s, at + 8 * UNWIND_SIGNAL_X86_RSP);
	c.fp = memory(s, at + 8 * UNWIND_SIGNAL_X86_RBP);
	c.pc = memory(s, at + 8 * UNWIND_SIGNAL_X86_RIP);
	c.preserved[0] = memory(s, at + 8 * UNWIND_SIGNAL_X86_RBX);
	for (uint64_t i = 0; i < 4; i++)
		c.preserved[1 + i] = memory(s, at + 8 * (UNWIND_SIGNAL_X86_R12 + i));
	return c;
}

static uint64_t word_cfa(const struct state *s, uint64_t rule, uint64_t pc)
{
	uint64_t at = s->regs[unwind_rule_base(rule)] + (uint64_t)unwind_rule_offset(rule);

	switch (unwind_rule_cfa(rule)) {
	case UNWIND_CFA_INDEX:
		at += 8 * s->regs[unwind_rule_other(rule)];
		return memory(s, at) + (uint64_t)unwind_rule_extra(rule);
	case UNWIND_CFA_DEREF:
		return memory(s, at) + (uint64_t)unwind_rule_extra(rule);
	case UNWIND_CFA_PLT:
		return at + ((int64_t)(pc & 15) >= unwind_rule_extra(rule) ? 8 : 0);
	default:
		return at;
	}
}

static void aux_step(const struct state *s, uint64_t aux, uint64_t cfa, uint64_t fp,
		     struct caller *c)
{
	bool x86 = s->machine == EM_X86_64;

	for (unsigned int i = 0; i < (x86 ? 5 : 10); i++) {
		uint64_t own = s->regs[x86 ? preserved_x86[i] : preserved_arm[i]];
		uint64_t part = x86 ? aux >> 12 * i & 0xfff : aux >> 6 * i & 63;
		uint64_t n = part & 0x400 ? part | ~UINT64_C(0x7ff) : part & 0x7ff;

		if (part == (x86 ? UNWIND_AUX_X86_LOST : UNWIND_AUX_ARM_LOST))
			c->lost |= (uint16_t)(1u << i);
		else if (!part)
			c->preserved[i] = own;
		else if (!x86)
			c->preserved[i] = memory(s, cfa - 8 * part);
		else
			c->preserved[i] =
				memory(s, (part & UNWIND_AUX_X86_FRAME ? fp : cfa) + 8 * n);
	}
}

static struct caller step_by_words(const struct state *s, const struct elf_row *row, uint64_t pc,
				   bool aux)
{
	uint64_t rule = row->rule, fp = s->regs[s->machine == EM_X86_64 ? 6 : 29];
	uint64_t slot = (uint64_t)unwind_rule_fp(rule) * 8, cfa, from;
	struct caller c = {.end = unwind_rule_cfa(rule) == UNWIND_CFA_END};

	if (unwind_rule_cfa(rule) == UNWIND_CFA_SIGNAL)
		return signal_step(s, rule);
	cfa = word_cfa(s, rule, pc);
	from = (unwind_rule_frame(rule) ? fp : cfa) + slot;
	c.sp = cfa;
	c.fp = unwind_rule_fp(rule) == UNWIND_FP_SAME || unwind_rule_ra(rule) == UNWIND_RA_ALONE
		       ? fp
		       : memory(s, from);
	switch (unwind_rule_ra(rule)) {
	case UNWIND_RA_CFA:
		c.pc = memory(s, cfa - 8);
		break;
	case UNWIND_RA_FP:
		c.pc = memory(s, from + 8);
		break;
	case UNWIND_RA_ALONE:
		c.pc = memory(s, cfa + slot);
		break;
	default:
		c.pc = s->regs[unwind_rule_other(rule)];
	}
	if (aux)
		aux_step(s, row->aux, cfa, fp, &c);
	else
		c.lost = 0x3ff;
	return c;
}

static bool same_caller(const struct caller *a, const struct caller *b)
{
	uint16_t lost = a->lost | b->lost;

	if (a->end || b->end)
		return a->end && b->end;
	for (size_t i = 0; i < 10; i++)
		if (!(lost >> i & 1) && a->preserved[i] != b->preserved[i])
			return false;
	return a->sp == b->sp && a->fp == b->fp && a->pc == b->pc;
}

struct function {
	uint64_t start, end;
	uint64_t offset; /* in its section */
	int section;
};

#define SECTIONS 2 /* the better one first */

struct judged {
	struct elf_file *f;
	struct verdict *v;
	struct elf_rows_stats stats;
	VEC(struct elf_row) rows;
	VEC(struct function) functions; /* of the section at hand */
	VEC(struct function) pieces;    /* the ranges in which functions count, ascending */
	bool *seen;                     /* rows that begin where one may */
	struct cfi_section sections[SECTIONS];
	uint64_t go_end; /* of Go's own code */
	struct cfi_run run;
};

static int keep(void *context, const struct elf_row *row)
{
	struct judged *j = context;

	return vec_push(&j->rows, *row) ? 0 : -ENOMEM;
}

/* The row that holds at an address, or NULL. */
static struct elf_row *row_at(struct judged *j, uint64_t address)
{
	size_t low = 0, n = j->rows.n;

	while (n) {
		size_t half = n / 2;

		if (j->rows.p[low + half].address <= address) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low ? &j->rows.p[low - 1] : NULL;
}

static void may_begin(struct judged *j, uint64_t address)
{
	struct elf_row *row = row_at(j, address);

	if (row && row->address == address)
		j->seen[row - j->rows.p] = true;
}

/* Debugging information of Go's functions is made of the table that their rows come from, by Go's
 * linker: it says the same of stack pointer and return address, nothing of the frame pointer, and
 * knows no changes of stacks; for what a signal calls it has no caller. On x86-64 it has
 * the return address at the CFA, also where that has been taken from there. */
static bool go_differs(const struct judged *j, const struct elf_row *row, struct caller *a,
		       const struct caller *b)
{
	if (a->end || unwind_rule_cfa(row->rule) != UNWIND_CFA_REG ||
	    unwind_rule_base(row->rule) == (j->f->machine == EM_X86_64 ? 6 : 29))
		return false;
	a->fp = b->fp;
	if (j->f->machine == EM_X86_64 && unwind_rule_ra(row->rule) == UNWIND_RA_REGISTER)
		a->pc = b->pc;
	return !same_caller(a, b);
}

static void judge_at(struct judged *j, uint64_t pc, const struct cfi_row *full, bool go)
{
	static const struct elf_row none;
	const struct elf_row *row = row_at(j, pc);

	row = row ? row : &none;
	j->v->rows++;
	if (row->rule == 0) {
		j->v->inexpressible++;
		return;
	}
	for (uint64_t seed = 1; seed <= STATES; seed++) {
		struct state s;
		struct caller a, b;

		random_state(&s, j->f->machine, scramble(seed), pc);
		a = step_by_row(&s, full);
		b = step_by_words(&s, row, pc, j->stats.aux);
		if ((go ? go_differs(j, row, &a, &b) : !same_caller(&a, &b)) &&
		    verdict_differs(j->v))
			printf("# at %#" PRIx64 ": rule %#" PRIx64 ", auxiliary word %#" PRIx64
			       ": sp %#" PRIx64 " %#" PRIx64 ", fp %#" PRIx64 " %#" PRIx64
			       ", pc %#" PRIx64 " %#" PRIx64 "\n",
			       pc, row->rule, row->aux, a.sp, b.sp, a.fp, b.fp, a.pc, b.pc);
	}
}

static bool row_is_expression(const struct cfi_row *row)
{
	return row->cfa.how == CFI_EXPRESSION;
}

/* The part of a function where it counts is [start, end). */
static void judge_function(struct judged *j, const struct cfi_fde *fde, uint64_t start,
			   uint64_t end)
{
	bool go = j->go_end && fde->section == &j->sections[1];
	struct cfi_run *run = &j->run;

	/* C that is linked into a Go program has rows made of its code: rows-guessed.c's matter. */
	if (go && start >= j->go_end)
		return;
	j->v->functions++;
	cfi_run_begin(run, fde);
	while (cfi_run_next(run) == 1) {
		uint64_t from = run->start > start ? run->start : start;
		uint64_t to = run->end < end ? run->end : end;

		if (from >= to)
			continue;
		may_begin(j, from);
		judge_at(j, from, &run->row, go);
		if (to - 1 > from)
			judge_at(j, to - 1, &run->row, go);
		/* An expression may look at the program counter's place in a slot of a PLT. */
		for (uint64_t pc = from + 1;
		     row_is_expression(&run->row) && pc < to && pc < from + 16; pc++)
			judge_at(j, pc, &run->row, go);
	}
}

static int by_start(const void *x, const void *y)
{
	const struct function *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int collect(struct judged *j, int section)
{
	struct cfi_fde fde = {0};
	int r;

	j->functions.n = 0;
	while ((r = cfi_section_next(&j->sections[section], &fde)) >= 0 || r == -EBADMSG)
		if (r == 1 && fde.end != fde.start &&
		    !vec_push(&j->functions,
			      ((struct function){fde.start, fde.end, fde.offset, section})))
			return -ENOMEM;
	if (j->functions.n)
		qsort(j->functions.p, j->functions.n, sizeof(*j->functions.p), by_start);
	return r == -ENODATA ? 0 : r;
}

/* Cuts a range at the pieces of better sections; `at` goes along with rising ranges. */
static void cut(const struct judged *j, size_t n, size_t *at, struct function *range)
{
	while (*at < n && j->pieces.p[*at].end <= range->start)
		++*at;
	for (size_t i = *at; i < n && j->pieces.p[i].start < range->end; i++) {
		const struct function *better = &j->pieces.p[i];

		if (better->start > range->start) {
			range->end = better->start;
			return;
		}
		range->start = better->end > range->start ? better->end : range->start;
	}
}

/* The pieces of the functions at hand: each ends where the next begins. */
static int add_pieces(struct judged *j)
{
	size_t better = j->pieces.n, at = 0;

	for (size_t i = 0; i < j->functions.n; i++) {
		struct function range = j->functions.p[i];

		if (i + 1 < j->functions.n && j->functions.p[i + 1].start < range.end)
			range.end = j->functions.p[i + 1].start;
		cut(j, better, &at, &range);
		if (range.start < range.end && !vec_push(&j->pieces, range))
			return -ENOMEM;
	}
	if (j->pieces.n)
		qsort(j->pieces.p, j->pieces.n, sizeof(*j->pieces.p), by_start);
	return 0;
}

/* Whether rows may stand where no function of a section is. */
static bool has_other_sources(const struct judged *j)
{
	return j->stats.rows[ELF_ROWS_MADE] || j->stats.rows[ELF_ROWS_GO];
}

/* Where no function is there must be no rule, up to the next one. */
static void judge_gap(struct judged *j, uint64_t from)
{
	const struct elf_row *row = row_at(j, from);

	if (has_other_sources(j))
		return;
	may_begin(j, from);
	if (row && row->rule != 0 && verdict_differs(j->v))
		printf("# a rule for %#" PRIx64 ", which is of no function\n", from);
}

static int judge_pieces(struct judged *j)
{
	uint64_t covered = 0;

	vec_each (&j->pieces, piece) {
		struct cfi_fde fde = {.next = piece->offset};
		int r = cfi_section_next(&j->sections[piece->section], &fde);

		if (r != 1)
			return r < 0 ? r : -EBADMSG;
		if (piece->start > covered)
			judge_gap(j, covered);
		judge_function(j, &fde, piece->start, piece->end);
		covered = piece->end;
	}
	judge_gap(j, covered);
	return 0;
}

static void judge_strangers(struct judged *j)
{
	for (size_t i = 0; i < j->rows.n; i++)
		if (!j->seen[i] && !has_other_sources(j) && verdict_differs(j->v))
			printf("# a row at %#" PRIx64 ", where nothing changes\n",
			       j->rows.p[i].address);
}

static int judge_sections(struct judged *j)
{
	static const char *const names[SECTIONS] = {".eh_frame", ".debug_frame"};
	int r = 0;

	for (int i = 0; r == 0 && i < SECTIONS; i++) {
		const Elf64_Shdr *header = elf_file_section(j->f, names[i]);

		if (!header || header->sh_type == SHT_NOBITS)
			continue;
		r = cfi_section_open(&j->sections[i], j->f, header);
		if (r == 0)
			r = collect(j, i);
		if (r == 0)
			r = add_pieces(j);
	}
	return r < 0 ? r : judge_pieces(j);
}

/* 0: no Go program. */
static uint64_t go_end(struct elf_file *f)
{
	struct pclntab table = PCLNTAB_NULL;
	struct pclntab_function last = {0};

	if (pclntab_open(&table, f, NULL) == 0 && table.n_functions)
		pclntab_function(&table, table.n_functions - 1, &last);
	pclntab_close(&table);
	return last.end;
}

int judge_words(struct elf_file *f, struct verdict *v)
{
	_cleanup_(freep) struct judged *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	j->f = f;
	j->v = v;
	r = elf_rows_read(f, NULL, keep, j, &j->stats, NULL);
	j->go_end = j->stats.rows[ELF_ROWS_GO] ? go_end(f) : 0;
	j->seen = calloc(j->rows.n + 1, sizeof(*j->seen));
	if (r == 0 && j->seen && f->type != ET_REL &&
	    (f->machine == EM_X86_64 || f->machine == EM_AARCH64)) {
		r = judge_sections(j);
		judge_strangers(j);
	}
	for (int i = 0; i < SECTIONS; i++)
		cfi_section_close(&j->sections[i]);
	free(j->seen);
	vec_free(&j->rows);
	vec_free(&j->functions);
	vec_free(&j->pieces);
	return r;
}
