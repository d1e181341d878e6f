/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron doctor`: the points of precheck.h, for people or as JSON. */
#include "cli/cli.h"
#include "cli/doctor/precheck.h"

#include <jansson.h>
#include <stdio.h>

static const char *const words[] = {[POINT_OK] = "ok",
				    [POINT_NOTE] = "note",
				    [POINT_FAILED] = "failed",
				    [POINT_UNKNOWN] = "unknown"};

static void print_text(const struct precheck *p)
{
	const struct point *failure = precheck_failure(p);

	for (size_t i = 0; i < p->n; i++) {
		const struct point *point = &p->points[i];

		printf("%-8s %-14s %s\n", words[point->state], point->name, point->text);
		if (*point->fix)
			printf("%-8s %-14s to fix: %s\n", "", "", point->fix);
	}
	printf(failure ? "\nSampling cannot work here.\n" : "\nSampling will work.\n");
}

static int print_json(const struct precheck *p)
{
	json_t *list = json_array();
	json_t *all =
		json_pack("{s:b, s:o}", "can_sample", precheck_failure(p) == NULL, "points", list);

	for (size_t i = 0; i < p->n && list; i++) {
		const struct point *point = &p->points[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", point->name,
						      "state", words[point->state], "text",
						      point->text, "fix", point->fix));
	}
	if (!all || json_array_size(list) != p->n || json_dumpf(all, stdout, JSON_INDENT(2)) < 0) {
		json_decref(all);
		fprintf(stderr, "andiron: out of memory\n");
		return EXIT_FAILED;
	}
	json_decref(all);
	putchar('\n');
	return EXIT_OK;
}

struct doctor {
	bool json;
};

static int run(int argc, char **argv)
{
	struct doctor d = {0};
	struct precheck p;
	int first, code = options_parse(&verb_doctor, &d, argc, argv, &first);

	if (code == OPTIONS_DONE && first < argc)
		code = options_wrong(&verb_doctor, "it takes no \"%s\"", argv[first]);
	if (code != OPTIONS_DONE)
		return code;
	precheck_run(&p);
	if (d.json)
		code = print_json(&p);
	else
		print_text(&p);
	if (code > EXIT_OK)
		return code;
	return precheck_failure(&p) ? EXIT_FAILED : EXIT_OK;
}

static const struct flag flags[] = {
	{"json", 0, FLAG_INTO(struct doctor, json), NULL, "print JSON"},
	{0},
};

const struct command verb_doctor = {
	.verb = "doctor",
	.run = run,
	.usage = "[--json]",
	.brief = "check what sampling needs on this machine",
	.summary = "Checks everything that sampling needs on this machine. Prints what was found, "
		   "and the command that repairs what is wrong. Succeeds if sampling will work.",
	.flags = flags,
	.mixed = true,
};
