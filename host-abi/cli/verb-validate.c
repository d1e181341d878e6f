/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron validate`: everything that is wrong with a configuration, at once.
 * Without side effects: no network, no privilege, no BPF. */
#include "base/error.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/plugin-path.h"

#include <stdio.h>

static int validate(struct config *config, const struct registry *registry)
{
	struct plan *plan = NULL;

	if (config_plan(config, registry, false, &plan) < 0)
		return EXIT_FAILED;
	printf("valid: %zu components\n", plan->nodes.n);
	plan_free(plan);
	return EXIT_OK;
}

int verb_validate(int argc, char **argv)
{
	struct texts dirs = {0};
	const struct flag flags[] = {PLUGIN_DIR_FLAG(&dirs), {0}};
	const struct command command = {
		.verb = "validate",
		.usage = "CONFIG…",
		.summary = "Checks configuration files (or a directory of *.alloy) as one "
			   "configuration and\nprints every error with its place. Warnings alone "
			   "are a success. Needs no root.",
		.flags = flags,
	};
	struct error err = ERROR_NULL;
	struct registry *registry = NULL;
	struct config *config = NULL;
	int first, code = options_parse(&command, argc, argv, true, &first);

	if (code == OPTIONS_DONE && first == argc)
		code = options_wrong(&command, "which configuration? Name a file or a directory");
	if (code == OPTIONS_DONE) {
		config = config_new();
		registry = plugin_path_open(&dirs, true);
		code = config && registry ? OPTIONS_DONE : EXIT_FAILED;
	}
	for (int i = first; code == OPTIONS_DONE && i < argc; i++)
		if (config_add_path(config, argv[i], &err) < 0) {
			fprintf(stderr, "andiron validate: %s\n", err.text);
			code = EXIT_FAILED;
		}
	if (code == OPTIONS_DONE)
		code = validate(config, registry);
	config_free(config);
	registry_free(registry);
	vec_free(&dirs);
	return code;
}
