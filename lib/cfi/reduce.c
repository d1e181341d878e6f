/* SPDX-License-Identifier: Apache-2.0 */
/* Full row → words. Contract in reduce.h.
 *
 * What a word cannot hold gives rule 0 and never something near it: a walk that ends and says so is
 * better than one that goes on wrongly. Of several words that mean the same the first in this order
 * is taken, so that equal rows are equal words: places count from the CFA before they count from a
 * register, and the return address is at CFA - 8 before it is behind the frame pointer. */
#include "cfi/reduce.h"

#include "base/check.h"
#include "bpfwire/unwind-tables.h"
#include "cfi/expression.h"

#include <elf.h>

static const struct rows_machine machines[] = {
	{.machine = EM_X86_64,
	 .sp = UNWIND_X86_RSP,
	 .fp = UNWIND_X86_RBP,
	 .ra = UNWIND_X86_RA,
	 .n_preserved = UNWIND_PRESERVED_X86,
	 .preserved = {UNWIND_X86_RBX, 12, 13, 14, 15},
	 .preserved_bits = 1u << UNWIND_X86_RBX | 0xf000},
	{.machine = EM_AARCH64,
	 .sp = UNWIND_ARM_SP,
	 .fp = UNWIND_ARM_FP,
	 .ra = UNWIND_ARM_LR,
	 .link = true,
	 .n_preserved = UNWIND_PRESERVED_ARM,
	 .preserved = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28},
	 .preserved_bits = 0x1ff80000},
};

const struct rows_machine *rows_machine_of(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == machine)
			return &machines[i];
	return NULL;
}

static struct formula cfa_formula(const struct rows_machine *m, const struct cfi_row *row)
{
	if (row->cfa.how == CFI_EXPRESSION)
		return rows_expression(row->cfa.expression, row->cfa.n, m->ra, 0);
	if (row->cfa.how == CFI_REGISTER && row->cfa.value < 32)
		return (struct formula){.kind = FORMULA_REGISTER,
					.base = (uint8_t)row->cfa.value,
					.offset = row->cfa_offset};
	return (struct formula){0};
}

bool rows_expression_needs_aux(const struct rows_machine *m, const struct cfi_row *row)
{
	struct formula f = cfa_formula(m, row);

	if (f.kind == FORMULA_ELEMENT && m->preserved_bits >> f.other & 1)
		return true;
	return f.kind >= FORMULA_REGISTER && f.kind <= FORMULA_PLT &&
	       m->preserved_bits >> f.base & 1;
}

void rows_watch(const struct rows_machine *m, bool aux, struct cfi_run *run)
{
	check(m->sp < 64 && m->fp < 64 && m->ra < 64);
	memset(run->watch, 0, sizeof(run->watch));
	run->watch[0] = UINT64_C(1) << m->sp | UINT64_C(1) << m->fp | UINT64_C(1) << m->ra;
	for (size_t i = 0; aux && i < m->n_preserved; i++)
		run->watch[0] |= UINT64_C(1) << m->preserved[i];
}

static bool fits(int64_t value, unsigned int bits)
{
	int64_t limit = INT64_C(1) << (bits - 1);

	return value >= -limit && value < limit;
}

/* The CFA's part of the word; 0: it cannot be said. */
static uint64_t cfa_word(struct formula f)
{
	static const uint8_t kinds[] = {
		[FORMULA_REGISTER] = UNWIND_CFA_REG,
		[FORMULA_MEMORY] = UNWIND_CFA_DEREF,
		[FORMULA_ELEMENT] = UNWIND_CFA_INDEX,
		[FORMULA_PLT] = UNWIND_CFA_PLT,
	};

	if (f.kind >= sizeof(kinds) || !kinds[f.kind] || !fits(f.offset, 24) || !fits(f.extra, 8))
		return 0;
	return unwind_rule_more(unwind_rule(f.base, kinds[f.kind], 0, 0, (__s32)f.offset), 0,
				f.other, (__s32)f.extra);
}

/* Where a register is saved: FORMULA_CFA or FORMULA_REGISTER; FORMULA_CONSTANT: it is not, and
 * holds its value; FORMULA_UNKNOWN: anything else. */
