/* SPDX-License-Identifier: Apache-2.0 */
/* List and watch. Contract in watch.h. */
#include "k8s-discovery/api/watch.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "k8s-discovery/api/request.h"
#include "k8s-discovery/api/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define FIRST_WAIT_MS   800
#define LONGEST_WAIT_MS 30000
#define LIST_TIMEOUT_MS 600000
#define LIST_STALL_MS   30000
#define WATCH_GRACE_S   30
#define AT_ONCE_NS      NS_PER_SEC
#define LASTED_NS       (60 * NS_PER_SEC)
#define OUTAGE_PART     30

#define ACCEPT STR("application/vnd.kubernetes.protobuf,application/json")

/* WAITING ─▶ LISTING ─(next page, or all)─▶ WAITING
 *   WAITING ─▶ INITIAL ─(the bookmark behind its list)─▶ WATCHING ─▶ WAITING
 *   WAITING ─▶ OPENED ─(an event)─▶ WATCHING ─▶ WAITING
 *
 * A request runs in every state but WAITING and STOPPED. In WAITING a timer may run. */
enum state {
	WAITING,
	LISTING, /* a page of a list runs */
	INITIAL, /* an initial watch sends its list */
	OPENED,  /* a watch that has brought no event yet */
	WATCHING,
	STOPPED,
};

/* How the next list is requested. Each is stricter than the one before. */
enum list_mode {
	LIST_CACHED,  /* of any age, in pages: cheap for the server */
	LIST_CURRENT, /* what is known is too old: the server's present state */
	LIST_WHOLE,   /* and in one piece: pages took longer than the server remembers */
};

/* What ends the running request before the server does. */
enum outcome {
	INTACT,
	BROKEN, /* go on from the same version */
	LOST,   /* the version is of no use any more: list again */
};

struct watch {
	struct watch_owner owner;
	const struct api *api;
	struct selection what;
	uint32_t space;
	char *version; /* where to watch from; "" before the first list */
	char *next;    /* the next page's token; "" for the first page */
	struct stream *stream;
	enum state state;
	enum list_mode list_mode;
	enum outcome outcome; /* of the running request; broken says why */
	uint64_t request, timer;
	int64_t doubled_ms;       /* the next wait for an overloaded server */
	int64_t begun_ns;         /* when the running request was sent */
	int64_t failing_since_ns; /* 0: it works */
	uint64_t seen_bytes;      /* when the progress of an initial watch was last checked */
	struct watch_counts counts;
	char broken[512];
	char trouble[768]; /* what is wrong; "" */
	bool synced;       /* the first list is complete */
	bool no_initial;   /* the server supports no initial watches */
};

struct watch *watch_new(const struct watch_owner *owner, const struct api *api, uint32_t space,
			const struct selection *selection)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->owner = *owner;
	w->api = api;
	w->what = *selection;
	w->space = space;
	w->doubled_ms = FIRST_WAIT_MS;
	w->version = str_dup(STR(""));
	w->next = str_dup(STR(""));
	if (!w->version || !w->next) {
		watch_free(w);
		return NULL;
	}
	return w;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	stream_free(w->stream);
	free(w->version);
	free(w->next);
	free(w);
}

static void cancel_timer(struct watch *w)
{
	if (w->timer)
		w->owner.host->host->timer_cancel(w->owner.host->instance, w->timer);
	w->timer = 0;
}

void watch_stop(struct watch *w)
{
	w->state = STOPPED;
	if (w->request)
		http_cancel(w->owner.client, w->request);
	w->request = 0;
	cancel_timer(w);
}

bool watch_synced(const struct watch *w)
{
	return w->synced;
}

const char *watch_trouble(const struct watch *w)
{
	return w->trouble[0] ? w->trouble : NULL;
}

struct watch_counts watch_counts(const struct watch *w)
{
	return w->counts;
}

void watch_counts_add(struct watch_counts *sum, const struct watch_counts *more)
{
	sum->lists += more->lists;
	sum->watches += more->watches;
	sum->failures += more->failures;
	sum->bookmarks += more->bookmarks;
	sum->bytes += more->bytes;
	sum->skipped += more->skipped;
	for (size_t i = 0; i < sizeof(more->events) / sizeof(*more->events); i++)
		sum->events[i] += more->events[i];
}

enum kind watch_kind(const struct watch *w)
{
	return w->what.kind;
}

