/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes discovery. Contract in discovery.h. */
#include "k8s-discovery/discovery.h"

#include "base/check.h"
#include "base/clock.h"
#include "client/loop.h"
#include "k8s-discovery/api/exec.h"
#include "k8s-discovery/publish.h"
#include "k8s-discovery/settings.h"

#include <errno.h>
#include <stdlib.h>

#define SHORT_GATHER_NS (5 * NS_PER_MSEC)
#define LONG_GATHER_NS  (100 * NS_PER_MSEC)
#define MANY_ROWS       256

/* The watches of one set of arguments. */
struct session {
	struct settings settings;
	uint32_t first_space;
	VEC(struct watch *) watches;
	struct exec *exec;        /* where a program gives out credentials */
	char no_credentials[768]; /* why it has given none; "" */
	bool begun;               /* the watches have */
	bool complete; /* the first lists are; what only an earlier session knew is gone */
};

struct discovery {
	struct abi_context context;
	struct client_loop *loop;
	struct store store;
	struct publisher publisher;
	struct session *session;
	struct error refused; /* why there is no session */
	uint32_t next_space;
	uint64_t timer;
	int64_t not_before_ns;              /* of the next update */
	struct watch_counts ended[N_KINDS]; /* what watches of earlier sessions counted */
	bool reported;
};

static void session_stop(struct session *s)
{
	if (!s)
		return;
	exec_free(s->exec);
	s->exec = NULL;
	vec_each (&s->watches, w)
		watch_stop(*w);
}

static void session_free(struct session *s)
{
	if (!s)
		return;
	exec_free(s->exec);
	vec_each (&s->watches, w)
		watch_free(*w);
	vec_free(&s->watches);
	settings_fini(&s->settings);
	free(s);
}

static int session_new(const struct andiron_value *args, struct session **ret, struct error *err)
{
	struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = settings_init(&s->settings, args, SERVICE_ACCOUNT, err);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int32_t discovery_create(const struct andiron_host *host, uint64_t instance,
			 const struct andiron_value *args, void **ret_self,
			 struct andiron_error *ret_err)
{
	struct discovery *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->context = (struct abi_context){host, instance};
	d->publisher.producer = instance;
	d->publisher.store = &d->store;
	r = session_new(args, &d->session, &d->refused);
	/* Not being in a cluster is for `start` to say: the rest of the graph runs. */
	if (r == -ENOENT)
		r = 0;
	if (r < 0) {
		r = abi_error(host, ret_err, &d->refused, r);
		discovery_free(d);
	} else {
		*ret_self = d;
	}
	return r;
}

void discovery_free(void *self)
{
	struct discovery *d = self;

	if (!d)
		return;
	session_free(d->session);
	client_loop_free(d->loop);
	publisher_fini(&d->publisher);
	store_free(&d->store);
	free(d);
}

static bool all_synced(const struct session *s)
{
	vec_each (&s->watches, w)
		if (!watch_synced(*w))
			return false;
	return true;
}

/* The first trouble that there is, NULL if all works. */
static const char *trouble_of(const struct session *s)
{
	if (s->no_credentials[0])
		return s->no_credentials;
	vec_each (&s->watches, w)
		if (watch_trouble(*w))
			return watch_trouble(*w);
	return NULL;
}

static void say_healthy(const struct discovery *d)
{
	enum kind kind = d->session->settings.role->primary;

	abi_health(&d->context, ANDIRON_HEALTH_HEALTHY, "%zu %s are known", d->store.n[kind],
		   kinds[kind].resource);
}

static void publish(void *context);

static void publish_after(struct discovery *d, int64_t ns)
{
	const struct andiron_host *host = d->context.host;

	if (host->timer_set(d->context.instance, ns, 0, publish, d, &d->timer) < 0)
		publish(d);
}

/* One update; more follow in later turns of the loop. */
static void publish(void *context)
{
	struct discovery *d = context;
	const struct andiron_targets *update = NULL;
	bool more = false;
	int r = publisher_next(&d->publisher, &update, &more);
	int64_t gather = update && update->n_rows >= MANY_ROWS ? LONG_GATHER_NS : SHORT_GATHER_NS;

	check(d->session);
	d->timer = 0;
	d->not_before_ns = clock_mono() + gather;
	if (r < 0) {
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: the targets are not up to date");
		publish_after(d, LONG_GATHER_NS);
		return;
	}
	if (update) {
		d->context.host->send_targets(d->context.instance, "targets", update);
		update->release(update->owner);
	}
	if (more)
		publish_after(d, 0);
	else if (!trouble_of(d->session))
		say_healthy(d);
}

static void publish_soon(struct discovery *d)
{
	int64_t wait = d->not_before_ns - clock_mono();

	if (!d->timer)
		publish_after(d, wait > 0 ? wait : 0);
}

static void on_changed(void *context)
{
	struct discovery *d = context;
	struct session *s = d->session;

	check(s && s->begun);
	if (!s->complete) {
		if (!all_synced(s) || store_sweep_below(&d->store, s->first_space) < 0)
			return;
		s->complete = true;
		publisher_use(&d->publisher, s->settings.role, &s->settings.options);
	}
	publish_soon(d);
}

void discovery_resend(void *self, const char *export_name)
{
	struct discovery *d = self;

	if (d->publisher.generation == 0)
		return; /* what comes will be all there is */
	publisher_again(&d->publisher);
	publish_soon(d);
}

static void on_state(void *context)
{
	struct discovery *d = context;
	const char *trouble = trouble_of(d->session);

	if (trouble) {
		if (!d->reported)
			abi_log(&d->context, ANDIRON_LOG_WARN, "%s; trying again", trouble);
		d->reported = true;
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY, "%s", trouble);
		return;
	}
	if (d->reported)
		abi_log(&d->context, ANDIRON_LOG_INFO, "Kubernetes answers again");
	d->reported = false;
	if (d->session->complete)
		say_healthy(d);
}

