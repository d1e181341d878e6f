/* SPDX-License-Identifier: Apache-2.0 */
/* From one plan to another, all or nothing. Contracts in host.h.
 *
 * What can fail comes first and is taken back if it does: instances are made, arguments are offered
 * to those that stay. Then the edges are switched, and what is gone retires. The calls in between
 * go through strands, so the loop is kept running meanwhile (loop_step from within); a component
 * that is busy for too long makes the change fail instead of holding up the loop. */
#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/index.h"
#include "host/graph/lifecycle.h"
#include "host/graph/reload.h"
#include "host/graph/scheduler.h"
#include "host/graph/succession.h"
#include "host/graph/wiring.h"
#include "host/services/services.h"

#include <errno.h>

#define BUSY_NS (10 * NS_PER_SEC)

struct move {
	struct job job;
	const struct plan_node *node;
	const struct plan_node *old_node; /* NULL: nothing with this id and component ran */
	struct instance *instance;        /* as it will be */
	struct instance *was;             /* as it is, of whatever file */
	bool made, updated;
	/* Of the update under way. */
	const struct andiron_value *args;
	struct andiron_error error;
	int32_t result;
	bool called;
};

struct change {
	struct host *host;
	struct plan *plan;
	struct move *moves;
	struct instance **nodes;
	size_t n;
	size_t n_entered;     /* strands of the first moves that the loop is in */
	struct index running; /* by name: positions in the host's list */
};

