/* SPDX-License-Identifier: Apache-2.0 */
/* The engine followed. Contract in discovery.h. */
#include "docker/discovery.h"

#include "base/check.h"
#include "base/clock.h"
#include "docker/ids.h"
#include "docker/stream.h"

#include <errno.h>
#include <stdlib.h>

#define GATHER_NS       (5 * NS_PER_MSEC)
#define WITHOUT_EVENTS  NS_PER_SEC        /* how long the first list waits for the stream */
#define RELIST_NS       (60 * NS_PER_SEC) /* at least, while events are followed */
#define FIRST_WAIT_MS   250
#define LONGEST_WAIT_MS 10000
#define LIST_TIMEOUT_MS 60000
#define MAX_LIST        (32u << 20)
#define MAX_TOUCHED     64 /* containers asked for one by one; beyond that all are */
#define MAX_ID          128

/* IDLE ─▶ CONTAINERS ─▶ IDLE, or ─▶ NETWORKS ─▶ IDLE where some network is not known.
 * In both a request runs, or a worker reads its answer. */
enum state {
	IDLE,
	CONTAINERS,
	NETWORKS,
	STOPPED,
};

/* An answer while a worker reads it. */
struct reading {
	struct discovery *d;
	struct buf text;
	struct container_list containers;
	struct network_list networks;
	bool of_networks;
	int result;
	struct error err;
};

struct discovery {
	struct abi_context context;
	struct settings settings;
	struct engine engine;
	struct stream stream;
	struct containers containers;
	enum state state;
	struct ids touched; /* to ask for */
	struct ids asked;   /* that are being asked for; none: all are */
	bool want_all;
	bool complete; /* all have been listed once */
	uint64_t request;
	uint64_t gather_timer, retry_timer, refresh_timer, patience_timer;
	int64_t listed_ns; /* when all were last asked for */
	int64_t wait_ms;   /* before the next attempt */
	char trouble[ENGINE_TROUBLE], no_networks[ENGINE_TROUBLE];
	bool reported;
	struct discovery_counts counts;
};

static const struct stream_calls stream_calls;

int32_t discovery_create(const struct andiron_host *host, uint64_t instance,
			 const struct andiron_value *args, void **ret_self,
			 struct andiron_error *ret_err)
{
	struct discovery *d = calloc(1, sizeof(*d));
	struct error err = ERROR_NULL;
	int r;

	if (!d)
		return -ENOMEM;
	d->context = (struct abi_context){host, instance};
	d->wait_ms = FIRST_WAIT_MS;
	r = settings_init(&d->settings, args, &err);
	if (r < 0) {
		free(d);
		return abi_error(host, ret_err, &err, r);
	}
	r = containers_init(&d->containers, instance, &d->settings.targets);
	if (r < 0) {
		discovery_free(d);
		return abi_error(host, ret_err, &err, r);
	}
	d->stream = (struct stream){.engine = &d->engine,
				    .calls = &stream_calls,
				    .context = d,
				    .filters = settings_events(&d->settings)};
	*ret_self = d;
	return 0;
}

void discovery_free(void *self)
{
	struct discovery *d = self;

	if (!d)
		return;
	engine_fini(&d->engine);
	stream_fini(&d->stream);
	containers_fini(&d->containers);
	ids_fini(&d->asked);
	ids_fini(&d->touched);
	settings_fini(&d->settings);
	free(d);
}

static void say_state(struct discovery *d)
{
	const char *trouble = d->trouble[0] ? d->trouble : d->no_networks;
	const char *meanwhile = trouble == d->no_networks
					? "; targets lack the labels of networks not known yet"
				: d->complete ? "; the last targets stay"
					      : "";
	char every[32];

	if (trouble[0]) {
		if (!d->reported)
			abi_log(&d->context, ANDIRON_LOG_WARN, "%s; trying again", trouble);
		d->reported = true;
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY, "%s%s", trouble, meanwhile);
		return;
	}
	if (d->reported)
		abi_log(&d->context, ANDIRON_LOG_INFO, "the Docker engine answers again");
	d->reported = false;
	if (!d->complete)
		return;
	if (d->stream.following || !d->stream.trouble[0])
		abi_health(&d->context, ANDIRON_HEALTH_HEALTHY, "%zu containers are known",
			   d->containers.n);
	else
		abi_health(&d->context, ANDIRON_HEALTH_HEALTHY,
			   "%zu containers are known, listed every %s: %s", d->containers.n,
			   duration_format(d->settings.refresh_ns, every, sizeof(every)),
			   d->stream.trouble);
}

static void on_retry(void *context);

static void retry_later(struct discovery *d)
{
	engine_timer(&d->engine, &d->retry_timer, d->wait_ms * NS_PER_MSEC, on_retry, d);
	d->wait_ms = d->wait_ms * 2 < LONGEST_WAIT_MS ? d->wait_ms * 2 : LONGEST_WAIT_MS;
}

