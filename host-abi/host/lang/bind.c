/* SPDX-License-Identifier: Apache-2.0 */
/* The binder: which option a statement means, how often it may stand, and what is filled in. Every
 * error of a body is reported before it gives up. */
#include "host/lang/bind.h"
#include "host/lang/values/eval.h"
#include "host/lang/syntax/parse.h"

#include "base/check.h"

/* A body while it is bound: the MAP to be, and where each option stands in it. */
struct body {
	struct binder *b;
	const struct andiron_options *options;
	const struct bind_owner *owner;
	struct andiron_str *keys;
	struct andiron_value *items;
	size_t n;
	struct slot {
		uint32_t given; /* how often */
		uint32_t n_blocks;
		struct andiron_value *value;
		struct andiron_value *blocks; /* of a repeatable one */
	} * slots;
};

void binder_free(struct binder *b)
{
	vec_free(&b->uses);
}

static const char *kind_of(bool block)
{
	return block ? "block" : "argument";
}

static bool is_block(const struct andiron_option *option)
{
	return option->type == ANDIRON_TYPE_BLOCK;
}

/* The value's place in the MAP; TARGETS have none. */
static struct andiron_value *add_member(struct body *body, const struct andiron_option *option)
{
	check(body->n < body->options->count);
	body->keys[body->n] = (struct andiron_str){option->name, strlen(option->name)};
	return &body->items[body->n++];
}

/* What stands one block too far out. */
static const char *misplaced(struct lang *l, const struct andiron_option *block,
			     const struct stmt *s)
{
	for (uint32_t i = 0; block->block && i < block->block->count; i++) {
		const struct andiron_option *option = bind_option(block->block, i);

		if (is_block(option) == s->block && str_is(s->name, option->name))
			return arena_printf(l->arena, "it stands in the block %s", block->name);
	}
	return NULL;
}

/* Names of other agents, of pprof's pages and of former versions; the option that does that; and a
 * hint, or nothing where that is the option's name. */
static const char foreign[] = "profile.heap\0profile.memory\0\0"
			      "profile.allocs\0profile.memory\0\0"
			      "profile.godeltaprof_heap\0profile.godeltaprof_memory\0\0"
			      "metrics_path\0profiling_config\0"
			      "profiles have their paths in profiling_config\0"
			      "profile_path\0profiling_config\0"
			      "profiles have their paths in profiling_config\0"
			      "java_enabled\0hotspot_enabled\0\0"
			      "nodejs_enabled\0v8_enabled\0\0"
			      "frequency\0sample_rate\0\0"
			      "sample_frequency\0sample_rate\0\0"
			      "user\0username\0\0"
			      "write_relabel_config\0url\0"
			      "have a pyroscope.relabel before this component\0"
			      "tenant_id\0headers\0write headers = {\"X-Scope-OrgID\" = \"…\"}\0"
			      "timeout\0remote_timeout\0\0";

/* What the body's option is called in another agent. */
static const char *called(struct lang *l, const struct stmt *s, const char *option)
{
	const char *name = foreign, *ours, *hint;

	for (; *name; name = hint + strlen(hint) + 1) {
		ours = name + strlen(name) + 1;
		hint = ours + strlen(ours) + 1;
		if (str_is(s->name, name) && strcmp(option, ours) == 0)
			return *hint ? hint
				     : arena_printf(l->arena, "did you mean \"%s\"?", ours);
	}
	return NULL;
}

/* What may have any name has a block for it, if the body has such. */
static const char *any_name(const struct stmt *s, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n && s->block && str_starts(s->name, STR("profile.")); i++)
		if (strcmp(names[i], "profile.custom") == 0)
			return "others are profile.custom \"NAME\" { … }, each with its path";
	return NULL;
}

