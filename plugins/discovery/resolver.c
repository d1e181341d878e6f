/* SPDX-License-Identifier: Apache-2.0 */
/* Names asked for over a socket. Contract in resolver.h. The first message is the one that all
 * senders begin with (http/sender/wire.h), since it is not this code that says why a process could
 * not be confined. A question's id is the type that is asked for, and its answer has the same. */
#include "discovery/resolver.h"

#include "base/clock.h"
#include "base/str.h"
#include "client/sender.h"
#include "http/sender/channel.h"
#include "http/sender/sender.h"
#include "http/sender/wire.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <resolv.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRY_SECONDS 2 /* for one answer of one server, */
#define TRIES       2 /* asked so often */
/* More than all servers and all domains of a search list take. */
#define LONGEST_MS 180000
/* So long one that is killed is waited for. */
#define END_MS     500

#define ASK    1u /* a name */
#define ANSWER 32u
#define SILENT 33u /* no server has answered */

struct resolver {
	atomic_uint references;
	int pidfd; /* -1: there is no process, and names are looked up here */
	struct channel channel;
	struct client_sender sender;
	bool ready;
	int broken; /* why it answers no more; 0: it does */
	struct error refusal;
};

/* A name that is not there, or has no record of the type, is an answer, too. */
static bool is_absent(int fault)
{
	return fault == HOST_NOT_FOUND || fault == NO_DATA;
}

static int look_up(const char *name, int type, uint8_t *answer)
{
	struct __res_state state = {0};
	int n;

	if (res_ninit(&state) < 0)
		return -EAGAIN;
	state.retrans = TRY_SECONDS;
	state.retry = TRIES;
	n = res_nsearch(&state, name, ns_c_in, type, answer, NS_MAXMSG);
	if (n < 0)
		n = is_absent(state.res_h_errno) ? 0 : -EAGAIN;
	res_nclose(&state);
	return n < NS_MAXMSG ? n : NS_MAXMSG;
}

/* --- Whoever asks --- */

int resolver_start(const struct abi_context *context, struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int socket, code = 0;

	if (!r)
		return -ENOMEM;
	r->references = 1;
	r->pidfd = r->channel.fd = -1;
	if (client_sender_init(&r->sender, context))
		code = client_sender_start(&r->sender, &socket, &r->pidfd);
	if (code == 0 && r->pidfd >= 0) {
		code = channel_init(&r->channel, socket, NS_MAXMSG);
		r->channel.fd = socket;
	}
	if (code < 0) {
		resolver_release(r);
		return code;
	}
	*ret = r;
	return 0;
}

/* The next message of the process, of which there is one more by then: 0, or what is wrong. */
static int next(struct resolver *r, int64_t limit_ms, struct channel_message *ret)
{
	int64_t end = clock_mono() + limit_ms * NS_PER_MSEC, left;
	int code;

	while ((code = channel_take(&r->channel, ret)) == 0) {
		struct pollfd ready = {.fd = r->channel.fd, .events = POLLIN};

		left = end - clock_mono();
		if (left <= 0)
			return -ETIMEDOUT;
		poll(&ready, 1, (int)(left / NS_PER_MSEC) + 1);
	}
	return code < 0 ? code : 0;
}

/* Until the process is confined, or says that it is not. */
static void hear(struct resolver *r)
{
	struct channel_message m;

	r->broken = next(r, HTTP_SENDER_WAIT_MS, &m);
	if (r->broken == 0 && m.type != WIRE_HELLO)
		r->broken = -EBADMSG;
	else if (r->broken == 0 && m.payload.n)
		r->broken = error_set(&r->refusal, m.id ? -EAGAIN : -EPERM,
				      "the process that speaks to servers is not ready: %.*s",
				      STR_FMT(str_first(m.payload, 900)));
	r->ready = r->broken == 0;
}

int resolver_await(struct resolver *r, struct error *err)
{
	if (r->pidfd >= 0 && !r->ready && !r->broken)
		hear(r);
	if (r->refusal.code)
		*err = r->refusal;
	return r->broken;
}

const char *resolver_refusal(const struct resolver *r)
{
	return r->refusal.code ? r->refusal.text : NULL;
}

