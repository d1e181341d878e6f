/* SPDX-License-Identifier: Apache-2.0 */
/* Full rows against readelf's. Each row is written as readelf writes it, for the columns that
 * readelf shows, and compared as text; a column that it does not show must have no rule. It prints
 * "exp" for an expression, whatever that says, and "u" for what is undefined and for what nothing
 * is said of: so operations are compared with its other listing. */
#include "rows.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A function or CIE at hand. */
struct subject {
	uint16_t machine;
	uint32_t ra;
	bool shown[CFI_REGISTERS];
};

static void squeeze(char *line)
{
	char *to = line;

	for (char *p = line; *p; p++)
		if (!isspace((unsigned char)*p) || (to > line && to[-1] != ' '))
			*to++ = isspace((unsigned char)*p) ? ' ' : *p;
	while (to > line && to[-1] == ' ')
		to--;
	*to = '\0';
}

static void read_columns(struct subject *s, char *line)
{
	uint32_t n = 0;

	memset(s->shown, 0, sizeof(s->shown));
	/* They ascend by number; "LOC" and "CFA" are none. */
	for (char *p = strstr(line, "CFA") ? strstr(line, "CFA") + 3 : line; *p;
	     p += strcspn(p, " ")) {
		char name[16];

		p += strspn(p, " ");
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, " "), p);
		for (uint32_t i = n; i < CFI_REGISTERS; i++) {
			if (strcmp(name, i == s->ra ? "ra" : register_name(s->machine, i)) != 0)
				continue;
			s->shown[i] = true;
			n = i + 1;
			break;
		}
	}
}

static void put_rule(struct buf *out, const struct subject *s, struct cfi_rule rule)
{
	switch (rule.how) {
	case CFI_SAME:
		buf_printf(out, " s");
		break;
	case CFI_OFFSET:
		buf_printf(out, " c%+d", (int)rule.value);
		break;
	case CFI_VAL_OFFSET:
		buf_printf(out, " v%+d", (int)rule.value);
		break;
	case CFI_REGISTER:
		buf_printf(out, " r%d (%s)", (int)rule.value,
			   register_name(s->machine, (uint64_t)rule.value));
		break;
	case CFI_EXPRESSION:
		buf_printf(out, " exp");
		break;
	case CFI_VAL_EXPRESSION:
		buf_printf(out, " vexp");
		break;
	default:
		buf_printf(out, " u");
	}
}

/* As readelf writes it. */
static void put_row(struct buf *out, const struct subject *s, uint64_t start,
		    const struct cfi_row *row)
{
	buf_clear(out);
	buf_printf(out, "%016" PRIx64 " ", start);
	if (row->cfa.how == CFI_EXPRESSION)
		buf_printf(out, "exp");
	else
		buf_printf(out, "%s%+d", register_name(s->machine, (uint64_t)row->cfa.value),
			   (int)row->cfa_offset);
	for (uint32_t n = 0; n < CFI_REGISTERS; n++) {
		struct cfi_rule rule = cfi_row_rule(row, n);

		if (s->shown[n])
			put_rule(out, s, rule);
		else if (rule.how != CFI_UNSPECIFIED)
			buf_printf(out, " %s that readelf has not", register_name(s->machine, n));
	}
	buf_putc(out, '\0');
}

static void compare_row(struct verdict *v, const struct subject *s, char *line, struct buf *ours)
{
	v->rows++;
	squeeze(line);
	if (strcmp(line, ours->p) != 0 && verdict_differs(v))
		printf("# ours:    %s\n# readelf: %s\n", ours->p, line);
}

static void missing_row(struct verdict *v, const char *what, const char *text)
{
	if (verdict_differs(v))
		printf("# %s: %s\n", what, text);
}

static void judge_cie(struct verdict *v, struct listing *l, struct subject *s,
		      const struct cfi_cie *cie)
{
	_cleanup_(buf_free) struct buf ours = BUF_NULL;
	char *line = listing_content(l);

	if (line)
		read_columns(s, line);
	while ((line = listing_content(l))) {
		put_row(&ours, s, 0, &cie->initial);
		compare_row(v, s, line, &ours);
	}
}

static void judge_fde(struct verdict *v, struct listing *l, struct subject *s, struct cfi_run *run)
{
	_cleanup_(buf_free) struct buf ours = BUF_NULL;
	char *line = listing_content(l);
	bool any = line != NULL;
	int r;

	v->functions++;
	if (line)
		read_columns(s, line);
	while ((r = cfi_run_next(run)) == 1) {
		line = any ? listing_content(l) : NULL;
		put_row(&ours, s, run->start, &run->row);
		if (line)
			compare_row(v, s, line, &ours);
		else if (any)
			missing_row(v, "readelf has not", ours.p);
	}
	while (any && (line = listing_content(l)))
		missing_row(v, r < 0 ? "broken for us" : "we have not", line);
}

static void judge_record(void *context, struct verdict *v, struct listing *l, struct record *record)
{
	struct subject s = {.machine = record->machine, .ra = record->cie->ra};

	if (!record->fde) {
		judge_cie(v, l, &s, record->cie);
		return;
	}
	cfi_run_begin(context, record->fde);
	judge_fde(v, l, &s, context);
}

int judge_rows(struct elf_file *f, FILE *in, struct verdict *v)
{
	_cleanup_(freep) struct cfi_run *run = calloc(1, sizeof(*run));

	return run ? listing_judge(f, in, judge_record, run, v) : -ENOMEM;
}
