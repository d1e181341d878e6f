/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron validate`: everything that is wrong with a configuration, at once.
 * Without side effects: no network, no privilege, no BPF. */
#include "base/error.h"
#include "cli/cli.h"
#include "host/config.h"
#include "cli/plugin-path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK_S 60 /* seconds; the largest configurations take one */

struct validate {
	struct texts plugin_dirs;
};

static int check_plan(struct config *config, struct registry *registry)
{
	struct plan *plan = NULL;

	if (config_plan(config, registry, false, stderr, &plan) < 0)
		return EXIT_FAILED;
	printf("valid: %zu component%s\n", plan->nodes.n, plan->nodes.n == 1 ? "" : "s");
	plan_free(plan);
	return EXIT_OK;
}

/* As check_plan, in a child: plugins check their arguments by their own code, which may crash. */
static int check_in_child(struct config *config, struct registry *registry)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		int code;

		alarm(CHECK_S);
		code = check_plan(config, registry);
		fflush(NULL);
		_exit(code);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		fprintf(stderr, "andiron validate: there is no child process to check in: %s\n",
			strerror(errno));
		return EXIT_FAILED;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr,
		"andiron validate: a plugin crashed or hung while it checked the arguments of its "
		"component (signal %d, %s); validate fewer components to find it, then install "
		"that plugin again\n",
		WTERMSIG(status), strsignal(WTERMSIG(status)));
	return EXIT_FAILED;
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
				     "which configuration? Name a file or a directory");
	if (code == OPTIONS_DONE) {
		config = config_new();
		registry = plugin_path_open(&v.plugin_dirs, true);
		code = config && registry ? OPTIONS_DONE : EXIT_FAILED;
	}
	for (int i = first; code == OPTIONS_DONE && i < argc; i++)
		if (config_add_path(config, argv[i], &err) < 0) {
			fprintf(stderr, "andiron validate: %s\n", err.text);
			code = EXIT_FAILED;
		}
	if (code == OPTIONS_DONE)
		code = check_in_child(config, registry);
	config_free(config);
	registry_free(registry);
	vec_free(&v.plugin_dirs);
	return code;
}

static const struct flag flags[] = {PLUGIN_DIR_FLAG(struct validate, plugin_dirs), {0}};

const struct command verb_validate = {
	.verb = "validate",
	.run = run,
	.usage = "[OPTIONS] CONFIG…",
	.brief = "check a configuration and show every error in it",
	.summary = "Checks configuration files (or a directory of *.alloy files) as one "
		   "configuration and prints every error with its place. Warnings alone are a "
		   "success. Needs no root.",
	.flags = flags,
	.mixed = true,
};
