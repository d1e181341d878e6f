/* SPDX-License-Identifier: Apache-2.0 */
/* Edges. Contract in wiring.h. Everything that needs memory is made first; to apply is to swap
 * pointers, under the wiring lock, since components send batches from any thread. */
#include "base/check.h"
#include "host/graph/inline-targets.h"
#include "host/graph/succession.h"

#include <errno.h>

static int add_batch_edge(struct wiring *w, const struct plan_edge *edge, struct error *err)
{
	struct node_edges *from = &w->edges[edge->from], *to = &w->edges[edge->to];

	if (!to->instance->component->batch)
		return error_set(err, -EINVAL, "%s takes no batches, so %s cannot forward to it",
				 to->instance->name, from->instance->name);
	return instances_add(&from->receivers, to->instance);
}

static int add_target_edge(struct wiring *w, const struct plan_edge *edge, struct error *err)
{
	struct node_edges *from = &w->edges[edge->from], *to = &w->edges[edge->to];
	struct target_edge made;
	struct export *export = instance_export(from->instance, edge->export_name);

	if (!export)
		return error_set(err, -EINVAL, "%s exports no targets named \"%s\"",
				 from->instance->name, edge->export_name);
	if (target_edge_init(&made, to->instance, edge->port, edge->order) < 0 ||
	    !vec_push(&from->exports[export - from->instance->exports], made) ||
	    !vec_push(&to->sources, ((struct target_source){export, from->instance})))
		return -ENOMEM;
	return 0;
}

static int add_edge(struct wiring *w, const struct plan_edge *edge, struct error *err)
{
	struct node_edges *from;
	int r;

	/* The order of nodes is what makes the graph free of cycles. */
	if (edge->from >= edge->to || edge->to >= w->n_nodes)
		return error_set(err, -ELOOP,
				 "the plan has an edge against the order of its nodes");
	from = &w->edges[edge->from];
	r = edge->kind == PLAN_BATCHES ? add_batch_edge(w, edge, err)
				       : add_target_edge(w, edge, err);
	return r < 0 ? r : instances_add(&from->downstream, w->edges[edge->to].instance);
}

static bool is_writer(const struct node_edges *wire)
{
	return wire->instance->component->flags & ANDIRON_COMPONENT_WRITER;
}

static struct node_edges *wire_of(struct wiring *w, const struct instance *i)
{
	check(i->next_node < w->n_nodes && w->edges[i->next_node].instance == i);
	return &w->edges[i->next_node];
}

/* From the last node to the first, so that whoever is behind is known. */
static int count_paths(struct wiring *w)
{
	for (size_t n = w->n_nodes; n-- > 0;) {
		struct node_edges *wire = &w->edges[n];
		int row;

		wire->paths = calloc(w->n_rows + 1, sizeof(*wire->paths));
		if (!wire->paths)
			return -ENOMEM;
		if (is_writer(wire)) {
			row = ledger_writer_row(&w->host->ledger, wire->instance->name);
			check(row >= 0); /* it was made by reserve_rows */
			wire->paths[row] = 1;
			continue;
		}
		vec_each (&wire->receivers, to)
			for (size_t r = 0; r < w->n_rows; r++)
				wire->paths[r] += wire_of(w, *to)->paths[r];
	}
	return 0;
}

static int reserve_rows(struct wiring *w)
{
	for (size_t n = 0; n < w->n_nodes; n++) {
		int row;

		if (!is_writer(&w->edges[n]))
			continue;
		row = ledger_writer_row(&w->host->ledger, w->edges[n].instance->name);
		if (row < 0)
			return row;
	}
	w->n_rows = w->host->ledger.rows.n; /* grows on this thread only */
	for (size_t n = 0; n < w->n_nodes; n++)
		if (ledger_reserve(&w->host->ledger, &w->edges[n].instance->ledger_node) < 0 ||
		    (w->edges[n].overlapped &&
		     ledger_reserve(&w->host->ledger, &w->edges[n].overlapped->ledger_node) < 0))
			return -ENOMEM;
	return 0;
}

static int copy_instances(const struct instances *from, struct instances *ret)
{
	vec_each (from, i)
		if (!vec_push(ret, *i))
			return -ENOMEM;
	return 0;
}

/* Two that overlap send to the same ones. */
static int copy_overlapped(struct wiring *w)
{
	for (size_t n = 0; n < w->n_nodes; n++) {
		struct node_edges *wire = &w->edges[n];

		wire->overlapped = succession_overlaps(wire->instance);
		if (wire->overlapped &&
		    (copy_instances(&wire->receivers, &wire->its_receivers) < 0 ||
		     copy_instances(&wire->downstream, &wire->its_downstream) < 0))
			return -ENOMEM;
	}
	return 0;
}

int wiring_build(struct wiring *w, struct host *host, const struct plan *plan,
		 struct instance *const *nodes, struct error *err)
{
	int r = 0;

