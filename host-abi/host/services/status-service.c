/* SPDX-License-Identifier: Apache-2.0 */
/* What the host shows of itself to components. Contract in andiron/status.h. */
#include "host/services/status-service.h"

#include "host/state.h"

#include <errno.h>

static int32_t show(void *self, uint32_t what, andiron_text_fn fn, void *arg)
{
	struct buf text = BUF_NULL;
	int r = -EINVAL;

	if (what == ANDIRON_STATUS_METRICS)
		r = host_metrics(self, &text);
	else if (what == ANDIRON_STATUS_HEALTH)
		r = host_health_json(self, &text);
	if (r == 0)
		fn(arg, &(struct andiron_str){text.p, text.n});
	buf_free(&text);
	return r;
}

static int32_t components(void *self, andiron_component_fn fn, void *arg)
{
	struct host *host = self;

	vec_each (&host->instances, at) {
		struct instance *i = *at;
		struct health health;
		struct andiron_component_state state = {.id = {i->name, strlen(i->name)},
							.flags = i->component->flags,
							.live = i->stage >= STAGE_LIVE};

		pthread_mutex_lock(&i->lock);
		health = i->health;
		pthread_mutex_unlock(&i->lock);
		state.health = health.state;
		state.message = (struct andiron_str){health.text, strlen(health.text)};
		fn(arg, &state);
	}
	return 0;
}

static uint64_t upstream(void *self, uint64_t instance, uint64_t *ret_dropped)
{
	struct host *host = self;
	struct instance *i = instance_get(instance);
	uint64_t n = 0;

	*ret_dropped = 0;
	if (!i)
		return 0;
	if (i->host == host && (i->component->flags & ANDIRON_COMPONENT_WRITER))
		n = ledger_upstream(&host->ledger, &i->ledger_node, ret_dropped);
	instance_unref(i);
	return n;
}

const struct andiron_status status_service = {
	.size = sizeof(status_service),
	.write = show,
	.components = components,
	.upstream = upstream,
};
