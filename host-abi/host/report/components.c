/* SPDX-License-Identifier: Apache-2.0 */
/* The components as Alloy lists them at /api/v0/web/components: the fields of its Info that a host
 * of profiles can fill. Source: Alloy, internal/component/component_provider.go.
 *
 * References are edges of the plan, which knows nodes by position; instances are found by name in a
 * sorted list, so that thousands of components are listed at once. */
#include "base/check.h"
#include "base/json.h"
#include "host/report/alloy-values.h"
#include "host/report/report.h"
#include "host/state.h"

#include <errno.h>
#include <stdlib.h>

/* Of each node the nodes at the other end of its edges: those of node n are
 * at[start[n]] to at[start[n + 1] - 1]. */
struct links {
	uint32_t *start, *at;
};

enum relation { NAMES, NAMED_BY, FLOWS_TO };

/* Who has the relation to the other end, which `far` gives. In the configuration targets are named
 * by whoever gets them, receivers by whoever sends to them; both flow from `from`. */
static uint32_t end_of(const struct plan_edge *e, enum relation relation, bool far)
{
	bool to = relation != FLOWS_TO && (e->kind == PLAN_TARGETS) == (relation == NAMES);

	return to != far ? e->to : e->from;
}

static void links_free(struct links *l)
{
	free(l->start);
	free(l->at);
}

static int links_init(struct links *l, const struct plan *plan, enum relation relation)
{
	size_t n = plan->nodes.n;

	l->start = calloc(n + 2, sizeof(*l->start));
	l->at = calloc(plan->edges.n + 1, sizeof(*l->at));
	if (!l->start || !l->at)
		return -ENOMEM;
	/* start[k + 2] counts, so that after the sums start[k + 1] is where k begins, and after the
	 * filling where it ends. */
	vec_each (&plan->edges, e)
		l->start[end_of(e, relation, false) + 2]++;
	for (size_t i = 2; i < n + 2; i++)
		l->start[i] += l->start[i - 1];
	vec_each (&plan->edges, e)
		l->at[l->start[end_of(e, relation, false) + 1]++] = end_of(e, relation, true);
	return 0;
}

struct listing {
	const struct plan *plan;
	struct links names, named_by, flows_to;
	struct instance **instances; /* that stay, by name */
	size_t n_instances;
};

