/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron reload`: has a running agent read its configuration again, and says what came of it, by
 * the agent's status socket. SIGHUP does the same and tells nobody, so a service manager that sends
 * it takes every reload for done. It waits as long as the change takes: an agent that ends closes
 * the socket. */
#include "base/clock.h"
#include "cli/cli.h"
#include "http/polled.h"

#include <stdio.h>

#define AGAIN_MS 100

struct reload {
	int64_t patience_ns;
	const char *path;
	struct http_polled loop;
	int64_t until_ns;
	bool answered, final;
	int code;
};

static void say(const struct reload *self, const struct http_response *r)
{
	if (r->status >= 200 && r->status < 300)
		printf("%.*s", STR_FMT(r->body));
	else if (r->status)
		fprintf(stderr, "andiron reload: %.*s", STR_FMT(r->body));
	else
		fprintf(stderr,
			"andiron reload: %s; does `andiron run --status %s` run, as this user?\n",
			r->error, self->path);
}

/* An agent that begins or makes a change cannot be told now. */
static void on_answer(void *context, const struct http_response *r)
{
	struct reload *self = context;

	self->answered = true;
	self->final = (r->status && r->status != 503) || clock_mono() >= self->until_ns;
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
		.done = on_answer,
		.context = self,
	};
	uint64_t id;

	for (;;) {
		int r = http_send(self->loop.client, &config, &request, &id, err);

		if (r < 0)
			return r;
		for (self->answered = false; !self->answered;)
			http_polled_turn(&self->loop, NULL, INT64_MAX);
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
	struct reload self = {0};
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
	 "how long to ask again where nobody answers, or the agent just begins (default 0s)", 0,
	 3600 * NS_PER_SEC},
	{0},
};

const struct command verb_reload = {
	.verb = "reload",
	.run = reload_verb,
	.usage = "[--patience DURATION] SOCKET",
	.brief = "have a running agent read its configuration again",
	.summary = "Asks the agent at SOCKET, the path that its `run --status` names, to read its "
		   "configuration again, as SIGHUP does, and waits for what comes of it. It fails "
		   "where the agent refuses, and says why: the configuration has errors, or needs "
		   "what only a restart brings. What ran then goes on.",
	.examples = "sudo andiron reload /run/andiron/status\n",
	.flags = flags,
	.mixed = true,
};
