/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron wait`: whether profiles of pods arrive, asked of the agents themselves over HTTP. It
 * needs no right in the cluster and nothing of the backend: an agent counts a sample as delivered
 * when the backend has confirmed it, and with targets of discovery.kubernetes it samples nothing
 * but pods. What was delivered before the first answer proves nothing about now, so a rise is
 * waited for. One agent that delivers is enough: on other nodes no pod may be selected. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/wait/agent-state.h"
#include "http/polled.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#define AGENTS     256 /* addresses of one name; more are not asked */
#define ANSWER_MAX (256u << 10)
#define REQUEST_MS 5000
#define ROUND_MS   1000
#define WORK_MS    100
#define PORT       "12345"

struct wait;

struct agent {
	struct wait *wait;
	char url[NI_MAXHOST + 16]; /* scheme, address and port */
	char failure[192];         /* why there was no answer the last time; "" */
	struct agent_state state;  /* of the last answer */
	uint64_t before;           /* delivered as of the first one */
	bool answered, asked;      /* ever; in this round */
	struct buf unready;        /* what its readiness probe says */
};

struct wait {
	int64_t timeout_ns;
	char *host, *port;
	struct http_polled loop;
	struct agent *agents;
	size_t n;
	size_t n_asked; /* requests without an answer */
	bool all_done;
	char failure[192]; /* why the name led nowhere the last time; "" */
};

static void end_one(struct wait *w)
{
	w->n_asked--;
	w->all_done = w->n_asked == 0;
}

static void on_metrics(void *context, const struct http_response *r)
{
	struct agent *a = context;

	a->failure[0] = '\0';
	if (r->status == 0) {
		snprintf(a->failure, sizeof(a->failure), "%s", r->error);
	} else if (r->status != 200) {
		snprintf(a->failure, sizeof(a->failure), "/metrics is answered by status %d",
			 r->status);
	} else {
		agent_state_read(r->body, &a->state);
		/* A new process at the same address counts from 0. */
		if (!a->answered || a->state.delivered < a->before)
			a->before = a->answered ? 0 : a->state.delivered;
		a->answered = true;
	}
	end_one(a->wait);
}

static void on_unready(void *context, const struct http_response *r)
{
	struct agent *a = context;

	if (r->status == 503)
		buf_str_append(&a->unready, str_first(str_trim(r->body), 1024));
	end_one(a->wait);
}

/* Begins a request to each agent that is to be asked, and waits for all answers. */
static void ask(struct wait *w, const char *path,
		void (*done)(void *context, const struct http_response *response))
{
	const struct http_config config = {.proxy_from_environment = false};

	for (size_t i = 0; i < w->n; i++) {
		struct agent *a = &w->agents[i];
		const struct http_request request = {
			.method = "GET",
			.url = str_of(a->url),
			.path = path,
			.timeout_ms = REQUEST_MS,
			.max_response = ANSWER_MAX,
			.done = done,
			.context = a,
		};
		struct error err = ERROR_NULL;
		uint64_t id;

		if (!a->asked)
			continue;
		if (http_send(w->loop.client, &config, &request, &id, &err) == 0)
			w->n_asked++;
		else
			snprintf(a->failure, sizeof(a->failure), "%.191s",
				 err.code ? err.text : "memory is short");
	}
	w->all_done = w->n_asked == 0;
	while (!w->all_done)
		http_polled_until(&w->loop, &w->all_done, REQUEST_MS);
}

static void add_agent(struct wait *w, const struct addrinfo *at)
{
	bool v6 = at->ai_family == AF_INET6;
	char host[NI_MAXHOST], port[NI_MAXSERV], url[sizeof(w->agents->url)];
	size_t i = 0;

	if (getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return;
	snprintf(url, sizeof(url), "http://%s%.1000s%s:%.8s", v6 ? "[" : "", host, v6 ? "]" : "",
		 port);
	while (i < w->n && strcmp(w->agents[i].url, url) != 0)
		i++;
	if (i == AGENTS)
		return;
	if (i == w->n) {
		w->agents[w->n++] = (struct agent){.wait = w};
		memcpy(w->agents[i].url, url, sizeof(url));
	}
	w->agents[i].asked = true;
}

/* Pods come and go, so a name is looked up each time. */
static void resolve(struct wait *w)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(w->host, w->port, &hints, &found);

	for (size_t i = 0; i < w->n; i++)
		w->agents[i].asked = false;
	snprintf(w->failure, sizeof(w->failure), "%s", rc ? gai_strerror(rc) : "");
	for (const struct addrinfo *at = found; at && !rc; at = at->ai_next)
		add_agent(w, at);
	if (found)
		freeaddrinfo(found);
}

/* The rest of a round. A pod that does nothing has no profile: this one works for a part of it. */
static void pause_and_work(struct wait *w, int64_t end_ns)
{
	static const bool never;
	int64_t work_end = clock_mono() + WORK_MS * NS_PER_MSEC, left;

	while (clock_mono() < work_end)
		;
	left = (end_ns - clock_mono()) / NS_PER_MSEC;
	if (left > 0)
		http_polled_until(&w->loop, &never, left);
}

static const struct agent *delivering(const struct wait *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct agent *a = &w->agents[i];

		if (a->answered && a->state.has_kubernetes && a->state.matched &&
		    a->state.delivered > a->before)
			return a;
	}
	return NULL;
}

static void complain(struct wait *w)
{
	char within[32];
	struct buf text = BUF_NULL;

	buf_printf(&text,
		   "andiron wait: no profile of a pod arrived within %s; asked: %s port %s\n",
		   duration_format(w->timeout_ns, within, sizeof(within)), w->host, w->port);
	if (w->failure[0] || !w->n)
		buf_printf(&text,
			   "  this name leads to no address: %s\n  to fix: is there a Service of "
			   "that name, and does a pod of the DaemonSet run?\n",
			   w->failure[0] ? w->failure : "nothing found");
	ask(w, "/-/ready", on_unready);
	for (size_t i = 0; i < w->n; i++) {
		struct agent *a = &w->agents[i];
		struct str rest = buf_str(&a->unready);

		buf_printf(&text, "  %s: ", a->url);
		if (a->failure[0] || !a->answered) {
			buf_printf(&text,
				   "%s\n  to fix: does the pod run, and may it be reached at "
				   "this port?\n",
				   a->failure);
			continue;
		}
		agent_state_put(&a->state, a->before, &text);
		buf_putc(&text, '\n');
		while (rest.n)
			buf_printf(&text, "    %.*s\n", STR_FMT(str_cut(&rest, '\n')));
		buf_printf(&text, "  to fix: %s\n", agent_state_fix(&a->state));
	}
	fprintf(stderr, "%.*s", STR_FMT(buf_str(&text)));
	buf_free(&text);
}

static int wait_for_one(struct wait *w)
{
	int64_t end_ns = clock_mono() + w->timeout_ns;

	for (;;) {
		int64_t now_ns = clock_mono();
		const struct agent *a;

		resolve(w);
		ask(w, "/metrics", on_metrics);
		a = delivering(w);
		if (a) {
			printf("%s delivered samples of pods (%" PRIu64 "); it profiles %" PRIu64
			       " container%s.\n",
			       a->url, a->state.delivered - a->before, a->state.matched,
			       a->state.matched == 1 ? "" : "s");
			return EXIT_OK;
		}
		if (clock_mono() >= end_ns)
			break;
		pause_and_work(w, now_ns + ROUND_MS * NS_PER_MSEC);
	}
	complain(w);
	return EXIT_FAILED;
}

/* HOST, HOST:PORT, [ADDRESS]:PORT, each with or without http:// and an end. */
static int take_place(struct wait *w, const char *text)
{
	struct str rest = str_of(text), host, port = STR(PORT);
	size_t colon;

	if (str_starts(rest, STR("http://")))
		rest = str_skip(rest, strlen("http://"));
	rest = str_first(rest, str_find(rest, '/'));
	colon = str_rfind(rest, ':');
	host = rest;
	if (colon < rest.n && str_find(str_skip(rest, colon), ']') == rest.n - colon &&
	    (rest.p[0] == '[' || str_find(rest, ':') == colon)) {
		host = str_first(rest, colon);
		port = str_skip(rest, colon + 1);
	}
	if (host.n > 2 && host.p[0] == '[')
		host = (struct str){host.p + 1, host.n - 2};
	if (!host.n || !port.n || str_search(str_of(text), STR("https://")) == 0)
		return options_wrong(&verb_wait, "\"%s\" is no HOST:PORT", text);
	w->host = str_dup(host);
	w->port = str_dup(port);
	return OPTIONS_DONE;
}

static int run(int argc, char **argv)
{
	struct wait w = {.timeout_ns = 120 * NS_PER_SEC};
	struct error err = ERROR_NULL;
	int first, code = options_parse(&verb_wait, &w, argc, argv, &first);

	if (code == OPTIONS_DONE && argc - first != 1)
		code = options_wrong(&verb_wait, "for which agents? HOST:PORT");
	if (code == OPTIONS_DONE)
		code = take_place(&w, argv[first]);
	if (code != OPTIONS_DONE)
		return code;
	w.agents = calloc(AGENTS, sizeof(*w.agents));
	if (!w.host || !w.port || !w.agents || http_polled_init(&w.loop, &err)) {
		fprintf(stderr, "andiron wait: %s\n", err.code ? err.text : "memory is short");
		code = EXIT_FAILED;
	} else {
		code = wait_for_one(&w);
		http_polled_fini(&w.loop);
	}
	for (size_t i = 0; i < w.n; i++)
		buf_free(&w.agents[i].unready);
	free(w.agents);
	free(w.host);
	free(w.port);
	return code;
}

static const struct flag flags[] = {
	{"timeout", 0, FLAG_INTO(struct wait, timeout_ns), "DURATION",
	 "how long to wait; the default is 2m", 0, 86400 * NS_PER_SEC},
	{0},
};

const struct command verb_wait = {
	.verb = "wait",
	.run = run,
	.usage = "[--timeout DURATION] HOST[:PORT]",
	.brief = "wait until profiles of pods arrive",
	.summary = "Asks the agents at all addresses of HOST for their metrics (status.http, port "
		   "12345), and waits until one of them has delivered samples of pods since then. "
		   "If none does, it says of each how far it came, and what to try. It works a "
		   "little, so that a pod that runs it can be profiled itself. The chart's `helm "
		   "test` is this.",
	.flags = flags,
	.mixed = true,
};
