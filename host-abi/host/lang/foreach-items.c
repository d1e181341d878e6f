/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in foreach-items.h. */
#include "host/lang/foreach-items.h"

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/ascii.h"
#include "base/clock.h"
#include "host/lang/fetched.h"
#include "host/lang/local-file.h"
#include "host/lang/module.h"
#include "host/lang/supplied.h"
#include "host/lang/values/eval.h"
#include "host/lang/values/scope.h"

#include <andiron/component.h>
#include <andiron/values.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PORT       "collection"
#define BETWEEN_NS (500 * NS_PER_MSEC)
#define MAX_KEY    100
#define FNV        0xcbf29ce484222325

/* --- The component --- */

struct items {
	const struct andiron_host *host;
	uint64_t instance;
	struct andiron_extension values;
	struct target_table *table;
	uint64_t timer;
	bool sent, failed;
};

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct items *s = calloc(1, sizeof(*s));

	if (s)
		s->table = target_table_new();
	if (!s || !s->table) {
		free(s);
		return -ENOMEM;
	}
	s->host = host;
	s->instance = instance;
	*ret_self = s;
	return 0;
}

static void say(struct items *s, uint32_t state, const char *text)
{
	s->host->health(s->instance, state, &(struct andiron_str){text, strlen(text)});
}

static int32_t start(void *self, struct andiron_error *err)
{
	struct items *s = self;
	int32_t r = s->host->extension(s->instance, ANDIRON_VALUES_ID, &s->values);

	if (r == 0)
		say(s, ANDIRON_HEALTH_HEALTHY, "it has been given no targets yet");
	return r;
}

struct listing {
	struct arena arena;
	struct andiron_value *items;
	uint64_t n;
	bool failed;
};

static struct andiron_str put(struct listing *l, struct str text)
{
	struct str copy = arena_str(&l->arena, text);

	l->failed |= !copy.p;
	return (struct andiron_str){copy.p, copy.n};
}

/* Labels of a row are sorted by name. */
static void put_row(void *context, int change, struct target_row *row)
{
	struct listing *l = context;
	size_t room = row->n_labels + 1u;
	struct andiron_value *items = arena_array(&l->arena, struct andiron_value, room);
	struct andiron_str *keys = arena_array(&l->arena, struct andiron_str, room);

	if (!items || !keys) {
		l->failed = true;
		return;
	}
	for (uint32_t i = 0; i < row->n_labels; i++) {
		keys[i] = put(l, row->labels[i].name);
		items[i] = (struct andiron_value){.kind = ANDIRON_VALUE_STRING,
						  .string = put(l, row->labels[i].value)};
	}
	l->items[l->n++] = (struct andiron_value){
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = items, .n_items = row->n_labels};
}

static struct str text_of(struct andiron_str s)
{
	return (struct str){s.ptr, s.len};
}

static int compare(const void *a, const void *b)
{
	const struct andiron_value *x = a, *y = b;
	int r = 0;

	for (uint64_t i = 0; i < x->n_items && i < y->n_items && r == 0; i++) {
		r = str_cmp(text_of(x->keys[i]), text_of(y->keys[i]));
		if (r == 0)
			r = str_cmp(text_of(x->items[i].string), text_of(y->items[i].string));
	}
	return r ? r : (x->n_items > y->n_items) - (x->n_items < y->n_items);
}

/* That a list is taken or refused the host says (services/values.c), so here nothing is said of one
 * that was sent, except after trouble of our own. */
static int send(struct items *s)
{
	const struct andiron_values *values = s->values.table;
	size_t n = target_table_count(s->table);
	struct listing l = {.arena = ARENA_NULL};
	struct andiron_value list = {.kind = ANDIRON_VALUE_LIST};
	int r = -ENOMEM;

	l.items = arena_array(&l.arena, struct andiron_value, n + 1);
	if (l.items)
		target_table_each(s->table, put_row, &l);
	if (l.items && !l.failed) {
		qsort(l.items, l.n, sizeof(*l.items), compare);
		list.items = l.items;
		list.n_items = l.n;
		r = values->send(s->values.self, s->instance, SUPPLIED_TARGETS, &list);
	}
	arena_free(&l.arena);
	return r;
}

