/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in isolated-targets.h. */
#include "cli/worker/isolated-targets.h"

#include "base/cleanup.h"
#include "host/isolate/batch-memory.h"
#include "host/isolate/message.h"
#include "host/isolate/target-bytes.h"
#include "host/registry/describe-check.h"
#include "host/services/services.h"

#include <errno.h>
#include <stdatomic.h>

/* Beside the update in what the agent counts. */
#define HEAD_BYTES 4096
/* It may be given something at each tick, or have made no targets yet: so many it waits at most. */
#define MOST_TICKS 25

/* A list that it makes. */
struct made {
	const char *name;
	struct target_table *table;
	uint64_t producer, generation;
	uint64_t bytes; /* told since the last snapshot */
	bool tells;     /* what is made, as it is made */
};

/* A producer of what it is given. */
struct given {
	const char *port;
	uint64_t producer, generation;
};

struct isolated_targets {
	const struct andiron_component *of;
	struct andiron_component component;
	struct andiron_host host;
	struct target_table *given;
	VEC(struct given) producers;
	pthread_mutex_t lock; /* of the rest */
	VEC(struct made) made;
	bool fresh; /* it may have been given less than there is */
	int n_ticks;
};

bool isolated_has_targets(const struct andiron_component *c)
{
	return !c->batch;
}

static void no_change(void *context, int change, struct target_row *row)
{
}

/* --- What it makes --- */

static void put(struct buf *bytes, struct made *m, const struct andiron_targets *update)
{
	buf_clear(bytes);
	target_bytes_put(bytes, m->name, update);
	if (update->flags & ANDIRON_TARGETS_SNAPSHOT)
		m->bytes = 0;
	m->bytes += bytes->n + HEAD_BYTES + target_bytes_rows(update);
}

static void tell(struct made *m, const struct andiron_targets *update)
{
	_cleanup_(buf_free) struct buf bytes = {.limit = ISOLATE_MAX_TARGETS - HEAD_BYTES};
	_cleanup_(closep) int fd = -1;
	struct andiron_segment segment = {0};
	const struct andiron_batch batch = {.n_segments = 1, .segments = &segment};
	const struct andiron_targets *all = NULL;

	if (update)
		put(&bytes, m, update);
	if (!update || m->bytes > ISOLATE_MAX_ROWS / 2) {
		all = targets_snapshot(m->table, m->producer, m->generation);
		if (all)
			put(&bytes, m, all);
	}
	segment.base = bytes.p;
	segment.size = bytes.n;
	if ((!update && !all) || bytes.failed || memory_of_batch(&batch, &fd) < 0)
		isolated_give_up("no memory for its targets, or they are more than 64 MiB: make "
				 "fewer, or with shorter labels");
	if (m->bytes > ISOLATE_MAX_ROWS)
		isolated_give_up("the labels of its targets are more than 256 MiB: make fewer, or "
				 "with shorter labels");
	if (all)
		all->release(all->owner);
	isolated_send(fd, 0);
}

static struct made *made_of(struct isolated_targets *t, const char *name)
{
	vec_each (&t->made, m)
		if (strcmp(m->name, name) == 0)
			return m;
	for (uint64_t i = 0; i < t->of->n_exports; i++) {
		struct made m = {.name = t->of->exports[i].name};

		if (t->of->exports[i].type != ANDIRON_EXPORT_TARGETS || strcmp(m.name, name) != 0)
			continue;
		m.table = target_table_new();
		if (m.table && vec_push(&t->made, m))
			return &t->made.p[t->made.n - 1];
		target_table_free(m.table);
	}
	return NULL;
}

/* The rows of two producers cannot be told apart in the agent, which knows one. */
static int take(struct isolated_targets *t, const char *name, const struct andiron_targets *update)
{
	struct made *m = made_of(t, name);
	int r;

	if (!m || (m->producer && m->producer != update->producer))
		return -EINVAL;
	r = target_table_apply(m->table, update, no_change, NULL);
	if (r < 0)
		return r == -EAGAIN ? -EINVAL : r;
	m->producer = update->producer;
	m->generation = update->generation;
	if (m->tells)
		tell(m, update);
	return 0;
}

static int32_t send_targets(uint64_t instance, const char *export_name,
			    const struct andiron_targets *update)
{
	static const char why[] = "sent targets that break the rules of andiron/target.h, or are "
				  "of a second producer; they are dropped";
	struct isolated_targets *t = isolated_targets_of(instance);
	int r = -EINVAL;

	if (!t || !export_name || !update || !ANDIRON_HAS(update, andiron_targets, release))
		return r;
	pthread_mutex_lock(&t->lock);
	r = take(t, export_name, update);
	pthread_mutex_unlock(&t->lock);
	if (r == -EINVAL)
		host_services.log(instance, ANDIRON_LOG_ERROR,
				  &(struct andiron_str){why, sizeof(why) - 1}, NULL, 0);
	return r;
}

