/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron report FILE`: what any pprof file says, as a table or as JSON: top
 * functions by self and by total, samples, duration, losses. Names are
 * strangers' text; on a terminal their control characters are escaped. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/report/missing-symbols.h"

#include "base/check.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "export/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LOST "andiron: lost " /* how our own profiles tell of losses, in comments */

#define COLUMNS_BEFORE_NAME 44u

struct report {
	const struct profile *p;
	struct call_tree *tree;
	struct top top, programs;
	struct str group; /* label of the third table */
	size_t limit;
	size_t width; /* of a name, 0: any */
	struct str unit;
	struct buf out;
};

/* A value in its unit, for people: "1.23 s", "45.6 MB", "1234". */
static void put_amount(char *text, size_t n, int64_t value, struct str unit)
{
	static const char *const sizes[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	double v = (double)value;
	size_t i = 0;

	if (str_is(unit, "nanoseconds") && (v >= 1e9 || v <= -1e9)) {
		snprintf(text, n, "%.2f s", v / 1e9);
	} else if (str_is(unit, "nanoseconds")) {
		snprintf(text, n, "%.1f ms", v / 1e6);
	} else if (str_is(unit, "bytes")) {
		for (; i < 5 && (v >= 1000 || v <= -1000); i++)
			v /= 1000;
		snprintf(text, n, i ? "%.1f %s" : "%.0f %s", v, sizes[i]);
	} else {
		snprintf(text, n, "%" PRId64, value);
	}
}

/* Appends `s` without what could steer a terminal, cut to `width` characters;
 * what is not UTF-8 counts by the byte. */
static void put_visible(struct buf *out, struct str s, size_t width)
{
	bool utf8 = str_utf8(s);
	size_t shown = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool c1 = utf8 && c == 0xc2 && (unsigned char)s.p[i + 1] < 0xa0;

		if ((c & 0xc0) != 0x80 || !utf8)
			shown++;
		if (width && shown >= width && i + 1 < s.n && (c & 0xc0) != 0x80) {
			buf_str_append(out, STR("…"));
			return;
		}
		if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
			buf_printf(out, "\\x%02x", c);
		else if (c1)
			buf_printf(out, "\\x%02x", (unsigned char)s.p[++i]);
		else
			buf_putc(out, (char)c);
	}
}

static double percent(int64_t value, int64_t sum)
{
	return sum ? 100 * (double)value / (double)sum : 0;
}

static void put_entry(struct report *r, const struct top_entry *e)
{
	char self[32], total[32];
	struct buf name = BUF_NULL;
	struct str module = call_tree_base_name(e->source.n ? e->source : e->module);

	put_amount(self, sizeof(self), e->self, r->unit);
	put_amount(total, sizeof(total), e->total, r->unit);
	buf_str_append(&name, e->name.n ? e->name : STR("[unnamed code]"));
	if (module.n && (!e->name.n || !call_tree_unsymbolized(e->name, e->module))) {
		bool bracket = module.p[0] == '[';

		buf_str_append(&name, bracket ? STR("  ") : STR("  ["));
		buf_str_append(&name, module);
		buf_str_append(&name, bracket ? STR("") : STR("]"));
	}
	buf_printf(&r->out, "%11s %6.2f%% %14s %6.2f%%   ", self, percent(e->self, r->top.sum),
		   total, percent(e->total, r->top.sum));
	put_visible(&r->out, buf_str(&name), r->width);
	buf_putc(&r->out, '\n');
	buf_free(&name);
}

static void put_table(struct report *r, const char *title, bool by_self)
{
	buf_printf(&r->out, "\n%s\n%11s %7s %14s %7s   %s\n", title, "self", "", "total", "",
		   "function");
	for (size_t i = 0; i < r->top.n && i < r->limit; i++)
		if (!by_self || r->top.entries[i].self)
			put_entry(r, &r->top.entries[i]);
}

/* The label's values, the heaviest first. */
static void put_programs(struct report *r)
{
	if (r->programs.n == 0)
		return;
	buf_printf(&r->out, "\nBy %.*s\n", STR_FMT(r->group));
	check(r->group.n > 0);
	top_sort_by_total(&r->programs);
	for (size_t i = 0; i < r->programs.n && i < r->limit; i++) {
		const struct top_entry *e = &r->programs.entries[i];
		char total[32];

		put_amount(total, sizeof(total), e->total, r->unit);
		buf_printf(&r->out, "%34s %6.2f%%   ", total, percent(e->total, r->programs.sum));
		put_visible(&r->out, e->name.n ? e->name : STR("[none]"), r->width);
		buf_putc(&r->out, '\n');
	}
}

static void put_time(struct buf *out, int64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / NS_PER_SEC);
	char text[32];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		buf_printf(out, ", begun %s", text);
}

static void put_types(struct report *r)
{
	buf_str_append(&r->out, STR("types     "));
	for (size_t i = 0; i < r->p->n_types; i++) {
		if (i)
			buf_str_append(&r->out, STR(", "));
		put_visible(&r->out, r->p->types[i].type, 40);
		buf_str_append(&r->out, STR(" in "));
		put_visible(&r->out, r->p->types[i].unit, 40);
	}
	if (r->p->period > 0) {
		char period[32];

		put_amount(period, sizeof(period), r->p->period, r->p->period_type.unit);
		buf_printf(&r->out, "; one sample every %s of ", period);
		put_visible(&r->out, r->p->period_type.type, 40);
	}
	buf_putc(&r->out, '\n');
}

static void put_head(struct report *r)
{
	char sum[32], duration[32];

	put_types(r);
	put_amount(sum, sizeof(sum), r->top.sum, r->unit);
	buf_str_append(&r->out, STR("samples   "));
	if (r->top.samples >= 0)
		buf_printf(&r->out, "%" PRId64 " in ", r->top.samples);
	buf_printf(&r->out, "%zu distinct stacks, %s in all\n", r->p->n_samples, sum);
	if (r->p->duration_ns > 1 || r->p->time_ns > 0) {
		put_amount(duration, sizeof(duration), r->p->duration_ns, STR("nanoseconds"));
		buf_printf(&r->out, "duration  %s", duration);
		if (r->p->time_ns > 0)
			put_time(&r->out, r->p->time_ns);
		buf_putc(&r->out, '\n');
	}
	for (size_t i = 0; i < r->p->n_comments; i++) {
		struct str text = r->p->comments[i];
		bool lost = str_starts(text, STR(LOST));

		buf_str_append(&r->out, lost ? STR("lost      ") : STR("comment   "));
		put_visible(&r->out, lost ? str_skip(text, sizeof(LOST) - 1) : text, 160);
		buf_putc(&r->out, '\n');
	}
}

static void write_table(struct report *r)
{
	put_head(r);
	if (r->top.n == 0)
		return;
	top_sort_by_self(&r->top);
	put_table(r, "Hottest by self", true);
	top_sort_by_total(&r->top);
	put_table(r, "Hottest by total", false);
	put_programs(r);
}

static void put_key(struct buf *out, const char *key, struct str value)
{
	buf_printf(out, "\"%s\":", key);
	json_put_str(out, value);
}

static void put_json_entries(struct report *r, const char *key, const struct top *top)
{
	buf_printf(&r->out, ",\n \"%s\":[", key);
	for (size_t i = 0; i < top->n && i < r->limit; i++) {
		const struct top_entry *e = &top->entries[i];

		buf_str_append(&r->out, i ? STR(",\n  {") : STR("\n  {"));
		if (top == &r->programs) {
			put_key(&r->out, "label", e->name);
		} else {
			put_key(&r->out, "function", e->name);
			buf_putc(&r->out, ',');
			put_key(&r->out, "file", e->module);
			buf_putc(&r->out, ',');
			put_key(&r->out, "source", e->source);
			buf_printf(&r->out, ",\"self\":%" PRId64, e->self);
		}
		buf_printf(&r->out, ",\"total\":%" PRId64 "}", e->total);
	}
	buf_putc(&r->out, ']');
}

/* A comment of ours as number and reason; false for any other. */
static bool read_loss(struct str text, uint64_t *ret_samples, struct str *ret_reason)
{
	struct str rest = str_skip(text, sizeof(LOST) - 1);
	struct str number = str_cut(&rest, ' ');

	if (!str_starts(text, STR(LOST)) || !str_u64(number, ret_samples) ||
	    !str_starts(rest, STR("samples: ")))
		return false;
	*ret_reason = str_skip(rest, 9);
	return true;
}

static void put_json_losses(struct report *r)
{
	struct str reason;
	uint64_t samples;
	size_t n = 0;

	buf_printf(&r->out, ",\n \"losses\":[");
	for (size_t i = 0; i < r->p->n_comments; i++) {
		if (!read_loss(r->p->comments[i], &samples, &reason))
			continue;
		buf_printf(&r->out, "%s{\"samples\":%" PRIu64 ",", n++ ? "," : "", samples);
		put_key(&r->out, "reason", reason);
		buf_putc(&r->out, '}');
	}
	buf_putc(&r->out, ']');
}

static void write_json(struct report *r)
{
	buf_printf(&r->out, "{\"types\":[");
	for (size_t i = 0; i < r->p->n_types; i++) {
		buf_str_append(&r->out, i ? STR(",{") : STR("{"));
		put_key(&r->out, "type", r->p->types[i].type);
		buf_putc(&r->out, ',');
		put_key(&r->out, "unit", r->p->types[i].unit);
		buf_putc(&r->out, '}');
	}
	buf_printf(&r->out, "],\n ");
	put_key(&r->out, "shown", r->p->types[r->p->default_type].type);
	buf_printf(&r->out, ",\"sum\":%" PRId64 ",\"stacks\":%zu,\"samples\":", r->top.sum,
		   r->p->n_samples);
	if (r->top.samples >= 0)
		buf_printf(&r->out, "%" PRId64, r->top.samples);
	else
		buf_str_append(&r->out, STR("null"));
	buf_printf(&r->out,
		   ",\n \"time_ns\":%" PRId64 ",\"duration_ns\":%" PRId64 ",\"period\":%" PRId64,
		   r->p->time_ns, r->p->duration_ns, r->p->period);
	put_json_losses(r);
	top_sort_by_self(&r->top);
	put_json_entries(r, "by_self", &r->top);
	top_sort_by_total(&r->top);
	put_json_entries(r, "by_total", &r->top);
	top_sort_by_total(&r->programs);
	put_json_entries(r, "by_label", &r->programs);
	buf_str_append(&r->out, STR("}\n"));
}

/* Names are cut only where a line would wrap. */
static size_t name_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return 0;
	return size.ws_col > COLUMNS_BEFORE_NAME + 20 ? size.ws_col - COLUMNS_BEFORE_NAME : 20;
}

struct wish {
	uint64_t limit;
	const char *group;
	bool json, unresolved;
};

static int write_report(struct report *r, const struct wish *wish)
{
	int e;

	if (wish->unresolved)
		return unresolved_write(r->p, wish->json, &r->out);
	e = call_tree_build(r->p, CALL_TREE_BY_FILE, &r->tree);
	if (e == 0)
		e = top_build(r->tree, &r->top);
	if (e == 0)
		e = top_build_by(r->tree, r->group, &r->programs);
	if (e == 0 && wish->json)
		write_json(r);
	else if (e == 0)
		write_table(r);
	return e;
}

static int report(const char *path, const struct wish *wish)
{
	struct report r = {
		.limit = wish->limit, .group = str_of(wish->group), .width = name_width()};
	struct error err = ERROR_NULL;
	struct profile *p = NULL;
	int code = EXIT_FAILED, result;

	if (profile_read(path, &p, &err) < 0) {
		struct buf text = BUF_NULL;

		put_visible(&text, err.code ? str_of(err.text) : STR("out of memory"), 0);
		fprintf(stderr, "andiron report: %.*s\n", STR_FMT(buf_str(&text)));
		buf_free(&text);
		return EXIT_FAILED;
	}
	r.p = p;
	r.unit = p->types[p->default_type].unit;
	result = write_report(&r, wish);
	if (result == 0 && !r.out.failed && fwrite(r.out.p, 1, r.out.n, stdout) == r.out.n)
		code = EXIT_OK;
	if (r.out.failed || result < 0)
		fprintf(stderr, "andiron report: out of memory\n");
	top_fini(&r.top);
	top_fini(&r.programs);
	call_tree_free(r.tree);
	buf_free(&r.out);
	profile_free(p);
	return code;
}

static int run(int argc, char **argv)
{
	struct wish wish = {.limit = 20, .group = "process"};
	int first, code = options_parse(&verb_report, &wish, argc, argv, &first);

	if (code == OPTIONS_DONE && argc - first != 1)
		code = options_wrong(&verb_report, "which file?");
	return code == OPTIONS_DONE ? report(argv[first], &wish) : code;
}

static const struct flag flags[] = {
	{"number", 'n', FLAG_INTO(struct wish, limit), "N",
	 "how many functions to show (default 20)", .min = 1, .max = 1000000},
	{"group-by", 0, FLAG_INTO(struct wish, group), "LABEL",
	 "group also by the values of a label: pid, comm (thread), pod, … (default process)"},
	{"json", 0, FLAG_INTO(struct wish, json), NULL, "print JSON"},
	{"unresolved", 0, FLAG_INTO(struct wish, unresolved), NULL,
	 "show which code has no names, why, and what would help"},
	{0},
};

const struct command verb_report = {
	.verb = "report",
	.run = run,
	.usage = "[OPTIONS] FILE",
	.brief = "show the top functions of a pprof file",
	.summary = "Shows what a pprof file holds: top functions by self and total, programs, "
		   "samples, duration, losses.",
	.examples = "andiron report profile.pb.gz -n 10\n",
	.flags = flags,
	.mixed = true,
};
