/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron reload`: has a running agent read its configuration again, and says what came of it, by
 * the agent's status socket. SIGHUP does the same and tells nobody, so a service manager that sends
 * it takes every reload for done. A change takes its time, and an agent that ends closes the
 * socket; one that hangs does neither, so there is a limit (--timeout). What may pass by itself is
 * asked for again (--patience), all else is said at once. */
#include "base/clock.h"
#include "cli/cli.h"
#include "http/polled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGAIN_MS 100

struct reload {
	int64_t patience_ns, timeout_ns;
	const char *path;
	struct http_polled loop;
	int64_t until_ns;
	bool answered, final;
	int code;
};

/* Why no agent will ever be reached there by this user, in words that follow the path, or NULL. One
 * that begins makes its socket, and one that was killed leaves it behind; both may come. */
static const char *wrong_with(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? NULL : strerror(errno);
	if (!S_ISSOCK(st.st_mode))
		return "it is no socket";
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 && errno == EACCES ? strerror(errno)
										  : NULL;
}

static void say(const struct reload *self, const struct http_response *r)
{
	const char *wrong = r->status ? NULL : wrong_with(self->path);
	char time[32];

	if (r->status >= 200 && r->status < 300)
		printf("%.*s", STR_FMT(r->body));
	else if (r->status)
		fprintf(stderr, "andiron reload: %.*s", STR_FMT(r->body));
	else if (r->result == -ETIMEDOUT)
		fprintf(stderr,
			"andiron reload: %s has not answered within %s: the agent still makes the "
			"change, or hangs; its log says what came of it\n",
			self->path, duration_format(self->timeout_ns, time, sizeof(time)));
	else if (wrong)
		fprintf(stderr,
			"andiron reload: cannot ask %s: %s; name the path that `andiron run "
			"--status` has, and be root or the agent's user\n",
			self->path, wrong);
	else
		fprintf(stderr,
			"andiron reload: %s; does `andiron run --status %s` run, as this user?\n",
			r->error, self->path);
}

/* An agent that begins, ends or makes a change cannot be told now. */
static bool may_pass(const struct reload *self, const struct http_response *r)
{
	if (r->status)
		return r->status == 503;
	return (r->result == -ECONNREFUSED || r->result == -ECONNRESET) && !wrong_with(self->path);
}

static void on_answer(void *context, const struct http_response *r)
{
	struct reload *self = context;

	self->answered = true;
	self->final = !may_pass(self, r) || clock_mono() >= self->until_ns;
	self->code = r->status >= 200 && r->status < 300 ? EXIT_OK : EXIT_FAILED;
	if (self->final)
		say(self, r);
}

static int ask(struct reload *self, struct error *err)
{
	static const bool never;
	const struct http_config config = {.unix_socket = str_of(self->path)};
	const struct http_request request = {
		.method = "POST",
		.url = STR("http://andiron"),
		.path = "/-/reload",
		.timeout_ms = (self->timeout_ns + NS_PER_MSEC - 1) / NS_PER_MSEC,
		.done = on_answer,
		.context = self,
	};
	uint64_t id;

	for (;;) {
		int r = http_send(self->loop.client, &config, &request, &id, err);

		if (r < 0)
			return r;
		for (self->answered = false; !self->answered;)
			http_polled_turn(&self->loop, INT64_MAX);
		if (self->final)
			return 0;
		http_polled_until(&self->loop, &never, AGAIN_MS);
	}
}

static int run(struct reload *self)
{
	struct error err = ERROR_NULL;
	int r = http_polled_init(&self->loop, &err);

	if (r == 0) {
		self->until_ns = clock_mono() + self->patience_ns;
		r = ask(self, &err);
		http_polled_fini(&self->loop);
	}
	if (r == 0)
		return self->code;
	fprintf(stderr, "andiron reload: %s\n", err.code ? err.text : "memory is short");
	return EXIT_FAILED;
}

static int reload_verb(int argc, char **argv)
{
	struct reload self = {.timeout_ns = 300 * NS_PER_SEC};
	int first, code = options_parse(&verb_reload, &self, argc, argv, &first);

	if (code == OPTIONS_DONE && argc - first != 1)
		code = options_wrong(&verb_reload, "which agent? Name its status socket");
	if (code != OPTIONS_DONE)
		return code;
	self.path = argv[first];
	return run(&self);
}

static const struct flag flags[] = {
	{"patience", 0, FLAG_INTO(struct reload, patience_ns), "DURATION",
	 "how long to ask again where nobody is there, or the agent just begins (default 0s)", 0,
	 3600 * NS_PER_SEC},
	{"timeout", 0, FLAG_INTO(struct reload, timeout_ns), "DURATION",
	 "how long to wait for what comes of it, once an agent is asked (default 5m)", 1,
	 86400 * NS_PER_SEC},
	{0},
};

const struct command verb_reload = {
	.verb = "reload",
	.run = reload_verb,
	.usage = "[--patience DURATION] [--timeout DURATION] SOCKET",
	.brief = "have a running agent read its configuration again",
	.summary =
		"Asks the agent at SOCKET, the path that its `run --status` names, to read its "
		"configuration again, as SIGHUP does, and waits for what comes of it. It fails "
		"where the agent refuses, and says why: the configuration has errors, or needs "
		"what only a restart brings. What ran then goes on. Where nobody answers in time, "
		"the change may still be made.",
	.examples = "sudo andiron reload /run/andiron/status\n",
	.flags = flags,
	.mixed = true,
};