static inline struct formula place(const struct rows_machine *m, struct formula cfa,
				   const struct cfi_rule *rule)
{
	struct formula f = {0};

	switch (rule->how) {
	case CFI_UNSPECIFIED:
	case CFI_UNDEFINED:
	case CFI_SAME:
		return (struct formula){.kind = FORMULA_CONSTANT};
	case CFI_OFFSET:
		return (struct formula){.kind = FORMULA_CFA, .offset = rule->value};
	case CFI_EXPRESSION:
		f = rows_expression(rule->expression, rule->n, m->ra, 1);
		break;
	default:
		break;
	}
	if (f.kind == FORMULA_REGISTER && cfa.kind == FORMULA_REGISTER && f.base == cfa.base)
		return (struct formula){
			.kind = FORMULA_CFA,
			.offset = (int64_t)((uint64_t)f.offset - (uint64_t)cfa.offset)};
	return f.kind == FORMULA_CFA || f.kind == FORMULA_REGISTER ? f : (struct formula){0};
}

/* A signal's frame: stack pointer, program counter and frame pointer stand where the kernel puts
 * them, all counted from one register. */
static bool signal_word(const struct rows_machine *m, struct formula cfa, struct formula fp,
			struct formula ra, uint64_t *ret)
{
	int64_t start = cfa.offset - 8 * UNWIND_SIGNAL_X86_RSP;

	if (m->machine != EM_X86_64 || cfa.kind != FORMULA_MEMORY || cfa.extra != 0 ||
	    ra.kind != FORMULA_REGISTER || fp.kind != FORMULA_REGISTER || ra.base != cfa.base ||
	    fp.base != cfa.base || !fits(start, 24))
		return false;
	if (ra.offset != start + 8 * UNWIND_SIGNAL_X86_RIP ||
	    fp.offset != start + 8 * UNWIND_SIGNAL_X86_RBP)
		return false;
	*ret = unwind_rule(cfa.base, UNWIND_CFA_SIGNAL, 0, 0, (__s32)start);
	return true;
}

/* A place in units of 8 bytes, as the word's `fp` holds it. */
static bool fits_fp(int64_t offset)
{
	return offset % 8 == 0 && fits(offset / 8, 16) && offset / 8 != UNWIND_FP_SAME;
}

/* The part of the word that says where the frame pointer is; false: it cannot be said. */
static bool fp_part(const struct rows_machine *m, struct formula fp, uint64_t *ret)
{
	bool frame = fp.kind == FORMULA_REGISTER && fp.base == m->fp;

	if (fp.kind == FORMULA_CONSTANT) {
		*ret = unwind_rule(0, 0, 0, UNWIND_FP_SAME, 0);
		return true;
	}
	*ret = unwind_rule_more(unwind_rule(0, 0, 0, (__s32)(fp.offset / 8), 0), frame, 0, 0);
	return (frame || fp.kind == FORMULA_CFA) && fits_fp(fp.offset);
}

/* Adds where frame pointer and return address are; 0: it cannot be said. */
static uint64_t add_places(uint64_t word, const struct rows_machine *m, struct formula fp,
			   struct formula ra)
{
	uint64_t part;

	if (!fp_part(m, fp, &part))
		return 0;
	if (ra.kind == FORMULA_CFA && ra.offset == -8)
		return word | part | unwind_rule(0, 0, UNWIND_RA_CFA, 0, 0);
	if (ra.kind == fp.kind && ra.base == fp.base && ra.offset == fp.offset + 8)
		return word | part | unwind_rule(0, 0, UNWIND_RA_FP, 0, 0);
	if (fp.kind == FORMULA_CONSTANT && ra.kind == FORMULA_CFA && fits_fp(ra.offset))
		return word | unwind_rule(0, 0, UNWIND_RA_ALONE, (__s32)(ra.offset / 8), 0);
	return 0;
}

/* The same where the return address is in a register. */
static uint64_t add_register(uint64_t word, const struct rows_machine *m, struct formula fp,
			     uint64_t ra)
{
	if (unwind_rule_cfa(word) == UNWIND_CFA_INDEX || ra >= 32)
		return 0;
	word = add_places(word, m, fp, (struct formula){.kind = FORMULA_CFA, .offset = -8});
	return word ? unwind_rule_more(word | unwind_rule(0, 0, UNWIND_RA_REGISTER, 0, 0), 0,
				       (__u32)ra, 0)
		    : 0;
}

