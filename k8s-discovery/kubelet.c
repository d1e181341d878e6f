/* SPDX-License-Identifier: Apache-2.0 */
/* A kubelet's pods. Contract in kubelet.h. A list is read as it arrives, by what reads the API
 * server's: a node has few pods, but one of them may have a large annotation. What is kept of them
 * is gathered, and taken in once the list is whole. */
#include "k8s-discovery/kubelet.h"

#include "abi/log.h"
#include "abi/metrics.h"
#include "abi/value.h"
#include "base/clock.h"
#include "client/loop.h"
#include "client/options.h"
#include "k8s-discovery/api/stream.h"
#include "k8s-discovery/publish.h"

#include <errno.h>
#include <stdlib.h>

#define TIMEOUT_MS   30000
#define MAX_RESPONSE (256 << 20)
#define DEFAULT_NS   (5 * NS_PER_SEC)
#define SPACE        1 /* of the store, which has one list */

/* What the arguments say. */
struct wish {
	struct client_config client;
	struct str url;
	struct str *namespaces;
	size_t n_namespaces;
	int64_t refresh_ns;
};

/* The answer of the request that runs. */
struct answer {
	struct stream *stream;
	struct arena arena;
	VEC(struct object) pods; /* in the arena, with all that they have */
};

struct kubelet {
	struct abi_context context;
	struct wish wish;
	struct client_loop *loop;
	struct store store;
	struct publisher publisher;
	struct answer answer;
	uint64_t timer, request;
	bool reported;
	char broken[512]; /* why the answer that runs cannot be read */
	uint64_t reads, failures, skipped;
};

int32_t kubelet_check(const struct andiron_host *host, const struct andiron_value *args,
		      struct andiron_report *report)
{
	const struct andiron_value *url = value_get(args, "url");
	const char *fault = url ? http_url_fault(abi_str(url->string)) : NULL;

	if (fault)
		abi_report(host, report, ANDIRON_REPORT_ERROR, url, "this URL %s", fault);
	client_check(host, args, report);
	return 0;
}

/* To be freed also after a failure. */
static int wish_init(struct wish *w, const struct andiron_value *args, struct error *err)
{
	const struct andiron_value *names = value_get(args, "namespaces");
	size_t n = names ? names->n_items : 0;
	int r;

	*w = (struct wish){.refresh_ns = value_int(args, "refresh_interval", 0)};
	if (w->refresh_ns <= 0)
		w->refresh_ns = DEFAULT_NS;
	if (w->refresh_ns < NS_PER_SEC)
		w->refresh_ns = NS_PER_SEC;
	r = client_config_init(&w->client, args, err);
	if (r < 0)
		return r;
	w->url = arena_str(&w->client.arena, value_str(args, "url", STR("")));
	w->namespaces = arena_array(&w->client.arena, struct str, n + 1);
	for (; w->namespaces && w->n_namespaces < n; w->n_namespaces++) {
		struct str name = abi_str(names->items[w->n_namespaces].string);

		w->namespaces[w->n_namespaces] = arena_str(&w->client.arena, name);
		if (!w->namespaces[w->n_namespaces].p)
			return -ENOMEM;
	}
	return w->url.p && w->namespaces ? 0 : -ENOMEM;
}

int32_t kubelet_create(const struct andiron_host *host, uint64_t instance,
		       const struct andiron_value *args, void **ret_self,
		       struct andiron_error *ret_err)
{
	struct kubelet *k = calloc(1, sizeof(*k));
	struct error err = ERROR_NULL;
	int r;

	if (!k)
		return -ENOMEM;
	k->context = (struct abi_context){host, instance};
	k->publisher.producer = instance;
	k->publisher.store = &k->store;
	publisher_use(&k->publisher, &role_pod, &(struct role_options){0});
	r = wish_init(&k->wish, args, &err);
	if (r < 0) {
		kubelet_free(k);
		return abi_error(host, ret_err, &err, r);
	}
	*ret_self = k;
	return 0;
}

static void answer_forget(struct answer *a)
{
	stream_free(a->stream);
	a->stream = NULL;
	vec_free(&a->pods);
	arena_free(&a->arena);
}

void kubelet_free(void *self)
{
	struct kubelet *k = self;

	if (!k)
		return;
	client_loop_free(k->loop);
	answer_forget(&k->answer);
	publisher_fini(&k->publisher);
	store_free(&k->store);
	client_config_fini(&k->wish.client);
	free(k);
}

static void fail(struct kubelet *k, const char *why)
{
	k->failures++;
	if (!k->reported)
		abi_log(&k->context, ANDIRON_LOG_WARN, "%s; trying again", why);
	k->reported = true;
	abi_health(&k->context, ANDIRON_HEALTH_UNHEALTHY, "%s%s", why,
		   k->publisher.targets ? "; the last targets stay" : "");
}

