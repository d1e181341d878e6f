/* SPDX-License-Identifier: Apache-2.0 */
/* List and watch. Contract in watch.h. */
#include "watch.h"

#include "answer.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#define PAGE_PODS      500
#define MAX_PAGE       (UINT64_C(256) << 20)
#define MAX_EVENT      (16u << 20)
#define FIRST_WAIT_MS  800
#define LONGEST_WAIT_MS 30000
#define LIST_TIMEOUT_MS 60000
#define AT_ONCE_NS     NS_PER_SEC

struct watch {
	struct watch_owner owner;
	const struct api *api;
	uint32_t space;
	char *namespace_;
	char *version;  /* where to watch from; "" before the first list */
	char *next;     /* the next page's token, "" for the first */
	struct buf line;
	uint64_t request, timer;
	int64_t wait_ms;
	int64_t begun_ns; /* when the running watch was sent */
	struct watch_counts counts;
	char trouble[512]; /* why the running watch is to end; "" */
	bool synced, stopped, failing;
	bool gone;  /* the running watch cannot go on from its version */
	bool heard; /* the running watch has brought something */
};

static void begin(struct watch *w);

struct watch *watch_new(const struct watch_owner *owner, const struct api *api, uint32_t space,
			struct str namespace_)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->owner = *owner;
	w->api = api;
	w->space = space;
	w->wait_ms = FIRST_WAIT_MS;
	w->namespace_ = str_dup(namespace_);
	w->version = str_dup(STR(""));
	w->next = str_dup(STR(""));
	w->line.limit = MAX_EVENT;
	if (!w->namespace_ || !w->version || !w->next) {
		watch_free(w);
		return NULL;
	}
	return w;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	buf_free(&w->line);
	free(w->namespace_);
	free(w->version);
	free(w->next);
	free(w);
}

void watch_stop(struct watch *w)
{
	if (w->stopped)
		return;
	w->stopped = true;
	if (w->request)
		http_cancel(w->owner.client, w->request);
	if (w->timer)
		w->owner.host->host->timer_cancel(w->owner.host->instance, w->timer);
	w->request = w->timer = 0;
}

bool watch_synced(const struct watch *w)
{
	return w->synced;
}

bool watch_failing(const struct watch *w)
{
	return w->failing;
}

struct watch_counts watch_counts(const struct watch *w)
{
	return w->counts;
}

static uint32_t any_number(uint32_t below)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint32_t)clock_mono();
	return number % below;
}

static void escape(struct buf *url, const char *name, struct str value)
{
	if (value.n == 0)
		return;
	buf_printf(url, "&%s=", name);
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];
		bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
			     c == '-' || c == '.' || c == '_' || c == '~';

		buf_printf(url, plain ? "%c" : "%%%02X", c);
	}
}

static void pods_url(struct watch *w, struct buf *url)
{
	if (*w->namespace_)
		buf_printf(url, "%.*s/api/v1/namespaces/%s/pods?", STR_FMT(w->api->server),
			   w->namespace_);
	else
		buf_printf(url, "%.*s/api/v1/pods?", STR_FMT(w->api->server));
}

static void on_timer(void *context)
{
	struct watch *w = context;

	w->timer = 0;
	begin(w);
}

/* Says what is wrong and tries again later. */
static void wait(struct watch *w, int64_t at_least_ms, const char *trouble)
{
	const struct abi_context *c = w->owner.host;
	int64_t ms = w->wait_ms + any_number((uint32_t)w->wait_ms);

	if (ms < at_least_ms)
		ms = at_least_ms;
	w->wait_ms = w->wait_ms * 2 < LONGEST_WAIT_MS ? w->wait_ms * 2 : LONGEST_WAIT_MS;
	w->counts.failures++;
	w->failing = true;
	w->owner.state(w->owner.context, trouble);
	if (c->host->timer_set(c->instance, ms * NS_PER_MSEC, 0, on_timer, w, &w->timer) < 0)
		abi_log(c, ANDIRON_LOG_ERROR, "out of memory: Kubernetes is not asked again");
}

