/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in module.h. The work is bounded: instances are counted like components, and one within
 * another goes so deep and no deeper; a declare cannot hold itself. */
#include "host/lang/module.h"

#include "host/lang/values/eval.h"
#include "host/lang/fetched.h"
#include "host/lang/import.h"
#include "host/lang/local-file.h"
#include "host/lang/syntax/scan.h"
#include "host/lang/values/scope.h"

#include "base/check.h"

#define MAX_ARGUMENTS 1000
#define MAX_NAMES     100 /* among which a misspelt one is sought */

struct declaration {
	struct str name;
	const struct stmt *block;
	struct space *inside; /* what its body sees */
	const struct scope *around; /* the round of a template in which it stands, or NULL */
	bool open;            /* an instance is being made */
	struct declaration *next;
};

/* --- What there is --- */

static const char *const parts[] = {"argument", "export"};

static bool is_one_of(struct str name, const char *const *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(name, all[i]))
			return true;
	return false;
}

static bool is_declaration(const struct stmt *s)
{
	return s->block && (str_is(s->name, "declare") || import_is(s->name));
}

bool module_has_label(struct draft *d, const struct stmt *s)
{
	if (s->label.n)
		return scan_is_ident(s->label); /* else the parser said so */
	lang_error(&d->l, s->place,
		   arena_printf(d->l.arena, "write %.*s \"NAME\" { … }", STR_FMT(s->name)),
		   "%.*s needs a label", STR_FMT(s->name));
	return false;
}

void module_refuse_second(struct draft *d, const struct stmt *s, const struct place *first)
{
	lang_error(&d->l, s->place,
		   arena_printf(d->l.arena, "it stands at %s:%u:%u already", first->source->name,
				first->line, first->column),
		   "%.*s \"%.*s\" is defined twice", STR_FMT(s->name),
		   STR_FMT(str_first(s->label, 200)));
}

static struct declaration *find_in(const struct space *space, struct str name)
{
	for (struct declaration *x = space->declarations; x; x = x->next)
		if (str_eq(x->name, name))
			return x;
	return NULL;
}

/* "name", or "module.name" of an import. */
static struct declaration *find(const struct space *space, struct str name)
{
	struct str rest = name, first = str_cut(&rest, '.');

	for (; space; space = space->around) {
		const struct space *imported = rest.n ? import_find(space, first) : NULL;
		struct declaration *found = rest.n ? imported ? find_in(imported, rest) : NULL
						   : find_in(space, first);

		if (found)
			return found;
	}
	return NULL;
}

/* Where a module of that label is imported, from the space on outwards, or NULL. */
static const struct space *importer_of(const struct space *space, struct str label)
{
	while (space && !import_find(space, label))
		space = space->around;
	return space;
}

bool module_lacks(const struct space *space, struct str name)
{
	struct str rest = name, label = str_cut(&rest, '.');

	return rest.n && !import_is(name) && importer_of(space, label) && !find(space, name);
}

static void declare(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	struct space *space = scope->space;
	struct declaration *known = s->label.n ? find_in(space, s->label) : NULL;
	struct declaration *made = lang_array(&d->l, struct declaration, 1);
	struct space *inside = lang_array(&d->l, struct space, 1);

	if (!module_has_label(d, s) || !made || !inside)
		return;
	if (known) {
		module_refuse_second(d, s, &known->block->place);
		return;
	}
	*inside = (struct space){.around = space, .folder = space->folder};
	*made = (struct declaration){.name = s->label, .block = s, .inside = inside};
	made->around = scope->variable ? scope : scope->around;
	d->l.n_bindings_named += scope->variable != NULL;
	made->next = space->declarations;
	space->declarations = made;
}

void module_declare(struct draft *d, const struct scope *scope, const struct stmt *first,
		    bool module)
{
	for (const struct stmt *s = first; s && !d->l.no_memory; s = s->next) {
		if (s->broken)
			continue;
		if (s->block && str_is(s->name, "declare"))
			declare(d, scope, s);
		else if (s->block && import_is(s->name)) {
			if (module_has_label(d, s) && !import_block(d, scope, s))
				check(d->l.no_memory || d->l.diags->n_errors > 0);
		} else if (module)
			lang_error(&d->l, s->place, "a module holds blocks of declare and import",
				   "%.*s cannot stand in a module",
				   STR_FMT(str_first(s->name, 200)));
	}
}

