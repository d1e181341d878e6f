/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron validate-plugin`: whether a plugin keeps the rules of the ABI. Its bytes are checked
 * before anything of it is loaded, and this process itself loads nothing. Checks run in a directory
 * of their own, which goes when they have ended. */
#include "cli/cli.h"
#include "cli/conformance/check.h"
#include "cli/conformance/outcome-report.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_COMPONENTS 64u
#define MAX_OPEN       16
#define NO_CACHE       "glibc.malloc.tcache_count=0"

struct validate_plugin {
	struct trial_options options;
	const char *format;
	struct texts only;
	bool list;
};

static const struct check *const suites[] = {
	file_checks,      table_checks, lifecycle_checks, resource_checks, option_checks,
	batch_checks,     behaviour_checks, runtime_checks, NULL,
};

static bool is_wanted(const struct validate_plugin *v, const struct check *check)
{
	for (size_t i = 0; i < v->only.n; i++)
		if (strcmp(v->only.p[i], check->name) == 0)
			return true;
	return v->only.n == 0;
}

static const struct check *find(const char *name)
{
	for (const struct check *const *suite = suites; *suite; suite++)
		for (const struct check *c = *suite; c->name; c++)
			if (strcmp(c->name, name) == 0)
				return c;
	return NULL;
}

static void print_list(void)
{
	for (const struct check *const *suite = suites; *suite; suite++)
		for (const struct check *c = *suite; c->name; c++)
			printf("%-22s %s\n", c->name, c->meaning);
}

static int complain(const char *what, int code)
{
	fprintf(stderr, "andiron validate-plugin: %s: %s\n", what, strerror(-code));
	return code;
}

/* How many components the plugin has; 0: it cannot be loaded. */
static int count_components(struct trial t, uint32_t *ret_n)
{
	int r;

	t.check = &table_checks[0];
	r = trial_run(&t);
	*ret_n = t.note->outcome == OUTCOME_PASSED ? t.note->n_components : 0;
	if (*ret_n > MAX_COMPONENTS)
		*ret_n = 0;
	return r;
}

static int run_one(struct trial t, struct outcome_report *report, uint32_t n_components)
{
	int r = 0;

	if (n_components > 0 || t.check->subject == SUBJECT_FILE || t.check == &table_checks[0]) {
		r = trial_run(&t);
	} else {
		*t.note = (struct outcome_note){.outcome = OUTCOME_SKIPPED};
		snprintf(t.note->text, sizeof(t.note->text), "a plugin that can be loaded");
	}
	if (r == 0)
		outcome_report_add(report, t.check, t.note);
	return r;
}

static int run_all(const struct validate_plugin *v, struct trial t, struct outcome_report *report)
{
	uint32_t n_components;
	int r = count_components(t, &n_components);

	for (const struct check *const *suite = suites; *suite; suite++)
		for (t.check = *suite; t.check->name && r == 0; t.check++) {
			uint32_t n = t.check->subject == SUBJECT_COMPONENT ? n_components : 1;

			if (!is_wanted(v, t.check))
				continue;
			for (t.index = 0; t.index < (n ? n : 1) && r == 0; t.index++)
				r = run_one(t, report, n_components);
		}
	return r < 0 ? complain("there is no process to check in", r) : 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int check_file(const struct validate_plugin *v, const char *file)
{
	char scratch[] = "/tmp/andiron-validate-XXXXXX";
	struct outcome_report report = {.file = file, .out = stdout};
	struct outcome_note *note = trial_note_new();
	int r = note ? 0 : complain("no memory to share with a check", -ENOMEM);

	if (v->format)
		report.form = strcmp(v->format, "json") == 0  ? REPORT_JSON
			      : strcmp(v->format, "tap") == 0 ? REPORT_TAP
							      : REPORT_TEXT;
	if (r == 0 && (!mkdtemp(scratch) || chdir(scratch) < 0))
		r = complain("no directory to check in", -errno);
	if (r == 0) {
		outcome_report_begin(&report);
		r = run_all(v, (struct trial){.file = file, .options = &v->options, .note = note},
			    &report);
		outcome_report_end(&report);
		if (chdir("/") == 0)
			nftw(scratch, remove_one, MAX_OPEN, FTW_DEPTH | FTW_PHYS);
	}
	if (note)
		munmap(note, sizeof(*note));
	return r == 0 && report.n_failed == 0 ? EXIT_OK : EXIT_FAILED;
}

/* Begins again with a C library that keeps nothing of what is freed with the thread that freed it:
 * else it counts as in use, and hides what a plugin leaves. Where that cannot be, leaks may be
 * found later or in vain. */
static void begin_again(int argc, char **argv)
{
	/* A program with capabilities of its file has its tunables taken away: it would begin for
	 * ever. */
	const char *tunables = getauxval(AT_SECURE) ? NO_CACHE : getenv("GLIBC_TUNABLES");
	char **again = calloc((size_t)argc + 2, sizeof(*again));
	static char program[] = "andiron";

	if (again && !(tunables && strstr(tunables, NO_CACHE)) &&
	    setenv("GLIBC_TUNABLES", NO_CACHE, 1) == 0) {
		again[0] = program;
		memcpy(again + 1, argv, (size_t)argc * sizeof(*again));
		execv("/proc/self/exe", again);
	}
	free(again);
}

static bool is_argument(const char *text)
{
	const char *path = strchr(text, ':');

	return path && path > text && path[1] != '=' && strchr(path, '=');
}

static int run(int argc, char **argv)
{
	struct validate_plugin v = {0};
	char *file = NULL;
	int first, code = options_parse(&verb_validate_plugin, &v, argc, argv, &first);

	for (size_t i = 0; code == OPTIONS_DONE && i < v.only.n; i++)
		if (!find(v.only.p[i]))
			code = options_wrong(&verb_validate_plugin,
					     "there is no check \"%s\"; --list shows them",
					     v.only.p[i]);
	for (size_t i = 0; code == OPTIONS_DONE && i < v.options.arguments.n; i++)
		if (!is_argument(v.options.arguments.p[i]))
			code = options_wrong(&verb_validate_plugin,
					     "--with \"%s\" is not written "
					     "COMPONENT:PATH=EXPRESSION",
					     v.options.arguments.p[i]);
	if (code == OPTIONS_DONE && v.list) {
		print_list();
		code = EXIT_OK;
	}
	if (code == OPTIONS_DONE && argc - first != 1)
		code = options_wrong(&verb_validate_plugin, "which plugin? Name one file");
	if (code == OPTIONS_DONE && !(file = realpath(argv[first], NULL))) {
		complain(argv[first], -errno);
		code = EXIT_FAILED;
	}
	if (code == OPTIONS_DONE) {
		begin_again(argc, argv);
		code = check_file(&v, file);
	}
	free(file);
	vec_free(&v.options.arguments);
	vec_free(&v.options.libraries);
	vec_free(&v.only);
	return code;
}

static const char *const formats[] = {"text", "tap", "json", NULL};

static const struct flag flags[] = {
	{"format", 0, FLAG_INTO(struct validate_plugin, format), "FORMAT",
	 "how the result is written: text, tap or json", .choices = formats},
	{"only", 0, FLAG_INTO(struct validate_plugin, only), "CHECK",
	 "make only this check; may be repeated"},
	{"with", 0, FLAG_INTO(struct validate_plugin, options.arguments), "ARGUMENT",
	 "an argument of a component, written COMPONENT:PATH=EXPRESSION as in "
	 "'profile.file:paths=[\"out.folded\"]' or 'pyroscope.write:endpoint.url=\"http://x\"'; "
	 "without it required arguments get values that fit their types; may be repeated"},
	{"allow-library", 0, FLAG_INTO(struct validate_plugin, options.libraries), "NAME",
	 "a library that the plugin may need, as in 'libfoo.so.*'; may be repeated"},
	{"list", 0, FLAG_INTO(struct validate_plugin, list), NULL,
	 "list the checks, and what each asks for"},
	{0},
};

const struct command verb_validate_plugin = {
	.verb = "validate-plugin",
	.run = run,
	.usage = "[OPTIONS] FILE.so",
	.brief = "check that a plugin keeps the rules of the ABI",
	.summary =
		"Checks a plugin that anybody has built: its file, its tables, and how its "
		"components behave on a small host. Each check runs in a process of its own. "
		"Components that need capabilities are started only where this process has them. "
		"Exit status 0: nothing failed. What was skipped says what it needs.",
	.examples = "andiron validate-plugin ./andiron-example.so\n"
		    "andiron validate-plugin --format tap ./andiron-example.so\n",
	.flags = flags,
	.mixed = true,
};
