/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes discovery. Contract in discovery.h. */
#include "discovery.h"

#include "base/clock.h"
#include "client/loop.h"
#include "settings.h"

#include <errno.h>
#include <stdlib.h>

#define GATHER_NS (100 * NS_PER_MSEC)

/* The watches of one set of arguments. */
struct session {
	struct settings settings;
	uint32_t first_space;
	VEC(struct watch *) watches;
};

struct discovery {
	struct abi_context context;
	struct client_loop *loop;
	struct store *store;
	struct session *session;
	VEC(struct session *) retired; /* stopped; work of theirs may still return */
	struct error refused; /* why there is no session */
	uint32_t next_space;
	uint64_t timer;
	bool told;
};

static void session_stop(struct session *s)
{
	if (!s)
		return;
	vec_each(&s->watches, w)
		watch_stop(*w);
}

static void session_free(struct session *s)
{
	if (!s)
		return;
	vec_each(&s->watches, w)
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

int discovery_new(const struct abi_context *context, const struct andiron_value *args,
		  struct discovery **ret, struct error *err)
{
	struct discovery *d = calloc(1, sizeof(*d));
	int r = -ENOMEM;

	if (!d)
		return r;
	d->context = *context;
	d->store = store_new(context->instance);
	if (d->store)
		r = client_loop_new(context, &d->loop, err);
	if (r == 0)
		r = session_new(args, &d->session, &d->refused);
	/* Not being in a cluster is for `start` to say: the rest of the graph runs. */
	if (r == -ENOENT)
		r = 0;
	if (r < 0 && d->refused.code && err)
		*err = d->refused;
	if (r < 0)
		discovery_free(d);
	else
		*ret = d;
	return r;
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	session_free(d->session);
	vec_each(&d->retired, s)
		session_free(*s);
	vec_free(&d->retired);
	client_loop_free(d->loop);
	store_free(d->store);
	free(d);
}

static bool all_synced(const struct discovery *d)
{
	vec_each(&d->session->watches, w)
		if (!watch_synced(*w))
			return false;
	return true;
}

static bool any_failing(const struct discovery *d)
{
	vec_each(&d->session->watches, w)
		if (watch_failing(*w))
			return true;
	return false;
}

static void say_healthy(const struct discovery *d)
{
	abi_health(&d->context, ANDIRON_HEALTH_HEALTHY, "%zu pods are known", store_pods(d->store));
}

static void publish(void *context)
{
	struct discovery *d = context;
	const struct andiron_targets *update = NULL;
	int r = target_list_flush(store_list(d->store), &update);

	d->timer = 0;
	if (r < 0)
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: the targets are not up to date");
	if (!update)
		return;
	if (!any_failing(d))
		say_healthy(d);
	d->context.host->send_targets(d->context.instance, "targets", update);
	update->release(update->owner);
}

static void on_changed(void *context)
{
	struct discovery *d = context;

	if (!all_synced(d))
		return;
	/* What an earlier session knew and this one does not is gone. */
	store_sweep_below(d->store, d->session->first_space);
	if (d->timer)
		return;
	if (d->context.host->timer_set(d->context.instance, GATHER_NS, 0, publish, d, &d->timer) < 0)
		publish(d);
}

static void on_state(void *context, const char *trouble)
{
	struct discovery *d = context;

	if (trouble) {
		if (!d->told)
			abi_log(&d->context, ANDIRON_LOG_WARN, "%s; trying again", trouble);
		d->told = true;
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY, "%s", trouble);
		return;
	}
	if (any_failing(d))
		return;
	d->told = false;
	say_healthy(d);
}

static int session_start(struct discovery *d, struct session *s)
{
	struct watch_owner owner = {
		.host = &d->context,
		.client = client_loop_http(d->loop),
		.store = d->store,
		.context = d,
		.changed = on_changed,
		.state = on_state,
	};

	s->first_space = d->next_space;
	for (size_t i = 0; i < s->settings.namespaces.n; i++) {
		struct watch *w = watch_new(&owner, &s->settings.api, d->next_space++,
					    s->settings.namespaces.p[i]);

		if (!w || !vec_push(&s->watches, w)) {
			watch_free(w);
			return -ENOMEM;
		}
	}
	vec_each(&s->watches, w)
		watch_start(*w);
	return 0;
}

int discovery_start(struct discovery *d)
{
	if (d->session)
		return session_start(d, d->session);
	if (d->refused.code == -ENOMEM)
		return -ENOMEM;
	/* Without a way to a server it is unhealthy, as with one out of reach,
	 * and nothing else of the graph stops for it. It waits for an update. */
	abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY, "%s", d->refused.text);
	return 0;
}

void discovery_stop(struct discovery *d)
{
	session_stop(d->session);
	if (d->timer)
		d->context.host->timer_cancel(d->context.instance, d->timer);
	d->timer = 0;
	client_loop_free(d->loop);
	d->loop = NULL;
}

int discovery_update(struct discovery *d, const struct andiron_value *args, struct error *err)
{
	struct session *s = NULL;
	int r = session_new(args, &s, err);

	if (r < 0)
		return r;
	if (!vec_reserve(&d->retired, 1) || session_start(d, s) < 0) {
		session_stop(s);
		/* Nothing of it has reached a worker yet: no list was answered. */
		session_free(s);
		return -ENOMEM;
	}
	session_stop(d->session);
	if (d->session)
		d->retired.p[d->retired.n++] = d->session;
	d->session = s;
	return 0;
}

struct discovery_counts discovery_counts(const struct discovery *d)
{
	struct discovery_counts sum = {.pods = store_pods(d->store)};

	if (!d->session)
		return sum;
	vec_each(&d->session->watches, w) {
		struct watch_counts c = watch_counts(*w);

		sum.lists += c.lists;
		sum.watches += c.watches;
		sum.events += c.events;
		sum.failures += c.failures;
	}
	return sum;
}