	*w = (struct wiring){.host = host, .n_nodes = plan->nodes.n};
	w->edges = calloc(plan->nodes.n + 1, sizeof(*w->edges));
	if (!w->edges)
		return -ENOMEM;
	for (size_t n = 0; n < w->n_nodes; n++) {
		w->edges[n].instance = nodes[n];
		w->edges[n].exports = calloc(nodes[n]->n_exports + 1, sizeof(*w->edges[n].exports));
		if (!w->edges[n].exports)
			return -ENOMEM;
	}
	for (size_t n = 0; n < plan->edges.n && r == 0; n++)
		r = add_edge(w, &plan->edges.p[n], err);
	if (r == 0)
		r = inline_targets_build(w, plan, nodes);
	if (r == 0)
		r = copy_overlapped(w);
	if (r == 0)
		r = reserve_rows(w);
	return r == 0 ? count_paths(w) : r;
}

static void copy_paths(const struct wiring *w, const struct node_edges *wire,
		       struct ledger_node *books)
{
	check(books->paths.n >= w->n_rows);
	memcpy(books->paths.p, wire->paths, w->n_rows * sizeof(*books->paths.p));
}

static void set_paths(void *context)
{
	struct wiring *w = context;

	for (size_t n = 0; n < w->n_nodes; n++) {
		const struct node_edges *wire = &w->edges[n];

		copy_paths(w, wire, &wire->instance->ledger_node);
		if (wire->overlapped)
			copy_paths(w, wire, &wire->overlapped->ledger_node);
	}
}

#define SWAP(a, b)                                                                                 \
	do {                                                                                       \
		typeof(*(a)) t_ = *(a);                                                            \
		*(a) = *(b);                                                                       \
		*(b) = t_;                                                                         \
	} while (0)

/* Those that retire go on sending where they sent, but their targets end, and they get none. */
static void end_targets(struct host *host)
{
	vec_each (&host->instances, at) {
		struct instance *i = *at;

		if (i->retiring)
			vec_free(&i->sources);
		for (size_t n = 0; i->retiring && n < i->n_exports; n++) {
			struct target_edges none = {0};

			export_rewire(&i->exports[n], &none);
			vec_free(&none);
		}
	}
}

/* An overlap that was there before this change may have ended while it was made, and the
 * predecessor be gone. */
static void forget_ended(struct wiring *w)
{
	for (size_t n = 0; n < w->n_nodes; n++)
		if (succession_overlaps(w->edges[n].instance) != w->edges[n].overlapped)
			w->edges[n].overlapped = NULL;
}

void wiring_apply(struct wiring *w)
{
	check(loop_is_here(&w->host->loop));
	forget_ended(w);
	pthread_rwlock_wrlock(&w->host->wiring);
	for (size_t n = 0; n < w->n_nodes; n++) {
		SWAP(&w->edges[n].instance->receivers, &w->edges[n].receivers);
		SWAP(&w->edges[n].instance->downstream, &w->edges[n].downstream);
		SWAP(&w->edges[n].instance->sources, &w->edges[n].sources);
		w->edges[n].instance->wired = true;
		if (!w->edges[n].overlapped)
			continue;
		SWAP(&w->edges[n].overlapped->receivers, &w->edges[n].its_receivers);
		SWAP(&w->edges[n].overlapped->downstream, &w->edges[n].its_downstream);
	}
	if (w->n_rows)
		ledger_rewire(&w->host->ledger, set_paths, w);
	pthread_rwlock_unlock(&w->host->wiring);
	end_targets(w->host);
	for (size_t n = 0; n < w->n_nodes; n++)
		for (size_t e = 0; e < w->edges[n].instance->n_exports; e++)
			export_rewire(&w->edges[n].instance->exports[e], &w->edges[n].exports[e]);
	inline_targets_apply(w);
	for (size_t n = 0; n < w->n_nodes; n++)
		if (w->edges[n].instance->stage == STAGE_LIVE)
			wiring_attach(w->edges[n].instance);
}

void wiring_fini(struct wiring *w)
{
	for (size_t n = 0; w->edges && n < w->n_nodes; n++) {
		struct node_edges *wire = &w->edges[n];

		vec_free(&wire->receivers);
		vec_free(&wire->downstream);
		vec_free(&wire->its_receivers);
		vec_free(&wire->its_downstream);
		vec_free(&wire->sources);
		for (size_t e = 0; wire->exports && e < wire->instance->n_exports; e++)
			vec_free(&wire->exports[e]);
		free(wire->exports);
		free(wire->paths);
	}
	/* The last one may be half made, and then it is not counted. */
	for (size_t n = 0; w->inline_targets && w->inline_edges && n <= w->n_inline; n++) {
		if (w->inline_targets[n] && !w->inline_targets[n]->kept)
			inline_targets_free(w->inline_targets[n]);
		vec_free(&w->inline_edges[n]);
	}
	index_free(&w->inline_index);
	free(w->inline_edges);
	free(w->inline_targets);
	free(w->edges);
}

void wiring_attach(struct instance *to)
{
	vec_each (&to->sources, from)
		export_attach(from->export, to);
}
