/* SPDX-License-Identifier: Apache-2.0 */
/* Instances and the table of their ids. Contracts in instance.h. */
#include "host/graph/instance.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "host/isolate/isolated.h"
#include "host/state.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static pthread_mutex_t ids_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slots ids;

bool instances_have(const struct instances *list, const struct instance *i)
{
	vec_each (list, at)
		if (*at == i)
			return true;
	return false;
}

int instances_add(struct instances *list, struct instance *i)
{
	return instances_have(list, i) || vec_push(list, i) ? 0 : -ENOMEM;
}

/* Whether the component can say its targets again. */
static bool can_resend(const struct andiron_component *c)
{
	return ANDIRON_HAS(c, andiron_component, resend);
}

static int make_exports(struct instance *i)
{
	const struct andiron_component *c = i->component;
	bool keep = i->host->options.keep_targets || !can_resend(c);

	i->exports = calloc(c->n_exports + 1, sizeof(*i->exports));
	if (!i->exports)
		return -ENOMEM;
	for (uint64_t n = 0; n < c->n_exports; n++) {
		int r;

		if (c->exports[n].type != ANDIRON_EXPORT_TARGETS)
			continue;
		r = export_init(&i->exports[i->n_exports], c->exports[n].name,
				can_resend(c) ? i : NULL, keep);
		if (r < 0)
			return r;
		i->n_exports++;
	}
	return 0;
}

static int enter(struct instance *i, const char *name)
{
	int r;

	i->name = str_dup(str_of(name));
	if (!i->name)
		return -ENOMEM;
	r = make_exports(i);
	if (r < 0)
		return r;
	r = metrics_enter(&i->host->metrics, name);
	if (r < 0)
		return r;
	r = ledger_enter(&i->host->ledger, &i->ledger_node, name);
	if (r < 0) {
		metrics_leave(&i->host->metrics, name, true);
		return r;
	}
	pthread_mutex_lock(&ids_lock);
	i->id = slots_add(&ids, i);
	pthread_mutex_unlock(&ids_lock);
	if (i->id)
		return 0;
	ledger_leave(&i->host->ledger, &i->ledger_node);
	metrics_leave(&i->host->metrics, name, true);
	return -ENOMEM;
}

int instance_new(struct host *host, const char *name, const struct andiron_component *component,
		 bool isolate, struct instance **ret)
{
	struct instance *i = calloc(1, sizeof(*i));
	int r;

	if (i && isolate)
		i->isolated = isolated_new(component);
	if (!i || (isolate && !i->isolated)) {
		free(i);
		return -ENOMEM;
	}
	i->host = host;
	i->component = isolate ? isolated_stand_in(i->isolated) : component;
	i->file = -1;
	i->refs = 1;
	i->health.since_ns = clock_real();
	pthread_mutex_init(&i->lock, NULL);
	strand_init(&i->strand, &host->loop, &host->workers);
	queue_init(i, host->options.queue_bytes);
	r = enter(i, name);
	if (r < 0) {
		instance_unref(i);
		return r;
	}
	*ret = i;
	return 0;
}

const struct andiron_component *instance_original(const struct instance *i)
{
	return i->isolated ? isolated_original(i->isolated) : i->component;
}

struct instance *instance_ref(struct instance *i)
{
	atomic_fetch_add_explicit(&i->refs, 1, memory_order_relaxed);
	return i;
}

void instance_unref(struct instance *i)
{
	unsigned int refs = atomic_fetch_sub_explicit(&i->refs, 1, memory_order_acq_rel);

	check(refs > 0);
	if (refs > 1)
		return;
	check(!i->queue.first && !i->successor);
	if (i->predecessor)
		instance_unref(i->predecessor);
	for (size_t n = 0; n < i->n_exports; n++)
		export_fini(&i->exports[n]);
	free(i->exports);
	slots_free(&i->timers);
	slots_free(&i->watches);
	slots_free(&i->children);
	vec_free(&i->receivers);
	vec_free(&i->downstream);
	vec_free(&i->offers);
	vec_free(&i->sources);
	vec_free(&i->uses);
	strand_fini(&i->strand);
	pthread_mutex_destroy(&i->lock);
	closep(&i->file);
	isolated_free(i->isolated);
	free(i->name);
	free(i);
}

struct instance *instance_get(uint64_t id)
{
	struct instance *i;

	pthread_mutex_lock(&ids_lock);
	i = slots_get(&ids, id);
	if (i)
		instance_ref(i);
	pthread_mutex_unlock(&ids_lock);
	return i;
}

void instance_unregister(struct instance *i)
{
	pthread_mutex_lock(&ids_lock);
	slots_remove(&ids, i->id);
	pthread_mutex_unlock(&ids_lock);
}

struct export *instance_export(struct instance *i, const char *name)
{
	for (size_t n = 0; n < i->n_exports; n++)
		if (strcmp(i->exports[n].name, name) == 0)
			return &i->exports[n];
	return NULL;
}

int instance_uses(struct instance *i, struct instance *service)
{
	int r;

	pthread_mutex_lock(&i->lock);
	r = instances_add(&i->uses, service);
	pthread_mutex_unlock(&i->lock);
	return r;
}

const char *health_name(uint32_t state)
{
	static const char *const names[] = {"unknown", "healthy", "unhealthy", "exited"};

	return state <= ANDIRON_HEALTH_EXITED ? names[state] : names[0];
}

/* People want to hear of trouble and of its end. */
static uint32_t level_of(uint32_t before, uint32_t state)
{
	if (state == ANDIRON_HEALTH_UNHEALTHY)
		return ANDIRON_LOG_WARN;
	return before == ANDIRON_HEALTH_UNHEALTHY ? ANDIRON_LOG_INFO : ANDIRON_LOG_DEBUG;
}

bool instance_note_health(struct instance *i, uint32_t state, struct str text, uint32_t *ret_before)
{
	struct health *h = &i->health;
	bool changed;

	pthread_mutex_lock(&i->lock);
	*ret_before = h->state;
	changed = h->state != state || !str_is(text, h->text);
	if (changed) {
		h->state = state;
		h->since_ns = clock_real();
		memset(h->text, 0, sizeof(h->text));
		if (text.n)
			memcpy(h->text, text.p, text.n);
	}
	pthread_mutex_unlock(&i->lock);
	return changed;
}

void instance_health(struct instance *i, uint32_t state, struct str text)
{
	uint32_t before;

	text = str_first(text, HEALTH_BYTES - 1);
	if (state > ANDIRON_HEALTH_EXITED)
		state = ANDIRON_HEALTH_UNKNOWN;
	if (instance_note_health(i, state, text, &before))
		log_printf(&i->host->log, level_of(before, state), i->name, "%s%s%.*s",
			   health_name(state), text.n ? ": " : "", STR_FMT(text));
}

void instance_healthf(struct instance *i, uint32_t state, const char *format, ...)
{
	char text[HEALTH_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	instance_health(i, state, str_of(text));
}
