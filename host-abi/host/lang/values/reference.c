/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator: names. `discovery.relabel.pods.output` is a component's id and one of its exports.
 * A component comes before a function of the library that has its name. */
#include "host/lang/values/eval.h"
#include "host/lang/values/scope.h"
#include "host/lang/supplied.h"

#include "base/check.h"

#include <limits.h>
#include <unistd.h>

/* A capsule's integer: the node, and which of its exports. */
#define EXPORT_BITS 16

/* As Go calls them. */
#ifdef __aarch64__
#define ARCH "arm64"
#else
#define ARCH "amd64"
#endif

#define MAX_SHOWN 20 /* exports that a hint lists */

uint32_t eval_node(const struct andiron_value *capsule)
{
	check(capsule->kind == ANDIRON_VALUE_CAPSULE && capsule->n_items == 0);
	return (uint32_t)(capsule->integer >> EXPORT_BITS);
}

const struct andiron_export *eval_export(const struct lang *l, const struct andiron_value *capsule)
{
	uint32_t node = eval_node(capsule);
	uint64_t at = (uint64_t)capsule->integer & ((1u << EXPORT_BITS) - 1);

	check(node < l->names.list.n);
	return &l->names.list.p[node].component->exports[at];
}

bool eval_is_targets(const struct lang *l, const struct andiron_value *value)
{
	return value->kind == ANDIRON_VALUE_CAPSULE &&
	       (value->n_items || eval_export(l, value)->type == ANDIRON_EXPORT_TARGETS);
}

bool eval_is_receiver(const struct lang *l, const struct andiron_value *value)
{
	return value->kind == ANDIRON_VALUE_CAPSULE && !value->n_items &&
	       eval_export(l, value)->type == ANDIRON_EXPORT_RECEIVER;
}

/* The pieces are put together from the back, since the tree holds the last one on top. */
struct str eval_path(struct lang *l, const struct expr *e)
{
	const struct expr *piece = e;
	size_t n = 0;
	char *path;

	for (; piece->kind == EXPR_ACCESS; piece = piece->left)
		n += piece->text.n + 1;
	if (piece->kind != EXPR_NAME)
		return STR_NULL;
	n += piece->text.n;
	path = lang_array(l, char, n + 1);
	if (!path)
		return STR_NULL;
	for (size_t at = n; e; e = e->kind == EXPR_ACCESS ? e->left : NULL) {
		at -= e->text.n;
		memcpy(path + at, e->text.p, e->text.n);
		if (at)
			path[--at] = '.';
	}
	return (struct str){path, n};
}

/* The hint for a wrong name among a few. */
static const char *nearest_id(struct lang *l, struct str id)
{
	size_t n = l->names.list.n;
	const char **ids = lang_array(l, const char *, n + 1);

	for (size_t i = 0; ids && i < n; i++)
		ids[i] = l->names.list.p[i].id;
	return ids ? diag_suggest(l->diags, id, ids, n) : NULL;
}

/* Its one export is for the language, which makes the module of it, or its items. */
static bool is_for_language(const struct andiron_component *c)
{
	struct str name = str_of(c->name);

	return str_starts(name, STR("import.")) || str_is(name, "foreach");
}

static const char *exports_hint(struct lang *l, const struct andiron_component *c, struct str id)
{
	if (!c->n_exports || is_for_language(c))
		return "it exports nothing";
	return arena_printf(l->arena, "write %.*s.%s", STR_FMT(str_first(id, 200)),
			    c->exports[0].name);
}

/* The plan's own copy of what was supplied; made once. */
static const struct andiron_value *copy_of(struct lang *l, const struct andiron_value *value)
{
	struct andiron_value *copy;

	vec_each (&l->copies, known)
		if (known->of == value)
			return known->value;
	copy = lang_array(l, struct andiron_value, 1);
	if (copy && supplied_copy(l->arena, value, copy) == 0 &&
	    vec_push(&l->copies, ((struct value_copy){value, copy})))
		return copy;
	l->no_memory = true;
	return NULL;
}

/* What component `node` has sent as its export, or a member of it: "data.password". False also
 * where nothing was sent yet. */
static bool refer_to_value(struct lang *l, const struct expr *e, uint32_t node,
			   const char *export_name, struct str member, struct andiron_value *ret)
{
	const char *id = l->names.list.p[node].id;
	const struct andiron_value *value = supplied_get(l->supplied, id, export_name);

	scope_names_value(l, &(struct value_use){.node = node, .place = e->place});
	if (!value) {
		l->waits_for = id;
		return false;
	}
	value = copy_of(l, value);
	if (value && member.n) {
		value = value->kind == ANDIRON_VALUE_MAP ? eval_member(value, member) : NULL;
		if (!value)
			lang_error(l, e->place, NULL, "%s.%s has no member %.*s", id, export_name,
				   STR_FMT(str_first(member, 200)));
	}
	if (!value)
		return false;
	*ret = *value;
	ret->file = e->place.source ? e->place.source->name : NULL;
	ret->line = e->place.line;
	ret->column = e->place.column;
	return true;
}