static bool same_str(struct andiron_str a, struct andiron_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Trees are as deep as the language's parser allows. */
static bool same_value(const struct andiron_value *a, const struct andiron_value *b)
{
	if (a->kind != b->kind || a->integer != b->integer ||
	    memcmp(&a->number, &b->number, sizeof(a->number)) != 0 ||
	    !same_str(a->string, b->string) || a->n_items != b->n_items)
		return false;
	for (uint64_t i = 0; i < a->n_items; i++)
		if ((a->kind == ANDIRON_VALUE_MAP && !same_str(a->keys[i], b->keys[i])) ||
		    !same_value(&a->items[i], &b->items[i]))
			return false;
	return true;
}

/* --- Who is there --- */

struct sought {
	const struct instances *list;
	const char *id;
};

static bool is_named(const void *context, uint32_t position)
{
	const struct sought *sought = context;

	return strcmp(sought->list->p[position]->name, sought->id) == 0;
}

/* Those that run by the plan that is there; each has a name of its own. 0 or -ENOMEM. */
static int note_running(struct change *c)
{
	struct instances *list = &c->host->instances;
	int r = 0;

	for (size_t n = 0; n < list->n && r == 0; n++) {
		list->p[n]->next_node = INDEX_NONE;
		if (!list->p[n]->retiring)
			r = index_add(&c->running, hash_str(str_of(list->p[n]->name)), (uint32_t)n);
	}
	return r;
}

static struct instance *find_named(const struct change *c, const char *id)
{
	struct sought sought = {&c->host->instances, id};
	uint32_t at = index_find(&c->running, hash_str(str_of(id)), is_named, &sought);

	return at == INDEX_NONE ? NULL : sought.list->p[at];
}

static bool is_of(const struct instance *i, const struct plan_node *node)
{
	return instance_original(i) == node->registered->component &&
	       !i->isolated == !node->isolate;
}

/* Of a component that another file has now. */
static bool is_replaced(const struct change *c, const struct instance *service)
{
	return service->next_node != INDEX_NONE && !c->moves[service->next_node].instance;
}

static bool uses_replaced(const struct change *c, struct instance *i)
{
	bool uses = false;

	pthread_mutex_lock(&i->lock);
	vec_each (&i->uses, service)
		uses = uses || is_replaced(c, *service);
	pthread_mutex_unlock(&i->lock);
	return uses;
}

/* Who has tables of a service that is replaced is made anew: it would call the old one for ever. */
static void unmatch_users(struct change *c)
{
	bool again = true;

	while (again) {
		again = false;
		for (size_t n = 0; n < c->n; n++) {
			struct move *m = &c->moves[n];

			if (!m->instance || !uses_replaced(c, m->instance))
				continue;
			m->instance = NULL;
			m->old_node = NULL;
			again = true;
		}
	}
}

static int match(struct change *c)
{
	int r = note_running(c);

	for (size_t n = 0; n < c->n && r == 0; n++) {
		struct move *m = &c->moves[n];

		m->node = &c->plan->nodes.p[n];
		m->was = find_named(c, m->node->id);
		if (!m->was)
			continue;
		m->was->next_node = (uint32_t)n;
		if (!is_of(m->was, m->node))
			continue;
		m->instance = m->was;
		m->old_node = m->was->node;
	}
	if (r == 0)
		unmatch_users(c);
	return r;
}

static int make(struct change *c, struct move *m, struct error *err)
{
	struct instance *made;
	int r = lifecycle_create(c->host, m->node, &made, err);

	if (r < 0)
		return r;
	m->instance = made;
	m->made = true;
	made->next_node = (uint32_t)(m - c->moves);
	if (m->was)
		succession_begin(made, m->was);
	return 0;
}

static void update_light(struct job *job)
{
	struct move *m = container_of(job, struct move, job);

	m->result = m->instance->component->update(m->instance->self, m->args, &m->error);
	m->called = true;
}

static bool is_called(void *context)
{
	const struct move *m = context;

	return m->called;
}

static void nothing(struct loop_timer *timer)
{
}

/* Keeps the loop going until `done` says so: 0, -ETIMEDOUT or -ENOMEM. */
static int keep_going(struct host *host, bool (*done)(void *context), void *context)
{
	int64_t until = clock_mono() + BUSY_NS;
	struct loop_timer timeout;
	bool is_done;

	if (loop_timer_init(&host->loop, &timeout, nothing) < 0)
		return -ENOMEM;
	loop_timer_set(&host->loop, &timeout, until);
	while (!(is_done = done(context)) && clock_mono() < until)
		host_step(host);
	loop_timer_fini(&host->loop, &timeout);
	return is_done ? 0 : -ETIMEDOUT;
}

static int call_update(struct move *m, const struct andiron_value *args, struct error *err)
{
	struct instance *i = m->instance;
	int r;

	check(!m->made && i->created);
	m->job = (struct job){.light = update_light};
	m->args = args;
	m->called = false;
	m->error = (struct andiron_error){0};
	if (!strand_submit(&i->strand, &m->job))
		return -ESHUTDOWN;
	r = keep_going(i->host, is_called, m);
	if (r < 0 && strand_cancel(&i->strand, &m->job))
		return error_set(err, r,
				 "%s is busy, so its arguments cannot be changed now; try again",
				 i->name);
	/* Otherwise its turn has come: the loop has it. */
	while (!m->called)
		host_step(i->host);
	if (m->result < 0 && m->result != -EOPNOTSUPP)
		return error_set(err, m->result, "%s: %s", i->name,
				 m->error.error.code ? m->error.error.text : strerror(-m->result));
	return m->result;
}

static int update(struct change *c, struct move *m, struct error *err)
{
	int r = -EOPNOTSUPP;

	if (m->made || same_value(m->old_node->args, m->node->args))
		return 0;
	if (m->instance->component->update && m->instance->stage <= STAGE_LIVE) {
		r = call_update(m, m->node->args, err);
		m->updated = r == 0;
	}
	return r == -EOPNOTSUPP ? make(c, m, err) : r;
}

/* Services first: the others look for them while they are created. */
static int make_missing(struct change *c, struct error *err)
{
	int r = 0;

	for (int services = 1; services >= 0; services--) {
		for (size_t n = 0; n < c->n && r == 0; n++) {
			struct move *m = &c->moves[n];
			bool is = m->node->registered->component->flags & ANDIRON_COMPONENT_SERVICE;

			if (!m->instance && is == services)
				r = make(c, m, err);
		}
	}
	return r;
}

static bool is_there(const struct host *host, const struct instance *i)
{
	return instances_have(&host->instances, i) && i->stage != STAGE_ABANDONED;
}

static void take_back(struct change *c)
{
	for (size_t n = 0; n < c->n; n++) {
		struct move *m = &c->moves[n];
		struct error err = ERROR_NULL;

		if (m->updated && call_update(m, m->old_node->args, &err) < 0)
			log_printf(&c->host->log, ANDIRON_LOG_ERROR, m->instance->name,
				   "refuses the arguments that it had before: %s", err.text);
		if (!m->made)
			continue;
		succession_end(m->instance);
		scheduler_retire(m->instance, clock_mono());
	}
	/* Never started, so they are gone after a few rounds of the loop. */
	for (size_t n = 0; n < c->n; n++)
		while (c->moves[n].made && is_there(c->host, c->moves[n].instance))
			host_step(c->host);
}

/* Whose strand has to be still when the edges are switched: who goes on, for however long. */
static struct instance *going_on(const struct move *m)
{
	return m->made ? succession_overlaps(m->instance) : m->instance;
}

static void leave(struct change *c)
{
	for (; c->n_entered > 0; c->n_entered--) {
		struct instance *i = going_on(&c->moves[c->n_entered - 1]);

		if (i)
			strand_leave(&i->strand);
	}
}

/* Enters the strands of all that go on, or of none. */
static bool enter_all(void *context)
{
	struct change *c = context;

	for (; c->n_entered < c->n; c->n_entered++) {
		struct instance *i = going_on(&c->moves[c->n_entered]);

		if (i && !strand_enter(&i->strand))
			break;
	}
	if (c->n_entered < c->n)
		leave(c);
	return c->n_entered == c->n;
}

static void retire_gone(struct change *c)
{
	int64_t deadline = clock_mono() + c->host->options.drain_ns;

	vec_each (&c->host->instances, at) {
		uint32_t n = (*at)->next_node;

		if (n == INDEX_NONE || c->moves[n].instance != *at)
			scheduler_retire(*at, deadline);
	}
}

static void commit(struct change *c, struct wiring *w)
{
	struct plan *old = c->host->plan;

	check(c->host->reloading);
	c->host->plan = c->plan;
	c->plan = NULL;
	for (size_t n = 0; n < c->n; n++)
		c->moves[n].instance->node = c->moves[n].node;
	retire_gone(c);
	wiring_apply(w);
	plan_free(old);
	host_poke(c->host);
}

/* At a moment at which nobody who stays is being called, so that none of them is in the middle of
 * handing on what was charged by the old edges. A graph that never has such a moment is switched
 * all the same, and the ledger may then be off by what was on its way. */
static void switch_over(struct change *c, struct wiring *w)
{
	keep_going(c->host, enter_all, c);
	commit(c, w);
	leave(c);
}

static int run(struct change *c, struct error *err)
{
	struct wiring w = {0};
	int r;

	r = match(c);
	if (r == 0)
		r = make_missing(c, err);
	for (size_t n = 0; n < c->n && r == 0; n++)
		r = update(c, &c->moves[n], err);
	for (size_t n = 0; n < c->n; n++)
		c->nodes[n] = c->moves[n].instance;
	if (r == 0)
		r = wiring_build(&w, c->host, c->plan, c->nodes, err);
	if (r == 0 && atomic_load(&c->host->n_stops) > 0)
		r = error_set(err, -ECANCELED, "the host is being stopped");
	if (r == 0)
		switch_over(c, &w);
	wiring_fini(&w);
	if (r < 0)
		take_back(c);
	return r;
}

int reload_plan(struct host *host, struct plan *plan, struct error *err)
{
	struct change c = {.host = host, .plan = plan, .n = plan->nodes.n};
	int r = -ENOMEM;

	c.moves = calloc(c.n + 1, sizeof(*c.moves));
	c.nodes = calloc(c.n + 1, sizeof(struct instance *));
	if (c.moves && c.nodes)
		r = run(&c, err);
	plan_free(c.plan);
	free(c.moves);
	free(c.nodes);
	index_free(&c.running);
	if (r == -ENOMEM)
		error_set(err, r, "out of memory");
	return r;
}