static void publish(struct discovery *d)
{
	const struct andiron_targets *update = NULL;

	if (!d->complete)
		return;
	if (containers_flush(&d->containers, &update) < 0) {
		snprintf(d->trouble, sizeof(d->trouble),
			 "out of memory: the targets are not up to date");
		d->want_all = true;
		retry_later(d);
	} else if (update) {
		d->counts.updates++;
		d->context.host->send_targets(d->context.instance, "targets", update);
		update->release(update->owner);
	}
	say_state(d);
}

static void ask_soon(struct discovery *d);

/* Where the text goes that says what became of the list which is asked for. */
static char *why(struct discovery *d)
{
	return d->state == NETWORKS ? d->no_networks : d->trouble;
}

/* Targets without the labels of networks are better than none. */
static void list_failed(struct discovery *d)
{
	bool networks = d->state == NETWORKS;

	d->state = IDLE;
	d->counts.failures++;
	if (networks) {
		publish(d);
		ask_soon(d);
		return;
	}
	d->want_all = true;
	retry_later(d);
	say_state(d);
}

static void list_done(struct discovery *d);

static void took_containers(struct discovery *d, struct reading *r)
{
	int failure = 0;

	if (d->asked.all.n == 0) {
		failure = containers_replace(&d->containers, &r->containers);
		d->complete |= failure == 0;
	}
	/* Of what an event has been told meanwhile this is no longer the state. */
	vec_each (&d->asked.all, id)
		if (!ids_have(&d->touched, *id) && !container_list_has(&r->containers, *id))
			containers_remove(&d->containers, *id);
	vec_each (&r->containers.all, fresh) {
		int set = 0;

		if (ids_have(&d->touched, (*fresh)->id))
			container_free(*fresh);
		else
			set = containers_set(&d->containers, *fresh);
		failure = set < 0 ? set : failure;
	}
	r->containers.all.n = 0;
	d->want_all |= failure < 0;
}

static void on_read(void *context)
{
	struct reading *r = context;

	r->result = r->of_networks
			    ? network_list_parse(buf_str(&r->text), &r->networks, &r->err)
			    : container_list_parse(buf_str(&r->text), &r->containers, &r->err);
	buf_free(&r->text);
}

static void on_was_read(void *context)
{
	struct reading *r = context;
	struct discovery *d = r->d;

	if (d->state == STOPPED) {
		;
	} else if (r->result < 0) {
		snprintf(why(d), ENGINE_TROUBLE, "the Docker engine at %.*s: %s",
			 STR_FMT(d->settings.host), r->err.code ? r->err.text : "out of memory");
		list_failed(d);
	} else {
		*why(d) = '\0';
		if (r->of_networks)
			containers_use_networks(&d->containers, &r->networks);
		else
			took_containers(d, r);
		list_done(d);
	}
	container_list_free(&r->containers);
	network_list_free(&r->networks);
	free(r);
}

static void on_answer(void *context, const struct http_response *response)
{
	struct discovery *d = context;
	bool of_networks = d->state == NETWORKS;
	struct reading *r;

	d->request = 0;
	if (response->status != 200) {
		engine_describe(&d->engine, of_networks ? "its networks" : "its containers",
				response, why(d));
		list_failed(d);
		return;
	}
	d->counts.received_bytes += response->body.n;
	r = calloc(1, sizeof(*r));
	if (r) {
		*r = (struct reading){.d = d, .of_networks = of_networks};
		buf_str_append(&r->text, response->body);
	}
	if (!r || r->text.failed ||
	    d->context.host->work(d->context.instance, on_read, on_was_read, r) < 0) {
		if (r)
			buf_free(&r->text);
		free(r);
		snprintf(why(d), ENGINE_TROUBLE, "no memory for what the Docker engine answered");
		list_failed(d);
	}
}

static int send(struct discovery *d, struct buf *url)
{
	struct http_request request = {
		.timeout_ms = LIST_TIMEOUT_MS,
		.max_response = MAX_LIST,
		.done = on_answer,
		.context = d,
	};

	return engine_ask(&d->engine, url, &request, &d->request, why(d));
}

/* Asks for what is not up to date; the ids move from `touched` to `asked`. */
static void ask(void *context)
{
	struct discovery *d = context;
	struct buf url = BUF_NULL;
	struct ids empty;

	d->gather_timer = 0;
	if (d->state != IDLE)
		return;
	if (!d->want_all && d->touched.all.n == 0) {
		publish(d);
		return;
	}
	ids_clear(&d->asked);
	if (d->want_all) {
		ids_clear(&d->touched);
		d->listed_ns = clock_mono();
		d->counts.lists++;
	}
	d->want_all = false;
	empty = d->asked;
	d->asked = d->touched;
	d->touched = empty;
	settings_list_url(&d->settings, &url, "/containers/json", d->asked.all.p, d->asked.all.n);
	d->state = CONTAINERS;
	if (send(d, &url) < 0)
		list_failed(d);
}