static uint32_t any_number(uint32_t below)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint32_t)clock_mono();
	return number % below;
}

static void on_timer(void *context)
{
	struct watch *w = context;

	w->timer = 0;
	watch_start(w);
}

void watch_retry(struct watch *w)
{
	if (w->state != WAITING || !w->timer)
		return;
	cancel_timer(w);
	watch_start(w);
}

/* Why it waits: what decides how long. */
enum cause { AWAY, REFUSED, OVERLOADED };

static int64_t pause_ms(struct watch *w, enum cause cause, int64_t retry_after_ms)
{
	int64_t ms = (clock_mono() - w->failing_since_ns) / NS_PER_MSEC / OUTAGE_PART;

	if (retry_after_ms >= 0) {
		ms = retry_after_ms;
	} else if (cause == OVERLOADED) {
		ms = w->doubled_ms;
		w->doubled_ms = ms * 2 < LONGEST_WAIT_MS ? ms * 2 : LONGEST_WAIT_MS;
	} else if (ms > LONGEST_WAIT_MS) {
		ms = LONGEST_WAIT_MS;
	}
	if (ms < FIRST_WAIT_MS)
		ms = FIRST_WAIT_MS;
	return ms + any_number((uint32_t)(ms < LONGEST_WAIT_MS ? ms : LONGEST_WAIT_MS) / 4);
}

/* Reports what is wrong and sets the timer of the next attempt. */
static void fail(struct watch *w, enum cause cause, int64_t retry_after_ms, const char *trouble)
{
	const struct abi_context *c = w->owner.host;
	int64_t ms;

	check(w->state == WAITING && !w->request && !w->timer);
	if (!w->failing_since_ns)
		w->failing_since_ns = clock_mono();
	ms = pause_ms(w, cause, retry_after_ms);
	w->counts.failures++;
	snprintf(w->trouble, sizeof(w->trouble), "%s", trouble);
	w->owner.state(w->owner.context);
	if (c->host->timer_set(c->instance, ms * NS_PER_MSEC, 0, on_timer, w, &w->timer) < 0)
		abi_log(c, ANDIRON_LOG_ERROR, "out of memory: Kubernetes is not asked again");
}

/* Reports that it works, for the first time or again. */
static void works(struct watch *w)
{
	bool changed = w->trouble[0] || !w->synced;

	w->failing_since_ns = 0;
	w->trouble[0] = '\0';
	if (changed)
		w->owner.state(w->owner.context);
}