/* What one part of targets holds: a list as it is, or the one that its component has sent. */
static void open_part(struct lang *l, const struct expr *e, const struct andiron_value *part,
		      struct andiron_value *ret)
{
	const struct andiron_value *value;
	struct value_use use = {.place = e->place};

	*ret = *part;
	if (part->kind == ANDIRON_VALUE_LIST)
		return;
	*ret = eval_value(e, ANDIRON_VALUE_LIST);
	use.node = eval_node(part);
	use.export_name = eval_export(l, part)->name;
	use.list = arena_printf(l->arena, "%s.%s[]", part->string.ptr, use.export_name);
	/* Each of its exports counts, so this is not scope_names_value. */
	l->no_memory |= !use.list || !vec_push(&l->value_uses, use);
	if (l->no_memory)
		return;
	value = supplied_get(l->supplied, use.list, SUPPLIED_TARGETS);
	if (!value)
		ret->string = (struct andiron_str){use.list, strlen(use.list)};
	else if ((value = copy_of(l, value)))
		*ret = *value;
}

bool eval_open(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct andiron_value *parts, *items, whole;
	size_t n = 0;

	if (!eval(l, e, &whole))
		return false;
	*ret = whole;
	if (!eval_is_targets(l, &whole))
		return true;
	if (!whole.n_items) {
		open_part(l, e, &whole, ret);
		return !l->no_memory;
	}
	*ret = eval_value(e, ANDIRON_VALUE_LIST);
	parts = lang_array(l, struct andiron_value, whole.n_items);
	for (uint64_t i = 0; parts && i < whole.n_items; i++) {
		open_part(l, e, &whole.items[i], &parts[i]);
		n += parts[i].n_items;
		if (parts[i].string.len)
			ret->string = parts[i].string;
	}
	ret->items = items = lang_array(l, struct andiron_value, n);
	for (; items && ret->n_items < n; parts++) {
		if (parts->n_items)
			memcpy(items + ret->n_items, parts->items,
			       parts->n_items * sizeof(*items));
		ret->n_items += parts->n_items;
	}
	return !l->no_memory;
}

/* `rest`: what follows the id, with its dot, or nothing. */
static bool refer(struct lang *l, const struct expr *e, uint32_t node, struct str rest,
		  struct andiron_value *ret)
{
	const struct name *name = &l->names.list.p[node];
	const struct andiron_component *c = name->component;
	struct str export_name = str_skip(rest, 1), deeper = export_name;

	uint64_t n = is_for_language(c) ? 0 : c->n_exports;

	export_name = str_cut(&deeper, '.');
	for (uint64_t i = 0; i < n && i < 1u << EXPORT_BITS; i++) {
		if (!str_is(export_name, c->exports[i].name))
			continue;
		if (c->exports[i].type == ANDIRON_EXPORT_VALUE)
			return refer_to_value(l, e, node, c->exports[i].name, deeper, ret);
		*ret = eval_value(e, ANDIRON_VALUE_CAPSULE);
		ret->integer = (int64_t)node << EXPORT_BITS | (int64_t)i;
		ret->string = (struct andiron_str){name->id, strlen(name->id)};
		if (deeper.n)
			lang_error(l, e->place, NULL, "%s has no members", eval_describe(l, ret));
		return !deeper.n;
	}
	if (!rest.n)
		lang_error(l, e->place, exports_hint(l, c, str_of(name->id)),
			   "%s is a component; a value is one of its exports", name->id);
	else
		lang_error(l, e->place, exports_hint(l, c, str_of(name->id)),
			   "%s exports no \"%.*s\"", name->id,
			   STR_FMT(str_first(export_name, 200)));
	return false;
}

/* "it exports a, b", or that it exports nothing. */
static const char *export_names(struct lang *l, const struct custom *custom)
{
	const char *text = "it exports";

	for (size_t i = 0; text && i < custom->n_exports && i < MAX_SHOWN; i++)
		text = arena_printf(l->arena, "%s%s %.*s", text, i ? "," : "",
				    STR_FMT(str_first(custom->exports[i].name, 200)));
	l->no_memory |= !text;
	return custom->n_exports ? text : "it exports nothing";
}

