/* SPDX-License-Identifier: Apache-2.0 */
/* See runtime-gaps.h. */
#include "cli/report/runtime-gaps.h"

#include "base/json.h"
#include "base/vec.h"
#include "export/frame-type.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_GAPS 32u

struct gap {
	struct str text;
	const char *help;
	int64_t with;  /* value of samples that have it */
	uint32_t seen; /* sample that was counted last, + 1 */
};

struct gaps {
	struct gap list[MAX_GAPS];
	uint32_t n;
};

static struct str unbracketed(struct str name)
{
	return str_starts(name, STR("[")) && str_ends(name, STR("]")) && name.n > 2
		       ? str_first(str_skip(name, 1), name.n - 2)
		       : name;
}

/* What a location says that a runtime lacked; false: nothing. */
static bool is_gap(const struct profile *p, const struct profile_location *l, struct gap *ret)
{
	struct str file = p->mappings[l->mapping].file, name;
	const struct profile_function *function;

	if (l->n_lines == 0)
		return false;
	function = &p->functions[p->lines[l->line_start].function];
	name = function->name;
	if (frame_type_is_runtime(file) && str_eq(file, name)) {
		*ret = (struct gap){name, "these functions have no name: their process ended "
					  "before they were read, or changed its memory"};
		return true;
	}
	if (!str_is(file, "[andiron]"))
		return false;
	if (str_is(name, "[runtime]"))
		*ret = (struct gap){name, "the first samples of a process are taken before its "
					  "runtime is known; later ones, where the runtime was "
					  "changing its stack"};
	else if (str_is(name, "[runtime switches]"))
		*ret = (struct gap){name, "the stack changes language too often for this kernel; "
					  "Linux 6.18 follows all"};
	else if (function->file.n) /* a marker of a runtime's, which is of no file otherwise */
		*ret = (struct gap){unbracketed(name),
				    "where it says that a version is not known, install a "
				    "plugin that knows it, and record again"};
	else
		return false;
	return true;
}

static void count(struct gaps *g, const struct gap *gap, uint32_t sample, int64_t value)
{
	const struct gap others = {STR("(others)"),
				   "more kinds than are listed; record fewer programs", 0, 0};
	uint32_t i = 0;

	while (i < g->n && !str_eq(g->list[i].text, gap->text))
		i++;
	if (i >= MAX_GAPS - 1) {
		gap = &others;
		i = MAX_GAPS - 1;
	}
	if (i == g->n)
		g->list[g->n++] = *gap;
	if (g->list[i].seen != sample + 1)
		g->list[i].with += value;
	g->list[i].seen = sample + 1;
}

static int by_share(const void *a, const void *b)
{
	int64_t x = ((const struct gap *)a)->with, y = ((const struct gap *)b)->with;

	return x > y ? -1 : x < y;
}

/* Names are strangers': nothing that could steer a terminal. */
static void put_plain(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		buf_putc(out, s.p[i] < ' ' || s.p[i] > '~' ? '?' : s.p[i]);
}

static void put_text(struct buf *out, const struct gap *g, double share)
{
	buf_printf(out, "%6.2f%% of samples  ", 100 * share);
	put_plain(out, g->text);
	buf_printf(out, "\n  to fix    %s\n", g->help);
}

static void put_json(struct buf *out, const struct gap *g, double share)
{
	buf_printf(out, "{\"share\":%.6f,\"lacked\":", share);
	json_put_str(out, g->text);
	buf_str_append(out, STR(",\"help\":"));
	json_put_str(out, str_of(g->help));
	buf_putc(out, '}');
}

int runtime_gaps_write(const struct profile *p, bool json, struct buf *out)
{
	struct gaps *g = calloc(1, sizeof(*g));
	int64_t sum = 0;
	uint32_t n;

	if (!g)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		int64_t value = p->values[i * p->n_types + p->default_type];
		struct gap gap;

		sum += value;
		for (uint32_t k = 0; k < s->n_frames; k++)
			if (is_gap(p, &p->locations[p->frames[s->frame_start + k]], &gap))
				count(g, &gap, i, value);
	}
	qsort(g->list, g->n, sizeof(g->list[0]), by_share);
	for (uint32_t i = 0; i < g->n; i++) {
		double share = sum ? (double)g->list[i].with / (double)sum : 0;

		if (json && i)
			buf_putc(out, ',');
		(json ? put_json : put_text)(out, &g->list[i], share);
	}
	n = g->n;
	free(g);
	return out->failed ? -ENOMEM : (int)n;
}