static void on_timer(void *arg)
{
	struct items *s = arg;
	int r;

	s->timer = 0;
	s->sent = true;
	r = send(s);
	if (r == 0 && s->failed)
		say(s, ANDIRON_HEALTH_HEALTHY, FOREACH_ITEMS_KNOWN);
	s->failed = r < 0 && r != -EPERM;
	if (r == -EINVAL)
		say(s, ANDIRON_HEALTH_UNHEALTHY,
		    "its collection has more than 16 MiB of labels; those before go on: have "
		    "discovery.relabel keep fewer");
	else if (s->failed) {
		say(s, ANDIRON_HEALTH_UNHEALTHY,
		    "out of memory for its collection; the items before go on");
		s->host->timer_set(s->instance, BETWEEN_NS, 0, on_timer, s, &s->timer);
	}
}

static void stop(void *self)
{
	struct items *s = self;

	if (s->timer)
		s->host->timer_cancel(s->instance, s->timer);
	s->timer = 0;
}

static void no_change(void *context, int change, struct target_row *row)
{
}

static void targets(void *self, const char *port, const struct andiron_targets *update)
{
	struct items *s = self;
	int r = target_table_apply(s->table, update, no_change, NULL);

	if (r == -EAGAIN || r == -ENOMEM)
		s->host->request_targets(s->instance, PORT);
	/* A list that is exchanged is empty for a moment, in which all would be stopped; and one
	 * that comes over others may begin so. */
	if (!s->sent)
		stop(s);
	if (!s->timer && s->values.table)
		s->host->timer_set(s->instance,
				   s->sent || !target_table_count(s->table) ? BETWEEN_NS : 0, 0,
				   on_timer, s, &s->timer);
}

static void destroy(void *self)
{
	struct items *s = self;

	target_table_free(s->table);
	free(s);
}

static const struct andiron_option options[] = {
	{.name = PORT,
	 .type = ANDIRON_TYPE_TARGETS,
	 .doc = "Targets to go over.",
	 .flags = ANDIRON_OPTION_REQUIRED},
};
static const struct andiron_options option_table = ANDIRON_OPTIONS(options);
static const struct andiron_export exports[] = {
	{SUPPLIED_TARGETS, ANDIRON_EXPORT_VALUE, 0, "The items, as the block goes over them."},
};
static const struct andiron_component component = {
	.size = sizeof(component),
	.name = "foreach",
	.summary = "Keeps the targets that a foreach goes over.",
	.options = &option_table,
	.exports = exports,
	.n_exports = 1,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.targets = targets,
	.needs = (const char *const[]){ANDIRON_VALUES_ID, NULL},
};
const struct registered_component foreach_items = {&component, NULL};

/* --- The block --- */

/* The block as one of the component: of its arguments the collection alone. */
static const struct stmt *block_of(struct draft *d, const struct stmt *s,
				   const struct stmt *collection)
{
	struct stmt *block = lang_array(&d->l, struct stmt, 2);

	if (!block)
		return NULL;
	block[0] = *s;
	block[0].body = &block[1];
	block[1] = *collection;
	block[1].next = NULL;
	return block;
}

static uint32_t add_node(struct draft *d, const struct scope *scope, const struct stmt *s,
			 const struct stmt *collection)
{
	const char *id = arena_printf(d->l.arena, "%sforeach.%.*s", scope->prefix,
				      STR_FMT(str_first(s->label, 1000)));
	struct draft_node node = {
		.scope = scope,
		.block = block_of(d, s, collection),
		.plan = {.id = id, .registered = &foreach_items, .place = s->place},
	};

	return node.block ? draft_add_new(d, node) : INDEX_NONE;
}

