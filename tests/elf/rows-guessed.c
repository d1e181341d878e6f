/* SPDX-License-Identifier: Apache-2.0 */
/* Rows made from code alone, for code that is described: against the description, over all bytes of
 * .text. Compilers know more than the code shows (what never returns, what a table of jumps holds),
 * so functions may be left out, and a few bytes of those that are not differ; how many of each is
 * what is judged.
 *
 * And lengths of instructions against objdump's. */
#include "rows.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "codescan/code-rows.h"
#include "unwind/rows.h"
#include "bpfwire/unwind-tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WRONG_MAX 0.005 /* share of the rules given that may differ */
#define GIVEN_MIN 0.70  /* share of bytes that must have one */
/* Of `strict`, which is told less. */
#define STRICT_WRONG_MAX 0.008
#define STRICT_GIVEN_MIN 0.80

struct described {
	VEC(struct elf_row) rows;
	size_t at;
};

static int keep(void *context, const struct elf_row *row)
{
	struct described *d = context;

	return vec_push(&d->rows, *row) ? 0 : -ENOMEM;
}

/* The rule that a description has for an address; addresses rise. */
static uint64_t rule_at(struct described *d, uint64_t address)
{
	while (d->at + 1 < d->rows.n && d->rows.p[d->at + 1].address <= address)
		d->at++;
	return d->rows.n && d->rows.p[d->at].address <= address ? d->rows.p[d->at].rule : 0;
}

/* How many bytes of a piece are described; addresses rise. */
static uint64_t described_of(struct described *d, const struct rows_piece *piece)
{
	uint64_t n = 0, next;

	for (uint64_t at = piece->start; at < piece->end; at = next) {
		bool any = rule_at(d, at) != 0;
		size_t i = d->at;

		while (i < d->rows.n && d->rows.p[i].address <= at)
			i++;
		next = i < d->rows.n && d->rows.p[i].address < piece->end ? d->rows.p[i].address
									  : piece->end;
		n += any ? next - at : 0;
	}
	return n;
}

/* A frame pointer that has come back may also be described as saved: it still stands there. */
static bool same_rule(uint64_t told, uint64_t guessed, const struct tracked_stack *stack)
{
	if (unwind_rule_base(told) == UNWIND_X86_RBP && unwind_rule_base(guessed) != UNWIND_X86_RBP)
		return stack->by_fp || unwind_rule_cfa(told) == unwind_rule_cfa(guessed);
	return unwind_rule_cfa(told) == unwind_rule_cfa(guessed) &&
	       unwind_rule_base(told) == unwind_rule_base(guessed) &&
	       unwind_rule_offset(told) == unwind_rule_offset(guessed) &&
	       (unwind_rule_fp(told) == unwind_rule_fp(guessed) ||
		unwind_rule_fp(guessed) == UNWIND_FP_SAME);
}

static int judge_code(struct elf_file *f, struct code_rows *code, struct described *d,
		      struct verdict *v)
{
	uint64_t wrong = 0;
	struct rows_piece piece;
	int r;

	while ((r = code_rows_next(code, &piece)) == 1) {
		uint64_t told = rule_at(d, piece.start), guessed = piece.words.rule;
		uint64_t n = described_of(d, &piece);

		v->rows += n;
		v->inexpressible += guessed ? 0 : n;
		wrong += guessed && !same_rule(told, guessed, &code->pass.state) ? n : 0;
	}
	v->functions = code->function.number;
	v->expressions = wrong;
	if ((double)wrong > (code->strict ? STRICT_WRONG_MAX : WRONG_MAX) * (double)v->rows ||
	    (double)v->inexpressible >
		    (1 - (code->strict ? STRICT_GIVEN_MIN : GIVEN_MIN)) * (double)v->rows)
		v->differences++;
	return r;
}

int judge_guesses(struct elf_file *f, bool strict, struct verdict *v)
{
	const Elf64_Shdr *text;
	struct code_rows code = CODE_ROWS_NULL;
	struct elf_rows_stats stats;
	struct described d = {0};
	int r = elf_rows_read(f, NULL, keep, &d, &stats, NULL);

	text = elf_file_section(f, ".text");
	if (r == 0 && text && f->machine == EM_X86_64) {
		code.absolute = f->type == ET_EXEC;
		code.strict = strict;
		r = code_rows_begin(&code, f->fd, text->sh_offset, text->sh_addr,
				    text->sh_addr + text->sh_size);
		if (r == 0)
			r = judge_code(f, &code, &d, v);
	}
	code_rows_free(&code);
	vec_free(&d.rows);
	return r;
}

/* "  401000:\t48 83 ec 08 \tsub …": the bytes between the tabulators; how many. */
static size_t read_bytes(const char *line, uint8_t *bytes, size_t max)
{
	const char *p = strstr(line, ":\t");
	size_t n = 0;

	for (p = p ? p + 2 : ""; n < max && strspn(p, "0123456789abcdef") == 2; p += 3)
		bytes[n++] = (uint8_t)strtoul(p, NULL, 16);
	return n;
}

int judge_lengths(struct elf_file *f, FILE *in, struct verdict *v)
{
	_cleanup_(freep) char *line = NULL;
	size_t capacity = 0;

	while (getline(&line, &capacity, in) > 0) {
		uint8_t bytes[32] = {0};
		size_t n = read_bytes(line, bytes, 16);
		struct x86_instruction i;

		/* A prefix alone stands for bytes that are none. */
		if (n <= 1 || strstr(line, "(bad)") || strstr(line, "rex."))
			continue;
		x86_decode(bytes, n, &i);
		v->rows++;
		if (i.n != n && verdict_differs(v))
			printf("# %u bytes for us: %s", i.n, line);
	}
	return 0;
}