static void unknown(struct body *body, const struct stmt *s)
{
	struct lang *l = body->b->l;
	const char **names = lang_array(l, const char *, body->options->count + 1);
	const char *hint = NULL;
	size_t n = 0;

	for (uint32_t i = 0; names && i < body->options->count; i++) {
		const struct andiron_option *option = bind_option(body->options, i);

		if (is_block(option) == s->block)
			names[n++] = option->name;
		if (!hint)
			hint = misplaced(l, option, s);
		if (!hint)
			hint = called(l, s, option->name);
	}
	if (!hint && names)
		hint = diag_suggest(l->diags, s->name, names, n) ?: any_name(s, names, n);
	lang_error(l, s->place, hint,
		   "%s has no %s \"%.*s\"", body->owner->name, kind_of(s->block),
		   STR_FMT(str_first(s->name, 200)));
}

/* Finds the statement's option and reports what is wrong with it being here. */
static const struct andiron_option *find(struct body *body, const struct stmt *s, struct slot **ret)
{
	struct lang *l = body->b->l;
	const struct andiron_option *option = NULL;
	uint32_t i = 0;

	while (i < body->options->count && !str_is(s->name, bind_option(body->options, i)->name))
		i++;
	if (i == body->options->count) {
		unknown(body, s);
		return NULL;
	}
	option = bind_option(body->options, i);
	*ret = &body->slots[i];
	if (is_block(option) != s->block) {
		lang_error(l, s->place,
			   arena_printf(l->arena, s->block ? "write %s = …" : "write %s { … }",
					option->name),
			   "%s is %s of %s, not %s", option->name,
			   s->block ? "an argument" : "a block", body->owner->name,
			   s->block ? "a block" : "an argument");
		(*ret)->given++;
		return NULL;
	}
	if ((*ret)->given++ && !(s->block && (option->flags & ANDIRON_OPTION_REPEATED))) {
		lang_error(l, s->place, NULL, "%s %s is given twice", kind_of(s->block),
			   option->name);
		return NULL;
	}
	return option;
}

/* STORAGE/ID; an id's slashes become what no id has, so that it is one folder. */
static char *own_folder(struct body *body)
{
	struct lang *l = body->b->l;
	char *path = arena_printf(l->arena, "%.*s/%s", STR_FMT(l->storage), body->b->id);

	for (char *p = path ? path + l->storage.n + 1 : NULL; p && *p; p++)
		*p = *p == '/' ? '+' : *p;
	return path;
}

/* Puts a path of the option into the agent's storage, if it has one. */
static void store(struct body *body, const struct andiron_option *option,
		  struct andiron_value *value)
{
	struct lang *l = body->b->l;
	struct str path = {value->string.ptr, value->string.len};
	const char *stored;

	if (!(option->flags & ANDIRON_OPTION_STORED) || !l->storage.n || !body->b->id ||
	    str_starts(path, STR("/")))
		return;
	stored = path.n ? arena_printf(l->arena, "%.*s/%.*s", STR_FMT(l->storage), STR_FMT(path))
			: own_folder(body);
	l->no_memory |= !stored;
	if (stored)
		value->string = (struct andiron_str){stored, strlen(stored)};
}

static bool bind_argument(struct body *body, const struct andiron_option *option,
			  const struct stmt *s, struct slot *slot)
{
	struct andiron_value value;

	if (!eval(body->b->l, s->value, &value) || !bind_convert(body->b, option, s->value, &value))
		return false;
	if (option->type == ANDIRON_TYPE_TARGETS)
		return true;
	store(body, option, &value);
	slot->value = add_member(body, option);
	*slot->value = value;
	return true;
}

/* How many blocks of that name there are, so that they get one array. */
static size_t count_blocks(const struct stmt *s)
{
	struct str name = s->name;
	size_t n = 0;

	for (; s; s = s->next)
		n += s->block && str_eq(s->name, name);
	return n;
}

static struct andiron_value block_value(uint32_t kind, const struct place *place)
{
	return (struct andiron_value){
		.kind = kind,
		.file = place->source ? place->source->name : NULL,
		.line = place->line,
		.column = place->column,
	};
}

