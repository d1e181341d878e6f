/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in local-file.h. */
#include "host/lang/local-file.h"

#include "host/lang/import.h"
#include "host/lang/module.h"
#include "host/lang/values/eval.h"

#include "base/clock.h"

#define DEFAULT_POLL_NS (60 * NS_PER_SEC)
#define LEAST_POLL_NS   NS_PER_SEC

/* The text of an argument that may be missing. */
static struct str text_of(struct draft *d, const struct stmt *block, const char *name,
			  const struct stmt **ret_at)
{
	struct andiron_value value;

	for (const struct stmt *s = block->body; s; s = s->next) {
		if (!str_is(s->name, name) || !s->value || !eval(&d->l, s->value, &value))
			continue;
		*ret_at = s;
		if (value.kind == ANDIRON_VALUE_STRING)
			return (struct str){value.string.ptr, value.string.len};
		lang_error(&d->l, s->value->place, NULL, "%s is a string, not %s", name,
			   eval_describe(&d->l, &value));
	}
	return STR_NULL;
}

void local_file_detect(struct draft *d, const struct stmt *s)
{
	const struct stmt *at = s;
	struct str detector = text_of(d, s, "detector", &at);
	struct str frequency;
	int64_t ns = DEFAULT_POLL_NS;

	if (detector.p && !str_is(detector, "poll") && !str_is(detector, "fsnotify"))
		lang_error(&d->l, at->value->place, NULL, "detector is \"fsnotify\" or \"poll\"");
	frequency = text_of(d, s, "poll_frequency", &at);
	if (frequency.p && (!duration_parse(frequency, &ns) || ns <= 0))
		lang_error(&d->l, at->value->place, NULL,
			   "poll_frequency is a duration such as \"1m\"");
	ns = ns < LEAST_POLL_NS ? LEAST_POLL_NS : ns;
	if (str_is(detector, "poll") && (!d->poll_ns || ns < d->poll_ns))
		d->poll_ns = ns;
}

static void add(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	static const char *const known[] = {"filename", "detector", "poll_frequency", "is_secret",
					    NULL};
	const struct stmt *name = NULL;
	struct custom *custom;

	if (module_has_label(d, s) && module_only(d, s, known))
		name = module_needed(d, s, "filename");
	custom = name ? module_add_custom(d, scope, s, 1) : NULL;
	if (!custom)
		return;
	custom->exports[custom->n_exports++] = (struct binding){
		.name = STR("content"),
		.expr = name->value,
		.scope = scope,
		.file = s,
	};
}

void local_file_give_way(struct space *space, const struct stmt *first)
{
	for (const struct stmt *s = first; s; s = s->next)
		space->has_local |= s->block && import_is(s->name) && str_is(s->label, "local");
}

void local_file_blocks(struct draft *d, const struct scope *scope, const struct stmt *first)
{
	local_file_give_way(scope->space, first);
	for (const struct space *space = scope->space; space; space = space->around)
		if (space->has_local)
			return;
	for (const struct stmt *s = first; s && !d->l.no_memory; s = s->next)
		if (s->block && str_is(s->name, LOCAL_FILE) && (!s->broken || s->labelled))
			add(d, scope, s);
}

void local_file_read_all(struct draft *d)
{
	struct andiron_value value;
	struct plan_file file;

	for (size_t i = 0; i < d->l.custom.n && !d->l.no_memory; i++) {
		struct custom *custom = d->l.custom.p[i];

		struct binding *b = custom->exports;

		if (!custom->n_exports || !b->file)
			continue;
		d->l.scope = b->scope;
		draft_about(d, b->scope);
		local_file_detect(d, b->file);
		binding_value(&d->l, b, b->expr, &value);
		file = (struct plan_file){b->path, b->hash, d->l.diags->subject};
		if (b->path && !vec_push(&d->files, file))
			d->l.no_memory = true;
	}
	draft_about(d, NULL);
}
