/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron inspect FILE`: what a plugin offers. */
#include "cli.h"
#include "describe.h"
#include "options.h"
#include "host/registry.h"

#include <stdio.h>
#include <stdlib.h>

static int inspect(const char *path)
{
	const struct andiron_plugin *plugin;
	struct error err = ERROR_NULL;
	char *real = realpath(path, NULL);
	int r;

	if (!real) {
		perror(path);
		return EXIT_FAILED;
	}
	r = registry_load(real, &plugin, &err);
	if (r < 0)
		fprintf(stderr, "andiron inspect: %s is refused: %s\n", path, err.text);
	else
		describe_plugin(plugin, real, stdout);
	free(real);
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

int verb_inspect(int argc, char **argv)
{
	static const struct flag flags[] = {{0}};
	const struct command command = {
		.verb = "inspect",
		.usage = "FILE",
		.summary =
			"Shows what a plugin file offers, with all options, or why it is refused.",
		.flags = flags,
	};
	int first, code = options_parse(&command, argc, argv, true, &first);

	if (code == OPTIONS_DONE && argc - first != 1)
		code = options_wrong(&command, "which file?");
	return code == OPTIONS_DONE ? inspect(argv[first]) : code;
}
