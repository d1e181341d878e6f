/* SPDX-License-Identifier: Apache-2.0 */
/* Containers to targets. Contract in containers.h.
 *
 * Source of the labels: Prometheus, discovery/moby (docker_sd_configs). */
#include "docker/containers.h"

#include "abi/target-row.h"
#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

#define ROW_BITS  16
#define MAX_ROWS  UINT16_MAX
#define MAX_CHAIN 8 /* containers that share a network through each other */

int containers_init(struct containers *c, uint64_t producer, const struct target_options *options)
{
	*c = (struct containers){.options = *options, .list = target_list_new(producer)};
	return c->list ? 0 : -ENOMEM;
}

void containers_fini(struct containers *c)
{
	vec_each (&c->slots, s)
		container_free(s->container);
	vec_free(&c->slots);
	vec_free(&c->unused);
	index_free(&c->by_id);
	network_list_free(&c->networks);
	target_list_free(c->list);
}

struct sought {
	const struct containers *c;
	struct str id;
};

static bool same_id(const void *context, uint32_t position)
{
	const struct sought *s = context;
	const struct container *container = s->c->slots.p[position].container;

	return container && str_eq(container->id, s->id);
}

static uint32_t find(const struct containers *c, struct str id)
{
	struct sought s = {c, id};

	return index_find(&c->by_id, hash_bytes(id.p, id.n), same_id, &s);
}

bool containers_has(const struct containers *c, struct str id)
{
	return find(c, id) != INDEX_NONE;
}

static void touch(struct containers *c, uint32_t slot)
{
	c->slots.p[slot].dirty = c->changed = true;
}

static uint32_t take_slot(struct containers *c)
{
	if (c->unused.n)
		return c->unused.p[--c->unused.n];
	/* What is forgotten later has room in the list of the unused. */
	if (c->slots.n >= INDEX_NONE - 1 || !vec_reserve(&c->slots, 1) ||
	    !vec_reserve(&c->unused, c->slots.n + 1))
		return INDEX_NONE;
	c->slots.p[c->slots.n] = (struct container_slot){0};
	return (uint32_t)c->slots.n++;
}

int containers_set(struct containers *c, struct container *fresh)
{
	uint32_t slot = find(c, fresh->id);

	if (slot == INDEX_NONE) {
		slot = take_slot(c);
		if (slot == INDEX_NONE ||
		    index_add(&c->by_id, hash_bytes(fresh->id.p, fresh->id.n), slot) < 0) {
			if (slot != INDEX_NONE)
				c->unused.p[c->unused.n++] = slot;
			container_free(fresh);
			return -ENOMEM;
		}
		c->n++;
	}
	container_free(c->slots.p[slot].container);
	c->slots.p[slot].container = fresh;
	c->slots.p[slot].listed = true;
	touch(c, slot);
	return 0;
}

/* The slot is reused once its rows are gone. */
static void forget(struct containers *c, uint32_t slot)
{
	struct container_slot *s = &c->slots.p[slot];

	check(s->container && c->n > 0);
	index_remove(&c->by_id, hash_bytes(s->container->id.p, s->container->id.n), slot);
	container_free(s->container);
	s->container = NULL;
	c->n--;
	touch(c, slot);
}

void containers_remove(struct containers *c, struct str id)
{
	uint32_t slot = find(c, id);

	if (slot != INDEX_NONE)
		forget(c, slot);
}

int containers_replace(struct containers *c, struct container_list *list)
{
	int r = 0;

	vec_each (&c->slots, s)
		s->listed = false;
	vec_each (&list->all, fresh) {
		int set = containers_set(c, *fresh);

		r = set < 0 ? set : r;
	}
	vec_free(&list->all);
	for (uint32_t i = 0; i < c->slots.n && r == 0; i++)
		if (c->slots.p[i].container && !c->slots.p[i].listed)
			forget(c, i);
	return r;
}

static int by_id(const void *a, const void *b)
{
	return str_cmp((*(struct network *const *)a)->id, (*(struct network *const *)b)->id);
}

void containers_use_networks(struct containers *c, struct network_list *list)
{
	network_list_free(&c->networks);
	c->networks = *list;
	*list = (struct network_list){0};
	if (c->networks.all.n > 1)
		qsort(c->networks.all.p, c->networks.all.n, sizeof(*c->networks.all.p), by_id);
	for (uint32_t i = 0; i < c->slots.n; i++)
		if (c->slots.p[i].container)
			touch(c, i);
}

static const struct network *find_network(const struct containers *c, struct str id)
{
	struct network key = {.id = id}, *pointer = &key;
	struct network **found =
		c->networks.all.n ? bsearch(&pointer, c->networks.all.p, c->networks.all.n,
					    sizeof(*c->networks.all.p), by_id)
				  : NULL;

	return found ? *found : NULL;
}

