/* SPDX-License-Identifier: Apache-2.0 */
/* The client in this process: one curl multi handle driven through its socket interface.
 *
 * Invariants: a transfer is in the list exactly while its handle is in the multi handle, or held.
 * `done` is called only from `reap` (through `release` where it was held), when curl is not on the
 * stack; so it may send and cancel. A transfer that is cancelled inside curl, by a `data` callback,
 * is marked, and reaped when curl has returned.
 *
 * Looking at each transfer after each event would cost the square of their number. So this is done
 * only while some need it (`attended`): those that may stall, report that they have left, or were
 * cancelled inside curl.
 *
 * A transfer that is held waits for a token of OAuth2, in the list and not in the multi handle. The
 * request for the token is one like any other.
 *
 * Each client holds one count of libcurl's global state, which has a lock of its own. */
#include "http/http.h"

#include "base/check.h"
#include "base/clock.h"
#include "http/client.h"
#include "http/oauth2.h"
#include "http/transfer.h"

#include <errno.h>

#if LIBCURL_VERSION_NUM < 0x075700
#error "libcurl 7.87 or later is needed: CURLOPT_QUICK_EXIT, thread-safe global init"
#endif

/* Beyond so many connections, those in use among them, none is kept for the next request. libcurl's
 * own number rises and falls with the requests under way. Each connection that is closed for being
 * too many leaves an entry in libcurl's table of hosts, which is searched the next time. */
#define MAX_CONNECTIONS 512L

/* One that is refused in one style is asked for in the other, whose request is made with the first:
 * the configuration is there only then. */
struct token {
	struct token *next;
	struct local *client;
	unsigned char identity[SHA256_BYTES];
	struct str peer;
	struct buf header; /* empty: there is none yet */
	uint64_t number; /* counts those that were fetched */
	int64_t until_ns;
	bool asked;
	struct transfer *other;
};

#define MAX_TOKENS 64

struct local {
	struct http_client base; /* first: a client is one of these */
	struct http_loop loop;
	CURLM *multi;
	struct transfer *transfers;
	size_t n_attended;
	struct token *tokens;
	uint64_t last_id;
	int64_t curl_deadline; /* CLOCK_MONOTONIC ns, INT64_MAX: curl wants no timer */
	int64_t armed;         /* what the loop's timer stands at; INT64_MAX: off */
	bool in_curl;
};

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
	struct local *client = context;
	uint32_t events = 0;

	check(fd >= 0);
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		events |= HTTP_IN;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		events |= HTTP_OUT;
	client->loop.watch(client->loop.context, fd, events);
	return 0;
}

static int on_timer(CURLM *multi, long after_ms, void *context)
{
	struct local *client = context;

	client->curl_deadline = after_ms < 0 ? INT64_MAX
					     : clock_mono() + (int64_t)after_ms * NS_PER_MSEC;
	return 0;
}

/* Sets the loop's one timer to the nearest of curl's deadline and ours. */
static void arm(struct local *client)
{
	int64_t deadline = client->curl_deadline, now;

	for (struct transfer *t = client->n_attended ? client->transfers : NULL; t; t = t->next)
		if (transfer_deadline(t) < deadline)
			deadline = transfer_deadline(t);
	if (deadline == client->armed)
		return;
	client->armed = deadline;
	if (deadline == INT64_MAX) {
		client->loop.timer(client->loop.context, -1);
		return;
	}
	now = clock_mono();
	client->loop.timer(client->loop.context,
			   deadline <= now ? 0 : (deadline - now + NS_PER_MSEC - 1) / NS_PER_MSEC);
}

/* Takes a transfer out of the list and of curl. */
static void detach(struct local *client, struct transfer *t)
{
	check(!client->in_curl && *t->link == t && (!t->next || t->next->link == &t->next));
	client->in_curl = true;
	curl_multi_remove_handle(client->multi, t->easy);
	client->in_curl = false;
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	client->n_attended -= t->attended;
}

static void attend(struct local *client, struct transfer *t)
{
	client->n_attended += !t->attended;
	t->attended = true;
}

static void finish(struct local *client, struct transfer *t, CURLcode code)
{
	detach(client, t);
	t->token_refused = t->token && !t->held && transfer_unauthenticated(t);
	if (t->token_refused && t->token_number == t->token->number)
		t->token->until_ns = 0;
	if (!t->cancelled)
		transfer_finish(t, code);
	transfer_free(t);
}

/* Ends transfers that finished, stalled or were cancelled, and reports those that have left. The
 * list is read again after each end, since `done` may change it. */
static void reap(struct local *client)
{
	int64_t now = clock_mono();
	struct transfer *t, *next;
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(client->multi, &left))) {
		CURLcode code = message->data.result;

		check(message->msg == CURLMSG_DONE);
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
		check(t && t->easy == message->easy_handle);
		finish(client, t, code);
	}
	for (t = client->n_attended ? client->transfers : NULL; t; t = next) {
		next = t->next;
		if (!t->cancelled && !transfer_stalled(t, now)) {
			transfer_tell_left(t);
			continue;
		}
		finish(client, t, CURLE_OPERATION_TIMEDOUT);
		next = client->transfers;
	}
	arm(client);
}