static int take_answer(const struct channel_message *m, int type, uint8_t *answer)
{
	if (m->id != (uint64_t)type)
		return -EBADMSG;
	if (m->type == SILENT)
		return -EAGAIN;
	if (m->type != ANSWER)
		return -EBADMSG;
	if (m->payload.n)
		memcpy(answer, m->payload.p, m->payload.n);
	return (int)m->payload.n;
}

int resolver_ask(struct resolver *r, const char *name, int type, uint8_t *answer)
{
	struct error unused = ERROR_NULL;
	struct channel_message m;
	int code;

	if (strlen(name) >= NS_MAXDNAME)
		return -ENAMETOOLONG;
	if (r->pidfd < 0)
		return look_up(name, type, answer);
	code = resolver_await(r, &unused);
	if (code == 0)
		code = channel_put(&r->channel, ASK, (uint64_t)type, str_of(name));
	if (code == 0)
		code = next(r, LONGEST_MS, &m);
	if (code == 0)
		code = take_answer(&m, type, answer);
	if (code >= 0 || code == -EAGAIN)
		return r->broken ? -EPIPE : code;
	r->broken = code;
	resolver_end(r);
	return -EPIPE;
}

bool resolver_is_worn(struct resolver *r)
{
	struct pollfd gone = {.fd = r->pidfd, .events = POLLIN};

	return r->pidfd >= 0 &&
	       (r->broken || poll(&gone, 1, 0) > 0 ||
		client_sender_is_stale(&r->sender, clock_mono()));
}

void resolver_end(struct resolver *r)
{
	if (r->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, r->pidfd, SIGKILL, NULL, 0);
}

struct resolver *resolver_retain(struct resolver *r)
{
	atomic_fetch_add(&r->references, 1);
	return r;
}

void resolver_release(struct resolver *r)
{
	struct pollfd gone = {.events = POLLIN};
	siginfo_t info;

	if (!r || atomic_fetch_sub(&r->references, 1) != 1)
		return;
	resolver_end(r);
	gone.fd = r->pidfd;
	/* One that hangs in the kernel stays a zombie later: this may be the host's loop. */
	if (r->pidfd >= 0 && poll(&gone, 1, END_MS) > 0)
		waitid((idtype_t)P_PIDFD, (id_t)r->pidfd, &info, WEXITED);
	if (r->pidfd >= 0)
		close(r->pidfd);
	if (r->channel.fd >= 0)
		close(r->channel.fd);
	channel_fini(&r->channel);
	free(r);
}

/* --- The process --- */

static int say(struct channel *c, uint32_t type, uint64_t id, struct str payload)
{
	int r = channel_put(c, type, id, payload);

	while (r == 0 && channel_waits(c)) {
		struct pollfd full = {.fd = c->fd, .events = POLLOUT};

		poll(&full, 1, -1);
		r = channel_flush(c);
	}
	return r;
}

static int answer(struct channel *c, const struct channel_message *m, uint8_t *room)
{
	char *name = str_dup(m->payload);
	uint64_t type = m->id;
	int n;

	if (!name)
		return -ENOMEM;
	n = m->type == ASK ? look_up(name, (int)type, room) : -EBADMSG;
	free(name);
	if (n == -EAGAIN)
		return say(c, SILENT, type, STR_NULL);
	return n < 0 ? n : say(c, ANSWER, type, (struct str){(const char *)room, (size_t)n});
}

static int serve(struct channel *c, uint8_t *room)
{
	struct channel_message m;
	int r = say(c, WIRE_HELLO, 0, STR_NULL);

	while (r == 0) {
		struct pollfd ready = {.fd = c->fd, .events = POLLIN};

		r = channel_take(c, &m);
		if (r == 1)
			r = answer(c, &m, room);
		else if (r == 0)
			poll(&ready, 1, -1);
	}
	return r == -EPIPE ? 0 : r;
}

int32_t resolver_serve(int32_t socket)
{
	uint8_t *room = malloc(NS_MAXMSG);
	struct channel c;
	int r = room ? channel_init(&c, socket, NS_MAXDNAME) : -ENOMEM;

	if (r == 0) {
		r = serve(&c, room);
		channel_fini(&c);
	}
	free(room);
	return r;
}