/* A register's part of the auxiliary word. */
static uint64_t aux_part(const struct rows_machine *m, struct formula f)
{
	bool x86 = m->machine == EM_X86_64, frame = f.kind == FORMULA_REGISTER && f.base == m->fp;
	int64_t n = f.offset / 8;

	if (f.kind == FORMULA_CONSTANT)
		return 0;
	if ((f.kind != FORMULA_CFA && !frame) || f.offset % 8 || n == 0)
		return x86 ? UNWIND_AUX_X86_LOST : UNWIND_AUX_ARM_LOST;
	if (!x86)
		return !frame && n < 0 && n > -(int64_t)UNWIND_AUX_ARM_LOST ? (uint64_t)-n
									    : UNWIND_AUX_ARM_LOST;
	return fits(n, 11) ? ((uint64_t)n & 0x7ff) | (frame ? UNWIND_AUX_X86_FRAME : 0)
			   : UNWIND_AUX_X86_LOST;
}

static uint64_t aux_word(const struct rows_machine *m, struct formula cfa,
			 const struct cfi_row *row)
{
	unsigned int bits = m->machine == EM_X86_64 ? 12 : 6;
	uint64_t word = 0;

	for (unsigned int i = 0; i < m->n_preserved && m->preserved[i] < row->n; i++) {
		const struct cfi_rule *rule = &row->rules[m->preserved[i]];
		struct formula f = {.kind = FORMULA_UNKNOWN};

		if (rule->how == CFI_UNSPECIFIED)
			continue;
		if (rule->how != CFI_UNDEFINED)
			f = place(m, cfa, rule);
		word |= aux_part(m, f) << (i * bits);
	}
	return word;
}

/* Whether the caller's stack pointer is the CFA, as no rule of its own says otherwise. */
static bool sp_is_cfa(const struct cfi_row *row, uint8_t sp)
{
	struct cfi_rule rule = cfi_row_rule(row, sp);

	return rule.how == CFI_UNSPECIFIED || (rule.how == CFI_VAL_OFFSET && rule.value == 0);
}

/* The rows of nearly all code on x86-64: CFA from a register, return address at CFA - 8. As
 * rule_word would say it; 0: ask that. */
static uint64_t plain_word(const struct rows_machine *m, const struct cfi_row *row)
{
	const struct cfi_rule *fp = &row->rules[m->fp], *sp = &row->rules[m->sp];
	const struct cfi_rule *ra = &row->rules[m->ra];
	int64_t n = UNWIND_FP_SAME;

	if (row->n <= m->ra || row->n <= m->sp || row->cfa.how != CFI_REGISTER ||
	    row->cfa.value >= 32 || !fits(row->cfa_offset, 24))
		return 0;
	if (ra->how != CFI_OFFSET || ra->value != -8 || sp->how != CFI_UNSPECIFIED)
		return 0;
	if (fp->how == CFI_OFFSET && fits_fp(fp->value))
		n = fp->value / 8;
	else if (fp->how != CFI_UNSPECIFIED)
		return 0;
	return unwind_rule((__u32)row->cfa.value, UNWIND_CFA_REG, UNWIND_RA_CFA, (__s32)n,
			   (__s32)row->cfa_offset);
}

static uint64_t rule_word(const struct rows_machine *m, const struct cfi_row *row,
			  struct formula cfa)
{
	const struct cfi_rule saved_fp = cfi_row_rule(row, m->fp);
	const struct cfi_rule saved_ra = cfi_row_rule(row, m->ra);
	struct formula fp = place(m, cfa, &saved_fp), ra = place(m, cfa, &saved_ra);
	uint64_t word = cfa_word(cfa);

	if (!word)
		return 0;
	if (signal_word(m, cfa, fp, ra, &word))
		return word;
	if (!sp_is_cfa(row, m->sp))
		return 0;
	if (saved_ra.how == CFI_REGISTER)
		return add_register(word, m, fp, (uint64_t)saved_ra.value);
	if (ra.kind == FORMULA_CONSTANT)
		return m->link ? add_register(word, m, fp, m->ra) : 0;
	return add_places(word, m, fp, ra);
}

struct rows_words rows_reduce(const struct rows_machine *m, const struct cfi_row *row, bool aux)
{
	struct rows_words words = {0};
	struct formula cfa;

	words.rule = plain_word(m, row);
	if (words.rule) {
		if (aux)
			words.aux = aux_word(m, cfa_formula(m, row), row);
		return words;
	}
	if (cfi_row_rule(row, m->ra).how == CFI_UNDEFINED) {
		words.rule = unwind_rule(0, UNWIND_CFA_END, 0, 0, 0);
		return words;
	}
	cfa = cfa_formula(m, row);
	words.rule = rule_word(m, row, cfa);
	if (words.rule && aux && unwind_rule_cfa(words.rule) != UNWIND_CFA_SIGNAL)
		words.aux = aux_word(m, cfa, row);
	words.inexpressible = !words.rule;
	return words;
}