static void drive(struct local *client, curl_socket_t fd, int events)
{
	int running;

	check(!client->in_curl);
	client->in_curl = true;
	curl_multi_socket_action(client->multi, fd, events, &running);
	client->in_curl = false;
	reap(client);
}

static void local_ready(struct http_client *base, int fd, uint32_t events)
{
	struct local *client = (struct local *)base;
	int flags = 0;

	if (events & HTTP_IN)
		flags |= CURL_CSELECT_IN;
	if (events & HTTP_OUT)
		flags |= CURL_CSELECT_OUT;
	if (events & ~(HTTP_IN | HTTP_OUT))
		flags |= CURL_CSELECT_ERR;
	drive(client, fd, flags);
}

static void local_timeout(struct http_client *base)
{
	struct local *client = (struct local *)base;

	client->armed = INT64_MAX;
	if (client->curl_deadline <= clock_mono())
		client->curl_deadline = INT64_MAX;
	drive(client, CURL_SOCKET_TIMEOUT, 0);
}

/* --- Transfers that begin, and tokens --- */

static int begin(struct local *client, struct transfer *t, struct error *err)
{
	CURLMcode code;

	client->in_curl = true;
	code = curl_multi_add_handle(client->multi, t->easy);
	client->in_curl = false;
	return code == CURLM_OK ? 0
				: error_set(err, -ENOMEM, "cannot begin a request: %s",
					    curl_multi_strerror(code));
}

static void enlist(struct local *client, struct transfer *t)
{
	t->id = ++client->last_id;
	check(t->id != 0);
	t->next = client->transfers;
	t->link = &client->transfers;
	if (t->next)
		t->next->link = &t->next;
	client->transfers = t;
	if (t->stall_ns || t->left)
		attend(client, t);
}

/* Up to the id. */
static struct transfer *first_held(const struct local *client, const struct token *token,
				   uint64_t newest)
{
	struct transfer *t = client->transfers;

	while (t && !(t->held && t->token == token && t->id <= newest))
		t = t->next;
	return t;
}

static int give_token(struct transfer *t, const struct token *token, struct error *err)
{
	t->token_number = token->number;
	return transfer_authorize(t, buf_str(&token->header), err);
}

/* Those that wait for the token go on, or end for the reason. What their `done` sends waits for
 * another, and this one may be forgotten then. */
static void release(struct local *client, const struct token *token, int code, const char *why)
{
	uint64_t newest = client->last_id;
	struct error err = ERROR_NULL;
	struct transfer *t;

	while ((t = first_held(client, token, newest))) {
		int r = code;

		t->held = false;
		if (r == 0)
			r = give_token(t, token, &err);
		if (r == 0)
			r = begin(client, t, &err);
		if (r == 0)
			continue;
		t->failure = r;
		t->refusal = code ? why : err.text;
		finish(client, t, CURLE_ABORTED_BY_CALLBACK);
	}
}

static void on_token(void *context, const struct http_response *answer)
{
	struct token *token = context;
	struct local *client = token->client;
	struct transfer *other = token->other;
	struct error err = ERROR_NULL;
	int64_t serves_ns = 0, now = clock_mono();
	int r;

	token->other = NULL;
	if (other && oauth2_refuses_style(answer) && begin(client, other, &err) == 0) {
		enlist(client, other);
		return;
	}
	transfer_free(other);
	token->asked = false;
	r = oauth2_answer(answer, token->peer, &token->header, &serves_ns, &err);
	token->number++;
	token->until_ns = r ? 0 : serves_ns == INT64_MAX ? INT64_MAX : now + serves_ns;
	release(client, token, r, err.text);
}

static int make_question(struct token *token, const struct http_oauth2 *o, enum oauth2_style style,
			 struct transfer **ret, struct error *err)
{
	struct oauth2_question q;
	int r = oauth2_question_init(&q, o, style, err);

	q.request.done = on_token;
	q.request.context = token;
	if (r == 0)
		r = transfer_new(&o->server, &q.request, ret, err);
	oauth2_question_fini(&q);
	return r;
}

static int ask(struct local *client, struct token *token, const struct http_oauth2 *o,
	       struct error *err)
{
	struct transfer *first = NULL;
	int r = make_question(token, o, OAUTH2_IN_HEADER, &first, err);

	if (r == 0)
		r = make_question(token, o, OAUTH2_IN_FORM, &token->other, err);
	if (r == 0)
		r = begin(client, first, err);
	if (r < 0) {
		transfer_free(first);
		transfer_free(token->other);
		token->other = NULL;
		return r;
	}
	enlist(client, first);
	token->asked = true;
	return 0;
}

static void token_free(struct token *token)
{
	if (!token)
		return;
	transfer_free(token->other);
	buf_free(&token->header);
	free((char *)(uintptr_t)token->peer.p);
	free(token);
}

static bool is_used(const struct local *client, const struct token *token)
{
	const struct transfer *t = client->transfers;

	while (t && t->token != token)
		t = t->next;
	return t || token->asked;
}

