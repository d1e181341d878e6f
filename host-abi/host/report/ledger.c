/* SPDX-License-Identifier: Apache-2.0 */
/* Counting. Contract in ledger.h. */
#include "host/report/ledger.h"

#include "base/check.h"

#include <errno.h>

#define REASON_BYTES 64

static bool reasons_init(struct ledger_reasons *list)
{
	return vec_push(list, ((struct ledger_reason){"host", "other", 0}));
}

int ledger_init(struct ledger *l)
{
	*l = (struct ledger){0};
	if (!reasons_init(&l->skipped))
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	return 0;
}

void ledger_fini(struct ledger *l)
{
	check(l->nodes.n == 0);
	vec_each (&l->rows, row)
		vec_free(&row->dropped);
	vec_free(&l->rows);
	vec_free(&l->nodes);
	vec_free(&l->skipped);
	vec_free(&l->writers);
	vec_free(&l->view_reasons);
	arena_free(&l->names);
	pthread_mutex_destroy(&l->lock);
}

int ledger_enter(struct ledger *l, struct ledger_node *node, const char *component)
{
	struct str name;
	int r = -ENOMEM;

	*node = (struct ledger_node){0};
	pthread_mutex_lock(&l->lock);
	name = arena_str(&l->names, str_of(component));
	node->component = name.p;
	if (name.p && vec_push(&l->nodes, node))
		r = 0;
	pthread_mutex_unlock(&l->lock);
	return r;
}

static uint64_t paths_to(const struct ledger_node *node, size_t row)
{
	return row < node->paths.n ? node->paths.p[row] : 0;
}

void ledger_leave(struct ledger *l, struct ledger_node *node)
{
	size_t at = 0;

	pthread_mutex_lock(&l->lock);
	while (at < l->nodes.n && l->nodes.p[at] != node)
		at++;
	check(at < l->nodes.n);
	l->nodes.p[at] = l->nodes.p[--l->nodes.n];
	for (size_t i = 0; i < l->rows.n; i++) {
		uint64_t n = paths_to(node, i);

		l->rows.p[i].left_in_flight += n *
					       (node->in_flight + node->queued + node->processing);
		l->rows.p[i].left_spooled += n * node->spooled;
		l->rows.p[i].left_uncertain += n * node->uncertain;
	}
	vec_free(&node->paths);
	pthread_mutex_unlock(&l->lock);
}

static int add_row(struct ledger *l, const char *name)
{
	struct ledger_row row = {.component = name};

	if (!reasons_init(&row.dropped))
		return -ENOMEM;
	if (!vec_push(&l->rows, row)) {
		vec_free(&row.dropped);
		return -ENOMEM;
	}
	return (int)l->rows.n - 1;
}

int ledger_writer_row(struct ledger *l, const char *component)
{
	struct str name;
	int r = -1;

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->rows.n && r < 0; i++)
		if (strcmp(l->rows.p[i].component, component) == 0)
			r = (int)i;
	if (r < 0) {
		name = arena_str(&l->names, str_of(component));
		r = name.p ? add_row(l, name.p) : -ENOMEM;
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

int ledger_reserve(struct ledger *l, struct ledger_node *node)
{
	int r = 0;

	pthread_mutex_lock(&l->lock);
	while (node->paths.n < l->rows.n && r == 0)
		if (!vec_push(&node->paths, 0))
			r = -ENOMEM;
	pthread_mutex_unlock(&l->lock);
	return r;
}

/* In flight towards a row, from nodes that exist. The lock is held. */
static uint64_t in_flight_to(const struct ledger *l, size_t row)
{
	uint64_t sum = 0;

	vec_each (&l->nodes, n)
		sum += paths_to(*n, row) * ((*n)->in_flight + (*n)->queued + (*n)->processing);
	return sum;
}

/* Each row's in flight is the same sum before and after, so its `taken` may be moved by the
 * difference without keeping the old sums aside: it is lowered by the old ones first. Unsigned
 * arithmetic may pass through "below zero". */
void ledger_rewire(struct ledger *l, void (*set)(void *context), void *context)
{
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->rows.n; i++)
		l->rows.p[i].taken -= in_flight_to(l, i);
	set(context);
	for (size_t i = 0; i < l->rows.n; i++)
		l->rows.p[i].taken += in_flight_to(l, i);
	pthread_mutex_unlock(&l->lock);
}