bool containers_lack_network(const struct containers *c)
{
	vec_each (&c->slots, s)
		for (size_t i = 0; s->container && i < s->container->n_endpoints; i++) {
			struct str id = s->container->endpoints[i].network_id;

			if (id.n && !find_network(c, id))
				return true;
		}
	return false;
}

/* Whose network a container is in: its own, or that of the one it shares it with. */
static const struct container *network_owner(const struct containers *c,
					     const struct container *container)
{
	for (int i = 0; i < MAX_CHAIN && container->n_endpoints == 0; i++) {
		uint32_t slot;

		if (!str_starts(container->mode, STR("container:")))
			break;
		slot = find(c, str_skip(container->mode, strlen("container:")));
		if (slot == INDEX_NONE)
			break;
		container = c->slots.p[slot].container;
	}
	return container;
}

/* The rows of one container in the making. */
struct row_maker {
	struct containers *c;
	const struct container *container;
	struct arena arena;
	VEC(struct target_label) labels;
	uint32_t slot, n;
	int failure;
};

static void put(struct row_maker *m, const char *name, struct str value)
{
	if (!value.p || !vec_push(&m->labels, ((struct target_label){str_of(name), value})))
		m->failure = -ENOMEM;
}

static void put_all(struct row_maker *m, const struct target_label *labels, size_t n)
{
	if (!vec_reserve(&m->labels, n)) {
		m->failure = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n; i++)
		m->labels.p[m->labels.n++] = labels[i];
}

static void put_number(struct row_maker *m, const char *name, unsigned int value)
{
	put(m, name, str_of(arena_printf(&m->arena, "%u", value)));
}

/* A row of what was put; the next one begins. */
static void finish_row(struct row_maker *m)
{
	uint64_t row = (uint64_t)m->slot << ROW_BITS | m->n;

	if (m->failure == 0 && m->n < MAX_ROWS) {
		m->failure = target_list_set(m->c->list, row, row, m->labels.p, m->labels.n);
		m->n++;
	}
	m->labels.n = 0;
}

static void begin_row(struct row_maker *m, const struct endpoint *e)
{
	const struct network *network = find_network(m->c, e->network_id);

	put(m, DOCKER_META "network_ip", e->ip);
	put_all(m, m->container->labels, m->container->n_labels);
	if (network)
		put_all(m, network->labels, network->n_labels);
}

static void make_endpoint(struct row_maker *m, const struct endpoint *e)
{
	const struct container *container = m->container;
	const struct target_options *o = &m->c->options;

	for (size_t i = 0; i < container->n_ports; i++) {
		const struct port *p = &container->ports[i];

		begin_row(m, e);
		put_number(m, DOCKER_META "port_private", p->inside);
		if (p->outside) {
			put_number(m, DOCKER_META "port_public", p->outside);
			put(m, DOCKER_META "port_public_ip", p->ip);
		}
		put(m, "__address__", target_text_address(&m->arena, e->ip, p->inside));
		finish_row(m);
	}
	if (container->n_ports)
		return;
	begin_row(m, e);
	put(m, "__address__",
	    str_is(container->mode, "host") ? o->host_networking_host
					    : target_text_address(&m->arena, e->ip, o->port));
	finish_row(m);
}

/* Sets the rows of a slot, and removes those that it has no longer. */
static int make_rows(struct containers *c, uint32_t slot)
{
	struct container_slot *s = &c->slots.p[slot];
	struct row_maker m = {.c = c, .container = s->container, .slot = slot};

	if (s->container) {
		const struct container *owner = network_owner(c, s->container);
		bool one = c->options.first_network && owner->n_endpoints > 1;

		for (size_t i = 0; i < (one ? 1 : owner->n_endpoints); i++)
			make_endpoint(&m, &owner->endpoints[i]);
		if (owner->n_endpoints == 0 && c->options.without_network) {
			put_all(&m, s->container->labels, s->container->n_labels);
			finish_row(&m);
		}
	}
	arena_free(&m.arena);
	vec_free(&m.labels);
	if (m.failure < 0) {
		s->n_rows = m.n > s->n_rows ? m.n : s->n_rows;
		return m.failure;
	}
	for (uint32_t i = m.n; i < s->n_rows; i++)
		target_list_remove(c->list, (uint64_t)slot << ROW_BITS | i);
	s->n_rows = m.n;
	s->dirty = false;
	if (!s->container)
		c->unused.p[c->unused.n++] = slot;
	return 0;
}

int containers_flush(struct containers *c, const struct andiron_targets **ret)
{
	int r = 0;

	if (c->changed)
		vec_each (&c->slots, s)
			s->dirty |= s->container && s->container->n_endpoints == 0;
	for (uint32_t i = 0; i < c->slots.n && c->changed && r == 0; i++)
		if (c->slots.p[i].dirty)
			r = make_rows(c, i);
	if (r < 0)
		return r;
	c->changed = false;
	c->n_targets = 0;
	vec_each (&c->slots, s)
		c->n_targets += s->n_rows;
	return target_list_flush(c->list, ret);
}
