/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron worker FILE COMPONENT`: the sandboxed worker that the host starts
 * (host/services/sandboxed-worker.h). It loads the plugin, drops all privileges, and runs the
 * component's function on the socket that it inherited. */
#include "cli/cli.h"
#include "cli/worker/sandbox.h"

#include "host/services/sandboxed-worker.h"
#include "host/registry.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct andiron_component *find(const struct andiron_plugin *plugin, const char *name)
{
	for (uint64_t i = 0; i < plugin->n_components; i++)
		if (strcmp(plugin->components[i]->name, name) == 0)
			return plugin->components[i];
	return NULL;
}

static bool is_socket(int fd)
{
	socklen_t n = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET;
}

static int run(int argc, char **argv)
{
	const struct andiron_component *component;
	const struct andiron_plugin *plugin;
	struct error err = ERROR_NULL;
	int first, code = options_parse(&verb_worker, NULL, argc, argv, &first);

	if (code != OPTIONS_DONE)
		return code;
	if (argc != first + 2 || !is_socket(SANDBOXED_WORKER_SOCKET)) {
		fputs("andiron worker: it is started by the agent, for a component that reads "
		      "untrusted files in a sandbox\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (registry_load(argv[first], &plugin, NULL, &err) < 0) {
		fprintf(stderr, "andiron worker: %s: %s\n", argv[first], err.text);
		return EXIT_FAILED;
	}
	component = find(plugin, argv[first + 1]);
	if (!component || component->size <= offsetof(struct andiron_component, subprocess) ||
	    !component->subprocess) {
		fprintf(stderr, "andiron worker: %s has no work for a process of its own\n",
			argv[first + 1]);
		return EXIT_FAILED;
	}
	if (sandbox_enter(&err) < 0) {
		fprintf(stderr, "andiron worker: %s\n", err.text);
		return EXIT_FAILED;
	}
	/* At once: a sanitizer's leak checker would now ask for what the sandbox refuses. */
	_exit(component->subprocess(SANDBOXED_WORKER_SOCKET) < 0 ? EXIT_FAILED : EXIT_OK);
}

const struct command verb_worker = {
	.verb = "worker",
	.run = run,
	.usage = "FILE COMPONENT",
	.summary =
		"Runs a component's parser of untrusted files in a sandbox. The agent starts it.",
};
