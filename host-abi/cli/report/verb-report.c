/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron report FILE…`: what any pprof files say together, as a table or as JSON: top functions
 * by self and by total, samples, duration, CPU time, losses. Names are strangers' text; on a
 * terminal their control characters are escaped. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/report/digest.h"
#include "cli/report/input.h"
#include "cli/report/losses.h"
#include "cli/report/missing-symbols.h"
#include "cli/report/shown.h"

#include "base/check.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "export/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_BEFORE_NAME 44u

struct report {
	const struct profile *p;
	const struct input *input;
	struct call_tree *tree;
	struct top top, programs;
	struct losses losses;
	struct str group; /* label of the third table */
	size_t limit;
	size_t width; /* of a name, 0: any */
	struct str unit;
	struct buf out;
};

static double percent(int64_t value, int64_t sum)
{
	return sum ? 100 * (double)value / (double)sum : 0;
}

static void put_entry(struct report *r, const struct top_entry *e)
{
	char self[32], total[32];
	struct buf name = BUF_NULL;
	struct str module = call_tree_base_name(e->source.n ? e->source : e->module);

	shown_amount(self, sizeof(self), e->self, r->unit);
	shown_amount(total, sizeof(total), e->total, r->unit);
	buf_str_append(&name, e->name.n ? e->name : STR("[unnamed code]"));
	if (module.n && (!e->name.n || !call_tree_unsymbolized(e->name, e->module))) {
		bool bracket = module.p[0] == '[';

		buf_str_append(&name, bracket ? STR("  ") : STR("  ["));
		buf_str_append(&name, module);
		buf_str_append(&name, bracket ? STR("") : STR("]"));
	}
	buf_printf(&r->out, "%11s %6.2f%% %14s %6.2f%%   ", self, percent(e->self, r->top.sum),
		   total, percent(e->total, r->top.sum));
	shown_text(&r->out, buf_str(&name), r->width);
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

		shown_amount(total, sizeof(total), e->total, r->unit);
		buf_printf(&r->out, "%34s %6.2f%%   ", total, percent(e->total, r->programs.sum));
		shown_text(&r->out, e->name.n ? e->name : STR("[none]"), r->width);
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
		shown_text(&r->out, r->p->types[i].type, 40);
		buf_str_append(&r->out, STR(" in "));
		shown_text(&r->out, r->p->types[i].unit, 40);
	}
	if (r->p->period > 0) {
		char period[32];

		shown_amount(period, sizeof(period), r->p->period, r->p->period_type.unit);
		buf_printf(&r->out, "; one sample every %s of ", period);
		shown_text(&r->out, r->p->period_type.type, 40);
	}
	buf_putc(&r->out, '\n');
}

/* Of several files equal stacks are one. */
static size_t n_stacks(const struct report *r)
{
	return r->input->files.n > 1 ? r->tree->counts.n : r->p->n_samples;
}

/* Processor time and cores, together and of each file. */
static void put_cpu(struct report *r)
{
	if (r->input->is_cpu) {
		buf_str_append(&r->out, STR("cpu       "));
		shown_cores(&r->out, r->input->cpu_ns, r->p->duration_ns);
		buf_putc(&r->out, '\n');
	}
	for (size_t i = 0; r->input->files.n > 1 && i < r->input->files.n; i++) {
		const struct input_file *f = &r->input->files.p[i];

		buf_str_append(&r->out, i ? STR("          ") : STR("files     "));
		shown_text(&r->out, str_of(f->name), 0);
		if (f->is_cpu) {
			buf_str_append(&r->out, STR("  "));
			shown_cores(&r->out, f->cpu_ns, f->duration_ns);
		}
		buf_putc(&r->out, '\n');
	}
}

static void put_head(struct report *r)
{
	char sum[32], duration[32];

	put_types(r);
	shown_amount(sum, sizeof(sum), r->top.sum, r->unit);
	buf_str_append(&r->out, STR("samples   "));
	if (r->top.samples >= 0)
		buf_printf(&r->out, "%" PRId64 " in ", r->top.samples);
	buf_printf(&r->out, "%zu distinct stacks, %s in all\n", n_stacks(r), sum);
	if (r->p->duration_ns > 1 || r->p->time_ns > 0) {
		shown_amount(duration, sizeof(duration), r->p->duration_ns, STR("nanoseconds"));
		buf_printf(&r->out, "duration  %s", duration);
		if (r->p->time_ns > 0)
			put_time(&r->out, r->p->time_ns);
		buf_putc(&r->out, '\n');
	}
	put_cpu(r);
	for (size_t i = 0; i < r->losses.n; i++) {
		buf_printf(&r->out, "lost      %" PRIu64 " samples: ", r->losses.list[i].samples);
		shown_text(&r->out, r->losses.list[i].reason, 160);
		buf_putc(&r->out, '\n');
	}
	for (size_t i = 0; i < r->p->n_comments; i++) {
		if (losses_is(r->p->comments[i]))
			continue;
		buf_str_append(&r->out, STR("comment   "));
		shown_text(&r->out, r->p->comments[i], 160);
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

static void put_json_losses(struct report *r)
{
	buf_printf(&r->out, ",\n \"losses\":[");
	for (size_t i = 0; i < r->losses.n; i++) {
		buf_printf(&r->out, "%s{\"samples\":%" PRIu64 ",", i ? "," : "",
			   r->losses.list[i].samples);
		put_key(&r->out, "reason", r->losses.list[i].reason);
		buf_putc(&r->out, '}');
	}
	buf_putc(&r->out, ']');
}

static void put_json_cpu(struct report *r, bool is_cpu, int64_t cpu_ns, int64_t duration_ns)
{
	if (is_cpu)
		buf_printf(&r->out, ",\"cpu_ns\":%" PRId64, cpu_ns);
	else
		buf_str_append(&r->out, STR(",\"cpu_ns\":null"));
	if (is_cpu && duration_ns > 1)
		buf_printf(&r->out, ",\"cores\":%.6f", (double)cpu_ns / (double)duration_ns);
	else
		buf_str_append(&r->out, STR(",\"cores\":null"));
}

static void put_json_files(struct report *r)
{
	buf_str_append(&r->out, STR(",\n \"files\":["));
	for (size_t i = 0; i < r->input->files.n; i++) {
		const struct input_file *f = &r->input->files.p[i];

		buf_str_append(&r->out, i ? STR(",{") : STR("{"));
		put_key(&r->out, "file", str_of(f->name));
		buf_printf(&r->out, ",\"time_ns\":%" PRId64 ",\"duration_ns\":%" PRId64, f->time_ns,
			   f->duration_ns);
		put_json_cpu(r, f->is_cpu, f->cpu_ns, f->duration_ns);
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
		   n_stacks(r));
	if (r->top.samples >= 0)
		buf_printf(&r->out, "%" PRId64, r->top.samples);
	else
		buf_str_append(&r->out, STR("null"));
	buf_printf(&r->out,
		   ",\n \"time_ns\":%" PRId64 ",\"duration_ns\":%" PRId64 ",\"period\":%" PRId64,
		   r->p->time_ns, r->p->duration_ns, r->p->period);
	put_json_cpu(r, r->input->is_cpu, r->input->cpu_ns, r->p->duration_ns);
	put_json_files(r);
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
	const char *group, *reader;
	bool json, unresolved;
	uint64_t tokens; /* for a language model, 0: for people */
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
	if (e == 0 && wish->tokens)
		e = digest_write(&(struct digest){r->input, r->tree, &r->top, &r->losses},
				 wish->tokens, &r->out);
	else if (e == 0 && wish->json)
		write_json(r);
	else if (e == 0)
		write_table(r);
	return e;
}

static int report(const char *const *paths, size_t n, const struct wish *wish)
{
	struct report r = {
		.limit = wish->limit, .group = str_of(wish->group), .width = name_width()};
	struct input input = INPUT_NULL;
	int code = EXIT_FAILED, result;

	if (!input_read(&input, "report", paths, n))
		return EXIT_FAILED;
	r.input = &input;
	r.p = input.p;
	losses_read(&r.losses, r.p);
	r.unit = r.p->types[r.p->default_type].unit;
	result = write_report(&r, wish);
	if (result == 0 && !r.out.failed && fwrite(r.out.p, 1, r.out.n, stdout) == r.out.n)
		code = EXIT_OK;
	if (r.out.failed || result < 0)
		fprintf(stderr, "andiron report: out of memory\n");
	top_fini(&r.top);
	top_fini(&r.programs);
	call_tree_free(r.tree);
	buf_free(&r.out);
	input_fini(&input);
	return code;
}

/* "llm" or "llm=TOKENS". */
static int read_reader(struct wish *wish)
{
	struct str text = str_of(wish->reader);

	if (!text.n)
		return OPTIONS_DONE;
	wish->tokens = DIGEST_TOKENS;
	if ((!str_is(text, "llm") &&
	     (!str_starts(text, STR("llm=")) || !str_u64(str_skip(text, 4), &wish->tokens))) ||
	    wish->tokens < DIGEST_MIN_TOKENS || wish->tokens > DIGEST_MAX_TOKENS)
		return options_wrong(
			&verb_report,
			"--for takes llm, or llm=TOKENS from %u to %u, as in llm=4000, not \"%s\"",
			DIGEST_MIN_TOKENS, DIGEST_MAX_TOKENS, wish->reader);
	if (wish->json || wish->unresolved)
		return options_wrong(&verb_report,
				     "--for goes with neither --json nor --unresolved");
	return OPTIONS_DONE;
}

static int run(int argc, char **argv)
{
	struct wish wish = {.limit = 20, .group = "process"};
	int first, code = options_parse(&verb_report, &wish, argc, argv, &first);

	if (code == OPTIONS_DONE && argc == first)
		code = options_wrong(&verb_report, "which file?");
	if (code == OPTIONS_DONE)
		code = read_reader(&wish);
	if (code == OPTIONS_DONE)
		code = input_check(&verb_report, (const char *const *)argv + first,
				   (size_t)(argc - first));
	if (code != OPTIONS_DONE)
		return code;
	return report((const char *const *)argv + first, (size_t)(argc - first), &wish);
}

static const struct flag flags[] = {
	{"number", 'n', FLAG_INTO(struct wish, limit), "N",
	 "how many functions to show (default 20)", .min = 1, .max = 1000000},
	{"group-by", 0, FLAG_INTO(struct wish, group), "LABEL",
	 "group also by the values of a label: pid, comm (thread), pod, … (default process)"},
	{"json", 0, FLAG_INTO(struct wish, json), NULL, "print JSON"},
	{"for", 0, FLAG_INTO(struct wish, reader), "llm[=TOKENS]",
	 "for a language model: functions and the call tree in so many tokens (of 3 bytes; "
	 "default 4000), and what was left out"},
	{"unresolved", 0, FLAG_INTO(struct wish, unresolved), NULL,
	 "show which code has no names, why, and what would help"},
	{0},
};

const struct command verb_report = {
	.verb = "report",
	.run = run,
	.usage = "[OPTIONS] FILE...",
	.brief = "show the top functions of pprof files",
	.summary = "Shows what pprof files hold: top functions by self and total, programs, "
		   "samples, duration, CPU time and cores, losses. - is standard input.\n"
		   "Several files are merged, whatever their periods. CPU time is samples times "
		   "period; cores are CPU time over the duration. The duration of several files is "
		   "the time that they cover together: what overlaps counts once.",
	.examples = "andiron report profile.pb.gz -n 10\n"
		    "andiron report node-1.pb.gz node-2.pb.gz\n"
		    "andiron report profile.pb.gz --for llm=4000\n"
		    "curl -s localhost:12345/profile | andiron report -\n",
	.flags = flags,
	.mixed = true,
};