/* It, and the services that come with it. */
static void note_component(struct draft *d, const struct registered_component *registered)
{
	const char *const *id = registered->component->needs;

	for (size_t i = 0; i < d->templates.n; i++)
		if (d->templates.p[i] == registered)
			return;
	d->l.no_memory |= !vec_push(&d->templates, registered);
	for (; id && *id && !d->l.no_memory; id++) {
		const struct registered_component *offers =
			registry_offering(d->l.registry, str_of(*id));

		if (offers)
			note_component(d, offers);
	}
}

static void note_template(struct draft *d, const struct scope *scope, const struct stmt *template)
{
	const struct registered_component *registered;
	bool lacked;

	for (const struct stmt *s = template->body; s && !d->l.no_memory; s = s->next) {
		if (module_may_bring(scope->space, template, s->name)) {
			d->awaits_modules = true; /* a custom component may be any */
			registered = s->block ? draft_find(d, s->name) : NULL;
			if (registered)
				note_component(d, registered);
			continue;
		}
		lacked = module_lacks(scope->space, s->name);
		if (!s->block || (str_is(s->name, LOCAL_FILE) && !lacked))
			continue;
		if (str_is(s->name, "foreach")) {
			for (const struct stmt *x = s->body; x; x = x->next)
				if (x->block && str_is(x->name, "template"))
					note_template(d, scope, x);
			continue;
		}
		registered = lacked ? NULL : draft_find(d, s->name);
		if (registered)
			note_component(d, registered);
		else
			draft_refuse(d, scope, s);
	}
}

bool foreach_items_id(struct draft *d, const struct draft_loop *loop, const struct stmt *arguments,
		      struct str *ret)
{
	const struct stmt *id = module_attribute(arguments->body, "id");
	struct andiron_value value = {.kind = ANDIRON_VALUE_STRING};
	size_t first = d->l.value_uses.n;

	scope_window(&d->l);
	d->l.waits_for = NULL;
	if (id && (!id->value || (!eval(&d->l, id->value, &value) && !d->l.waits_for)))
		return false;
	while (first < d->l.value_uses.n && fetched_is_use(d, &d->l.value_uses.p[first]))
		first++;
	*ret = text_of(value.string);
	if (first == d->l.value_uses.n && d->l.waits_for) {
		fetched_wait(d, loop->scope, loop->block, d->l.waits_for);
		return false;
	}
	if (first == d->l.value_uses.n && value.kind == ANDIRON_VALUE_STRING)
		return true;
	lang_error(&d->l, id->value->place, NULL,
		   "id is the name of a label in double quotes, which no component supplies");
	return false;
}

bool foreach_items_begin_list(struct draft *d, const struct draft_loop *loop,
			      const struct stmt *template, const char *id)
{
	struct draft_list *list = lang_array(&d->l, struct draft_list, 1);

	if (!list)
		return false;
	note_template(d, loop->scope, template);
	*list = (struct draft_list){.id = id, .around = loop->scope->item};
	d->l.no_memory |= !vec_push(&d->lists, list);
	if (!d->l.supplied)
		lang_warning(&d->l, loop->block->place, NULL,
			     "what is made of %s is not checked: its items are known when the "
			     "agent runs",
			     id);
	return !d->l.no_memory;
}

bool foreach_items_get(struct draft *d, const struct draft_loop *loop, const struct stmt *template,
		       const struct stmt *arguments, struct andiron_value *ret)
{
	const struct stmt *collection = module_attribute(arguments->body, PORT);
	uint32_t node = add_node(d, loop->scope, loop->block, collection);
	const struct andiron_value *value;
	const char *id;

	if (node == INDEX_NONE)
		return false;
	id = d->nodes.p[node].plan.id;
	if (!foreach_items_begin_list(d, loop, template, id))
		return false;
	value = supplied_get(d->l.supplied, id, SUPPLIED_TARGETS);
	d->l.no_memory |= value && supplied_copy(d->l.arena, value, ret) < 0;
	return value && !d->l.no_memory;
}

