/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in values.h. A change is made by a timer, so between the calls of the loop: it may
 * update, stop and destroy whoever has sent the value. */
#include "host/services/values.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "host/lang/foreach-items.h"
#include "host/lang/supplied.h"
#include "host/state.h"

#include <errno.h>

#define GATHER_NS (10 * NS_PER_MSEC)
#define BUSY_NS   (100 * NS_PER_MSEC)
#define AGAIN_NS  (10 * NS_PER_SEC)

DEFINE_CLEANUP(struct instance *, instance_unref);

static struct instance *find(struct host *host, const char *id)
{
	vec_each (&host->instances, at)
		if (!(*at)->retiring && strcmp((*at)->name, id) == 0)
			return instance_ref(*at);
	return NULL;
}

/* One after the other, so that one that is refused holds up no other. Whether some are to be tried
 * once more. */
static bool try_each(struct host *host)
{
	bool later = false, again;
	const char *id;

	while ((id = supplied_try_one(host->supplied, &again))) {
		_cleanup_(instance_unrefp) struct instance *i = find(host, id);
		int r = host->options.refresh(host->options.context);

		supplied_end(host->supplied, r);
		later |= r < 0 && !supplied_is_refusal(r);
		if (i && supplied_is_refusal(r))
			instance_healthf(
				i, ANDIRON_HEALTH_UNHEALTHY,
				"its value is refused where it is named; the log says why");
		else if (i && r == 0 && again)
			instance_healthf(i, ANDIRON_HEALTH_HEALTHY, "its value is taken now");
	}
	return later;
}

/* What fails for another reason than the values may succeed later: a port that is in use, memory,
 * a component that is busy. */
static bool try_values(struct host *host)
{
	size_t n = supplied_try_all(host->supplied);
	int r;

	if (n < 2) {
		supplied_end(host->supplied, -EAGAIN);
		return try_each(host);
	}
	/* Together first: what belongs together changes at once. */
	r = host->options.refresh(host->options.context);
	supplied_end(host->supplied, r == 0 ? 0 : -EAGAIN);
	if (r == -EBUSY || r == -ETIMEDOUT)
		return true;
	return r < 0 && try_each(host);
}

/* From the first of them on, so that none keeps putting it off. */
static void gather(struct host *host)
{
	if (!host->gathering)
		loop_timer_set(&host->loop, &host->refresh, clock_mono() + GATHER_NS);
	host->gathering = true;
}

static void refresh(struct loop_timer *timer)
{
	struct host *host = container_of(timer, struct host, refresh);

	host->gathering = false;
	if (!host->running || atomic_load(&host->n_stops) > 0)
		return;
	if (host->reloading) {
		loop_timer_set(&host->loop, timer, clock_mono() + BUSY_NS);
		host->gathering = true;
	} else if (try_values(host) && !host->gathering) {
		loop_timer_set(&host->loop, timer, clock_mono() + AGAIN_NS);
	}
}

/* Lists of which the plan is made. Of one that was refused that goes on being said. */
static void tell_lists(struct host *host)
{
	vec_each (&host->plan->lists, list) {
		_cleanup_(instance_unrefp) struct instance *i = find(host, list->id);

		if (i && !supplied_refused(host->supplied, list->id))
			instance_healthf(i,
					 list->left_out ? ANDIRON_HEALTH_UNHEALTHY
							: ANDIRON_HEALTH_HEALTHY,
					 "%s", list->left_out ?: FOREACH_ITEMS_KNOWN);
	}
}

void values_changed_graph(struct host *host)
{
	supplied_prune(host->supplied, host->plan);
	tell_lists(host);
	if (supplied_renew(host->supplied))
		gather(host);
}

int values_init(struct host *host)
{
	int r = loop_timer_init(&host->loop, &host->refresh, refresh);

	if (r < 0)
		return r;
	host->supplied = supplied_new();
	if (host->supplied)
		return 0;
	loop_timer_fini(&host->loop, &host->refresh);
	return -ENOMEM;
}

void values_fini(struct host *host)
{
	if (host->supplied)
		loop_timer_fini(&host->loop, &host->refresh);
	supplied_free(host->supplied);
	host->supplied = NULL;
}

const struct supplied *host_supplied(const struct host *host)
{
	return host->supplied;
}

static bool supplies(const struct andiron_component *c, const char *export_name)
{
	for (uint64_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].type == ANDIRON_EXPORT_VALUE &&
		    strcmp(c->exports[i].name, export_name) == 0)
			return true;
	return false;
}

static int32_t send(void *self, uint64_t instance, const char *export_name,
		    const struct andiron_value *value)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);
	struct host *host = self;
	int r;

	if (!i || i->host != host || !export_name || !value || !supplies(i->component, export_name))
		return -EINVAL;
	if (i->retiring) /* another has its name */
		return 0;
	r = supplied_set(host->supplied, i->name, export_name, value);
	if (r == 1)
		gather(host);
	return r < 0 ? r : 0;
}

const struct andiron_values values_service = {
	.size = sizeof(values_service),
	.send = send,
};
