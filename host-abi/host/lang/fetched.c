/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in fetched.h. That a module imports itself is seen by its URL where that is known when
 * modules are read; by a depth where it is not (a query that differs, a redirection). */
#include "host/lang/fetched.h"

#include "host/lang/import.h"
#include "host/lang/module.h"
#include "host/lang/supplied.h"
#include "host/lang/values/eval.h"

#define MAX_DEPTH 8 /* each level is one more answer to wait for */
/* Each may be 1 MiB, and is kept three times while it changes. */
#define MAX_FETCHED 64
#define CONTENT     "content"

/* --- import.string --- */

/* A secret may be one. */
static const struct andiron_option options[] = {
	{.name = CONTENT, .type = ANDIRON_TYPE_SECRET, .flags = ANDIRON_OPTION_REQUIRED},
};
static const struct andiron_options option_table = ANDIRON_OPTIONS(options);
static const struct andiron_component component = {
	.size = sizeof(component),
	.name = "import.string",
	.options = &option_table,
};
const struct registered_component fetched_text = {&component, NULL};

static const struct andiron_value *find_text(const struct draft *d, const char *id)
{
	vec_each (&d->left_out->texts, text)
		if (strcmp(text->id, id) == 0)
			return &text->content;
	return NULL;
}

static bool keep_text(struct draft *d, const struct plan_node *node)
{
	struct draft_left_out *out = d->left_out;
	struct draft_text text = {.id = arena_str(&out->arena, str_of(node->id)).p};

	d->l.no_memory |= !text.id ||
			  supplied_copy(&out->arena, &node->args->items[0], &text.content) < 0 ||
			  !vec_push(&out->texts, text);
	if (out->n_again < MAX_DEPTH)
		return !d->l.no_memory;
	lang_error(&d->l, node->place, NULL, "modules need each other more than %d levels deep",
		   MAX_DEPTH);
	return false;
}

bool fetched_again(struct draft *d)
{
	bool again = false;

	if (d->l.no_memory || d->l.diags->n_errors > d->l.diags->n_blamed)
		return false;
	vec_each (&d->nodes, node)
		if (node->plan.registered == &fetched_text && node->plan.args &&
		    !find_text(d, node->plan.id) && !(again = keep_text(d, &node->plan)))
			return false;
	d->left_out->n_again += again;
	return again;
}

/* --- Both --- */

/* Has all arguments evaluated, for who counts what they name; no more comes of it. */
static void name_all(struct draft *d, const struct stmt *body)
{
	struct andiron_value value;

	for (const struct stmt *x = body; x; x = x->next)
		if (x->block)
			name_all(d, x->body);
		else if (x->value)
			eval(&d->l, x->value, &value);
}

/* An argument, if it is known now, else null: it may name a value, or what is no component yet, of
 * which is spoken when the component is bound. */
static struct andiron_value early(struct draft *d, const struct scope *scope, const struct stmt *s,
				  const char *name)
{
	/* Who looks into what was refused is sure that an error was told. */
	struct diags *diags = d->l.diags, unsaid = {.arena = ARENA_NULL, .n_errors = 1};
	const struct stmt *x = module_attribute(s->body, name);
	struct andiron_value value = {0};
	const char *waits_for = d->l.waits_for;

	d->l.diags = &unsaid;
	d->l.scope = scope;
	d->l.early = ++d->l.n_early;
	scope_window(&d->l);
	name_all(d, s->body);
	if (!x || !x->value || !eval(&d->l, x->value, &value))
		value.kind = ANDIRON_VALUE_NULL;
	d->l.early = 0;
	d->l.waits_for = waits_for;
	d->l.diags = diags;
	diags_free(&unsaid);
	return value;
}

bool fetched_is_known(struct draft *d, const struct scope *scope, const struct stmt *s,
		      const char *name)
{
	size_t n = d->l.value_uses.n;

	return early(d, scope, s, name).kind != ANDIRON_VALUE_NULL && d->l.value_uses.n == n;
}

static struct str url_of(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	struct andiron_value value = early(d, scope, s, "url");

	if (value.kind != ANDIRON_VALUE_STRING)
		return STR_NULL;
	return lang_str(&d->l, (struct str){value.string.ptr, value.string.len});
}

