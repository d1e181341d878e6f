/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan holds that nobody wrote down.
 *
 * Frames without names travel from who samples them through whatever passes batches on, until a
 * symbolizer names them. Where an edge brings them to somebody who wants names, a symbolizer is put
 * in: one for each set of consumers, shared by all who feed exactly that set, since whatever a
 * symbolizer forwards goes to all behind it. */
#include "host/lang/draft.h"

#include "base/check.h"

#include <stddef.h>

/* A symbolizer, and whose edges it has got. */
struct inserted {
	uint32_t symbolizer, emitter;
};

/* What the search for symbolizers knows. */
struct naming {
	struct draft *d;
	const struct registered_component *component;
	uint32_t block;            /* the file's single symbolizer, or INDEX_NONE */
	struct inserted *inserted; /* at most one for each node */
	struct draft_ends out;     /* the edges as they were */
	size_t n_inserted;
};

/* The receiver's name, as references call it. */
static const char *receiver_of(const struct andiron_component *c)
{
	for (uint64_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].type == ANDIRON_EXPORT_RECEIVER)
			return c->exports[i].name;
	return "receiver";
}

/* A node that stands in no file, with default arguments; `n` of its component may be there. */
static uint32_t add_implicit(struct draft *d, const struct registered_component *registered,
			     struct place place, const struct andiron_value *args, size_t n)
{
	const struct andiron_component *c = registered->component;
	struct draft_node node = {.plan = {.id = c->name, .registered = registered, .args = args}};
	struct bind_owner owner = {c->name, place, true};
	struct binder b = {.l = &d->l};
	struct andiron_value *defaults;

	node.plan.place = place;
	node.plan.implicit = true;
	node.borrowed = args;
	for (n = n > 2 ? n : 2;
	     node.plan.id && names_find(&d->l.names, str_of(node.plan.id)) != INDEX_NONE; n++)
		node.plan.id = arena_printf(d->l.arena, "%s/%zu", c->name, n);
	d->l.no_memory |= !node.plan.id;
	defaults = args || !node.plan.id ? NULL : lang_array(&d->l, struct andiron_value, 1);
	if (defaults && bind_body(&b, c->options, NULL, &owner, defaults))
		node.plan.args = defaults;
	binder_free(&b);
	return d->l.no_memory ? INDEX_NONE : draft_add(d, node);
}

/* The one block that is a symbolizer; of several none. */
static uint32_t find_block(const struct draft *d)
{
	uint32_t found = INDEX_NONE;

	for (uint32_t i = 0; i < d->nodes.n; i++) {
		if (!(draft_flags(d, i) & ANDIRON_COMPONENT_SYMBOLIZER) || d->nodes.p[i].waits_for)
			continue;
		if (found != INDEX_NONE)
			return INDEX_NONE;
		found = i;
	}
	return found;
}

static const struct registered_component *find_component(const struct draft *d)
{
	const struct registered_component *all;
	size_t n = registry_components(d->l.registry, &all);

	for (size_t i = 0; i < n; i++)
		if (all[i].component->flags & ANDIRON_COMPONENT_SYMBOLIZER)
			return &all[i];
	return NULL;
}

static bool is_connected(const struct draft *d, uint32_t node)
{
	vec_each (&d->edges, e)
		if (e->plan.kind && (e->plan.from == node || e->plan.to == node))
			return true;
	return false;
}

static bool wants_names(const struct draft *d, const struct draft_edge *e, uint32_t from)
{
	return e->plan.kind == PLAN_BATCHES && e->plan.from == from &&
	       (draft_flags(d, e->plan.to) & ANDIRON_COMPONENT_WANTS_NAMES);
}

/* The next edge from `from` that needs names, at or behind place i among those that were the
 * emitter's; NULL: there is none. */
static struct draft_edge *next_edge(const struct naming *s, uint32_t emitter, uint32_t from,
				    uint32_t *i)
{
	while (*i < s->out.begin[emitter + 1]) {
		struct draft_edge *e = &s->d->edges.p[s->out.list[(*i)++]];

		if (wants_names(s->d, e, from))
			return e;
	}
	return NULL;
}

/* Whether a symbolizer put in before feeds just whom `emitter` feeds with names. Both lists stand
 * in the same kind of order: as written. */
static bool feeds_same(const struct naming *s, const struct inserted *other, uint32_t emitter)
{
	uint32_t i = s->out.begin[other->emitter], j = s->out.begin[emitter];
	const struct draft_edge *a, *b;

	do {
		a = next_edge(s, other->emitter, other->symbolizer, &i);
		b = next_edge(s, emitter, emitter, &j);
	} while (a && b && a->plan.to == b->plan.to);
	return !a && !b;
}

static uint32_t choose(struct naming *s, uint32_t emitter, bool *ret_shared)
{
	struct draft *d = s->d;
	uint32_t made;

	*ret_shared = true;
	for (size_t i = 0; i < s->n_inserted; i++)
		if (feeds_same(s, &s->inserted[i], emitter))
			return s->inserted[i].symbolizer;
	*ret_shared = false;
	if (s->block != INDEX_NONE && !is_connected(d, s->block)) {
		d->nodes.p[s->block].plan.implicit = true;
		made = s->block;
	} else if (s->block != INDEX_NONE) {
		made = add_implicit(d, s->component, d->nodes.p[s->block].plan.place,
				    d->nodes.p[s->block].plan.args, s->n_inserted);
	} else {
		made = add_implicit(d, s->component, d->nodes.p[emitter].plan.place, NULL,
				    s->n_inserted);
	}
	check(s->n_inserted < d->nodes.n);
	if (made != INDEX_NONE)
		s->inserted[s->n_inserted++] = (struct inserted){made, emitter};
	return made;
}

