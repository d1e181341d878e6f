/* SPDX-License-Identifier: Apache-2.0 */
/* A kubelet's pods. Contract in kubelet.h. A list is read as it arrives, by what reads the API
 * server's: a node has few pods, but one of them may have a large annotation. */
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
#define SPACE        1 /* of the store, which has one list */

struct kubelet {
	struct abi_context context;
	struct client_config client;
	struct client_loop *loop;
	struct store store;
	struct publisher publisher;
	struct stream *stream; /* of the request that runs */
	struct str url;
	struct str *namespaces;
	size_t n_namespaces;
	int64_t refresh_ns;
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

static int read_arguments(struct kubelet *k, const struct andiron_value *args, struct error *err)
{
	const struct andiron_value *names = value_get(args, "namespaces");
	size_t n = names ? names->n_items : 0;
	int r = client_config_init(&k->client, args, err);

	if (r < 0)
		return r;
	k->refresh_ns = value_int(args, "refresh_interval", 5 * NS_PER_SEC);
	k->url = arena_str(&k->client.arena, value_str(args, "url", STR("")));
	k->namespaces = arena_array(&k->client.arena, struct str, n + 1);
	for (; k->namespaces && k->n_namespaces < n; k->n_namespaces++) {
		struct str name = abi_str(names->items[k->n_namespaces].string);

		k->namespaces[k->n_namespaces] = arena_str(&k->client.arena, name);
		if (!k->namespaces[k->n_namespaces].p)
			return -ENOMEM;
	}
	return k->url.p && k->namespaces ? 0 : -ENOMEM;
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
	r = read_arguments(k, args, &err);
	if (r < 0) {
		kubelet_free(k);
		return abi_error(host, ret_err, &err, r);
	}
	*ret_self = k;
	return 0;
}

void kubelet_free(void *self)
{
	struct kubelet *k = self;

	if (!k)
		return;
	client_loop_free(k->loop);
	stream_free(k->stream);
	publisher_fini(&k->publisher);
	store_free(&k->store);
	client_config_fini(&k->client);
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
	for (size_t i = 0; i < k->n_namespaces; i++)
		if (str_eq(k->namespaces[i], namespace_))
			return true;
	return k->n_namespaces == 0;
}

static int on_pod(void *context, const struct stream_event *e)
{
	struct kubelet *k = context;

	k->skipped += e->what == STREAM_SKIPPED;
	if (e->what != STREAM_SET || !is_wanted(k, e->object->namespace_))
		return 0;
	return store_set(&k->store, SPACE, KIND_POD, e->object);
}

static bool on_data(void *context, struct str piece)
{
	struct kubelet *k = context;
	struct error err = ERROR_NULL;
	int r = stream_feed(k->stream, piece, &err);

	if (r < 0)
		snprintf(k->broken, sizeof(k->broken), "%.*s: %.400s",
			 STR_FMT(str_first(http_host(k->url), 64)),
			 err.code ? err.text : "a pod cannot be taken in");
	return r == 0;
}

/* Why an answer is none. */
static void describe(const struct kubelet *k, const struct http_response *r, char *out, size_t n)
{
	const struct str host = str_first(http_host(k->url), 64);
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
	else if (stream_end(k->stream, &err) < 0)
		snprintf(why, sizeof(why), "%.*s: %s", STR_FMT(str_first(http_host(k->url), 64)),
			 err.text);
	else if (store_sweep(&k->store, SPACE) < 0)
		snprintf(why, sizeof(why), "out of memory for the pods");
	stream_free(k->stream);
	k->stream = NULL;
	if (publish(k) < 0)
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
		.url = k->url,
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
	stream_free(k->stream);
	k->stream = stream_new(KIND_POD, false, on_pod, k);
	store_begin(&k->store, SPACE);
	if (!k->stream || http_send(client_loop_http(k->loop), &k->client.http, &request,
				    &k->request, &err) < 0)
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
	return k->context.host->timer_set(k->context.instance, 0, k->refresh_ns, ask, k, &k->timer);
}

void kubelet_stop(void *self)
{
	struct kubelet *k = self;

	if (k->timer)
		k->context.host->timer_cancel(k->context.instance, k->timer);
	k->timer = 0;
	client_loop_free(k->loop);
	k->loop = NULL;
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