static void open_targets(struct draft *d, const struct value_use *use)
{
	static const struct andiron_value none = {.kind = ANDIRON_VALUE_MAP};
	struct draft_node node = {.plan = {.id = use->list, .registered = &foreach_items,
					   .args = &none, .place = use->place}};
	struct draft_edge edge = {.plan = {.from = use->node, .kind = PLAN_TARGETS, .port = PORT,
					   .export_name = use->export_name}};

	if (names_find(&d->l.names, str_of(use->list)) != INDEX_NONE)
		return;
	edge.plan.to = draft_add(d, node);
	if (edge.plan.to != INDEX_NONE)
		draft_connect(d, edge);
}

void foreach_items_open(struct draft *d)
{
	for (size_t i = 0; i < d->l.value_uses.n && !d->l.no_memory; i++)
		if (d->l.value_uses.p[i].list)
			open_targets(d, &d->l.value_uses.p[i]);
}

static bool fits(struct str text)
{
	bool good = text.n > 0 && text.n <= MAX_KEY;

	for (size_t i = 0; good && i < text.n; i++)
		good = ascii_is_alnum(text.p[i]) || text.p[i] == '_' || text.p[i] == '-';
	return good;
}

/* The same in every process, since folders of spools and metrics are called by it: FNV-1a, over
 * texts that end with a byte that no UTF-8 has. */
static uint64_t hash_text(uint64_t hash, struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		hash = (hash ^ (unsigned char)text.p[i]) * 0x100000001b3;
	return (hash ^ 0xff) * 0x100000001b3;
}

static uint64_t hash_item(const struct andiron_value *item)
{
	uint64_t hash = FNV ^ (uint64_t)item->integer;

	if (item->string.len)
		hash = hash_text(hash, text_of(item->string));
	for (uint64_t i = 0; i < item->n_items; i++) {
		if (item->kind == ANDIRON_VALUE_MAP)
			hash = hash_text(hash, text_of(item->keys[i]));
		hash = hash_text(hash ^ (uint64_t)item->items[i].integer,
				 text_of(item->items[i].string));
	}
	return hash;
}

static struct str member(const struct andiron_value *item, struct str name)
{
	for (uint64_t i = 0; name.n && item->kind == ANDIRON_VALUE_MAP && i < item->n_items; i++)
		if (str_eq(text_of(item->keys[i]), name))
			return text_of(item->items[i].string);
	return STR_NULL;
}

/* Whether the key is a new one; its number is *ret. */
static bool add_key(struct draft *d, struct foreach_keys *keys, const char *key, uint32_t *ret)
{
	size_t before = keys->given.strings.n;
	uint32_t n = key ? intern_add(&keys->given, str_of(key)) : INDEX_NONE;

	d->l.no_memory |= n == INDEX_NONE;
	while (keys->last.n < keys->given.strings.n && !d->l.no_memory)
		d->l.no_memory |= !vec_push(&keys->last, 1);
	*ret = n;
	return keys->given.strings.n > before;
}

const char *foreach_items_key(struct draft *d, const struct andiron_value *item, struct str id,
			      struct foreach_keys *keys)
{
	struct str text = member(item, id);
	const char *key, *all;
	uint32_t n, same = 0;

	if (fits(text))
		key = arena_printf(d->l.arena, "%.*s", STR_FMT(text));
	else
		key = arena_printf(d->l.arena, "%016llx",
				   (unsigned long long)(text.n ? hash_text(FNV, text)
							       : hash_item(item)));
	/* A label may look like a key with a number. */
	for (all = key; !add_key(d, keys, all, &n) && !d->l.no_memory;) {
		same = all == key ? n : same;
		all = arena_printf(d->l.arena, "%s-%u", key, ++keys->last.p[same]);
	}
	return d->l.no_memory ? NULL : all;
}

void foreach_keys_free(struct foreach_keys *keys)
{
	intern_free(&keys->given);
	vec_free(&keys->last);
}

