/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron doctor`: the points of precheck.h, for people or as JSON. */
#include "cli/cli.h"
#include "cli/doctor/precheck.h"
#include "cli/doctor/running-agent.h"
#include "cli/plugin-path.h"

#include "base/buf.h"

#include <andiron/runtime.h>

#include <jansson.h>
#include <stdio.h>

static const char *const words[] = {[POINT_OK] = "ok",
				    [POINT_NOTE] = "note",
				    [POINT_FAILED] = "failed",
				    [POINT_UNKNOWN] = "unknown"};

/* Names are strangers': nothing that could steer a terminal. */
static void print_plain(const char *text)
{
	for (; *text; text++)
		putchar(*text < ' ' || *text > '~' ? '?' : *text);
}

static void print_processes(const json_t *processes)
{
	const json_t *process;
	size_t i;

	json_array_foreach(processes, i, process)
	{
		printf("%-8s %-14s process %lld ", "", "",
		       (long long)json_integer_value(json_object_get(process, "pid")));
		print_plain(json_string_value(json_object_get(process, "name")));
		printf(": ");
		print_plain(json_string_value(json_object_get(process, "runtime")));
		putchar('\n');
	}
}

/* `processes` stands behind the last point, which is that of runtimes. */
static void print_text(const struct precheck *p, const json_t *processes)
{
	const struct point *failure = precheck_failure(p);

	for (size_t i = 0; i < p->n; i++) {
		const struct point *point = &p->points[i];

		printf("%-8s %-14s %s\n", words[point->state], point->name, point->text);
		if (*point->fix)
			printf("%-8s %-14s to fix: %s\n", "", "", point->fix);
	}
	print_processes(processes);
	printf(failure ? "\nSampling cannot work here.\n" : "\nSampling will work.\n");
}

static int print_json(const struct precheck *p, json_t *processes)
{
	json_t *list = json_array();
	json_t *all = json_pack("{s:b, s:o, s:O*}", "can_sample", precheck_failure(p) == NULL,
				"points", list, "processes", processes);

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
	const char *status;
	bool json;
	struct texts plugin_dirs;
};

/* The names of a component's runtimes, behind those before. */
static void add_names(const struct andiron_component *c, struct buf *out)
{
	for (const char *const *id = c->offers; id && *id; id++) {
		struct str name = str_of(*id);

		if (!str_starts(name, STR(ANDIRON_RUNTIME_PREFIX)) ||
		    !str_ends(name, STR(ANDIRON_RUNTIME_SUFFIX)))
			continue;
		name = str_skip(name, sizeof(ANDIRON_RUNTIME_PREFIX) - 1);
		name.n -= sizeof(ANDIRON_RUNTIME_SUFFIX) - 1;
		buf_printf(out, "%s%.*s", out->n ? ", " : "", STR_FMT(str_first(name, 32)));
	}
}

/* Nothing, where plugins cannot be looked at: `andiron plugins` says why. */
static void check_runtimes(struct precheck *p, const struct texts *dirs)
{
	struct registry *registry = plugin_path_open(dirs, true);
	const struct registered_component *all;
	struct buf names = BUF_NULL;
	size_t n = registry ? registry_components(registry, &all) : 0;

	for (size_t i = 0; i < n; i++)
		add_names(all[i].component, &names);
	buf_putc(&names, '\0');
	if (registry && !names.failed)
		precheck_add_runtimes(p, names.p);
	buf_free(&names);
	if (registry)
		registry_free(registry);
}

static int run(int argc, char **argv)
{
	struct doctor d = {.status = RUNNING_AGENT_STATUS};
	struct precheck p;
	json_t *processes;
	int first, code = options_parse(&verb_doctor, &d, argc, argv, &first);

	if (code == OPTIONS_DONE && first < argc)
		code = options_wrong(&verb_doctor, "it takes no \"%s\"", argv[first]);
	if (code != OPTIONS_DONE)
		return code;
	precheck_run(&p);
	check_runtimes(&p, &d.plugin_dirs);
	vec_free(&d.plugin_dirs);
	processes = running_agent_runtimes(d.status);
	if (d.json)
		code = print_json(&p, processes);
	else
		print_text(&p, processes);
	json_decref(processes);
	if (code > EXIT_OK)
		return code;
	return precheck_failure(&p) ? EXIT_FAILED : EXIT_OK;
}

static const struct flag flags[] = {
	{"json", 0, FLAG_INTO(struct doctor, json), NULL, "print JSON"},
	{"status", 0, FLAG_INTO(struct doctor, status), "PATH",
	 "status socket of a running agent, which knows the runtime of each process; the default "
	 "is " RUNNING_AGENT_STATUS},
	PLUGIN_DIR_FLAG(struct doctor, plugin_dirs),
	{0},
};

const struct command verb_doctor = {
	.verb = "doctor",
	.run = run,
	.usage = "[--json] [--status PATH] [--plugin-dir DIR]",
	.brief = "check what sampling needs on this machine",
	.summary = "Checks everything that sampling needs on this machine. Prints what was found, "
		   "and the command that repairs what is wrong. Succeeds if sampling will work.",
	.flags = flags,
	.mixed = true,
};
