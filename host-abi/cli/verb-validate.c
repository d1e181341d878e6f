/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron validate`: everything that is wrong with a configuration, at once.
 * Without side effects: no network, no privilege, no BPF. */
#include "base/error.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/plugin-path.h"
#include "cli/run/alloy-flags.h"
#include "host/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK_S 60 /* seconds; the largest configurations take one */

struct validate {
	struct texts plugin_dirs;
	struct alloy_flags alloy;
	bool json;
};

/* The whole answer; `findings` is a JSON list. */
static void print_json(bool valid, size_t n_components, size_t left_out, struct str findings)
{
	printf("{\"valid\": %s, \"components\": %zu, \"left_out\": %zu, \"findings\": %.*s}\n",
	       valid ? "true" : "false", n_components, left_out, STR_FMT(findings));
}

/* What is wrong and has no place in a file: as the only finding, or as a line for people. */
static int fail(const struct validate *v, const char *why)
{
	struct buf findings = BUF_NULL;

	if (v->json) {
		buf_str_append(&findings,
			       STR("[{\"file\":\"\",\"line\":0,\"column\":0,\"length\":0,"
				   "\"severity\":\"error\",\"message\":"));
		json_put_str(&findings, str_of(why));
		buf_str_append(&findings, STR(",\"hint\":\"\"}]"));
	}
	if (v->json && !findings.failed)
		print_json(false, 0, 0, buf_str(&findings));
	else
		fprintf(stderr, "andiron validate: %s\n", why);
	buf_free(&findings);
	return EXIT_FAILED;
}

static size_t count(const struct plan *plan)
{
	return plan ? plan->nodes.n + plan->waiting.n : 0;
}

static int check_as_json(const struct validate *v, struct config *config, struct registry *registry)
{
	struct buf findings = BUF_NULL;
	struct plan *plan = NULL;
	size_t left_out;
	int r = config_findings(config, registry, &findings, &left_out, &plan);

	if (r == -ENOMEM)
		fail(v, "out of memory");
	else
		print_json(r == 0, count(plan), left_out, buf_str(&findings));
	buf_free(&findings);
	plan_free(plan);
	return r == 0 ? EXIT_OK : EXIT_FAILED;
}

static int check_plan(const struct validate *v, struct config *config, struct registry *registry)
{
	struct plan *plan = NULL;
	size_t n;

	if (v->json)
		return check_as_json(v, config, registry);
	if (config_plan(config, registry, false, stderr, &plan) < 0)
		return EXIT_FAILED;
	n = count(plan);
	printf("valid: %zu component%s\n", n, n == 1 ? "" : "s");
	plan_free(plan);
	return EXIT_OK;
}

/* As check_plan, in a child: plugins check their arguments by their own code, which may crash. */
static int check_in_child(const struct validate *v, struct config *config,
			  struct registry *registry)
{
	char why[400];
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		int code;

		alarm(CHECK_S);
		code = check_plan(v, config, registry);
		fflush(NULL);
		_exit(code);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		snprintf(why, sizeof(why), "there is no child process to check in: %s",
			 strerror(errno));
		return fail(v, why);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	snprintf(why, sizeof(why),
		 "a plugin crashed or hung while it checked the arguments of its component (signal "
		 "%d, %s); validate fewer components to find it, then install that plugin again",
		 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return fail(v, why);
}

/* Also what the flags say that an agent would be started with. */
static int add_sources(struct validate *v, struct config *config, char **paths, struct error *err)
{
	int r = alloy_flags_config(&v->alloy, err);

	for (int i = 0; r == 0 && paths[i]; i++)
		r = strcmp(paths[i], "-") == 0 ? config_add_input(config, err)
					       : config_add_path(config, paths[i], err);
	for (int i = 0; r == 0 && i < ALLOY_FLAGS_TEXTS; i++)
		if (v->alloy.sources[i].text.n)
			r = config_add_text(config, v->alloy.sources[i].name,
					    v->alloy.sources[i].text);
	return r;
}

static int run(int argc, char **argv)
{
	struct validate v = {0};
	struct error err = ERROR_NULL;
	struct registry *registry = NULL;
	struct config *config = NULL;
	int first, code = options_parse(&verb_validate, &v, argc, argv, &first);

	if (code == OPTIONS_DONE && first == argc)
		code = options_wrong(&verb_validate,
				     "which configuration? Name a file or a directory, or - for "
				     "standard input");
	if (code == OPTIONS_DONE) {
		config = config_new();
		registry = plugin_path_open(&v.plugin_dirs, true);
		code = config && registry ? OPTIONS_DONE : EXIT_FAILED;
	}
	if (code == OPTIONS_DONE && add_sources(&v, config, argv + first, &err) < 0)
		code = fail(&v, err.text);
	if (code == OPTIONS_DONE)
		code = check_in_child(&v, config, registry);
	config_free(config);
	registry_free(registry);
	alloy_flags_fini(&v.alloy);
	vec_free(&v.plugin_dirs);
	return code;
}

static const struct flag flags[] = {
	PLUGIN_DIR_FLAG(struct validate, plugin_dirs),
	{"json", 0, FLAG_INTO(struct validate, json), NULL,
	 "print one JSON object with all findings: file, line, column, severity, message, hint"},
	ALLOY_FLAGS(struct validate, alloy),
	{0},
};

const struct command verb_validate = {
	.verb = "validate",
	.run = run,
	.usage = "[OPTIONS] CONFIG…",
	.brief = "check a configuration and show every error in it",
	.summary = "Checks configuration files (or a directory of *.alloy files, or standard input "
		   "as -) as one configuration and prints every error with its place. Warnings "
		   "alone are a success. Takes the flags of Alloy that `andiron run` takes. Needs "
		   "no root.",
	.flags = flags,
	.mixed = true,
};