/* --- Items that are left out ---
 *
 * The plan is drafted a second time without them: what a draft has of an item is in its nodes,
 * names, edges and values, and nothing has to be taken out there. A second one with errors is the
 * last. */

bool foreach_items_begin(struct draft *d, struct scope *inside, struct draft_list *list)
{
	struct draft_item *item;

	if (names_find(&d->left_out->items, str_of(inside->prefix)) != INDEX_NONE)
		return false;
	item = lang_array(&d->l, struct draft_item, 1);
	d->l.no_memory |= !item || !vec_push(&d->items, item);
	if (d->l.no_memory)
		return false;
	*item = (struct draft_item){.prefix = inside->prefix, .list = list};
	inside->item = item;
	list->n++;
	return true;
}

/* What was found about the list, and about which item; NULL where that is no more in the findings.
 */
static const struct diag *finding_of(const struct draft *d, const struct draft_list *list,
				     const struct draft_item **ret)
{
	vec_each (&d->items, item) {
		if ((*item)->list != list || !(*item)->bad)
			continue;
		*ret = *item;
		vec_each (&d->l.diags->list, found)
			if (found->subject == &(*item)->bad && found->severity == DIAG_ERROR)
				return found;
	}
	return NULL;
}

/* For people: how many, which, and why. */
static const char *describe(const struct draft *d, const struct draft_list *list)
{
	const struct draft_item *item = NULL;
	const struct diag *found = finding_of(d, list, &item);
	char *why = found ? diag_line(d->l.diags, found) : NULL;
	const char *text = arena_printf(
		&d->left_out->arena,
		"%zu of %zu targets are left out, since the template cannot take them; %.*s%s%s",
		list->n_bad, list->n,
		STR_FMT(str_first(str_of(item->prefix), strlen(item->prefix) - 1)),
		why ? ": " : " is one", why ? why : "");

	free(why);
	return text;
}

static bool can_go_on(const struct draft *d)
{
	if (d->l.no_memory || d->left_out->items.list.n ||
	    d->l.diags->n_errors > d->l.diags->n_blamed)
		return false;
	vec_each (&d->lists, at) {
		const struct draft_list *list = *at;

		if (list->n && list->n_bad == list->n && !(list->around && list->around->bad))
			return false;
	}
	return true;
}

/* The files that bad items are made of: with others in them there may be another end to it. */
static bool note_files(struct draft *d)
{
	struct draft_left_out *out = d->left_out;

	vec_each (&d->files, named) {
		const struct plan_file file = {
			.path = arena_str(&out->arena, str_of(named->path)).p, .hash = named->hash};

		if (!named->bad || !*named->bad)
			continue;
		if (!file.path || !vec_push(&out->files, file))
			return false;
	}
	return true;
}

bool foreach_items_leave_out(struct draft *d)
{
	struct draft_left_out *out = d->left_out;
	bool room = true;

	vec_each (&d->items, item)
		(*item)->list->n_bad += (*item)->bad;
	if (!can_go_on(d))
		return false;
	vec_each (&d->items, item) {
		const char *prefix;

		if (!(*item)->bad)
			continue;
		prefix = arena_str(&out->arena, str_of((*item)->prefix)).p;
		room = room && prefix && names_add(&out->items, prefix, NULL) == 0;
	}
	vec_each (&d->lists, at) {
		struct plan_list list = {.id = arena_str(&out->arena, str_of((*at)->id)).p};

		if (!(*at)->n_bad)
			continue;
		list.left_out = describe(d, *at);
		room = room && list.id && list.left_out && vec_push(&out->lists, list);
	}
	room = room && note_files(d);
	d->l.no_memory |= !room;
	return room && out->items.list.n;
}

struct plan_list foreach_items_list(const struct draft_left_out *out, const char *id)
{
	vec_each (&out->lists, list)
		if (strcmp(list->id, id) == 0)
			return *list;
	return (struct plan_list){.id = id};
}