static void say_scope(const struct discovery *d, const struct settings *s)
{
	if (s->node.n)
		abi_log(&d->context, ANDIRON_LOG_INFO,
			"NODE_NAME is set: only pods of the node %.*s are watched; scope = "
			"\"cluster\" watches all",
			STR_FMT(s->node));
	if (s->all_nodes)
		abi_log(&d->context, ANDIRON_LOG_INFO,
			"scope = \"cluster\": pods of all nodes are watched, by every agent of the "
			"cluster; scope = \"node\" spares the API server that");
}

static void session_begin(struct session *s)
{
	check(!s->begun);
	s->begun = true;
	vec_each (&s->watches, w)
		watch_start(*w);
}

static void on_credentials(void *context)
{
	struct discovery *d = context;
	struct session *s = d->session;

	s->no_credentials[0] = '\0';
	on_state(d);
	if (!s->begun)
		session_begin(s);
	else
		vec_each (&s->watches, w)
			watch_retry(*w);
}

static void on_no_credentials(void *context, const char *text)
{
	struct discovery *d = context;

	snprintf(d->session->no_credentials, sizeof(d->session->no_credentials), "%s", text);
	on_state(d);
}

static void on_unauthorized(void *context)
{
	struct discovery *d = context;

	if (d->session->exec)
		exec_refused(d->session->exec);
}

static int session_exec(struct discovery *d, struct session *s)
{
	const struct exec_owner owner = {&d->context, d, on_credentials, on_no_credentials};

	if (!s->settings.kubeconfig.exec)
		return 0;
	s->exec = exec_new(&owner, &s->settings.kubeconfig);
	return s->exec ? 0 : -ENOMEM;
}

/* The watches begin when there are credentials. */
static void session_go(struct session *s)
{
	if (s->exec)
		exec_start(s->exec);
	else
		session_begin(s);
}

static int session_start(struct discovery *d, struct session *s)
{
	struct watch_owner owner = {
		.host = &d->context,
		.client = client_loop_http(d->loop),
		.store = &d->store,
		.context = d,
		.changed = on_changed,
		.state = on_state,
		.unauthorized = on_unauthorized,
	};

	check(s->watches.n == 0 && !s->exec);
	s->first_space = d->next_space;
	vec_each (&s->settings.selections, what) {
		struct watch *w = watch_new(&owner, &s->settings.api, d->next_space++, what);

		if (!w || !vec_push(&s->watches, w)) {
			watch_free(w);
			return -ENOMEM;
		}
	}
	say_scope(d, &s->settings);
	return session_exec(d, s);
}

int32_t discovery_start(void *self, struct andiron_error *ret_err)
{
	struct discovery *d = self;
	struct error err = ERROR_NULL;
	int r = client_loop_start(&d->context, &d->loop, &err);

	if (r < 0)
		return abi_error(d->context.host, ret_err, &err, r);
	if (d->session) {
		r = session_start(d, d->session);
		if (r == 0)
			session_go(d->session);
		return r;
	}
	if (d->refused.code == -ENOMEM)
		return -ENOMEM;
	/* Without a way to a server it is unhealthy, as with one out of reach, and nothing else of
	 * the graph stops for it. It waits for an update. */
	abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY, "%s", d->refused.text);
	return 0;
}

void discovery_stop(void *self)
{
	struct discovery *d = self;

	session_stop(d->session);
	if (d->timer)
		d->context.host->timer_cancel(d->context.instance, d->timer);
	d->timer = 0;
	client_loop_free(d->loop);
	d->loop = NULL;
}

static void count_session(const struct session *s, struct watch_counts sums[N_KINDS])
{
	vec_each (&s->watches, w) {
		struct watch_counts c = watch_counts(*w);

		watch_counts_add(&sums[watch_kind(*w)], &c);
	}
}

int32_t discovery_update(void *self, const struct andiron_value *args,
			 struct andiron_error *ret_err)
{
	struct discovery *d = self;
	struct session *s = NULL, *old = d->session;
	struct error err = ERROR_NULL;
	int r = session_new(args, &s, &err);

	if (r < 0)
		return abi_error(d->context.host, ret_err, &err, r);
	if (d->loop && session_start(d, s) < 0) {
		session_free(s);
		return -ENOMEM;
	}
	session_stop(old);
	if (old)
		count_session(old, d->ended);
	session_free(old);
	d->session = s;
	d->reported = false;
	if (d->loop)
		session_go(s);
	return 0;
}

const struct client_loop *discovery_loop(const struct discovery *d)
{
	return d->loop;
}

struct discovery_counts discovery_counts(const struct discovery *d)
{
	struct discovery_counts c = {
		.targets = d->publisher.targets,
		.bytes = d->store.bytes,
		.annotation_bytes = d->store.annotation_bytes,
		.not_utf8 = d->publisher.rows.not_utf8,
		.cut = d->publisher.rows.cut,
	};

	memcpy(c.kinds, d->ended, sizeof(c.kinds));
	memcpy(c.objects, d->store.n, sizeof(c.objects));
	if (!d->session)
		return c;
	count_session(d->session, c.kinds);
	vec_each (&d->session->watches, w)
		c.watched |= 1u << watch_kind(*w);
	return c;
}
