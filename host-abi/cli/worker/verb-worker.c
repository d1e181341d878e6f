/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron worker FILE COMPONENT [sender|isolated]`: the sandboxed worker that the host starts
 * (host/services/sandboxed-worker.h). It loads the plugin, drops all privileges, and runs the
 * component's function on the socket that it inherited: the one that parses, or the one that speaks
 * to servers; or the whole component. */
#include "cli/cli.h"
#include "cli/worker/isolated.h"
#include "cli/worker/sandbox.h"

#include "host/services/sandboxed-worker.h"
#include "host/registry.h"
#include "host/registry/generation.h"
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

enum kind {
	PARSES,
	SENDS,
	ISOLATED,
	UNKNOWN,
};

static enum kind kind_of(const char *word)
{
	if (!word)
		return PARSES;
	return strcmp(word, "sender") == 0     ? SENDS
	       : strcmp(word, "isolated") == 0 ? ISOLATED
					       : UNKNOWN;
}

/* The agent says why, of all but one that parses; their standard error leads nowhere. */
static int refuse(enum kind kind, bool passes, const char *why)
{
	fprintf(stderr, "andiron worker: %s\n", why);
	if (kind == SENDS)
		http_serve_refusal(SANDBOXED_WORKER_SOCKET, passes, why);
	else if (kind == ISOLATED)
		isolated_refuse(-EIO, why);
	return EXIT_FAILED;
}

static int enter(enum kind kind, struct error *err)
{
	if (kind == ISOLATED)
		return sandbox_enter_isolated(err);
	return kind == SENDS ? sandbox_enter_sending(err) : sandbox_enter(err);
}

static int serve(const struct andiron_plugin *plugin, const char *path, const char *name,
		 enum kind kind)
{
	const struct andiron_component *component = find(plugin, name);
	struct registered_plugin registered = {.path = path,
					       .plugin = plugin,
					       .outline = plugin,
					       .generation = generation_of(plugin),
					       .fd = -1};
	struct error err = ERROR_NULL;
	main_fn function = function_of(component, kind == SENDS);

	if (kind == ISOLATED ? !component : !function) {
		error_set(&err, -ENOENT, "%s has no work for a process of its own", name);
		return refuse(kind, false, err.text);
	}
	if (enter(kind, &err) < 0)
		return refuse(kind, false, err.text);
	if (kind == ISOLATED)
		isolated_serve(&registered, component);
	/* At once: a sanitizer's leak checker would now ask for what the sandbox refuses. */
	_exit(function(SANDBOXED_WORKER_SOCKET) < 0 ? EXIT_FAILED : EXIT_OK);
}

static int run(int argc, char **argv)
{
	const struct andiron_plugin *plugin;
	struct error err = ERROR_NULL;
	int first, code = options_parse(&verb_worker, NULL, argc, argv, &first);
	enum kind kind;

	if (code != OPTIONS_DONE)
		return code;
	kind = kind_of(argc > first + 2 ? argv[first + 2] : NULL);
	if (argc < first + 2 || argc > first + 3 || kind == UNKNOWN ||
	    !is_socket(SANDBOXED_WORKER_SOCKET)) {
		fputs("andiron worker: it is started by the agent, for a component that reads "
		      "untrusted files, speaks to servers, or is isolated\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (registry_load(argv[first], &plugin, NULL, &err) < 0) {
		error_wrap(&err, err.code, "%s", argv[first]);
		return refuse(kind, true, err.text); /* it may be replaced, or memory short */
	}
	close_others();
	return serve(plugin, argv[first], argv[first + 1], kind);
}

const struct command verb_worker = {
	.verb = "worker",
	.run = run,
	.usage = "FILE COMPONENT [sender|isolated]",
	.summary = "Runs what reads untrusted files, or speaks to servers, in a sandbox. The agent "
		   "starts it.",
};