/* constants.hostname, as the kernel has it. */
static bool eval_hostname(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	char name[HOST_NAME_MAX + 1] = "";
	struct str copy;

	gethostname(name, sizeof(name) - 1);
	if (!str_utf8(str_of(name))) {
		lang_error(l, e->place, NULL, "the name of this host is not UTF-8 text");
		return false;
	}
	copy = lang_str(l, str_of(name));
	*ret = eval_value(e, ANDIRON_VALUE_STRING);
	ret->string = (struct andiron_str){copy.p, copy.n};
	return copy.p;
}

static bool give_text(struct lang *l, const struct expr *e, struct str text,
		      struct andiron_value *ret)
{
	struct str copy = lang_str(l, text);

	*ret = eval_value(e, ANDIRON_VALUE_STRING);
	ret->string = (struct andiron_str){copy.p, copy.n};
	return copy.p;
}

/* The folder of the module or, at the top, of the file that asks. */
static struct str module_path(const struct lang *l, const struct expr *e)
{
	struct str file = str_of(e->place.source->name);
	size_t slash = str_rfind(file, '/');

	for (const struct space *space = l->scope->space; space; space = space->around)
		if (space->folder)
			return str_of(space->folder);
	return slash < file.n ? str_first(file, slash ? slash : 1) : STR(".");
}

static bool eval_constant(struct lang *l, const struct expr *e, struct str path, bool *found,
			  struct andiron_value *ret)
{
	*found = true;
	if (str_is(path, "constants.hostname"))
		return eval_hostname(l, e, ret);
	if (str_is(path, "constants.os"))
		return give_text(l, e, STR("linux"), ret);
	if (str_is(path, "constants.arch"))
		return give_text(l, e, STR(ARCH), ret);
	if (str_is(path, "constants.version"))
		return give_text(l, e, STR(ANDIRON_VERSION), ret);
	if (str_is(path, "module_path"))
		return give_text(l, e, module_path(l, e), ret);
	*found = false;
	return false;
}

/* In YAML or in Python. */
static bool is_boolean(struct str word)
{
	static const char words[][6] = {"yes", "no", "on", "off", "True", "False"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_is(word, words[i]))
			return true;
	return false;
}

static bool refuse_name(struct lang *l, const struct expr *e, struct str path)
{
	struct str id = str_first(path, str_rfind(path, '.'));

	if (str_starts(path, STR("argument.")))
		lang_error(l, e->place, NULL, "there is no %.*s here",
			   STR_FMT(str_first(path, 200)));
	else if (id.n == path.n)
		lang_error(l, e->place,
			   is_boolean(path) ? "write true or false"
					    : arena_printf(l->arena,
							   "text stands in double quotes: \"%.*s\"",
							   STR_FMT(str_first(path, 200))),
			   "the name %.*s means nothing here", STR_FMT(str_first(path, 200)));
	else
		lang_error(l, e->place,
			   l->scope->custom && names_find(&l->names, id) != INDEX_NONE
				   ? "what stands outside a declare comes into it as an argument"
				   : nearest_id(l, id),
			   "there is no component \"%.*s\"", STR_FMT(str_first(id, 200)));
	return false;
}

/* What an instance of a custom component exports. */
static bool refer_to_custom(struct lang *l, const struct expr *e, const struct meaning *m,
			    struct andiron_value *ret)
{
	struct str name = str_skip(m->rest, 1);
	struct binding *found = binding_find(m->custom->exports, m->custom->n_exports, name);
	const struct value_use use = {.node = m->custom->fetched - 1, .place = e->place};

	if (m->custom->fetched)
		scope_names_value(l, &use);
	if (m->custom->waits_for) {
		l->waits_for = m->custom->waits_for;
		return false;
	}
	if (found)
		return binding_value(l, found, e, ret);
	lang_error(l, e->place, export_names(l, m->custom),
		   name.n ? "%s exports no \"%.*s\""
			  : "%s is a custom component; a value is one of its exports%.*s",
		   m->custom->id, STR_FMT(str_first(name, 200)));
	return false;
}

bool eval_reference(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct str path = eval_path(l, e);
	bool found, good;
	struct meaning m;

	if (!path.n)
		return false;
	if (scope_find(l, path, &m)) {
		check(!m.lost || l->diags->n_errors > 0);
		if (m.binding)
			return binding_value(l, m.binding, e, ret);
		if (m.custom)
			return refer_to_custom(l, e, &m, ret);
		return !m.lost && refer(l, e, m.node, m.rest, ret);
	}
	good = eval_constant(l, e, path, &found, ret);
	if (found)
		return good;
	return !l->no_memory && refuse_name(l, e, path);
}
