/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in succession.h. */
#include "host/graph/succession.h"

#include "base/check.h"
#include "base/clock.h"

/* A source of samples: nothing comes to it that could wait for it. */
static bool is_sampler(const struct instance *i)
{
	return (i->component->flags & ANDIRON_COMPONENT_RAW_FRAMES) && !i->component->batch;
}

void succession_begin(struct instance *made, struct instance *was)
{
	check(!made->predecessor);
	if (made->component->flags & ANDIRON_COMPONENT_SERVICE)
		return;
	made->predecessor = instance_ref(was);
	if (is_sampler(made) && is_sampler(was) && was->stage == STAGE_LIVE && !was->successor)
		was->successor = made;
}

void succession_end(struct instance *made)
{
	struct instance *was = made->predecessor;

	if (!was)
		return;
	if (was->successor == made)
		was->successor = NULL;
	made->predecessor = NULL;
	instance_unref(was);
}

struct instance *succession_overlaps(const struct instance *made)
{
	struct instance *was = made->predecessor;

	return was && was->successor == made ? was : NULL;
}

bool succession_must_wait(struct instance *made)
{
	if (!made->predecessor || succession_overlaps(made))
		return false;
	if (made->predecessor->stage < STAGE_GONE)
		return true;
	succession_end(made);
	return false;
}

/* Whether its targets, and what it makes of them, are as they will be for now. */
static bool is_settled(struct instance *i)
{
	bool asked = false;

	for (size_t n = 0; n < i->n_exports; n++) {
		pthread_mutex_lock(&i->exports[n].lock);
		asked |= i->exports[n].asked;
		pthread_mutex_unlock(&i->exports[n].lock);
	}
	return i->stage > STAGE_STARTING && !asked && !strand_held(&i->strand) &&
	       strand_idle(&i->strand);
}

/* Who gives targets is asked for them when a consumer begins, and may have just begun itself. */
static bool has_its_targets(struct instance *sampler)
{
	vec_each (&sampler->host->instances, at)
		if (!(*at)->retiring && (*at)->n_exports > 0 && !is_settled(*at))
			return false;
	return is_settled(sampler);
}

static bool is_awaited(const struct instance *was, struct instance *made)
{
	if (made->stage > STAGE_LIVE || made->host->n_stops_seen > 0)
		return false;
	return made->stage < STAGE_LIVE ||
	       (clock_mono() < was->deadline_ns && !has_its_targets(made));
}

bool succession_goes_on(struct instance *was)
{
	if (!was->successor)
		return false;
	if (is_awaited(was, was->successor))
		return true;
	succession_end(was->successor);
	if (was->host->n_stops_seen < 2) /* the second one will not wait */
		was->deadline_ns = clock_mono() + was->host->options.drain_ns;
	return false;
}