size_t module_names(struct draft *d, const struct space *space, const char **names, size_t n)
{
	size_t used = 0;

	for (; space; space = space->around)
		for (struct declaration *x = space->declarations; x && used < n; x = x->next) {
			names[used] = lang_str(&d->l, x->name).p;
			used += names[used] != NULL;
		}
	return used;
}

bool module_refuse(struct draft *d, const struct space *space, const struct stmt *s)
{
	struct str rest = s->name, label = str_cut(&rest, '.');
	const char *names[MAX_NAMES], *hint;

	if (!module_lacks(space, s->name))
		return false;
	space = importer_of(space, label);
	if (import_failed(space, label))
		return true;
	hint = diag_suggest(d->l.diags, rest, names,
			    module_names(d, import_find(space, label), names, MAX_NAMES));
	if (!hint && (draft_find(d, s->name) || str_is(s->name, LOCAL_FILE)))
		hint = "as in Alloy, an import takes all names that begin with its label: "
		       "choose another label";
	lang_error(&d->l, s->place, hint, "the module %.*s declares no \"%.*s\"",
		   STR_FMT(str_first(label, 200)), STR_FMT(str_first(rest, 200)));
	return true;
}

/* --- Bodies --- */

const struct stmt *module_attribute(const struct stmt *body, const char *name)
{
	for (const struct stmt *s = body; s; s = s->next)
		if (!s->block && str_is(s->name, name))
			return s;
	return NULL;
}

const struct stmt *module_needed(struct draft *d, const struct stmt *block, const char *name)
{
	const struct stmt *found = module_attribute(block->body, name);

	if (!found)
		lang_error(&d->l, block->place, NULL, "%.*s needs the argument %s",
			   STR_FMT(block->name), name);
	return found && found->value ? found : NULL;
}

/* Whether a statement of that kind and name stands before. */
static bool stands_before(const struct stmt *s, const struct stmt *first)
{
	for (; first != s; first = first->next)
		if (str_eq(first->name, s->name) && !first->block)
			return true;
	return false;
}

static size_t length(const char *const *names)
{
	size_t n = 0;

	while (names[n])
		n++;
	return n;
}

bool module_only(struct draft *d, const struct stmt *block, const char *const *known)
{
	size_t n = length(known);
	bool good = true;

	for (const struct stmt *s = block->body; s; s = s->next) {
		bool meant = !s->block && is_one_of(s->name, known, n);

		if (!s->broken && meant && !stands_before(s, block->body))
			continue;
		good = false;
		if (s->broken)
			continue;
		if (meant)
			lang_error(&d->l, s->place, NULL, "argument %.*s is given twice",
				   STR_FMT(s->name));
		else
			lang_error(&d->l, s->place,
				   s->block ? NULL : diag_suggest(d->l.diags, s->name, known, n),
				   "%.*s \"%.*s\" has no %s \"%.*s\"", STR_FMT(block->name),
				   STR_FMT(str_first(block->label, 200)),
				   s->block ? "block" : "argument",
				   STR_FMT(str_first(s->name, 200)));
	}
	return good;
}

static size_t count(const struct stmt *body, const char *name)
{
	size_t n = 0;

	for (const struct stmt *s = body; s; s = s->next)
		n += s->block && str_is(s->name, name);
	return n;
}

/* A constant of the configuration that is true or false. */
static bool is_true(struct draft *d, const struct stmt *s)
{
	struct andiron_value value;

	if (!s || !s->value || !eval(&d->l, s->value, &value))
		return false;
	if (value.kind == ANDIRON_VALUE_BOOL)
		return value.integer;
	lang_error(&d->l, s->value->place, NULL, "%.*s is true or false, not %s",
		   STR_FMT(s->name), eval_describe(&d->l, &value));
	return false;
}

/* --- An instance --- */

static bool is_new(struct draft *d, const struct stmt *s, struct binding *all, size_t n)
{
	if (!binding_find(all, n, s->label))
		return true;
	lang_error(&d->l, s->place, NULL, "%.*s \"%.*s\" is defined twice", STR_FMT(s->name),
		   STR_FMT(str_first(s->label, 200)));
	return false;
}