/* 0 or -ENOMEM, and then the next turn publishes what this one has not. */
static int publish(struct kubelet *k)
{
	bool more = true;
	int r = 0;

	while (more && r == 0) {
		const struct andiron_targets *update = NULL;

		r = publisher_next(&k->publisher, &update, &more);
		if (r < 0 || !update)
			continue;
		k->context.host->send_targets(k->context.instance, "targets", update);
		update->release(update->owner);
	}
	return r;
}

void kubelet_resend(void *self, const char *export_name)
{
	struct kubelet *k = self;

	if (k->publisher.generation == 0)
		return; /* what comes will be all there is */
	publisher_again(&k->publisher);
	if (publish(k) < 0)
		fail(k, "out of memory: the targets are not up to date");
}

static bool is_wanted(const struct kubelet *k, struct str namespace_)
{
	for (size_t i = 0; i < k->wish.n_namespaces; i++)
		if (str_eq(k->wish.namespaces[i], namespace_))
			return true;
	return k->wish.n_namespaces == 0;
}

static int gather(struct answer *a, const struct object *pod)
{
	struct str kept = arena_str(&a->arena, buf_str(&pod->kept));
	struct object copy = {
		.namespace_ = arena_str(&a->arena, pod->namespace_),
		.name = arena_str(&a->arena, pod->name),
		.annotation_bytes = pod->annotation_bytes,
		.kept = {.p = (char *)(uintptr_t)kept.p, .n = kept.n},
	};

	return kept.p && copy.namespace_.p && copy.name.p && vec_push(&a->pods, copy) ? 0 : -ENOMEM;
}

static int on_pod(void *context, const struct stream_event *e)
{
	struct kubelet *k = context;

	k->skipped += e->what == STREAM_SKIPPED;
	if (e->what != STREAM_SET || !is_wanted(k, e->object->namespace_))
		return 0;
	return gather(&k->answer, e->object);
}

/* Of two that have one name, always the same comes last, and so is the one that is known. */
static int by_name(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return str_cmp(x->namespace_, y->namespace_) ?: str_cmp(x->name, y->name)
		?: str_cmp(buf_str(&x->kept), buf_str(&y->kept));
}

static bool same_name(const struct object *a, const struct object *b)
{
	return str_eq(a->namespace_, b->namespace_) && str_eq(a->name, b->name);
}

/* The list is whole. 0 or -ENOMEM, and then the next one takes away what this one has not. */
static int take_in(struct kubelet *k)
{
	const struct object *pods = k->answer.pods.p;
	size_t n = k->answer.pods.n;
	int r = 0;

	if (n)
		qsort(k->answer.pods.p, n, sizeof(*pods), by_name);
	store_begin(&k->store, SPACE);
	for (size_t i = 0; i < n && r == 0; i++) {
		if (i + 1 < n && same_name(&pods[i], &pods[i + 1]))
			continue;
		r = store_set(&k->store, SPACE, KIND_POD, &pods[i]);
		if (r == -EINVAL) { /* its name is too long */
			k->skipped++;
			r = 0;
		}
	}
	return r < 0 ? r : store_sweep(&k->store, SPACE);
}

static bool on_data(void *context, struct str piece)
{
	struct kubelet *k = context;
	struct error err = ERROR_NULL;
	int r = stream_feed(k->answer.stream, piece, &err);

	if (r < 0)
		snprintf(k->broken, sizeof(k->broken), "%.*s: %.400s",
			 STR_FMT(str_first(http_host(k->wish.url), 64)),
			 err.code ? err.text : "out of memory for the pods");
	return r == 0;
}

/* Why an answer is none. */
static void describe(const struct kubelet *k, const struct http_response *r, char *out, size_t n)
{
	const struct str host = str_first(http_host(k->wish.url), 64);
	char said[256];

	if (r->status == 0) {
		snprintf(out, n, "%.*s: %s", STR_FMT(host), r->error);
		return;
	}
	status_text(r->body, said, sizeof(said));
	snprintf(out, n, "%.*s answered %d: %s%s", STR_FMT(host), r->status, said,
		 r->status == 401   ? "; check bearer_token_file"
		 : r->status == 403 ? "; the service account needs the verb get on nodes/pods or "
				      "nodes/proxy"
				    : "");
}