/* Puts the label before the members. */
static void add_label(struct lang *l, const struct stmt *s, struct andiron_value *map)
{
	struct andiron_str *keys = lang_array(l, struct andiron_str, map->n_items + 1);
	struct andiron_value *items = lang_array(l, struct andiron_value, map->n_items + 1);

	if (!keys || !items)
		return;
	keys[0] = (struct andiron_str){"", 0};
	items[0] = block_value(ANDIRON_VALUE_STRING, &s->label_place);
	items[0].string = (struct andiron_str){s->label.p, s->label.n};
	for (uint64_t i = 0; i < map->n_items; i++) {
		keys[i + 1] = map->keys[i];
		items[i + 1] = map->items[i];
	}
	map->keys = keys;
	map->items = items;
	map->n_items++;
}

static bool bind_block(struct body *body, const struct andiron_option *option, const struct stmt *s,
		       struct slot *slot)
{
	struct lang *l = body->b->l;
	struct bind_owner owner = {.place = s->place};
	struct andiron_value value = block_value(ANDIRON_VALUE_MAP, &s->place);
	bool good = true;

	if (s->labelled != ((option->flags & ANDIRON_OPTION_LABELLED) != 0)) {
		lang_error(l, s->labelled ? s->label_place : s->place,
			   s->labelled ? NULL
				       : arena_printf(l->arena, "write %s \"NAME\" { … }",
						      option->name),
			   s->labelled ? "the block %s takes no label"
				       : "the block %s needs a label",
			   option->name);
		good = false;
	}
	owner.name = arena_printf(l->arena, "%s in %s", option->name, body->owner->name);
	l->no_memory |= !owner.name;
	/* An ignored block without a table of its own may hold anything. */
	if (owner.name && (option->block || !(option->flags & ANDIRON_OPTION_IGNORED)))
		good &= bind_body(body->b, option->block, s->body, &owner, &value);
	if (s->labelled && good)
		add_label(l, s, &value);
	if (option->flags & ANDIRON_OPTION_REPEATED) {
		if (!slot->value) {
			slot->blocks = lang_array(l, struct andiron_value, count_blocks(s));
			slot->value = add_member(body, option);
			*slot->value = block_value(ANDIRON_VALUE_LIST, &s->place);
			slot->value->items = slot->blocks;
		}
		if (slot->blocks)
			slot->blocks[slot->value->n_items++] = value;
	} else {
		slot->value = add_member(body, option);
		*slot->value = value;
	}
	return good && !l->no_memory;
}

/* An option's default is an expression of the language; that it cannot be read is the plugin's
 * mistake, but still one that its user must be told. */
static bool default_value(struct body *body, const struct andiron_option *option,
			  struct andiron_value *ret)
{
	struct lang *l = body->b->l;
	struct source *source = lang_array(l, struct source, 1);
	struct expr *e;

	if (!source)
		return false;
	*source = (struct source){
		.name = arena_printf(l->arena, "default of %s in %s", option->name,
				     body->owner->name),
		.text = str_of(option->default_text),
	};
	l->no_memory |= !source->name;
	e = source->name ? parse_expression(l, source) : NULL;
	if (!e || !eval(l, e, ret) || !bind_convert(body->b, option, e, ret))
		return false;
	ret->flags |= ANDIRON_VALUE_DEFAULTED;
	ret->file = NULL;
	ret->line = ret->column = 0;
	return true;
}

/* Whether it asks for what is done anyway, however that is written. */
static bool is_default(struct body *body, const struct andiron_option *option,
		       const struct slot *slot)
{
	struct andiron_value usual;

	return !is_block(option) && option->default_text && slot->value &&
	       default_value(body, option, &usual) && eval_equal(slot->value, &usual);
}

static void warn(struct body *body, const struct andiron_option *option, const struct stmt *s,
		 const struct slot *slot)
{
	const char *effect =
		option->flags & ANDIRON_OPTION_IGNORED && !is_default(body, option, slot)
			? option->effect
			: NULL;

	if (option->until)
		lang_warning(body->b->l, s->place, effect, "%s %s was dropped in %s",
			     kind_of(s->block), option->name, option->until);
	else if (effect)
		lang_warning(body->b->l, s->place, effect, "%s %s is accepted but ignored",
			     kind_of(s->block), option->name);
}