/* Replaces a string; false, and unchanged, when memory is short. */
static bool replace(char **text, struct str with)
{
	char *copy = str_dup(with);

	if (!copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

/* The next request is the first of a new list, as current as the one that failed. */
static void start_over(struct watch *w)
{
	if (w->list_mode == LIST_CACHED && (*w->version || *w->next))
		w->list_mode = LIST_CURRENT;
	*w->next = '\0';
	*w->version = '\0';
}

static bool is_listing(const struct watch *w)
{
	return w->state == LISTING || w->state == INITIAL;
}

/* The list is complete: objects that it did not name are removed. */
static int complete(struct watch *w)
{
	int r = store_sweep(w->owner.store, w->space);

	if (r < 0)
		return r;
	if (w->list_mode == LIST_WHOLE)
		w->list_mode = LIST_CURRENT;
	w->synced = true;
	works(w);
	w->owner.changed(w->owner.context);
	return 0;
}

static int take_object(struct watch *w, const struct object *o, bool deleted)
{
	struct store *store = w->owner.store;
	bool known = store_find(store, w->what.kind, o->namespace_, o->name) != NULL;
	int r;

	w->counts.events[deleted ? WATCH_DELETE : known ? WATCH_UPDATE : WATCH_ADD]++;
	if (deleted)
		r = store_remove(store, w->what.kind, o->namespace_, o->name);
	else
		r = store_set(store, w->space, w->what.kind, o);
	if (r < 0 || is_listing(w))
		return r;
	if (o->version.n && !replace(&w->version, o->version))
		return -ENOMEM;
	w->owner.changed(w->owner.context);
	return 0;
}

static int take_bookmark(struct watch *w, const struct object *o)
{
	bool listing = is_listing(w);

	w->counts.bookmarks++;
	if (listing && !o->initial_end)
		return 0;
	if (o->version.n && !replace(&w->version, o->version))
		return -ENOMEM;
	w->state = WATCHING;
	return listing ? complete(w) : 0;
}

static int take_error(struct watch *w, int code, const char *text)
{
	w->outcome = code == 410 ? LOST : BROKEN;
	snprintf(w->broken, sizeof(w->broken), "the watch of %s ended with %d: %s",
		 kinds[w->what.kind].resource, code, text);
	return -ECANCELED;
}

/* Of a list it is left out. What an event of a watch would have changed only a list tells. */
static int take_skipped(struct watch *w)
{
	w->counts.skipped++;
	if (is_listing(w))
		return 0;
	w->outcome = LOST;
	snprintf(w->broken, sizeof(w->broken), "an object of %s cannot be read, and is left out",
		 kinds[w->what.kind].resource);
	return -ECANCELED;
}

static int on_event(void *context, const struct stream_event *e)
{
	struct watch *w = context;

	if (e->what == STREAM_FAILED)
		return take_error(w, e->code, e->text);
	if (e->what == STREAM_SKIPPED)
		return take_skipped(w);
	check(is_listing(w) || w->state == OPENED || w->state == WATCHING);
	if (w->state == OPENED)
		w->state = WATCHING;
	w->doubled_ms = FIRST_WAIT_MS;
	if (e->what == STREAM_BOOKMARK)
		return take_bookmark(w, e->object);
	return take_object(w, e->object, e->what == STREAM_DELETED);
}

static bool on_data(void *context, struct str piece)
{
	struct watch *w = context;
	struct error err = ERROR_NULL;
	int r = stream_feed(w->stream, piece, &err);

	w->counts.bytes += piece.n;
	/* Nothing tells which objects are missing now. */
	if (r < 0 && w->outcome == INTACT) {
		w->outcome = LOST;
		snprintf(w->broken, sizeof(w->broken), "%.500s",
			 err.code ? err.text : "out of memory while objects were taken in");
	}
	return r == 0;
}

/* The server has accepted the watch; its first event may take long. */
static void watch_begun(void *context)
{
	struct watch *w = context;

	if (w->state == OPENED)
		works(w);
}

/* A version that the server has not reached yet, or does not remember. */
static bool version_is_lost(const struct http_response *r)
{
	return r->status == 410 ||
	       (r->status == 504 &&
		str_search(r->body, STR("oo large resource version")) < r->body.n);
}

static enum cause cause_of(const struct http_response *r)
{
	if (r->status == 0)
		return AWAY;
	return r->status == 429 || r->status >= 500 ? OVERLOADED : REFUSED;
}

static void request_failed(struct watch *w, const struct http_response *r)
{
	char trouble[768];

	if (version_is_lost(r)) {
		if (*w->next)
			w->list_mode = LIST_WHOLE;
		start_over(w);
	}
	request_describe(trouble, sizeof(trouble), w->api, &w->what, r);
	if (r->status == 401 && w->owner.unauthorized)
		w->owner.unauthorized(w->owner.context);
	fail(w, cause_of(r), r->retry_after_ms, trouble);
}

/* The answer is malformed or incomplete. */
static void answer_failed(struct watch *w, const char *why)
{
	char trouble[768];

	snprintf(trouble, sizeof(trouble), "%.*s: %s", STR_FMT(w->api->server), why);
	fail(w, REFUSED, -1, trouble);
}

static void list_done(struct watch *w)
{
	struct error err = ERROR_NULL;

	if (stream_end(w->stream, &err) < 0 || !replace(&w->next, stream_next(w->stream)) ||
	    (!*w->next && (!replace(&w->version, stream_version(w->stream)) || complete(w) < 0))) {
		start_over(w);
		answer_failed(w, err.code ? err.text : "out of memory at the end of a list");
	} else {
		watch_start(w);
	}
}

/* The server ends every watch after a while. `was`: the state that it ended in. */
static void watch_done(struct watch *w, enum state was)
{
	int64_t lasted = clock_mono() - w->begun_ns;
	struct error err = ERROR_NULL;

	if (stream_end(w->stream, &err) < 0) {
		answer_failed(w, err.text);
	} else if (was == INITIAL) {
		answer_failed(w, "the watch ended before its list was complete");
	} else if (was == OPENED && lasted < AT_ONCE_NS) {
		snprintf(w->broken, sizeof(w->broken),
			 "%.*s: the watch ended at once, without an event",
			 STR_FMT(w->api->server));
		fail(w, OVERLOADED, -1, w->broken);
	} else {
		watch_start(w);
	}
}

static void on_done(void *context, const struct http_response *r)
{
	struct watch *w = context;
	enum state was = w->state;

	check(was != WAITING && was != STOPPED);
	w->request = 0;
	w->state = WAITING;
	cancel_timer(w);
	if (clock_mono() - w->begun_ns > LASTED_NS)
		w->doubled_ms = FIRST_WAIT_MS;
	if (w->outcome == LOST)
		start_over(w);
	if (was == INITIAL && (r->status == 400 || r->status == 405 || r->status == 422)) {
		w->no_initial = true;
		watch_start(w);
	} else if (w->outcome != INTACT) {
		answer_failed(w, w->broken);
	} else if (r->status != 200 || r->result != 0) {
		request_failed(w, r);
	} else if (was == LISTING) {
		list_done(w);
	} else {
		watch_done(w, was);
	}
}

static void on_progress(void *context);

static void await_progress(struct watch *w)
{
	const struct abi_context *c = w->owner.host;

	w->seen_bytes = w->counts.bytes;
	c->host->timer_set(c->instance, LIST_STALL_MS * NS_PER_MSEC, 0, on_progress, w, &w->timer);
}

/* A server that does not support initial watches may leave one without an answer. */
static void on_progress(void *context)
{
	struct watch *w = context;

	w->timer = 0;
	if (w->state != INITIAL)
		return;
	if (w->counts.bytes != w->seen_bytes) {
		await_progress(w);
		return;
	}
	http_cancel(w->owner.client, w->request);
	w->request = 0;
	w->no_initial = true;
	w->state = WAITING;
	watch_start(w);
}

/* Sends the request of w->state. */
static int send(struct watch *w, struct buf *url, uint32_t seconds, struct error *err)
{
	const struct http_header accept = {STR("Accept"), ACCEPT};
	struct http_request request = {.method = "GET",
				       .url = buf_str(url),
				       .headers = &accept,
				       .n_headers = 1,
				       .max_response = UINT64_MAX,
				       .begun = watch_begun,
				       .data = on_data,
				       .done = on_done,
				       .context = w};

	if (url->failed)
		return -ENOMEM;
	stream_free(w->stream);
	w->stream = stream_new(w->what.kind, w->state != LISTING, on_event, w);
	if (!w->stream)
		return -ENOMEM;
	stream_annotations(w->stream, w->what.annotations);
	w->outcome = INTACT;
	w->begun_ns = clock_mono();
	if (w->state == LISTING) {
		request.timeout_ms = LIST_TIMEOUT_MS;
		request.stall_ms = LIST_STALL_MS;
	} else {
		/* A server ends a watch in time. One that does not is dead, even if the connection
		 * is not. */
		request.timeout_ms = (int64_t)(seconds + WATCH_GRACE_S) * 1000;
		request.uncompressed = true;
	}
	return http_send(w->owner.client, w->api->http, &request, &w->request, err);
}

static void request_url(struct watch *w, uint32_t seconds, struct buf *url)
{
	if (w->state == OPENED)
		request_watch(url, w->api, &w->what, str_of(w->version), seconds);
	else if (w->state == INITIAL)
		request_initial(url, w->api, &w->what, seconds);
	else
		request_list(url, w->api, &w->what, str_of(w->next), w->list_mode == LIST_CACHED,
			     w->list_mode == LIST_WHOLE);
}

/* Starts the next request: the initial watch, a page of the list, or the watch. */
void watch_start(struct watch *w)
{
	struct error err = ERROR_NULL;
	struct buf url = BUF_NULL;
	uint32_t seconds = 300 + any_number(300);
	int r;

	check(w->state == WAITING && !w->request && !w->timer);
	if (*w->next)
		w->state = LISTING;
	else if (*w->version)
		w->state = OPENED;
	else
		w->state = w->no_initial ? LISTING : INITIAL;
	if (w->state == OPENED)
		w->counts.watches++;
	else
		w->counts.lists++;
	if (is_listing(w) && !*w->next)
		store_begin(w->owner.store, w->space);
	request_url(w, seconds, &url);
	r = send(w, &url, seconds, &err);
	buf_free(&url);
	if (r < 0) {
		w->state = WAITING;
		fail(w, REFUSED, -1, err.code ? err.text : "out of memory");
	} else if (w->state == INITIAL) {
		await_progress(w);
	}
}
