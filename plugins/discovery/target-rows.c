/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and their sources. Contract in target-rows.h. */
#include "discovery/target-rows.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

#define ROW_BITS 32

void target_rows_free(struct target_rows *r)
{
	arena_free(&r->arena);
	vec_free(&r->labels);
	vec_free(&r->rows);
}

int target_rows_label(struct target_rows *r, struct str name, struct str value)
{
	if (r->labels.n >= ROWS_MAX_LABELS || r->bytes + name.n + value.n > ROWS_MAX_BYTES)
		return -E2BIG;
	r->bytes += name.n + value.n;
	return vec_push(&r->labels, ((struct target_label){name, value})) ? 0 : -ENOMEM;
}

int target_rows_end(struct target_rows *r)
{
	struct target_span row = {r->begun, r->labels.n - r->begun};

	if (r->rows.n >= ROWS_MAX)
		return -E2BIG;
	if (!vec_push(&r->rows, row))
		return -ENOMEM;
	r->begun = r->labels.n;
	return 0;
}

int sources_init(struct sources *s, const struct abi_context *context)
{
	*s = (struct sources){.context = *context, .list = target_list_new(context->instance)};
	return s->list ? 0 : -ENOMEM;
}

static void source_fini(struct source *source)
{
	free(source->name);
	free(source->fault);
}

void sources_fini(struct sources *s)
{
	vec_each (&s->all, source)
		source_fini(source);
	vec_free(&s->all);
	target_list_free(s->list);
}

struct source *sources_get(struct sources *s, const char *name)
{
	struct source fresh = {.slot = s->next_slot};

	vec_each (&s->all, source)
		if (strcmp(source->name, name) == 0)
			return source;
	fresh.name = str_dup(str_of(name));
	if (!fresh.name || !vec_push(&s->all, fresh)) {
		free(fresh.name);
		return NULL;
	}
	s->next_slot++;
	return &s->all.p[s->all.n - 1];
}

static uint64_t row_id(const struct source *source, size_t i)
{
	return (uint64_t)source->slot << ROW_BITS | i;
}

static void cut_rows(struct sources *s, struct source *source, size_t n)
{
	for (size_t i = n; i < source->n_rows; i++)
		target_list_remove(s->list, row_id(source, i));
	source->n_rows = (uint32_t)n;
}

int sources_set(struct sources *s, struct source *source, const struct target_rows *rows)
{
	check(rows->rows.n <= ROWS_MAX);
	for (size_t i = 0; i < rows->rows.n; i++) {
		const struct target_span *row = &rows->rows.p[i];
		uint64_t id = row_id(source, i);

		if (target_list_set(s->list, id, id, rows->labels.p + row->first, row->n) < 0)
			return -ENOMEM;
		if (i >= source->n_rows)
			source->n_rows = (uint32_t)i + 1;
	}
	cut_rows(s, source, rows->rows.n);
	return 0;
}

void sources_sweep(struct sources *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->all.n; i++) {
		struct source *source = &s->all.p[i];

		if (source->present) {
			s->all.p[kept++] = *source;
			continue;
		}
		cut_rows(s, source, 0);
		source_fini(source);
	}
	s->all.n = kept;
}

void source_fail(struct source *source, const char *text)
{
	free(source->fault);
	source->fault = text ? str_dup(str_of(text)) : NULL;
}

size_t sources_count(const struct sources *s)
{
	size_t n = 0;

	vec_each (&s->all, source)
		n += source->n_rows;
	return n;
}

int sources_publish(struct sources *s)
{
	const struct andiron_targets *update = NULL;
	int r = target_list_flush(s->list, &update);

	if (r == 0 && update) {
		s->context.host->send_targets(s->context.instance, "targets", update);
		update->release(update->owner);
	}
	return r;
}
