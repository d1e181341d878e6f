/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron diff BEFORE AFTER`: what has changed between two profiles, for people as a table and a
 * differential flame graph, for scripts as JSON, and for CI as an exit code. How a change is told
 * from chance is in export/diff.h. */
#include "cli/cli.h"
#include "cli/diff/comparison.h"
#include "cli/options.h"
#include "cli/report/shown.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

struct wish {
	uint64_t limit;
	const char *output, *fail_above;
	bool json;
	double most; /* --fail-above as a share */
};

/* "5%" or "5", as a share. */
static bool read_share(const char *text, double *ret)
{
	char *end;
	double percent = str_parse_fraction(text, &end);

	if (end == text || (strcmp(end, "%") != 0 && *end) || !(percent >= 0 && percent <= 100))
		return false;
	*ret = percent / 100;
	return true;
}

static int check_wish(struct wish *wish)
{
	if (wish->fail_above && !read_share(wish->fail_above, &wish->most))
		return options_wrong(
			&verb_diff,
			"--fail-above takes points of percent, 0 to 100, as in 5%%, not \"%s\"",
			wish->fail_above);
	if (wish->output && !str_ends(str_of(wish->output), STR(".html")))
		return options_wrong(
			&verb_diff,
			"what should be in %s? The name must end in .html (flame graph)",
			wish->output);
	return OPTIONS_DONE;
}

/* Whether it says so on standard error: CI has one line to quote. */
static bool is_too_much(const struct comparison *c, const struct wish *wish)
{
	const char *empty = comparison_empty(c);
	struct buf line = BUF_NULL;
	struct growth g;

	if (!wish->fail_above)
		return false;
	if (empty) {
		shown_text(&line, str_of(empty), 0);
		buf_str_append(&line, STR(" has no samples, so nothing can be compared"));
	} else if (comparison_grown(c, wish->most, &g)) {
		const struct diff_measure *m = &g.row->measures[g.measure];

		shown_text(&line, g.row->name, 200);
		buf_printf(&line,
			   " grew by %.2f points, more than %.4g: %.2f%% before, %.2f%% after%s",
			   100 * diff_growth(&c->diff, m), 100 * wish->most,
			   100 * diff_share(&c->diff, m, DIFF_BEFORE),
			   100 * diff_share(&c->diff, m, DIFF_AFTER),
			   g.measure == DIFF_SELF ? " (self)" : " (with what it calls)");
		if (g.n_others)
			buf_printf(&line, "; so did %zu other%s", g.n_others,
				   g.n_others == 1 ? "" : "s");
	} else {
		return false;
	}
	fprintf(stderr, "andiron diff: %.*s\n", STR_FMT(buf_str(&line)));
	buf_free(&line);
	return true;
}

/* A gate that is blind should not look like one that was passed. */
static void warn_if_few(const struct comparison *c, const struct wish *wish)
{
	if (wish->fail_above && c->diff.tested && comparison_error(c) > wish->most)
		fprintf(stderr,
			"andiron diff: warning: with so few samples a function with 10%% of them "
			"must grow by %.2f points to be told from chance; record for longer\n",
			100 * comparison_error(c));
}

static int write_page(const struct comparison *c, const char *path)
{
	struct error err = ERROR_NULL;
	struct buf page = BUF_NULL;
	int r = comparison_page(c, &page);

	if (r == 0)
		r = file_replace(path, page.p, page.n, &err);
	buf_free(&page);
	if (r < 0)
		fprintf(stderr, "andiron diff: %s\n", err.code ? err.text : "out of memory");
	return r;
}

static int write_text(struct comparison *c, const struct wish *wish)
{
	struct buf out = BUF_NULL;
	int r = wish->json ? comparison_json(c, &out) : comparison_table(c, &out);

	if (r < 0)
		fprintf(stderr, "andiron diff: out of memory\n");
	else if (fwrite(out.p, 1, out.n, stdout) != out.n)
		r = -1;
	buf_free(&out);
	return r;
}

static int run(int argc, char **argv)
{
	struct wish wish = {.limit = 20};
	struct comparison c = {0};
	int first, code = options_parse(&verb_diff, &wish, argc, argv, &first);

	if (code == OPTIONS_DONE && argc - first != 2)
		code = options_wrong(&verb_diff, "which two files? The older one comes first");
	if (code == OPTIONS_DONE)
		code = check_wish(&wish);
	if (code == OPTIONS_DONE)
		code = input_check(&verb_diff, (const char *const *)argv + first, 2);
	if (code != OPTIONS_DONE)
		return code;
	code = EXIT_FAILED;
	if (comparison_read(&c, argv[first], argv[first + 1], wish.limit) &&
	    (!wish.output || write_page(&c, wish.output) == 0) && write_text(&c, &wish) == 0 &&
	    !is_too_much(&c, &wish)) {
		warn_if_few(&c, &wish);
		code = EXIT_OK;
	}
	comparison_fini(&c);
	return code;
}

static const struct flag flags[] = {
	{"output", 'o', FLAG_INTO(struct wish, output), "FILE",
	 "write a differential flame graph too; the name ends in .html"},
	{"number", 'n', FLAG_INTO(struct wish, limit), "N",
	 "how many functions to show (default 20)", .min = 1, .max = 1000000},
	{"fail-above", 0, FLAG_INTO(struct wish, fail_above), "N%",
	 "exit with 1 if a function's share, its own or with what it calls, has grown "
	 "significantly and by more than N points; standard error then has one line that says "
	 "which"},
	{"json", 0, FLAG_INTO(struct wish, json), NULL, "print JSON"},
	{0},
};

const struct command verb_diff = {
	.verb = "diff",
	.run = run,
	.usage = "[OPTIONS] BEFORE AFTER",
	.brief = "show what has changed between two pprof files",
	.summary =
		"Compares two pprof files of one kind, function by function, as shares of each "
		"file's total: how long they were recorded, and at which rate, makes no "
		"difference. CPU time and cores of each stand above the tables. - is standard "
		"input.\n"
		"A function is the same if its name is, apart from what compilers and virtual "
		"machines add to it: .cold, .part.N, .isra.N, .constprop.N, .llvm.N, Rust's "
		"::hHASH, numbers and addresses of JVM lambdas and hidden classes.\n"
		"A change that may be chance is marked \"not significant\". The method: a "
		"two-proportion z-test on the numbers of samples, with at least 5 expected on each "
		"side; the limit is set so that at most one in twenty of the changes shown is "
		"none (Benjamini and Hochberg).\n"
		"The exit code is 0; with --fail-above 1 if a function grew by more; and 1 if a "
		"file cannot be read.",
	.examples = "andiron diff before.pb.gz after.pb.gz -o diff.html\n"
		    "andiron diff main.pb.gz branch.pb.gz --fail-above 5%\n",
	.flags = flags,
	.mixed = true,
};