/* What the instance's block gives for an argument, or else its default. */
static void add_argument(struct draft *d, struct scope *inside, const struct scope *outside,
			 const struct stmt *argument, const struct stmt *instance)
{
	static const char *const known[] = {"comment", "default", "optional", NULL};
	const struct stmt *fallback = module_attribute(argument->body, "default");
	struct binding b = {.name = argument->label, .scope = inside};

	if (!module_has_label(d, argument) || !module_only(d, argument, known) ||
	    !is_new(d, argument, inside->arguments, inside->n_arguments))
		return;
	for (const struct stmt *s = instance->body; s; s = s->next)
		if (!s->block && str_eq(s->name, argument->label)) {
			b.expr = s->value;
			b.scope = outside;
			if (!s->value)
				return; /* broken, which was said */
		}
	if (!b.expr && !is_true(d, module_attribute(argument->body, "optional")))
		lang_error(&d->l, instance->place, NULL, "%.*s needs the argument %.*s",
			   STR_FMT(instance->name), STR_FMT(str_first(argument->label, 200)));
	if (!b.expr && fallback)
		b.expr = fallback->value;
	inside->arguments[inside->n_arguments++] = b;
}

static void add_export(struct draft *d, struct custom *custom, const struct scope *inside,
		       const struct stmt *export)
{
	static const char *const known[] = {"comment", "value", NULL};
	const struct stmt *value = module_attribute(export->body, "value");

	if (!module_has_label(d, export) || !module_only(d, export, known) ||
	    !is_new(d, export, custom->exports, custom->n_exports))
		return;
	if (!value) {
		lang_error(&d->l, export->place, NULL, "export \"%.*s\" needs the argument value",
			   STR_FMT(str_first(export->label, 200)));
		return;
	}
	custom->exports[custom->n_exports++] = (struct binding){
		.name = export->label,
		.expr = value->value,
		.scope = inside,
	};
}

/* Arguments that the instance gives and the declare does not have. */
static void check_arguments(struct draft *d, const struct scope *inside,
			    const struct stmt *instance)
{
	const char **names = lang_array(&d->l, const char *, inside->n_arguments + 1);

	for (size_t i = 0; names && i < inside->n_arguments; i++) {
		names[i] = lang_str(&d->l, inside->arguments[i].name).p;
		if (!names[i])
			return;
	}
	if (names)
		module_only(d, instance, names);
}

struct custom *module_add_custom(struct draft *d, const struct scope *scope, const struct stmt *s,
				 size_t n_exports)
{
	struct custom *custom = lang_array(&d->l, struct custom, 1);
	const char *id = arena_printf(d->l.arena, "%s%.*s.%.*s", scope->prefix, STR_FMT(s->name),
				      STR_FMT(str_first(s->label, 1000)));

	d->l.no_memory |= !id;
	if (!custom || !id)
		return NULL;
	custom->id = id;
	custom->exports = lang_array(&d->l, struct binding, n_exports);
	if (names_find(&d->l.customs, str_of(id)) != INDEX_NONE) {
		lang_error(&d->l, s->place, NULL, "%s is defined twice", id);
		return NULL;
	}
	if (d->l.custom.n >= DRAFT_MAX_NODES) {
		lang_error(&d->l, s->place, NULL, "more than %d instances of custom components",
			   DRAFT_MAX_NODES);
		return NULL;
	}
	if (!custom->exports || !vec_reserve(&d->l.custom, 1) ||
	    names_add(&d->l.customs, id, NULL) < 0) {
		d->l.no_memory = true;
		return NULL;
	}
	d->l.custom.p[d->l.custom.n++] = custom;
	return custom;
}

struct scope *module_scope(struct draft *d, const struct scope *outside, const char *prefix)
{
	struct scope *scope = prefix ? lang_array(&d->l, struct scope, 1) : NULL;

	d->l.no_memory |= !prefix;
	if (scope)
		*scope = (struct scope){.space = outside->space,
					.prefix = prefix,
					.item = outside->item,
					.depth = outside->depth + 1};
	return scope;
}