static int by_name(const void *a, const void *b)
{
	const struct instance *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int to_name(const void *name, const void *at)
{
	const struct instance *const *i = at;

	return strcmp(name, (*i)->name);
}

static int listing_init(struct listing *l, struct host *host)
{
	l->plan = host->plan;
	l->instances = calloc(host->instances.n + 1, sizeof(struct instance *));
	if (!l->instances)
		return -ENOMEM;
	vec_each (&host->instances, at)
		if (!(*at)->retiring)
			l->instances[l->n_instances++] = *at;
	qsort(l->instances, l->n_instances, sizeof(struct instance *), by_name);
	return links_init(&l->names, l->plan, NAMES)
		       ?: links_init(&l->named_by, l->plan, NAMED_BY)
		       ?: links_init(&l->flows_to, l->plan, FLOWS_TO);
}

static void listing_fini(struct listing *l)
{
	links_free(&l->names);
	links_free(&l->named_by);
	links_free(&l->flows_to);
	free(l->instances);
}

static struct instance *find(const struct listing *l, const char *name)
{
	struct instance **found =
		bsearch(name, l->instances, l->n_instances, sizeof(struct instance *), to_name);

	return found ? *found : NULL;
}

/* What follows the last slash of an id; the module before it is empty at the top. */
static struct str local_of(const char *id, struct str *ret_module)
{
	struct str all = str_of(id);
	size_t n = all.n;

	while (n > 0 && all.p[n - 1] != '/')
		n--;
	*ret_module = str_first(all, n ? n - 1 : 0);
	return str_skip(all, n);
}

/* By local ids, as Alloy does; or by whole ones, as components of two modules may have the same. */
static void put_links(struct buf *out, const struct listing *l, const struct links *links,
		      size_t node)
{
	struct str module;

	buf_putc(out, '[');
	for (uint32_t i = links->start[node]; i < links->start[node + 1]; i++) {
		check(links->at[i] < l->plan->nodes.n);
		buf_str_append(out, i > links->start[node] ? STR(",") : STR(""));
		json_put_str(out, links == &l->flows_to
					  ? str_of(l->plan->nodes.p[links->at[i]].id)
					  : local_of(l->plan->nodes.p[links->at[i]].id, &module));
	}
	buf_putc(out, ']');
}

static struct health health_of(struct instance *i)
{
	struct health health = {.state = ANDIRON_HEALTH_UNKNOWN};

	if (i) {
		pthread_mutex_lock(&i->lock);
		health = i->health;
		pthread_mutex_unlock(&i->lock);
	}
	return health;
}

/* What ends the fields of the list. */
static void put_health(struct buf *out, const struct health *health)
{
	buf_printf(out, ",\"health\":{\"state\":\"%s\",\"message\":", health_name(health->state));
	json_put_str(out, str_of(health->text));
	buf_str_append(out, STR(",\"updatedTime\":"));
	report_put_time(out, health->since_ns);
	buf_str_append(out, STR("},\"original\":\"\",\"liveDebuggingEnabled\":false"));
}

/* What only the answer about one component has. */
static void put_rest(struct buf *out, const struct listing *l, size_t n)
{
	const struct plan_node *node = &l->plan->nodes.p[n];
	struct instance *i = find(l, node->id);

	buf_str_append(out, STR(",\"arguments\":"));
	alloy_put_body(out, node->args, node->registered->component->options);
	buf_str_append(out, STR(",\"exports\":"));
	if (i)
		alloy_put_exports(out, i);
	else
		buf_str_append(out, STR("[]"));
	buf_str_append(out, STR(",\"debugInfo\":[]"));
}

/* What begins them. */
static void put_names(struct buf *out, const char *id, struct str name)
{
	struct str module, local = local_of(id, &module);

	buf_str_append(out, STR("{\"name\":"));
	json_put_str(out, name);
	buf_str_append(out, STR(",\"type\":\"block\",\"localID\":"));
	json_put_str(out, local);
	buf_str_append(out, STR(",\"moduleID\":"));
	json_put_str(out, module);
	if (local.n > name.n && str_starts(local, name)) {
		buf_str_append(out, STR(",\"label\":"));
		json_put_str(out, str_skip(local, name.n + 1));
	}
}

static void put_component(struct buf *out, const struct listing *l, size_t n, bool whole)
{
	const struct plan_node *node = &l->plan->nodes.p[n];
	struct health health = health_of(find(l, node->id));

	put_names(out, node->id, str_of(node->registered->component->name));
	buf_str_append(out, STR(",\"referencesTo\":"));
	put_links(out, l, &l->names, n);
	buf_str_append(out, STR(",\"referencedBy\":"));
	put_links(out, l, &l->named_by, n);
	buf_str_append(out, STR(",\"dataFlowEdgesTo\":"));
	put_links(out, l, &l->flows_to, n);
	put_health(out, &health);
	if (whole)
		put_rest(out, l, n);
	buf_putc(out, '}');
}

/* One that waits for a value has neither arguments nor edges yet. */
static void put_waiting(struct buf *out, const struct host *host,
			const struct plan_waiting *waiting, bool whole)
{
	struct health health = report_waiting(host, waiting);
	struct str module, local = local_of(waiting->id, &module);

	put_names(out, waiting->id,
		  waiting->registered ? str_of(waiting->registered->component->name)
				      : str_first(local, str_rfind(local, '.')));
	buf_str_append(out, STR(",\"referencesTo\":[],\"referencedBy\":[],\"dataFlowEdgesTo\":[]"));
	put_health(out, &health);
	if (whole)
		buf_str_append(out, STR(",\"arguments\":[],\"exports\":[],\"debugInfo\":[]"));
	buf_putc(out, '}');
}

int host_components_json(struct host *host, struct buf *out)
{
	struct listing l = {0};
	int r = host->plan ? listing_init(&l, host) : 0;

	buf_putc(out, '[');
	for (size_t n = 0; r == 0 && l.plan && n < l.plan->nodes.n; n++) {
		buf_str_append(out, n ? STR(",\n") : STR(""));
		put_component(out, &l, n, false);
	}
	for (size_t n = 0; r == 0 && l.plan && n < l.plan->waiting.n; n++) {
		buf_str_append(out, n || l.plan->nodes.n ? STR(",\n") : STR(""));
		put_waiting(out, host, &l.plan->waiting.p[n], false);
	}
	buf_str_append(out, STR("]\n"));
	listing_fini(&l);
	return r == 0 && out->failed ? -ENOMEM : r;
}

static const struct plan_waiting *find_waiting(const struct host *host, struct str id)
{
	for (size_t n = 0; host->plan && n < host->plan->waiting.n; n++)
		if (str_is(id, host->plan->waiting.p[n].id))
			return &host->plan->waiting.p[n];
	return NULL;
}

int host_component_json(struct host *host, struct str id, struct buf *out)
{
	const struct plan_waiting *waiting = find_waiting(host, id);
	struct listing l = {0};
	size_t n = 0, all = host->plan ? host->plan->nodes.n : 0;
	int r = -ENOENT;

	while (n < all && !str_is(id, host->plan->nodes.p[n].id))
		n++;
	if (n < all) {
		r = listing_init(&l, host);
		if (r == 0)
			put_component(out, &l, n, true);
		buf_putc(out, '\n');
	} else if (waiting) {
		put_waiting(out, host, waiting, true);
		buf_putc(out, '\n');
		r = 0;
	}
	listing_fini(&l);
	return r == 0 && out->failed ? -ENOMEM : r;
}
