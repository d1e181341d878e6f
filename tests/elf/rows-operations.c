/* SPDX-License-Identifier: Apache-2.0 */
/* What expressions say, and which registers are undefined: the rules of a function that are either,
 * written as readelf writes the instructions that set them, against those of its raw listing. Order
 * does not count, and one that stands there twice counts once. */
#include "rows.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "cfi/cfi-bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct texts {
	VEC(char *) list;
};

static void texts_free(struct texts *t)
{
	vec_each (&t->list, text)
		free(*text);
	vec_free(&t->list);
}

/* Takes the string over. */
static void texts_add(struct texts *t, char *text)
{
	vec_each (&t->list, other) {
		if (text && strcmp(*other, text) == 0) {
			free(text);
			return;
		}
	}
	if (!text || !vec_push(&t->list, text)) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
}

static const struct {
	uint8_t op;
	const char *name;
	char operand; /* u, s: LEB128; 1, 2, 4: unsigned bytes; -: signed 4 bytes */
} operations[] = {
	{0x06, "deref", 0},         {0x08, "const1u", '1'}, {0x0a, "const2u", '2'},
	{0x0c, "const4u", '4'},     {0x0d, "const4s", '-'}, {0x10, "constu", 'u'},
	{0x11, "consts", 's'},      {0x13, "drop", 0},      {0x1a, "and", 0},
	{0x1c, "minus", 0},         {0x1e, "mul", 0},       {0x22, "plus", 0},
	{0x23, "plus_uconst", 'u'}, {0x24, "shl", 0},       {0x2a, "ge", 0},
	{0x96, "nop", 0},
};

static void put_operand(struct buf *out, struct cfi_bytes *b, char kind)
{
	switch (kind) {
	case 0:
		break;
	case 'u':
		buf_printf(out, ": %" PRIu64, cfi_uleb(b));
		break;
	case 's':
		buf_printf(out, ": %" PRId64, cfi_sleb(b));
		break;
	case '-':
		buf_printf(out, ": %" PRId32, (int32_t)cfi_number(b, 4));
		break;
	default:
		buf_printf(out, ": %" PRIu64, cfi_number(b, (size_t)(kind - '0')));
	}
}

static void put_operation(struct buf *out, struct cfi_bytes *b, uint16_t machine)
{
	uint8_t op = cfi_u8(b);

	if (op >= 0x30 && op < 0x50) {
		buf_printf(out, "DW_OP_lit%u", (unsigned int)op - 0x30u);
		return;
	}
	if (op >= 0x70 && op < 0x90) {
		buf_printf(out, "DW_OP_breg%u (%s): ", (unsigned int)op - 0x70u,
			   register_name(machine, op - 0x70u));
		buf_printf(out, "%" PRId64, cfi_sleb(b));
		return;
	}
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (operations[i].op != op)
			continue;
		buf_printf(out, "DW_OP_%s", operations[i].name);
		put_operand(out, b, operations[i].operand);
		return;
	}
	buf_printf(out, "operation %#x, unknown here", op);
}

/* `number`: -1 for the CFA. */
static char *rule_text(uint16_t machine, int number, const struct cfi_rule *rule)
{
	struct cfi_bytes b = {rule->expression, rule->expression + rule->n, false};
	struct buf out = BUF_NULL;

	if (number < 0)
		buf_printf(&out, "DW_CFA_def_cfa_expression");
	else
		buf_printf(&out, "DW_CFA_%s: r%d (%s)",
			   rule->how == CFI_UNDEFINED    ? "undefined"
			   : rule->how == CFI_EXPRESSION ? "expression"
							 : "val_expression",
			   number, register_name(machine, (uint64_t)number));
	if (rule->how == CFI_UNDEFINED)
		return buf_take(&out);
	buf_printf(&out, " (");
	while (b.p < b.end) {
		put_operation(&out, &b, machine);
		if (b.p < b.end)
			buf_printf(&out, "; ");
	}
	buf_putc(&out, ')');
	return buf_take(&out);
}

static bool is_told(uint8_t how)
{
	return how == CFI_EXPRESSION || how == CFI_VAL_EXPRESSION || how == CFI_UNDEFINED;
}

/* What of a row its CIE has not said already. */
static void collect_row(struct texts *t, const struct record *record, const struct cfi_row *row)
{
	static const struct cfi_row nothing;
	const struct cfi_row *said = record->fde ? &record->cie->initial : &nothing;

	if (row->cfa.how == CFI_EXPRESSION && row->cfa.expression != said->cfa.expression)
		texts_add(t, rule_text(record->machine, -1, &row->cfa));
	for (uint32_t n = 0; n < row->n; n++) {
		const struct cfi_rule *rule = &row->rules[n], before = cfi_row_rule(said, n);

		if (is_told(rule->how) &&
		    (rule->how != before.how || rule->expression != before.expression))
			texts_add(t, rule_text(record->machine, (int)n, rule));
	}
}

static void collect(struct texts *t, const struct record *record, struct cfi_run *run)
{
	if (!record->fde) {
		collect_row(t, record, &record->cie->initial);
		return;
	}
	cfi_run_begin(run, record->fde);
	while (cfi_run_next(run) == 1)
		collect_row(t, record, &run->row);
}

static void collect_lines(struct texts *t, struct listing *l)
{
	static const char *const kinds[] = {"DW_CFA_def_cfa_expression ", "DW_CFA_expression: ",
					    "DW_CFA_val_expression: ", "DW_CFA_undefined: "};
	const char *line;

	while ((line = listing_content(l))) {
		line += strspn(line, " ");
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (strncmp(line, kinds[i], strlen(kinds[i])) == 0)
				texts_add(t, strdup(line));
	}
}

static void report_missing(struct verdict *v, const struct texts *in, const struct texts *from,
			   const char *who)
{
	vec_each (&from->list, text) {
		bool there = false;

		vec_each (&in->list, other)
			there = there || strcmp(*text, *other) == 0;
		if (!there && verdict_differs(v))
			printf("# %s: %s\n", who, *text);
	}
}

static void judge_record(void *context, struct verdict *v, struct listing *l, struct record *record)
{
	_cleanup_(texts_free) struct texts ours = {0}, theirs = {0};

	collect(&ours, record, context);
	collect_lines(&theirs, l);
	v->expressions += ours.list.n;
	report_missing(v, &ours, &theirs, "only readelf has");
	report_missing(v, &theirs, &ours, "only we have");
}

int judge_operations(struct elf_file *f, FILE *in, struct verdict *v)
{
	_cleanup_(freep) struct cfi_run *run = calloc(1, sizeof(*run));

	return run ? listing_judge(f, in, judge_record, run, v) : -ENOMEM;
}