static void ask_soon(struct discovery *d)
{
	if (d->state == IDLE && (d->want_all || d->touched.all.n))
		engine_timer(&d->engine, &d->gather_timer, GATHER_NS, ask, d);
}

/* Networks are asked for where one is new; it is published in any case. */
static void list_done(struct discovery *d)
{
	bool networks = d->state == NETWORKS;
	struct buf url = BUF_NULL;

	d->state = IDLE;
	if (!networks && containers_lack_network(&d->containers)) {
		settings_url(&d->settings, &url, "/networks", STR(""));
		d->state = NETWORKS;
		if (send(d, &url) < 0)
			list_failed(d);
		return;
	}
	d->wait_ms = FIRST_WAIT_MS;
	d->no_networks[0] = '\0';
	publish(d);
	ask_soon(d);
}

/* Has a container asked for again. */
static void touch(struct discovery *d, struct str id)
{
	if (ids_have(&d->touched, id))
		return;
	if (d->want_all || d->settings.by_id || id.n > MAX_ID || d->touched.all.n >= MAX_TOUCHED ||
	    !ids_add(&d->touched, id))
		d->want_all = true;
}

static void on_event(void *context, const struct event *e)
{
	struct discovery *d = context;
	bool network = str_is(e->type, "network");
	struct str id = network ? e->container : e->id;
	bool ended = str_is(e->action, "die") || str_is(e->action, "destroy");

	if (!id.n || (!network && !str_is(e->type, "container")) ||
	    (network && !containers_has(&d->containers, id)))
		return;
	if (!network && ended && d->settings.running) {
		containers_remove(&d->containers, id);
		/* A list that is under way may have it still. */
		if (d->state != IDLE)
			touch(d, id);
		engine_timer(&d->engine, &d->gather_timer, GATHER_NS, ask, d);
		return;
	}
	touch(d, id);
	ask_soon(d);
}

static void on_begun(void *context)
{
	struct discovery *d = context;

	engine_timer_cancel(&d->engine, &d->patience_timer);
	d->want_all = true;
	ask_soon(d);
}

/* An engine that refuses events alone may list its containers all the same. */
static void on_ended(void *context)
{
	struct discovery *d = context;

	if (!d->stream.answered)
		memcpy(d->trouble, d->stream.trouble, sizeof(d->trouble));
	say_state(d);
}

static const struct stream_calls stream_calls = {on_begun, on_event, on_ended};

static void on_retry(void *context)
{
	struct discovery *d = context;

	d->retry_timer = 0;
	/* Without a stream the list is not waited for. */
	if (d->want_all)
		ask_soon(d);
}

/* The stream has not begun in time, or an engine tells no events. */
static void on_impatient(void *context)
{
	struct discovery *d = context;

	d->patience_timer = 0;
	d->want_all = true;
	ask_soon(d);
}

static void on_refresh(void *context)
{
	struct discovery *d = context;

	if (d->stream.following && clock_mono() - d->listed_ns < RELIST_NS)
		return;
	d->want_all = true;
	ask_soon(d);
}

int32_t discovery_start(void *self, struct andiron_error *err)
{
	struct discovery *d = self;
	const struct andiron_host *host = d->context.host;
	int64_t every = d->settings.refresh_ns;
	int32_t r = engine_start(&d->engine, &d->context, &d->settings, err);

	if (r == 0)
		r = host->timer_set(d->context.instance, every, every, on_refresh, d,
				    &d->refresh_timer);
	if (r < 0)
		return r;
	engine_timer(&d->engine, &d->patience_timer, WITHOUT_EVENTS, on_impatient, d);
	stream_start(&d->stream);
	return 0;
}

void discovery_stop(void *self)
{
	struct discovery *d = self;

	d->state = STOPPED;
	engine_timer_cancel(&d->engine, &d->gather_timer);
	engine_timer_cancel(&d->engine, &d->retry_timer);
	engine_timer_cancel(&d->engine, &d->refresh_timer);
	engine_timer_cancel(&d->engine, &d->patience_timer);
	stream_stop(&d->stream);
	engine_fini(&d->engine);
}

const struct client_loop *discovery_loop(const struct discovery *d)
{
	return d->engine.loop;
}

struct discovery_counts discovery_counts(const struct discovery *d)
{
	struct discovery_counts c = d->counts;

	c.events = d->stream.n_events;
	c.failures += d->stream.n_failures;
	c.received_bytes += d->stream.n_bytes;
	c.containers = d->containers.n;
	c.targets = d->containers.n_targets;
	return c;
}