static struct ledger_reason *reason_of(struct ledger *l, struct ledger_reasons *list,
				       const char *component, struct str reason)
{
	struct str word;

	check(list->n > 0);
	vec_each (list, r)
		if (strcmp(r->component, component) == 0 && str_is(reason, r->reason))
			return r;
	if (list->n >= LEDGER_REASONS)
		return list->p;
	word = arena_str(&l->names, str_first(reason, REASON_BYTES));
	if (!word.p || !vec_push(list, ((struct ledger_reason){component, word.p, 0})))
		return list->p;
	return &list->p[list->n - 1];
}

/* A drop, charged to every writer that would have got the samples. The lock is held. */
static void drop(struct ledger *l, const struct ledger_node *node, struct str reason,
		 uint64_t samples)
{
	reason = str_first(reason.n ? reason : STR("unnamed"), REASON_BYTES);
	for (size_t i = 0; i < l->rows.n; i++) {
		uint64_t n = paths_to(node, i);

		if (n)
			reason_of(l, &l->rows.p[i].dropped, node->component, reason)->samples +=
				n * samples;
	}
}

static void count_row(struct ledger_row *row, uint32_t entry, uint64_t samples)
{
	if (entry == ANDIRON_LEDGER_TAKEN)
		row->taken += samples;
	else if (entry == ANDIRON_LEDGER_DELIVERED)
		row->delivered += samples;
	else if (entry == ANDIRON_LEDGER_CARRIED)
		row->carried += samples;
}

void ledger_count(struct ledger *l, struct ledger_node *node, uint32_t entry, struct str reason,
		  uint64_t samples)
{
	pthread_mutex_lock(&l->lock);
	if (entry == ANDIRON_LEDGER_DROPPED) {
		drop(l, node, reason, samples);
	} else if (entry == ANDIRON_LEDGER_SKIPPED) {
		reason = str_first(reason.n ? reason : STR("unnamed"), REASON_BYTES);
		reason_of(l, &l->skipped, "", reason)->samples += samples;
	} else {
		l->taken += entry == ANDIRON_LEDGER_TAKEN ? samples : 0;
		for (size_t i = 0; i < l->rows.n; i++)
			count_row(&l->rows.p[i], entry, paths_to(node, i) * samples);
	}
	pthread_mutex_unlock(&l->lock);
}

void ledger_level(struct ledger *l, struct ledger_node *node, uint32_t entry, uint64_t samples)
{
	pthread_mutex_lock(&l->lock);
	if (entry == ANDIRON_LEDGER_IN_FLIGHT)
		node->in_flight = samples;
	else if (entry == ANDIRON_LEDGER_SPOOLED)
		node->spooled = samples;
	else if (entry == ANDIRON_LEDGER_UNCERTAIN)
		node->uncertain = samples;
	else if (entry == ANDIRON_LEDGER_UNREAD)
		node->unread = samples;
	pthread_mutex_unlock(&l->lock);
}

void ledger_queued(struct ledger *l, struct ledger_node *node, uint64_t samples)
{
	pthread_mutex_lock(&l->lock);
	node->queued += samples;
	pthread_mutex_unlock(&l->lock);
}

void ledger_processing(struct ledger *l, struct ledger_node *node, uint64_t samples)
{
	pthread_mutex_lock(&l->lock);
	check(node->queued >= samples);
	node->queued -= samples;
	node->processing += samples;
	pthread_mutex_unlock(&l->lock);
}

void ledger_processed(struct ledger *l, struct ledger_node *node, uint64_t samples)
{
	pthread_mutex_lock(&l->lock);
	check(node->processing >= samples);
	node->processing -= samples;
	pthread_mutex_unlock(&l->lock);
}

void ledger_unqueued(struct ledger *l, struct ledger_node *node, struct str reason,
		     uint64_t samples)
{
	pthread_mutex_lock(&l->lock);
	check(node->queued >= samples);
	node->queued -= samples;
	drop(l, node, reason, samples);
	pthread_mutex_unlock(&l->lock);
}