static void on_answer(void *context, const struct http_response *response)
{
	struct kubelet *k = context;
	struct error err = ERROR_NULL;
	char why[768] = "";

	k->request = 0;
	if (*k->broken)
		snprintf(why, sizeof(why), "%s", k->broken);
	else if (response->status != 200)
		describe(k, response, why, sizeof(why));
	else if (stream_end(k->answer.stream, &err) < 0)
		snprintf(why, sizeof(why), "%.*s: %s",
			 STR_FMT(str_first(http_host(k->wish.url), 64)), err.text);
	else if (take_in(k) < 0)
		snprintf(why, sizeof(why), "out of memory for the pods");
	answer_forget(&k->answer);
	/* Nothing is published before there is a list: an empty one would be taken for one. */
	if ((!*why || k->publisher.generation) && publish(k) < 0)
		snprintf(why, sizeof(why), "out of memory: the targets are not up to date");
	if (*why) {
		fail(k, why);
		return;
	}
	k->reads++;
	k->reported = false;
	abi_health(&k->context, ANDIRON_HEALTH_HEALTHY, "%zu pods are known",
		   k->store.n[KIND_POD]);
}

static void ask(void *context)
{
	static const struct http_header accept = {STR("Accept"), STR("application/json")};
	struct kubelet *k = context;
	const struct http_request request = {
		.method = "GET",
		.url = k->wish.url,
		.path = "/pods",
		.headers = &accept,
		.n_headers = 1,
		.timeout_ms = TIMEOUT_MS,
		.max_response = MAX_RESPONSE,
		.data = on_data,
		.done = on_answer,
		.context = k,
	};
	struct error err = ERROR_NULL;

	if (k->request)
		return;
	k->broken[0] = '\0';
	answer_forget(&k->answer);
	k->answer.stream = stream_new(KIND_POD, false, on_pod, k);
	if (!k->answer.stream || http_send(client_loop_http(k->loop), &k->wish.client.http,
					   &request, &k->request, &err) < 0)
		fail(k, err.code ? err.text : "out of memory for a request");
}

int32_t kubelet_start(void *self, struct andiron_error *ret_err)
{
	struct kubelet *k = self;
	struct error err = ERROR_NULL;
	int r = client_loop_start(&k->context, &k->loop, &err);

	if (r < 0)
		return abi_error(k->context.host, ret_err, &err, r);
	/* The first request too is the timer's: to begin one over TLS takes much stack. */
	return k->context.host->timer_set(k->context.instance, 0, k->wish.refresh_ns, ask, k,
					  &k->timer);
}

int32_t kubelet_update(void *self, const struct andiron_value *args, struct andiron_error *ret_err)
{
	struct kubelet *k = self;
	const struct andiron_host *host = k->context.host;
	struct error err = ERROR_NULL;
	uint64_t timer = 0;
	struct wish wish;
	int r = wish_init(&wish, args, &err);

	if (r == 0 && k->loop)
		r = host->timer_set(k->context.instance, 0, wish.refresh_ns, ask, k, &timer);
	if (r < 0) {
		client_config_fini(&wish.client);
		return abi_error(host, ret_err, &err, r);
	}
	if (k->timer)
		host->timer_cancel(k->context.instance, k->timer);
	k->timer = timer;
	if (k->request)
		http_cancel(client_loop_http(k->loop), k->request);
	k->request = 0;
	answer_forget(&k->answer);
	client_config_fini(&k->wish.client);
	k->wish = wish;
	k->reported = false;
	return 0;
}

void kubelet_stop(void *self)
{
	struct kubelet *k = self;

	if (k->timer)
		k->context.host->timer_cancel(k->context.instance, k->timer);
	k->timer = 0;
	client_loop_free(k->loop);
	k->loop = NULL;
	k->request = 0;
}

void kubelet_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_kubelet_reads_total", ABI_COUNTER(struct kubelet, reads),
		 "Lists of pods that were taken in."},
		{"andiron_kubelet_failures_total", ABI_COUNTER(struct kubelet, failures),
		 "Lists of pods that were not to be had, or not to be read to their end."},
		{"andiron_kubelet_unreadable_pods_total", ABI_COUNTER(struct kubelet, skipped),
		 "Pods left out of lists because their JSON is not to be read."},
		{"andiron_kubelet_pods", ABI_GAUGE(struct kubelet, store.n[KIND_POD]),
		 "Pods that are known."},
		{"andiron_kubelet_targets", ABI_GAUGE(struct kubelet, publisher.targets),
		 "Targets that are published."},
		{"andiron_kubelet_invalid_values_total",
		 ABI_COUNTER(struct kubelet, publisher.rows.not_utf8),
		 "Label values left out because they are not UTF-8, each time targets were made."},
	};
	const struct kubelet *k = self;

	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), k);
	client_loop_metrics(k->loop, sink);
}