static bool default_block(struct body *body, const struct andiron_option *option)
{
	struct place nowhere = {0};
	struct andiron_value *value;

	if (option->flags & ANDIRON_OPTION_REPEATED) {
		value = add_member(body, option);
		*value = block_value(ANDIRON_VALUE_LIST, &nowhere);
	} else if (option->default_text && option->block) {
		struct bind_owner owner = *body->owner;

		value = add_member(body, option);
		if (!bind_body(body->b, option->block, NULL, &owner, value))
			return false;
	} else {
		return true;
	}
	value->flags |= ANDIRON_VALUE_DEFAULTED;
	value->file = NULL;
	value->line = value->column = 0;
	return true;
}

static bool fill_in(struct body *body, const struct andiron_option *option)
{
	struct andiron_value value;

	if (option->type == ANDIRON_TYPE_RECEIVERS && body->owner->wired) {
		value = block_value(ANDIRON_VALUE_LIST, &(struct place){0});
		value.flags = ANDIRON_VALUE_DEFAULTED;
		*add_member(body, option) = value;
		return true;
	}
	if (option->flags & ANDIRON_OPTION_STORED && body->b->l->storage.n && body->b->id) {
		value = block_value(ANDIRON_VALUE_STRING, &(struct place){0});
		value.flags = ANDIRON_VALUE_DEFAULTED;
		store(body, option, &value);
		*add_member(body, option) = value;
		return true;
	}
	if (option->flags & ANDIRON_OPTION_REQUIRED) {
		lang_error(body->b->l, body->owner->place, option->doc, "%s needs the %s %s",
			   body->owner->name, kind_of(is_block(option)), option->name);
		return false;
	}
	if (is_block(option))
		return default_block(body, option);
	if (!option->default_text || option->type == ANDIRON_TYPE_TARGETS)
		return true;
	if (!default_value(body, option, &value))
		return false;
	*add_member(body, option) = value;
	return true;
}

static bool is_common(const struct body *body, const struct stmt *s)
{
	bool is = body->owner->common && !s->block && str_is(s->name, "isolate");

	for (uint32_t i = 0; is && i < body->options->count; i++)
		is = !str_is(s->name, bind_option(body->options, i)->name);
	return is;
}

static bool bind_common(struct body *body, const struct stmt *s)
{
	static const struct andiron_option isolate = {.name = "isolate", .type = ANDIRON_TYPE_BOOL};
	struct bind_common *common = body->owner->common;
	struct andiron_value value;

	if (common->place.source)
		lang_error(body->b->l, s->place, NULL, "argument isolate is given twice");
	common->place = s->place;
	if (s->broken || !eval(body->b->l, s->value, &value) ||
	    !bind_convert(body->b, &isolate, s->value, &value))
		return false;
	common->isolate = value.integer;
	return true;
}

static bool bind_statement(struct body *body, const struct stmt *s)
{
	struct slot *slot;
	const struct andiron_option *option;
	bool good;

	if (is_common(body, s))
		return bind_common(body, s);
	option = find(body, s, &slot);

	if (!option || s->broken)
		return false;
	good = s->block ? bind_block(body, option, s, slot) : bind_argument(body, option, s, slot);
	warn(body, option, s, slot);
	return good;
}

bool bind_body(struct binder *b, const struct andiron_options *options, const struct stmt *first,
	       const struct bind_owner *owner, struct andiron_value *ret)
{
	static const struct andiron_options none = {0};
	const struct andiron_options *table = options ? options : &none;
	struct body body = {
		.b = b,
		.options = table,
		.owner = owner,
		.keys = lang_array(b->l, struct andiron_str, table->count),
		.items = lang_array(b->l, struct andiron_value, table->count),
		.slots = lang_array(b->l, struct slot, table->count),
	};
	bool good = body.keys && body.items && body.slots;

	for (const struct stmt *s = good ? first : NULL; s; s = s->next)
		good &= bind_statement(&body, s);
	for (uint32_t i = 0; !b->l->no_memory && i < table->count; i++)
		if (!body.slots[i].given)
			good &= fill_in(&body, bind_option(table, i));
	if (!good || b->l->no_memory)
		return false;
	*ret = block_value(ANDIRON_VALUE_MAP, &owner->place);
	ret->keys = body.keys;
	ret->items = body.items;
	ret->n_items = body.n;
	return true;
}
