/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron worker FILE COMPONENT [sender]`: the sandboxed worker that the host starts
 * (host/services/sandboxed-worker.h). It loads the plugin, drops all privileges, and runs the
 * component's function on the socket that it inherited: the one that parses, or the one that speaks
 * to servers. */
#include "cli/cli.h"
#include "cli/worker/sandbox.h"

#include "host/services/sandboxed-worker.h"
#include "host/registry.h"
#include "http/sender/sender.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

typedef int32_t (*main_fn)(int32_t socket);

/* The component's function; NULL: it has none. */
static main_fn function_of(const struct andiron_component *c, bool sends)
{
	if (!c)
		return NULL;
	if (sends)
		return ANDIRON_HAS(c, andiron_component, sender) ? c->sender : NULL;
	return ANDIRON_HAS(c, andiron_component, subprocess) ? c->subprocess : NULL;
}

/* What an agent of somebody else's has open, and has not marked as its own alone. */
static void close_others(void)
{
	if (syscall(SYS_close_range, SANDBOXED_WORKER_SOCKET + 1, ~0u, 0) == 0)
		return;
	/* Before Linux 5.9. */
	for (int fd = SANDBOXED_WORKER_SOCKET + 1; fd < 1 << 16; fd++)
		close(fd);
}

/* Of one that sends the agent says why; its standard error leads nowhere. */
static int refuse(bool sends, bool passes, const char *why)
{
	fprintf(stderr, "andiron worker: %s\n", why);
	if (sends)
		http_serve_refusal(SANDBOXED_WORKER_SOCKET, passes, why);
	return EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	const struct andiron_plugin *plugin;
	struct error err = ERROR_NULL;
	int first, r, code = options_parse(&verb_worker, NULL, argc, argv, &first);
	bool sends;
	main_fn serve;

	if (code != OPTIONS_DONE)
		return code;
	sends = argc == first + 3 && strcmp(argv[first + 2], "sender") == 0;
	if (argc != first + 2 + sends || !is_socket(SANDBOXED_WORKER_SOCKET)) {
		fputs("andiron worker: it is started by the agent, for a component that reads "
		      "untrusted files or speaks to servers in a sandbox\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (registry_load(argv[first], &plugin, NULL, &err) < 0) {
		error_wrap(&err, err.code, "%s", argv[first]);
		return refuse(sends, true, err.text); /* it may be replaced, or memory short */
	}
	close_others();
	serve = function_of(find(plugin, argv[first + 1]), sends);
	if (!serve) {
		error_set(&err, -ENOENT, "%s has no work for a process of its own",
			  argv[first + 1]);
		return refuse(sends, false, err.text);
	}
	r = sends ? sandbox_enter_sending(&err) : sandbox_enter(&err);
	if (r < 0)
		return refuse(sends, false, err.text);
	/* At once: a sanitizer's leak checker would now ask for what the sandbox refuses. */
	_exit(serve(SANDBOXED_WORKER_SOCKET) < 0 ? EXIT_FAILED : EXIT_OK);
}

const struct command verb_worker = {
	.verb = "worker",
	.run = run,
	.usage = "FILE COMPONENT [sender]",
	.summary = "Runs what reads untrusted files, or speaks to servers, in a sandbox. The agent "
		   "starts it.",
};