/* Says that it works, for the first time or again. */
static void works(struct watch *w)
{
	if (!w->failing && w->counts.watches)
		return; /* nothing new */
	w->failing = false;
	w->owner.state(w->owner.context, NULL);
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

static void start_over(struct watch *w)
{
	*w->next = '\0';
	*w->version = '\0';
}

/* A list that was answered, on its way through a worker. */
struct list_job {
	struct watch *w;
	char *body;
	size_t n;
	struct page page;
	struct error err;
	int result;
};

static void parse_list(void *arg)
{
	struct list_job *job = arg;

	job->result = page_parse((struct str){job->body, job->n}, &job->page, &job->err);
}

static int take_pods(struct watch *w, const struct page *page)
{
	int r = 0;

	if (!*w->next)
		store_begin(w->owner.store, w->space);
	for (size_t i = 0; i < page->pods.n && r == 0; i++)
		r = store_set(w->owner.store, w->space, &page->pods.p[i]);
	if (r == 0 && (!replace(&w->next, str_of(page->next)) ||
		       (!*page->next && !replace(&w->version, str_of(page->resource_version)))))
		r = -ENOMEM;
	return r;
}

static void take_list(struct watch *w, const struct page *page)
{
	if (take_pods(w, page) < 0) {
		start_over(w);
		wait(w, 0, "out of memory while a list of pods was taken in");
		return;
	}
	if (!*w->next) {
		store_sweep(w->owner.store, w->space);
		w->synced = true;
		works(w);
		w->owner.changed(w->owner.context);
	}
	begin(w);
}

static void list_parsed(void *arg)
{
	struct list_job *job = arg;
	struct watch *w = job->w;

	if (!w->stopped && job->result == 0) {
		take_list(w, &job->page);
	} else if (!w->stopped) {
		start_over(w);
		wait(w, 0, job->err.code ? job->err.text : "out of memory");
	}
	if (job->result == 0)
		page_fini(&job->page);
	free(job->body);
	free(job);
}

static void hand_to_worker(struct watch *w, struct str body)
{
	const struct abi_context *c = w->owner.host;
	struct list_job *job = calloc(1, sizeof(*job));
	char *copy = job ? str_dup(body) : NULL;

	if (copy) {
		*job = (struct list_job){.w = w, .body = copy, .n = body.n};
		if (c->host->work(c->instance, parse_list, list_parsed, job) == 0)
			return;
	}
	free(copy);
	free(job);
	wait(w, 0, "out of memory while a list of pods was taken in");
}

/* What a request that failed says, for people. */
static void describe(const struct watch *w, const struct http_response *r, char *out, size_t n)
{
	char said[256];
	const char *hint = "";

	if (r->status == 0) {
		snprintf(out, n, "%.*s: %s", STR_FMT(w->api->server), r->error);
		return;
	}
	status_text(r->body, said, sizeof(said));
	if (r->status == 401)
		hint = "; the token is not accepted: check bearer_token_file or the service account";
	else if (r->status == 403)
		hint = "; the service account needs the verbs list and watch on pods";
	snprintf(out, n, "%.*s answered %d: %s%s", STR_FMT(w->api->server), r->status, said, hint);
}

static void list_done(void *context, const struct http_response *r)
{
	struct watch *w = context;
	char trouble[768];

	w->request = 0;
	if (r->status == 200 && r->result == 0) {
		hand_to_worker(w, r->body);
		return;
	}
	/* A page's token has expired: begin again with the first. */
	if (r->status == 410)
		start_over(w);
	describe(w, r, trouble, sizeof(trouble));
	wait(w, r->retry_after_ms, trouble);
}

static void take_event(struct watch *w, struct event *e)
{
	w->counts.events++;
	if (e->kind == EVENT_ERROR) {
		w->gone = e->code == 410;
		snprintf(w->trouble, sizeof(w->trouble), "the watch ended with %d: %s", e->code,
			 e->text);
		return;
	}
	w->heard = true;
	w->wait_ms = FIRST_WAIT_MS;
	if (e->kind == EVENT_SET && store_set(w->owner.store, w->space, &e->pod) < 0) {
		w->gone = true;
		snprintf(w->trouble, sizeof(w->trouble), "out of memory while a pod was taken in");
		return;
	}
	if (e->kind == EVENT_DELETED)
		store_remove(w->owner.store, e->pod.key);
	if (e->resource_version[0] && !replace(&w->version, str_of(e->resource_version)))
		w->gone = true;
	if (e->kind != EVENT_BOOKMARK)
		w->owner.changed(w->owner.context);
}

static void take_line(struct watch *w, struct str line)
{
	struct error err = ERROR_NULL;
	struct event e;

	if (str_trim(line).n == 0)
		return;
	if (event_parse(line, &e, &err) < 0) {
		w->gone = true;
		snprintf(w->trouble, sizeof(w->trouble), "%.500s",
			 err.code ? err.text : "out of memory while an event was read");
		return;
	}
	take_event(w, &e);
	event_fini(&e);
}

static bool watch_data(void *context, struct str piece)
{
	struct watch *w = context;

	while (piece.n && !w->trouble[0]) {
		size_t end = str_find(piece, '\n');

		if (buf_str_append(&w->line, str_first(piece, end)) < 0) {
			snprintf(w->trouble, sizeof(w->trouble),
				 "an event of the watch is larger than %u MiB", MAX_EVENT >> 20);
			w->gone = true;
			break;
		}
		if (end < piece.n) {
			take_line(w, buf_str(&w->line));
			buf_clear(&w->line);
		}
		piece = str_skip(piece, end + 1);
	}
	return !w->trouble[0];
}

/* The server has taken the watch; an event may be long in coming. */
static void watch_begun(void *context)
{
	works(context);
}

static void watch_done(void *context, const struct http_response *r)
{
	struct watch *w = context;
	int64_t lasted = clock_mono() - w->begun_ns;
	char trouble[768];

	w->request = 0;
	if (lasted > LONGEST_WAIT_MS * NS_PER_MSEC)
		w->wait_ms = FIRST_WAIT_MS;
	if (w->gone || r->status == 410)
		start_over(w);
	if (w->trouble[0]) {
		snprintf(trouble, sizeof(trouble), "%.*s: %s", STR_FMT(w->api->server), w->trouble);
		wait(w, r->retry_after_ms, trouble);
	} else if (r->status == 200 && !w->heard && lasted < AT_ONCE_NS) {
		snprintf(trouble, sizeof(trouble), "%.*s: the watch ended at once, without an event",
			 STR_FMT(w->api->server));
		wait(w, 0, trouble);
	} else if (r->status == 200) {
		begin(w); /* the server ends every watch after a while */
	} else {
		describe(w, r, trouble, sizeof(trouble));
		wait(w, r->retry_after_ms, trouble);
	}
}

static void send(struct watch *w, struct buf *url, struct http_request *request)
{
	struct error err = ERROR_NULL;

	request->method = "GET";
	request->url = buf_str(url);
	request->context = w;
	if (url->failed)
		error_set(&err, -ENOMEM, "out of memory");
	else if (http_send(w->owner.client, w->api->http, request, &w->request, &err) == 0)
		return;
	wait(w, 0, err.code ? err.text : "out of memory");
}

static void list(struct watch *w)
{
	struct buf url = BUF_NULL;
	struct http_request request = {
		.timeout_ms = LIST_TIMEOUT_MS, .max_response = MAX_PAGE, .done = list_done};

	pods_url(w, &url);
	buf_printf(&url, "limit=%d", PAGE_PODS);
	escape(&url, "continue", str_of(w->next));
	escape(&url, "labelSelector", w->api->label_selector);
	escape(&url, "fieldSelector", w->api->field_selector);
	w->counts.lists++;
	send(w, &url, &request);
	buf_free(&url);
}

static void watch(struct watch *w)
{
	uint32_t seconds = 300 + any_number(300);
	struct buf url = BUF_NULL;
	struct http_request request = {.timeout_ms = (int64_t)(seconds + 30) * 1000,
				       .max_response = UINT64_MAX,
				       .begun = watch_begun,
				       .data = watch_data,
				       .done = watch_done};

	pods_url(w, &url);
	buf_printf(&url, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%" PRIu32, seconds);
	escape(&url, "resourceVersion", str_of(w->version));
	escape(&url, "labelSelector", w->api->label_selector);
	escape(&url, "fieldSelector", w->api->field_selector);
	buf_clear(&w->line);
	w->trouble[0] = '\0';
	w->gone = w->heard = false;
	w->begun_ns = clock_mono();
	w->counts.watches++;
	send(w, &url, &request);
	buf_free(&url);
}

/* The next step: the rest of the list, or the watch. */
static void begin(struct watch *w)
{
	check(!w->request && !w->stopped);
	if (*w->version && !*w->next)
		watch(w);
	else
		list(w);
}

void watch_start(struct watch *w)
{
	begin(w);
}