void module_blocks(struct draft *d, const struct scope *scope, const struct stmt *first)
{
	for (const struct stmt *s = first; s && !d->l.no_memory; s = s->next)
		if (!is_declaration(s) && !(s->block && is_one_of(s->name, parts, 2)))
			draft_block(d, scope, s);
}

void module_declare_inside(struct draft *d, struct scope *inside, struct space **shared,
			   const struct stmt *first)
{
	uint32_t named = d->l.n_bindings_named;

	inside->space = *shared;
	if (inside->space->seen)
		return;
	inside->space = lang_array(&d->l, struct space, 1);
	if (!inside->space)
		return;
	*inside->space = **shared;
	module_declare(d, inside, first, false);
	if (d->l.n_bindings_named != named)
		return;
	inside->space->seen = true;
	*shared = inside->space;
}

static void instantiate(struct draft *d, const struct scope *outside, struct declaration *declared,
			const struct stmt *s)
{
	const struct stmt *body = declared->block->body;
	size_t n = count(body, "argument");
	struct custom *custom = module_add_custom(d, outside, s, count(body, "export"));
	const char *prefix = custom ? arena_printf(d->l.arena, "%s/", custom->id) : NULL;
	struct scope *inside = custom ? module_scope(d, outside, prefix) : NULL;

	if (!inside)
		return;
	custom->fetched = declared->inside->around->fetched;
	inside->space = declared->inside;
	inside->custom = true;
	inside->around = declared->around;
	inside->arguments = n <= MAX_ARGUMENTS ? lang_array(&d->l, struct binding, n) : NULL;
	if (n > MAX_ARGUMENTS)
		lang_error(&d->l, s->place, NULL, "%s has more than %d arguments", custom->id,
			   MAX_ARGUMENTS);
	if (!inside->arguments)
		return;
	declared->open = true;
	for (const struct stmt *part = body; part; part = part->next) {
		d->l.scope = inside;
		if (part->block && !part->broken && str_is(part->name, "argument"))
			add_argument(d, inside, outside, part, s);
		else if (part->block && !part->broken && str_is(part->name, "export"))
			add_export(d, custom, inside, part);
	}
	check_arguments(d, inside, s);
	local_file_blocks(d, inside, body);
	module_declare_inside(d, inside, &declared->inside, body);
	module_blocks(d, inside, body);
	declared->open = false;
}

static void custom_block(struct draft *d, const struct scope *scope, struct declaration *declared,
			 const struct stmt *s)
{
	if (!module_has_label(d, s) || s->broken)
		return;
	if (declared->open)
		lang_error(&d->l, s->place, NULL, "declare \"%.*s\" contains itself",
			   STR_FMT(str_first(declared->name, 200)));
	else if (scope->depth >= MODULE_MAX_DEPTH)
		lang_error(&d->l, s->place, NULL,
			   "custom components stand within each other more than %d levels deep",
			   MODULE_MAX_DEPTH);
	else
		instantiate(d, scope, declared, s);
}

/* Of a module that is not there yet. */
static bool awaited_block(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	const char *waits_for = import_waits_for(scope->space, s->name);

	if (!waits_for)
		return false;
	if (module_has_label(d, s) && !s->broken)
		fetched_wait(d, scope, s, waits_for);
	return true;
}

bool module_may_bring(const struct space *space, const struct stmt *template, struct str name)
{
	for (const struct stmt *s = template->body; s; s = s->next)
		if (is_declaration(s))
			return true;
	return find(space, name) || import_waits_for(space, name);
}

bool module_block(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	struct declaration *declared;

	d->l.scope = scope;
	if (is_declaration(s))
		return true; /* module_declare took it */
	if (is_one_of(s->name, parts, 2)) {
		lang_error(&d->l, s->place, NULL, "the block %.*s stands inside declare only",
			   STR_FMT(s->name));
		return true;
	}
	if (str_is(s->name, "foreach")) {
		d->l.no_memory |= !vec_push(&d->loops, ((struct draft_loop){scope, s}));
		return true;
	}
	declared = find(scope->space, s->name);
	if (declared)
		custom_block(d, scope, declared, s);
	return declared || awaited_block(d, scope, s) ||
	       (str_is(s->name, LOCAL_FILE) && !module_lacks(scope->space, s->name));
}