/* Emitter → symbolizer → those who want names. */
static void insert_symbolizer(struct naming *s, uint32_t emitter)
{
	struct draft *d = s->d;
	uint32_t i = s->out.begin[emitter], symbolizer;
	struct draft_edge *e = next_edge(s, emitter, emitter, &i), feed;
	bool shared;

	check(e);
	feed = *e;
	if (!s->component) {
		lang_error(
			&d->l, feed.place, draft_searched(d),
			"%s sends frames without names, %s wants names, and no plugin found has a "
			"symbolizer (profile.symbolize)",
			d->nodes.p[emitter].plan.id, d->nodes.p[feed.plan.to].plan.id);
		return;
	}
	symbolizer = choose(s, emitter, &shared);
	if (symbolizer == INDEX_NONE)
		return;
	for (; e; e = next_edge(s, emitter, emitter, &i)) {
		if (shared)
			e->plan.kind = 0;
		else
			e->plan.from = symbolizer;
	}
	feed.plan.to = symbolizer;
	feed.plan.export_name = receiver_of(s->component->component);
	draft_connect(d, feed);
}

/* `raw` follows the order, so that what a node gets is known before what it
 * sends. */
static void add_symbolizers(struct draft *d, const uint32_t *order)
{
	size_t n = d->nodes.n;
	struct naming s = {
		.d = d,
		.block = find_block(d),
		.inserted = lang_array(&d->l, struct inserted, n),
		.out = draft_edges_by(d, false),
	};
	bool *raw = lang_array(&d->l, bool, n);

	s.component = s.block != INDEX_NONE ? d->nodes.p[s.block].plan.registered
					    : find_component(d);
	for (size_t i = 0; !d->l.no_memory && i < n; i++) {
		uint32_t node = order[i], begin = s.out.begin[node], at = begin;

		raw[node] |= (draft_flags(d, node) & ANDIRON_COMPONENT_RAW_FRAMES) != 0;
		raw[node] &= !(draft_flags(d, node) & ANDIRON_COMPONENT_SYMBOLIZER);
		for (uint32_t j = begin; raw[node] && j < s.out.begin[node + 1]; j++) {
			const struct draft_edge *e = &d->edges.p[s.out.list[j]];

			if (e->plan.kind == PLAN_BATCHES && !wants_names(d, e, node))
				raw[e->plan.to] = true;
		}
		if (raw[node] && next_edge(&s, node, node, &at))
			insert_symbolizer(&s, node);
	}
}

static uint32_t find_node(const struct draft *d, const struct andiron_component *component)
{
	for (uint32_t i = 0; i < d->nodes.n; i++)
		if (d->nodes.p[i].plan.registered->component == component)
			return i;
	return INDEX_NONE;
}

/* The node uses what this component offers. */
static void add_service(struct draft *d, uint32_t node, const struct registered_component *r)
{
	struct draft_edge edge = {.plan = {.from = node, .kind = DRAFT_NEEDS}};

	edge.place = d->nodes.p[node].plan.place;
	edge.plan.to = find_node(d, r->component);
	if (edge.plan.to == INDEX_NONE && (r->component->flags & ANDIRON_COMPONENT_SERVICE))
		edge.plan.to = add_implicit(d, r, edge.place, NULL, 0);
	if (edge.plan.to != INDEX_NONE && edge.plan.to != node)
		draft_connect(d, edge);
}

/* What no registered component offers is the host's own, or lacking: the runtime knows. */
static void add_needed(struct draft *d, uint32_t node, const struct andiron_component *c)
{
	for (const char *const *id = c->needs; id && *id && !d->l.no_memory; id++) {
		const struct registered_component *r =
			registry_offering(d->l.registry, str_of(*id));

		if (r)
			add_service(d, node, r);
	}
}

static bool offers_any(const struct andiron_component *c, struct str beginning)
{
	for (const char *const *id = c->offers; id && *id; id++)
		if (str_starts(str_of(*id), beginning))
			return true;
	return false;
}

static void add_wanted(struct draft *d, uint32_t node, const struct andiron_component *c)
{
	const struct registered_component *all;
	size_t n = registry_components(d->l.registry, &all);

	if (!ANDIRON_HAS(c, andiron_component, wants))
		return;
	for (const char *const *id = c->wants; id && *id; id++)
		for (size_t i = 0; i < n && !d->l.no_memory; i++)
			if (offers_any(all[i].component, str_of(*id)))
				add_service(d, node, &all[i]);
}

void draft_complete(struct draft *d, const uint32_t *order)
{
	check(order);
	add_symbolizers(d, order);
	/* Services may need services: the list grows while it is walked. */
	for (uint32_t i = 0; i < d->nodes.n && !d->l.no_memory; i++) {
		const struct andiron_component *c = d->nodes.p[i].plan.registered->component;

		add_needed(d, i, c);
		add_wanted(d, i, c);
	}
}
