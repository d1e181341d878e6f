/* SPDX-License-Identifier: Apache-2.0 */
/* foreach: rounds of a template. How often they go is bounded, however loops stand within each
 * other. */
#include "host/lang/module.h"

#include "host/lang/fetched.h"
#include "host/lang/foreach-items.h"
#include "host/lang/local-file.h"
#include "host/lang/syntax/scan.h"
#include "host/lang/values/eval.h"
#include "host/lang/values/scope.h"

struct round {
	const struct draft_loop *loop;
	const struct stmt *template;
	struct draft_list *list; /* of which it is an item, or NULL */
};

/* One round: the template's components under the ids foreach.LABEL/KEY/…, where the variable is the
 * element. */
static void add_round(struct draft *d, const struct round *round, struct binding variable,
		      const char *key, struct space **shared)
{
	const struct draft_loop *loop = round->loop;
	const struct stmt *template = round->template;
	const char *prefix = arena_printf(d->l.arena, "%sforeach.%.*s/%s/", loop->scope->prefix,
					  STR_FMT(loop->block->label), key);
	struct scope *inside = module_scope(d, loop->scope, prefix);
	struct binding *b = lang_array(&d->l, struct binding, 1);

	if (!inside || !b)
		return;
	*b = variable;
	inside->space = *shared;
	inside->around = loop->scope;
	inside->variable = b;
	if (round->list && !foreach_items_begin(d, inside, round->list))
		return;
	draft_about(d, inside);
	local_file_blocks(d, inside, template->body);
	module_declare_inside(d, inside, shared, template->body);
	module_blocks(d, inside, template->body);
	draft_about(d, loop->scope);
}

/* The block template; the arguments beside it are copied to *ret. NULL after an error. */
static const struct stmt *template_of(struct draft *d, const struct stmt *s, struct stmt *ret)
{
	static const char *const known[] = {"collection",     "var", "id", "hash_string_id",
					    "enable_metrics", NULL};
	const struct stmt *template = NULL;
	struct stmt **tail = &ret->body;
	bool good;

	*ret = *s;
	for (const struct stmt *x = s->body; x; x = x->next) {
		struct stmt *copy = lang_array(&d->l, struct stmt, 1);

		if (!copy)
			return NULL;
		if (x->block && str_is(x->name, "template") && !template) {
			template = x;
			continue;
		}
		*copy = *x;
		*tail = copy;
		tail = &copy->next;
	}
	*tail = NULL;
	if (!template)
		lang_error(&d->l, s->place, NULL, "foreach needs the block template");
	good = template && !template->broken;
	for (const struct stmt *x = template ? template->body : NULL; x; x = x->next)
		if (x->block &&
		    (str_is(x->name, "argument") || str_is(x->name, "export"))) {
			lang_error(&d->l, x->place, NULL,
				   "the block %.*s stands inside declare only", STR_FMT(x->name));
			good = false;
		}
	return module_only(d, ret, known) && good ? template : NULL;
}

/* Its arguments, which no component may supply, but as targets (foreach-items.h): whose then. */
static bool eval_loop(struct draft *d, const struct stmt *collection, const struct stmt *variable,
		      struct andiron_value *ret_all, struct andiron_value *ret_name,
		      const char **ret_list)
{
	size_t first = d->l.value_uses.n;
	bool good;

	scope_window(&d->l);
	d->l.waits_for = NULL;
	good = eval(&d->l, collection->value, ret_all) && eval(&d->l, variable->value, ret_name);
	for (size_t i = first; i < d->l.value_uses.n; i++) {
		struct value_use use = d->l.value_uses.p[i];
		const struct name *of = &d->l.names.list.p[use.node];

		if (fetched_is_use(d, &use))
			continue;
		*ret_list = use.list;
		if (use.list)
			continue;
		lang_error(&d->l, use.place, NULL,
			   "foreach goes over a list in the configuration or over targets, not "
			   "over what %s supplies",
			   of->id);
		return false;
	}
	return good;
}