void isolated_targets_tick(struct isolated_targets *t)
{
	bool late;

	pthread_mutex_lock(&t->lock);
	late = t->n_ticks >= MOST_TICKS;
	t->n_ticks += !late;
	vec_each (&t->made, m) {
		if (m->tells || !m->producer ||
		    (!late && (t->fresh || target_table_count(m->table) == 0)))
			continue;
		m->tells = true;
		tell(m, NULL);
	}
	t->fresh = false;
	pthread_mutex_unlock(&t->lock);
}

/* --- What it is given --- */

static bool deliver(struct instance *i, const struct given *from,
		    const struct andiron_targets *update)
{
	const struct target_edge edge = {.to = i, .port = from->port, .place = from->producer};

	return targets_deliver(&edge, 0, update);
}

/* The agent has them sent again, and not in a snapshot. */
static void request_targets(uint64_t instance, const char *port)
{
	struct isolated_targets *t = isolated_targets_of(instance);
	struct instance *i = instance_get(instance);

	for (size_t n = 0; t && i && port && n < t->producers.n; n++) {
		const struct given *g = &t->producers.p[n];
		const struct andiron_targets *all;

		if (strcmp(g->port, port) != 0)
			continue;
		all = targets_snapshot(t->given, g->producer, g->generation);
		if (!all || !deliver(i, g, all))
			isolated_give_up("out of memory");
		all->release(all->owner);
	}
	if (i)
		instance_unref(i);
}

/* The memory of updates. */
struct shared {
	atomic_uint refs;
	struct buf bytes;
};

static void retain(void *owner)
{
	atomic_fetch_add(&((struct shared *)owner)->refs, 1);
}

static void release(void *owner)
{
	struct shared *s = owner;

	if (atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	buf_free(&s->bytes);
	free(s);
}

static const char *port_of(const struct isolated_targets *t, const char *name)
{
	const struct andiron_option *o;

	for (uint32_t i = 0; (o = option_at(t->of->options, i)); i++)
		if (o->type == ANDIRON_TYPE_TARGETS && strcmp(o->name, name) == 0)
			return o->name;
	return NULL;
}

static struct given *producer_of(struct isolated_targets *t, const char *port, uint64_t producer)
{
	struct given g = {port, producer, 0};

	vec_each (&t->producers, at)
		if (at->producer == producer)
			return at;
	return port && vec_push(&t->producers, g) ? &t->producers.p[t->producers.n - 1] : NULL;
}

/* The agent begins each producer with a snapshot. What comes before was meant for the process
 * before. */
static bool give(struct isolated_targets *t, struct instance *i, struct shared *s, const char *name,
		 struct andiron_targets *update)
{
	int r = target_table_apply(t->given, update, no_change, NULL);
	struct given *g;

	if (r < 0)
		return r == -EAGAIN;
	g = producer_of(t, port_of(t, name), update->producer);
	if (!g)
		return false;
	update->owner = s;
	update->retain = retain;
	update->release = release;
	g->generation = update->generation;
	return deliver(i, g, update);
}

bool isolated_targets_give(struct isolated_targets *t, struct instance *i, int fd)
{
	struct shared *s = calloc(1, sizeof(*s));
	struct str rest;
	bool good = s && memory_bytes(fd, ISOLATE_MAX_TARGETS, &s->bytes) == 0;

	if (!s)
		return false;
	s->refs = 1;
	for (rest = buf_str(&s->bytes); good && rest.n;) {
		struct andiron_targets *update = target_bytes_get(&rest);
		const char *name = rest.p;

		if (update)
			rest = target_bytes_next(rest);
		good = update && give(t, i, s, name, update);
	}
	release(s);
	pthread_mutex_lock(&t->lock);
	t->fresh = true;
	pthread_mutex_unlock(&t->lock);
	return good;
}

/* --- Its life --- */

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct isolated_targets *t = isolated_targets_of(instance);

	return t ? t->of->create(&t->host, instance, args, ret_self, err) : -EINVAL;
}

struct isolated_targets *isolated_targets_new(const struct andiron_component *of)
{
	struct isolated_targets *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->given = target_table_new();
	if (!t->given) {
		free(t);
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->of = of;
	memcpy(&t->component, of,
	       of->size < sizeof(t->component) ? of->size : sizeof(t->component));
	t->component.create = create;
	t->host = host_services;
	t->host.send_targets = send_targets;
	t->host.request_targets = request_targets;
	t->fresh = of->targets;
	return t;
}

const struct andiron_component *isolated_targets_component(const struct isolated_targets *t)
{
	return &t->component;
}
