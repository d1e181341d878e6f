/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in local-file.h. */
#include "host/lang/local-file.h"

#include "host/lang/module.h"
#include "host/lang/values/eval.h"

#define NAME "local.file"

static void say_what_is_ignored(struct draft *d, const struct stmt *s)
{
	for (const struct stmt *x = s->body; x; x = x->next)
		if (str_is(x->name, "detector") || str_is(x->name, "poll_frequency"))
			lang_warning(&d->l, x->place,
				     "`andiron run` hears of each change from the kernel, or looks "
				     "every 10 seconds",
				     NAME " %.*s is accepted but ignored", STR_FMT(x->name));
}

bool local_file_block(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	static const char *const known[] = {"filename", "detector", "poll_frequency", "is_secret",
					    NULL};
	const struct stmt *name = NULL;
	struct custom *custom;

	if (!str_is(s->name, NAME))
		return false;
	if (!s->label.n) {
		lang_error(&d->l, s->place, "write " NAME " \"NAME\" { … }", NAME " needs a label");
		return true;
	}
	if (!module_only(d, s, known))
		return true;
	for (const struct stmt *x = s->body; x; x = x->next)
		if (str_is(x->name, "filename"))
			name = x;
	if (!name)
		lang_error(&d->l, s->place, NULL, NAME " needs the argument filename");
	custom = name && name->value ? module_add_custom(d, scope, s, 1) : NULL;
	if (!custom)
		return true;
	say_what_is_ignored(d, s);
	custom->exports[custom->n_exports++] = (struct binding){
		.name = STR("content"),
		.expr = name->value,
		.scope = scope,
		.file = s,
	};
	return true;
}

void local_file_read_all(struct draft *d)
{
	struct andiron_value value;

	for (size_t i = 0; i < d->l.custom.n && !d->l.no_memory; i++) {
		struct custom *custom = d->l.custom.p[i];

		struct binding *b = custom->exports;

		if (!custom->n_exports || !b->file || !binding_value(&d->l, b, b->expr, &value))
			continue;
		if (!vec_push(&d->files, ((struct plan_file){b->path, b->hash})))
			d->l.no_memory = true;
	}
}
