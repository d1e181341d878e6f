/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of targets that are written out in the file. Each is the export of a producer that has no
 * component. Which one it is across a reload is settled by consumer, port and order; then only the
 * differences are sent. */
#include "abi/value.h"
#include "host/graph/inline-targets.h"

#include <errno.h>

/* Ids of producers that are no instances. */
#define LITERAL_ID ((uint64_t)1 << 63)

void inline_targets_free(struct inline_targets *l)
{
	export_fini(&l->export);
	target_list_free(l->list);
	free(l->to);
	free(l);
}

static int set_row(struct inline_targets *l, uint64_t row, const struct andiron_value *map)
{
	struct target_label *labels = calloc(map->n_items + 1, sizeof(*labels));
	size_t n = 0;
	int r;

	if (!labels)
		return -ENOMEM;
	for (uint64_t i = 0; map->kind == ANDIRON_VALUE_MAP && i < map->n_items; i++)
		if (map->items[i].kind == ANDIRON_VALUE_STRING)
			labels[n++] = (struct target_label){abi_str(map->keys[i]),
							    abi_str(map->items[i].string)};
	r = target_list_set(l->list, row, row, labels, n);
	free(labels);
	return r;
}

/* Makes the list what the file says and passes the difference on. */
static int fill(struct inline_targets *l, const struct andiron_value *targets)
{
	const struct andiron_targets *update = NULL;
	size_t n = targets->kind == ANDIRON_VALUE_LIST ? targets->n_items : 0;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = set_row(l, i, &targets->items[i]);
	for (size_t i = n; i < l->n_rows; i++)
		target_list_remove(l->list, i);
	l->n_rows = n > l->n_rows || r == 0 ? n : l->n_rows;
	if (r == 0)
		r = target_list_flush(l->list, &update);
	if (r == 0 && update) {
		r = export_send(&l->export, update);
		update->release(update->owner);
	}
	return r;
}

static struct inline_targets *inline_targets_new(struct host *host, const struct plan_literal *from,
						 struct instance *to)
{
	static atomic_uint_fast64_t n_made;
	struct inline_targets *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	if (export_init(&l->export, "", NULL, true) < 0) {
		free(l);
		return NULL;
	}
	l->list = target_list_new(LITERAL_ID + ++n_made);
	l->to = str_dup(str_of(to->name));
	l->port = host_name(host, from->port);
	l->order = from->order;
	if (!l->list || !l->to || !l->port || fill(l, from->targets) < 0) {
		inline_targets_free(l);
		return NULL;
	}
	return l;
}

static struct inline_targets *find(struct host *host, const struct plan_literal *like,
				   const char *to)
{
	vec_each (&host->inline_targets, at)
		if ((*at)->order == like->order && strcmp((*at)->to, to) == 0 &&
		    strcmp((*at)->port, like->port) == 0)
			return *at;
	return NULL;
}

int inline_targets_build(struct wiring *w, const struct plan *plan, struct instance *const *nodes)
{
	vec_each (&w->host->inline_targets, at)
		(*at)->kept = false;
	w->inline_targets = calloc(plan->literals.n + 1, sizeof(struct inline_targets *));
	w->inline_edges = calloc(plan->literals.n + 1, sizeof(*w->inline_edges));
	if (!w->inline_targets || !w->inline_edges ||
	    !vec_reserve(&w->host->inline_targets, plan->literals.n))
		return -ENOMEM;
	for (w->n_inline = 0; w->n_inline < plan->literals.n; w->n_inline++) {
		const struct plan_literal *from = &plan->literals.p[w->n_inline];
		struct instance *to = nodes[from->to];
		struct inline_targets *l = find(w->host, from, to->name);
		struct target_edge edge;

		if (l)
			l->kept = true;
		else
			l = inline_targets_new(w->host, from, to);
		w->inline_targets[w->n_inline] = l;
		if (!l || target_edge_init(&edge, to, from->port, from->order) < 0 ||
		    !vec_push(&w->inline_edges[w->n_inline], edge) ||
		    !vec_push(&w->edges[from->to].sources,
			      ((struct target_source){&l->export, NULL})))
			return -ENOMEM;
	}
	return 0;
}

void inline_targets_apply(struct wiring *w)
{
	const struct plan *plan = w->host->plan;
	struct host *host = w->host;

	for (size_t n = 0; n < host->inline_targets.n; n++) {
		struct target_edges none = {0};

		if (host->inline_targets.p[n]->kept)
			continue;
		export_rewire(&host->inline_targets.p[n]->export, &none);
		vec_free(&none);
		inline_targets_free(host->inline_targets.p[n]);
		host->inline_targets.p[n--] = host->inline_targets.p[--host->inline_targets.n];
	}
	for (size_t n = 0; n < w->n_inline; n++) {
		const struct plan_literal *from = &plan->literals.p[n];
		struct inline_targets *l = w->inline_targets[n];

		export_rewire(&l->export, &w->inline_edges[n]);
		if (!l->kept)
			host->inline_targets.p[host->inline_targets.n++] = l;
		else if (fill(l, from->targets) < 0)
			log_printf(&host->log, ANDIRON_LOG_ERROR, l->to,
				   "out of memory: %s keeps the targets of before", l->port);
		l->kept = true;
	}
}