/* Forgets the oldest that nobody uses, where there are many: renewed secrets leave them behind. */
static void make_room(struct local *client)
{
	struct token **oldest = NULL;
	size_t n = 0;

	for (struct token **at = &client->tokens; *at; at = &(*at)->next, n++)
		if (!is_used(client, *at))
			oldest = at;
	if (n >= MAX_TOKENS && oldest) {
		struct token *token = *oldest;

		*oldest = token->next;
		token_free(token);
	}
}

static struct token *token_of(struct local *client, const struct http_oauth2 *o)
{
	unsigned char identity[SHA256_BYTES];
	struct token *token = client->tokens;
	char *peer;

	oauth2_identity(o, identity);
	while (token && memcmp(token->identity, identity, sizeof(identity)) != 0)
		token = token->next;
	if (token)
		return token;
	make_room(client);
	token = calloc(1, sizeof(*token));
	peer = token ? str_dup(http_host(o->token_url)) : NULL;
	if (!peer) {
		free(token);
		return NULL;
	}
	memcpy(token->identity, identity, sizeof(identity));
	token->peer = str_of(peer);
	token->client = client;
	token->next = client->tokens;
	client->tokens = token;
	return token;
}

/* Gives the transfer its token, or has it wait for one. */
static int authorize(struct local *client, struct transfer *t, const struct http_oauth2 *o,
		     struct error *err)
{
	struct token *token = token_of(client, o);

	if (!token)
		return -ENOMEM;
	t->token = token;
	if (!token->asked && token->until_ns > clock_mono())
		return give_token(t, token, err);
	t->held = true;
	return token->asked ? 0 : ask(client, token, o, err);
}

static int local_send(struct http_client *base, const struct http_config *config,
		      const struct http_request *request, uint64_t *ret_id, struct error *err)
{
	struct local *client = (struct local *)base;
	struct transfer *t;
	bool nested = client->in_curl;
	int rc;

	if (nested)
		return error_set(err, -EDEADLK, "http_send was called from a data callback");
	rc = transfer_new(config, request, &t, err);
	if (rc)
		return rc;
	if (config->oauth2)
		rc = authorize(client, t, config->oauth2, err);
	if (rc == 0 && !t->held)
		rc = begin(client, t, err);
	if (rc) {
		transfer_free(t);
		return rc;
	}
	enlist(client, t);
	arm(client);
	*ret_id = t->id;
	return 0;
}

static struct transfer *find(struct local *client, uint64_t id)
{
	struct transfer *t = client->transfers;

	while (t && t->id != id)
		t = t->next;
	return t;
}

static void cancel(struct local *client, struct transfer *t)
{
	t->cancelled = true;
	if (client->in_curl) {
		attend(client, t); /* reap ends it */
		return;
	}
	finish(client, t, CURLE_OK);
	arm(client);
}

static void local_cancel(struct http_client *base, uint64_t id)
{
	struct local *client = (struct local *)base;
	struct transfer *t = find(client, id);

	if (t)
		cancel(client, t);
}

static bool local_withdraw(struct http_client *base, uint64_t id)
{
	struct local *client = (struct local *)base;
	struct transfer *t = find(client, id);
	bool sent = t && transfer_was_sent(t);

	if (t)
		cancel(client, t);
	return sent;
}

static void local_free(struct http_client *base)
{
	struct local *client = (struct local *)base;

	check(!client->in_curl);
	while (client->transfers) {
		struct transfer *t = client->transfers;

		detach(client, t);
		transfer_free(t);
	}
	while (client->tokens) {
		struct token *token = client->tokens;

		client->tokens = token->next;
		token_free(token);
	}
	curl_multi_cleanup(client->multi);
	if (client->armed != INT64_MAX)
		client->loop.timer(client->loop.context, -1);
	curl_global_cleanup();
	free(client);
}

/* Names resolve in threads of libcurl's, or a lookup would stop the loop. */
static int check_library(struct error *err)
{
	const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);

	if (!(info->features & CURL_VERSION_THREADSAFE) ||
	    !(info->features & CURL_VERSION_ASYNCHDNS))
		return error_set(err, -ENOTSUP,
				 "libcurl %s was built without thread-safe initialisation or "
				 "without its resolver threads; install one that has both",
				 info->version);
	return 0;
}

static const struct http_client_calls calls = {
	.ready = local_ready,
	.timeout = local_timeout,
	.send = local_send,
	.cancel = local_cancel,
	.withdraw = local_withdraw,
	.free = local_free,
};

int http_client_new(const struct http_loop *loop, struct http_client **ret, struct error *err)
{
	struct local *client;
	int rc = check_library(err);

	if (rc)
		return rc;
	client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->base.calls = &calls;
	client->loop = *loop;
	client->curl_deadline = client->armed = INT64_MAX;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(client);
		return error_set(err, -ENOMEM, "libcurl cannot be initialised");
	}
	client->multi = curl_multi_init();
	if (!client->multi) {
		curl_global_cleanup();
		free(client);
		return -ENOMEM;
	}
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, MAX_CONNECTIONS);
	*ret = &client->base;
	return 0;
}