static void go_round(struct draft *d, const struct draft_loop *loop, const struct stmt *template,
		     const struct andiron_value *all, struct binding element, const struct str *id)
{
	struct foreach_keys keys = {0};
	const struct round round = {loop, template, id ? d->lists.p[d->lists.n - 1] : NULL};
	const struct space *around = loop->scope->space;
	struct space *shared = lang_array(&d->l, struct space, 1);

	if (!shared)
		return;
	*shared = (struct space){.around = around, .folder = around->folder};
	for (uint64_t i = 0; i < all->n_items && !d->l.no_memory; i++) {
		const char *key;

		if (loop->scope->depth >= MODULE_MAX_DEPTH || d->n_rounds++ >= DRAFT_MAX_NODES) {
			lang_error(&d->l, loop->block->place, NULL,
				   "foreach goes round more than %d times", DRAFT_MAX_NODES);
			break;
		}
		element.value = all->items[i];
		key = id ? foreach_items_key(d, &all->items[i], *id, &keys)
			 : arena_printf(d->l.arena, "%llu", (unsigned long long)i + 1);
		d->l.no_memory |= !key;
		if (key)
			add_round(d, &round, element, key, &shared);
	}
	foreach_keys_free(&keys);
}

/* What the block consists of. */
struct parts {
	struct stmt arguments;
	const struct stmt *template, *collection, *variable;
};

static bool find_parts(struct draft *d, const struct stmt *s, struct parts *ret)
{
	ret->template = module_has_label(d, s) ? template_of(d, s, &ret->arguments) : NULL;
	if (!ret->template)
		return false;
	ret->collection = module_needed(d, &ret->arguments, "collection");
	ret->variable = ret->collection ? module_needed(d, &ret->arguments, "var") : NULL;
	return ret->variable;
}

static bool is_name(struct draft *d, const struct stmt *variable, const struct andiron_value *name)
{
	if (name->kind == ANDIRON_VALUE_STRING &&
	    scan_is_ident((struct str){name->string.ptr, name->string.len}))
		return true;
	lang_error(&d->l, variable->value->place, NULL, "var is a name in double quotes");
	return false;
}

static void foreach(struct draft *d, const struct draft_loop *loop)
{
	struct binding element = {.scope = loop->scope};
	struct parts parts;
	const char *list = NULL, *waits_for;
	struct andiron_value all, name;
	bool good, targets;
	struct str id;

	d->l.scope = loop->scope;
	if (!find_parts(d, loop->block, &parts))
		return;
	good = eval_loop(d, parts.collection, parts.variable, &all, &name, &list);
	waits_for = d->l.waits_for;
	targets = good && eval_is_targets(&d->l, &all);
	if ((list || targets) && !foreach_items_id(d, loop, &parts.arguments, &id))
		return;
	if (list && !foreach_items_begin_list(d, loop, parts.template, list))
		return;
	if (!good) {
		if (waits_for)
			fetched_wait(d, loop->scope, loop->block, waits_for);
		return;
	}
	if (!is_name(d, parts.variable, &name))
		return;
	element.name = (struct str){name.string.ptr, name.string.len};
	if (all.kind == ANDIRON_VALUE_LIST)
		go_round(d, loop, parts.template, &all, element, list ? &id : NULL);
	else if (!targets)
		lang_error(&d->l, parts.collection->value->place, NULL,
			   "foreach goes over a list or over targets, not over %s",
			   eval_describe(&d->l, &all));
	else if (foreach_items_get(d, loop, parts.template, &parts.arguments, &all))
		go_round(d, loop, parts.template, &all, element, &id);
}

void module_loops(struct draft *d)
{
	for (size_t i = 0; i < d->loops.n && !d->l.no_memory; i++) {
		struct draft_loop loop = d->loops.p[i]; /* the list grows meanwhile */

		draft_about(d, loop.scope);
		foreach(d, &loop);
	}
	draft_about(d, NULL);
}