/* module_path, as Alloy has it. */
static struct str up_to_slash(struct str url)
{
	return str_first(url, str_rfind(url, '/') + 1);
}

static bool is_bounded(struct draft *d, const struct stmt *s, const struct space *module)
{
	const struct space *x = module->importer;
	unsigned int depth = 0;

	for (; x; x = x->around ? x->around : x->importer) {
		depth += x->fetched > 0;
		if (!module->url.n || !str_eq(x->url, module->url))
			continue;
		lang_error(&d->l, s->place, NULL,
			   "a module imports itself: %.*s \"%.*s\" has the URL of what it stands "
			   "in",
			   STR_FMT(s->name), STR_FMT(str_first(s->label, 200)));
		return false;
	}
	if (depth >= MAX_DEPTH)
		lang_error(&d->l, s->place, "does one of them import itself?",
			   "modules that are fetched import each other more than %d levels deep",
			   MAX_DEPTH);
	else if (d->n_fetched >= MAX_FETCHED)
		lang_error(&d->l, s->place, NULL, "more than %d modules are fetched", MAX_FETCHED);
	else
		return true;
	return false;
}

bool fetched_get(struct draft *d, const struct scope *scope, const struct stmt *s,
		 struct space *module, struct source *ret, const char **ret_waits_for)
{
	const struct andiron_value *value;
	const char *id;
	uint32_t node;

	module->url = url_of(d, scope, s);
	if (module->url.n)
		module->folder = lang_str(&d->l, up_to_slash(module->url)).p;
	if (d->l.no_memory || !is_bounded(d, s, module))
		return false;
	d->n_fetched++;
	node = draft_component(d, scope, s);
	if (node == INDEX_NONE)
		return false;
	/* What an import.string names stands in its scope. */
	d->l.n_bindings_named += scope->variable || !module->url.n;
	module->fetched = node + 1;
	id = d->nodes.p[node].plan.id;
	value = find_text(d, id) ?: supplied_get(d->l.supplied, id, CONTENT);
	if (!value) {
		*ret_waits_for = id;
		d->awaits_modules = true;
		if (!d->l.supplied)
			lang_warning(&d->l, s->place, NULL,
				     "what %s brings is not checked: it comes when the agent runs",
				     id);
		return true;
	}
	*ret_waits_for = NULL;
	ret->name = arena_printf(d->l.arena, "content of %s", id);
	ret->text = lang_str(&d->l, (struct str){value->string.ptr, value->string.len});
	d->l.no_memory |= !ret->name;
	return ret->name && ret->text.p;
}

bool fetched_is_use(const struct draft *d, const struct value_use *use)
{
	return import_is(str_of(d->l.names.list.p[use->node].component->name));
}

void fetched_wait(struct draft *d, const struct scope *scope, const struct stmt *s,
		  const char *waits_for)
{
	struct custom *custom = module_add_custom(d, scope, s, 0);

	if (!custom)
		return;
	custom->waits_for = waits_for;
	custom->fetched = names_find(&d->l.names, str_of(waits_for)) + 1;
	custom->body = s->body;
	custom->scope = scope;
}

void fetched_check_waiting(struct draft *d)
{
	struct andiron_value value;

	for (size_t i = 0; i < d->l.custom.n && !d->l.no_memory; i++) {
		const struct custom *custom = d->l.custom.p[i];

		d->l.scope = custom->scope;
		draft_about(d, custom->scope);
		scope_window(&d->l);
		for (const struct stmt *s = custom->body; s && !d->l.no_memory; s = s->next)
			if (!s->block && s->value)
				eval(&d->l, s->value, &value);
	}
	draft_about(d, NULL);
}

void fetched_finish(struct draft *d, struct plan *plan)
{
	for (size_t i = 0; i < d->l.custom.n; i++) {
		const struct custom *custom = d->l.custom.p[i];
		const struct plan_waiting waiting = {custom->id, custom->waits_for, NULL};

		if (custom->waits_for)
			d->l.no_memory |= !vec_push(&plan->waiting, waiting);
	}
	if (!d->awaits_modules)
		return;
	d->l.no_memory |= registry_require(d->l.registry, NULL, 0) < 0;
	plan->may_bring = d->l.registry;
}
