/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering. Contract in target-listing.h. */
#include "cli/targets/target-listing.h"

#include "abi/value.h"
#include "base/check.h"

void target_listing_free(struct target_listing *s)
{
	vec_each (&s->components, c) {
		vec_free(&c->targets);
		vec_free(&c->dropped);
	}
	vec_free(&s->components);
	arena_free(&s->arena);
}

void target_listing_begin(struct target_listing *s, const char *id)
{
	struct str copy = arena_str(&s->arena, str_of(id));

	if (!copy.p || !vec_push(&s->components, ((struct listed_component){.id = copy.p})))
		s->failed = true;
}

static struct listed_component *current(struct target_listing *s)
{
	if (s->failed)
		return NULL;
	check(s->components.n > 0);
	return &s->components.p[s->components.n - 1];
}

static void copy_label(struct target_listing *s, struct target_label *to, struct str name,
		       struct str value)
{
	to->name = arena_str(&s->arena, name);
	to->value = arena_str(&s->arena, value);
	s->failed |= !to->name.p || !to->value.p;
}

static struct target_label *make_labels(struct target_listing *s, uint64_t n)
{
	struct target_label *labels = arena_array(&s->arena, struct target_label, n + 1);

	s->failed |= !labels;
	return labels;
}

static void add(struct target_listing *s, struct listed_targets *list, struct listed_target target)
{
	if (s->failed || !vec_push(list, target))
		s->failed = true;
}

void target_listing_add_row(struct target_listing *s, const struct target_row *row)
{
	struct listed_component *c = current(s);
	struct target_label *labels = c ? make_labels(s, row->n_labels) : NULL;

	for (uint32_t i = 0; labels && i < row->n_labels; i++)
		copy_label(s, &labels[i], row->labels[i].name, row->labels[i].value);
	if (labels)
		add(s, &c->targets,
		    (struct listed_target){.labels = labels, .n_labels = row->n_labels});
}

void target_listing_add_dropped(struct target_listing *s,
				const struct andiron_dropped_target *target)
{
	struct listed_component *c = current(s);
	struct target_label *labels = c ? make_labels(s, target->n_labels) : NULL;
	struct str file = arena_str(&s->arena, str_of(target->file));
	struct str reason = arena_str(&s->arena, abi_str(target->reason));

	s->failed |= !file.p || !reason.p;
	for (uint64_t i = 0; labels && i < target->n_labels; i++)
		copy_label(s, &labels[i], abi_str(target->labels[i].key),
			   abi_str(target->labels[i].value));
	if (labels)
		add(s, &c->dropped,
		    (struct listed_target){.labels = labels,
					   .n_labels = (uint32_t)target->n_labels,
					   .rule = target->rule,
					   .line = target->line,
					   .file = file.p,
					   .reason = reason.p});
}

void target_listing_add_file(struct target_listing *s, const struct andiron_value *list)
{
	struct listed_component *c = current(s);

	for (uint64_t i = 0; c && !s->failed && i < list->n_items; i++) {
		const struct andiron_value *map = &list->items[i];
		struct target_label *labels = make_labels(s, map->n_items);

		for (uint64_t k = 0; labels && k < map->n_items; k++)
			copy_label(s, &labels[k], abi_str(map->keys[k]),
				   abi_str(map->items[k].string));
		if (labels)
			add(s, &c->targets,
			    (struct listed_target){.labels = labels,
						   .n_labels = (uint32_t)map->n_items});
	}
}

int target_listing_match(struct target_listing *s)
{
	struct machine_processes processes;
	int r = machine_processes_read(&processes);

	if (r)
		return r;
	s->matches = true;
	vec_each (&s->components, c)
		vec_each (&c->targets, t)
			if (matched_find(&processes, t->labels, t->n_labels, &s->arena,
					 &t->matched))
				s->failed = true;
	machine_processes_fini(&processes);
	return 0;
}
