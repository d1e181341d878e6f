/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of targets that are written out in the file. Each is the export of a producer that has no
 * component. Which one it is across a reload is settled by consumer, port and order; then only the
 * differences are sent. */
#include "abi/value.h"
#include "base/hash.h"
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

struct sought {
	const struct host *host;
	const struct plan_literal *like;
	const char *to;
};

static bool is_it(const void *context, uint32_t position)
{
	const struct sought *sought = context;
	const struct inline_targets *l = sought->host->inline_targets.p[position];

	return l->order == sought->like->order && strcmp(l->to, sought->to) == 0 &&
	       strcmp(l->port, sought->like->port) == 0;
}

static uint64_t hash_of(const char *to, uint32_t order)
{
	return hash_mix(hash_str(str_of(to)), order);
}

static struct inline_targets *find(const struct wiring *w, const struct plan_literal *like,
				   const char *to)
{
	struct sought sought = {w->host, like, to};
	uint32_t at = index_find(&w->inline_index, hash_of(to, like->order), is_it, &sought);

	return at == INDEX_NONE ? NULL : w->host->inline_targets.p[at];
}

static int index_all(struct wiring *w)
{
	int r = 0;

	for (size_t n = 0; n < w->host->inline_targets.n && r == 0; n++) {
		struct inline_targets *l = w->host->inline_targets.p[n];

		l->kept = false;
		r = index_add(&w->inline_index, hash_of(l->to, l->order), (uint32_t)n);
	}
	return r;
}

int inline_targets_build(struct wiring *w, const struct plan *plan, struct instance *const *nodes)
{
	w->inline_targets = calloc(plan->literals.n + 1, sizeof(struct inline_targets *));
	w->inline_edges = calloc(plan->literals.n + 1, sizeof(*w->inline_edges));
	if (index_all(w) < 0 || !w->inline_targets || !w->inline_edges ||
	    !vec_reserve(&w->host->inline_targets, plan->literals.n))
		return -ENOMEM;
	for (w->n_inline = 0; w->n_inline < plan->literals.n; w->n_inline++) {
		const struct plan_literal *from = &plan->literals.p[w->n_inline];
		struct instance *to = nodes[from->to];
		struct inline_targets *l = find(w, from, to->name);
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
