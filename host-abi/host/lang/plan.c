/* SPDX-License-Identifier: Apache-2.0 */
/* From sources to a plan. Everything is looked at before it fails, so that all errors are reported
 * at once: a block with an error still has its name, and only what depends on the whole (the order,
 * implicit nodes) is left out. */
#include "host/lang/draft.h"
#include "host/lang/fetched.h"
#include "host/lang/foreach-items.h"
#include "host/lang/isolation.h"
#include "host/lang/local-file.h"
#include "host/lang/module.h"
#include "host/lang/settings.h"
#include "host/lang/supplied.h"
#include "host/lang/syntax/parse.h"
#include "host/lang/syntax/redact.h"

#include "base/check.h"

#include <errno.h>

#define MAX_REFUSED 10  /* plugins that an error lists */
#define MAX_NAMES   100 /* custom components among which a misspelt one is sought */

uint32_t draft_add(struct draft *d, struct draft_node node)
{
	uint32_t at = (uint32_t)d->nodes.n;

	if (!vec_reserve(&d->nodes, 1) ||
	    names_add(&d->l.names, node.plan.id, node.plan.registered->component) < 0) {
		d->l.no_memory = true;
		return INDEX_NONE;
	}
	d->nodes.p[d->nodes.n++] = node;
	check(d->nodes.n == d->l.names.list.n);
	return at;
}

uint32_t draft_add_new(struct draft *d, struct draft_node node)
{
	const char *id = node.plan.id;
	uint32_t known = id ? names_find(&d->l.names, str_of(id)) : INDEX_NONE;

	d->l.no_memory |= !id;
	if (known != INDEX_NONE) {
		struct place first = d->nodes.p[known].plan.place;

		lang_error(&d->l, node.plan.place,
			   arena_printf(d->l.arena, "it stands at %s:%u:%u already",
					first.source->name, first.line, first.column),
			   "%s is defined twice", id);
	} else if (d->nodes.n >= DRAFT_MAX_NODES)
		lang_error(&d->l, node.plan.place, NULL, "more than %d components",
			   DRAFT_MAX_NODES);
	else if (id)
		return draft_add(d, node);
	return INDEX_NONE;
}

void draft_connect(struct draft *d, struct draft_edge edge)
{
	check(edge.plan.from < d->nodes.n && edge.plan.to < d->nodes.n);
	if (!vec_push(&d->edges, edge))
		d->l.no_memory = true;
}

const char *draft_searched(struct draft *d)
{
	const struct registered_plugin *plugins;
	size_t n = registry_plugins(d->l.registry, &plugins), shown = 0;
	struct str searched = str_trim(str_of(registry_searched(d->l.registry)));

	if (d->searched)
		return d->searched;
	d->searched = arena_printf(d->l.arena, "looked for plugins in\n%.*s", STR_FMT(searched));
	for (size_t i = 0; d->searched && i < n && shown < MAX_REFUSED; i++) {
		if (!plugins[i].refused)
			continue;
		d->searched = arena_printf(d->l.arena, "%s\n%s was refused: %s", d->searched,
					   plugins[i].path, plugins[i].refused);
		shown++;
	}
	d->l.no_memory |= !d->searched;
	return d->searched;
}

/* Components of Alloy that are for something else than profiles. */
static const struct {
	const char *beginning, *signal;
} others[] = {
	{"loki.", "logs"},
	{"prometheus.", "metrics"},
	{"mimir.", "metrics"},
	{"otelcol.", "metrics, logs and traces"},
	{"beyla.", "metrics and traces"},
	{"faro.", "what browsers report"},
	{"database_observability.", "metrics and logs of databases"},
};

#define OTHERS_HINT                                                                                \
	"leave it in a file of Alloy's; the blocks for profiles, with all that they name, go "     \
	"into a file of andiron's"

/* What takes the place of components that Alloy has or had. */
static const struct {
	char beginning[16], instead[112];
} elsewhere[] = {
	{"discovery.", "a program of yours can give discovery.http or discovery.file the targets "
		       "of a source that andiron does not ask"},
	{"phlare.", "phlare.* was renamed to pyroscope.*: write pyroscope.write for phlare.write"},
	{"remote.vault", "have Vault Agent write the secret into a file, and name that file in "
			 "local.file"},
	{"profile.", "profiles to scrape are blocks of profiling_config in pyroscope.scrape"},
	{"remote.s3", "ask for the object by remote.http, with a presigned URL"},
};

#define OTLP_HINT "profiles that come by OTLP are received by otlp.receive, in andiron's file"

static const struct stmt *stmt_named(const struct stmt *body, const char *name)
{
	while (body && !str_is(body->name, name))
		body = body->next;
	return body;
}

/* A receiver that is to pass profiles on, too. */
static bool takes_profiles(const struct stmt *s)
{
	const struct stmt *output = stmt_named(s->body, "output");

	return str_is(s->name, "otelcol.receiver.otlp") && output &&
	       stmt_named(output->body, "profiles");
}

/* Says so of a component of another signal; how to split the file once, at the first. */
static bool is_other_signal(struct draft *d, const struct stmt *s)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (str_starts(s->name, str_of(others[i].beginning))) {
			bool otlp = takes_profiles(s);
			const char *split = d->split_told ? NULL : OTHERS_HINT;

			lang_error(&d->l, s->place, otlp ? OTLP_HINT : split,
				   "%.*s is for %s; andiron takes profiles",
				   STR_FMT(str_first(s->name, 200)), others[i].signal);
			d->split_told |= !otlp;
			return true;
		}
	return false;
}

/* Blocks that are no components, and may be meant by one that is none. */
static const char blocks[][14] = {
	"logging", "tracing",  "remotecfg", "livedebugging", "declare",
	"foreach", "argument", "export",    "import.file",   "import.string",
};
#define N_BLOCKS (sizeof(blocks) / sizeof(blocks[0]))

static void unknown_component(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	const struct registered_component *all;
	size_t n = registry_components(d->l.registry, &all);
	const char **names = lang_array(&d->l, const char *, n + N_BLOCKS + MAX_NAMES);
	const char *near, *hint;
	bool is_installed = n > 0; /* else it may be one of andiron's */

	for (size_t i = 0; names && i < n; i++)
		names[i] = all[i].component->name;
	for (size_t i = 0; names && i < N_BLOCKS; i++)
		names[n++] = blocks[i];
	if (names)
		n += module_names(d, scope->space, names + n, MAX_NAMES);
	near = names ? diag_suggest(d->l.diags, s->name, names, n) : NULL;
	hint = draft_searched(d);
	for (size_t i = 0; is_installed && i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (!near && str_starts(s->name, str_of(elsewhere[i].beginning)))
			near = elsewhere[i].instead;
	if (near && hint)
		hint = arena_printf(d->l.arena, "%s\n%s", near, hint);
	lang_error(&d->l, s->place, hint, "there is no component \"%.*s\"",
		   STR_FMT(str_first(s->name, 200)));
}

static bool check_label(struct draft *d, const struct stmt *s, const struct andiron_component *c)
{
	if (c->flags & ANDIRON_COMPONENT_NO_LABEL) {
		if (s->labelled)
			lang_error(&d->l, s->label_place, NULL, "%s takes no label", c->name);
		return !s->labelled;
	}
	if (s->label.n)
		return true;
	lang_error(&d->l, s->labelled ? s->label_place : s->place,
		   arena_printf(d->l.arena, "write %s \"NAME\" { … }", c->name), "%s needs a label",
		   c->name);
	return false;
}

/* A block that does not become a node: who refers to it is not told again. */
static void lose(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	const char *id = arena_printf(d->l.arena, "%s%.*s.%.*s", scope->prefix,
				      STR_FMT(str_first(s->name, 1000)),
				      STR_FMT(str_first(s->label, 1000)));

	d->l.no_memory |= !id || (names_find(&d->l.lost, str_of(id)) == INDEX_NONE &&
				  names_add(&d->l.lost, id, NULL) < 0);
}

/* Its plugin is opened, and those of what comes with it. */
const struct registered_component *draft_find(struct draft *d, struct str name)
{
	if (str_is(name, fetched_text.component->name))
		return &fetched_text;
	d->l.no_memory |= registry_require(d->l.registry, &name, 1) < 0;
	return registry_find(d->l.registry, name);
}

void draft_refuse(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	/* Said of one item, it is true of all. */
	if (scope->item)
		scope->item->bad = true;
	lose(d, scope, s);
	vec_each (&d->refused, known)
		if (*known == s)
			return;
	d->l.no_memory |= !vec_push(&d->refused, s);
	if (!module_refuse(d, scope->space, s) && !is_other_signal(d, s))
		unknown_component(d, scope, s);
}

uint32_t draft_component(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	struct draft_node node = {.block = s, .scope = scope, .plan.place = s->place};

	if (module_lacks(scope->space, s->name) ||
	    !(node.plan.registered = draft_find(d, s->name))) {
		draft_refuse(d, scope, s);
		return INDEX_NONE;
	}
	if (!check_label(d, s, node.plan.registered->component))
		return INDEX_NONE;
	node.plan.id = arena_printf(d->l.arena, s->labelled ? "%s%s.%.*s" : "%s%s", scope->prefix,
				    node.plan.registered->component->name,
				    STR_FMT(str_first(s->label, 1000)));
	return draft_add_new(d, node);
}

void draft_block(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	/* What the parser refused has been said; a label is worth to be known. */
	if (s->broken && !s->labelled)
		return;
	if (!s->block) {
		lang_error(&d->l, s->place, "arguments stand inside a component's { }",
			   "the argument %.*s cannot stand %s", STR_FMT(str_first(s->name, 200)),
			   scope->depth ? "among components" : "at the top of a file");
		return;
	}
	if (!settings_block(d, scope, s) && !module_block(d, scope, s))
		draft_component(d, scope, s);
}

static void add_uses(struct draft *d, uint32_t node, const struct binder *b)
{
	vec_each (&b->uses, use) {
		bool targets = use->type == ANDIRON_TYPE_TARGETS;
		struct plan_literal literal = {node, use->order, use->port, use->literal};
		struct draft_edge edge = {.place = use->place};

		if (use->literal) {
			d->l.no_memory |= !vec_push(&d->literals, literal);
			continue;
		}
		edge.plan = (struct plan_edge){
			.from = targets ? use->node : node,
			.to = targets ? node : use->node,
			.kind = targets ? PLAN_TARGETS : PLAN_BATCHES,
			.order = use->order,
			.export_name = use->export->name,
			.port = use->port,
		};
		if (use->node == node)
			lang_error(&d->l, use->place, NULL, "%s refers to itself",
				   d->nodes.p[node].plan.id);
		else
			draft_connect(d, edge);
	}
}

/* Those whose values the node names come before it. */
static void add_value_uses(struct draft *d, uint32_t node, size_t first)
{
	for (size_t i = first; i < d->l.value_uses.n; i++) {
		struct value_use use = d->l.value_uses.p[i];
		struct draft_edge edge = {
			.plan = {.from = use.node, .to = node, .kind = DRAFT_VALUES},
			.place = use.place,
		};

		if (use.node == node)
			lang_error(&d->l, use.place, NULL, "%s refers to itself",
				   d->nodes.p[node].plan.id);
		else
			draft_connect(d, edge);
	}
}

static void isolate(struct draft *d, struct plan_node *node, const struct bind_common *common)
{
	const char *why = common->isolate ? isolation_refusal(node->registered) : NULL;

	node->isolate = common->isolate;
	if (why)
		lang_error(&d->l, common->place, why, "%s cannot be isolated: leave isolate out",
			   node->registered->component->name);
}

static void bind_node(struct draft *d, uint32_t at)
{
	struct draft_node *node = &d->nodes.p[at];
	const struct andiron_component *c = node->plan.registered->component;
	struct andiron_value *args = lang_array(&d->l, struct andiron_value, 1);
	struct bind_common common = {0};
	struct bind_owner owner = {c->name, node->plan.place,
				   c->flags & ANDIRON_COMPONENT_SYMBOLIZER, &common};
	struct binder b = {.l = &d->l, .id = node->plan.id};
	size_t first_value = d->l.value_uses.n;

	d->l.scope = node->scope;
	draft_about(d, node->scope);
	d->l.waits_for = NULL;
	scope_window(&d->l);
	if (args && !node->block->broken &&
	    bind_body(&b, c->options, node->block->body, &owner, args))
		node->plan.args = args;
	node->waits_for = node->plan.args ? NULL : d->l.waits_for;
	isolate(d, &node->plan, &common);
	add_uses(d, at, &b);
	add_value_uses(d, at, first_value);
	binder_free(&b);
	/* What it names may have been refused with another. */
	if (node->scope->item && !node->plan.args && !node->waits_for)
		node->scope->item->bad = true;
	draft_about(d, NULL);
}

static bool has_receivers(const struct andiron_component *c)
{
	for (uint32_t i = 0; c->options && i < c->options->count; i++)
		if (bind_option(c->options, i)->type == ANDIRON_TYPE_RECEIVERS)
			return true;
	return false;
}

/* A profiler that feeds nobody is legal, and never meant. A symbolizer may lack receivers (then the
 * host wires it), unless somebody feeds it by name. */
static void check_connected(struct draft *d)
{
	bool *gets = lang_array(&d->l, bool, d->nodes.n);
	bool *sends = lang_array(&d->l, bool, d->nodes.n);

	if (d->l.no_memory)
		return;
	vec_each (&d->edges, e)
		if (e->plan.kind == PLAN_BATCHES)
			sends[e->plan.from] = gets[e->plan.to] = true;
	for (uint32_t i = 0; i < d->nodes.n; i++) {
		const struct plan_node *node = &d->nodes.p[i].plan;
		const struct andiron_component *c = node->registered->component;
		bool names = c->flags & ANDIRON_COMPONENT_SYMBOLIZER;

		if (sends[i] || !node->args || !has_receivers(c))
			continue;
		if (names && gets[i])
			lang_error(&d->l, node->place, NULL,
				   "%s gets profiles, so it needs the argument forward_to",
				   node->id);
		else if (!names)
			lang_warning(&d->l, node->place, "name a writer's receiver in forward_to",
				     "%s sends its profiles to nobody", node->id);
	}
}

/* A module is in the plan as what it has brought. */
static bool is_made(const struct draft_node *node)
{
	return !node->waits_for && node->plan.registered != &fetched_text;
}

static void finish_node(struct draft *d, struct plan *plan, const struct draft_node *node)
{
	struct plan_waiting waiting = {node->plan.id, node->waits_for, node->plan.registered};

	if (node->waits_for)
		d->l.no_memory |= !vec_push(&plan->waiting, waiting);
	else if (is_made(node))
		d->l.no_memory |= !vec_push(&plan->nodes, node->plan);
	if (node->plan.registered == &foreach_items &&
	    supplied_get(d->l.supplied, node->plan.id, SUPPLIED_TARGETS))
		d->l.no_memory |= !vec_push(&plan->lists,
					    foreach_items_list(d->left_out, node->plan.id));
}

/* The plan in its order. */
static void finish(struct draft *d, struct plan *plan, const uint32_t *order)
{
	uint32_t *at = lang_array(&d->l, uint32_t, d->nodes.n), n = 0;

	if (!at)
		return;
	for (uint32_t i = 0; i < d->nodes.n; i++) {
		at[order[i]] = n;
		n += is_made(&d->nodes.p[order[i]]);
		finish_node(d, plan, &d->nodes.p[order[i]]);
	}
	vec_each (&d->edges, e) {
		struct plan_edge edge = e->plan;

		if (edge.kind != PLAN_TARGETS && edge.kind != PLAN_BATCHES)
			continue;
		edge.from = at[edge.from];
		edge.to = at[edge.to];
		check(edge.from < edge.to);
		d->l.no_memory |= !vec_push(&plan->edges, edge);
	}
	vec_each (&d->literals, l) {
		if (d->nodes.p[l->to].waits_for)
			continue;
		l->to = at[l->to];
		d->l.no_memory |= !vec_push(&plan->literals, *l);
	}
	vec_each (&d->files, file) {
		file->bad = NULL; /* is the draft's */
		d->l.no_memory |= !vec_push(&plan->files, *file);
	}
	vec_each (&d->left_out->files, file)
		d->l.no_memory |= !vec_push(&plan->files, *file);
	vec_each (&d->templates, registered)
		d->l.no_memory |= !vec_push(&plan->templates, *registered);
	plan->poll_ns = d->poll_ns;
	fetched_finish(d, plan);
}

static void read_sources(struct draft *d, const struct scope *top, size_t errors_before)
{
	struct lang *l = &d->l;
	const struct stmt **first = lang_array(l, const struct stmt *, d->n_sources);

	if (!first)
		return;
	for (size_t i = 0; i < d->n_sources; i++) {
		if (parse_is_text(l, &d->sources[i]))
			first[i] = parse_source(l, &d->sources[i]);
		local_file_give_way(top->space, first[i]);
	}
	for (size_t i = 0; i < d->n_sources; i++)
		local_file_blocks(d, top, first[i]);
	for (size_t i = 0; i < d->n_sources; i++)
		module_declare(d, top, first[i], false);
	for (size_t i = 0; i < d->n_sources; i++)
		for (const struct stmt *s = first[i]; s && !l->no_memory; s = s->next)
			draft_block(d, top, s);
	module_loops(d);
	local_file_read_all(d);
	if (!d->nodes.n && !top->space->declarations && l->diags->n_errors == errors_before &&
	    !l->no_memory)
		lang_error(l, ((struct place){.source = d->n_sources ? d->sources : NULL}),
			   "describe at least one, such as pyroscope.ebpf \"NAME\" { … }",
			   "holds no components");
}

static bool is_good(const struct draft *d, size_t errors_before)
{
	return !d->l.no_memory && d->l.diags->n_errors == errors_before;
}

/* Implicit nodes come into a graph that is right as it was written. */
static void build(struct draft *d, struct plan *plan, size_t errors_before)
{
	struct space space = {0};
	struct scope top = {.space = &space, .prefix = ""};
	uint32_t *order = NULL;

	read_sources(d, &top, errors_before);
	settings_serve(d);
	d->l.scope = &top;
	settings_bind(d, plan);
	fetched_check_waiting(d);
	for (uint32_t i = 0; i < d->nodes.n && !d->l.no_memory; i++)
		bind_node(d, i);
	foreach_items_open(d);
	if (!d->l.no_memory)
		check_connected(d);
	if (!d->l.no_memory)
		order = draft_sort(d);
	d->l.scope = &top;
	if (order && is_good(d, errors_before)) {
		draft_set_aside(d);
		draft_complete(d, order);
		order = draft_sort(d);
	}
	if (!d->l.no_memory)
		draft_validate(d);
	if (order && is_good(d, errors_before))
		finish(d, plan, order);
}

int plan_build(const struct source *sources, size_t n_sources, struct registry *registry,
	       struct diags *diags, struct plan **ret)
{
	return plan_build_with(sources, n_sources, registry, NULL, diags, ret);
}

/* -EAGAIN: without what is left out now, or with the modules that are known now. */
static int make(struct draft d, struct plan **ret)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	struct diags *diags = d.l.diags;
	size_t errors_before = diags->n_errors;
	bool again;

	if (!plan)
		return -ENOMEM;
	d.l.arena = &plan->arena;
	build(&d, plan, errors_before);
	d.l.no_memory |= redact_declare(diags, d.l.registry) < 0;
	again = fetched_again(&d) || foreach_items_leave_out(&d);
	/* What a mistake is quoted with may be anything, secrets of any component among it. */
	if (!again && diags->n_errors > errors_before)
		d.l.no_memory |= registry_require(d.l.registry, NULL, 0) < 0 ||
				 redact_declare(diags, d.l.registry) < 0;
	vec_free(&d.nodes);
	vec_free(&d.edges);
	vec_free(&d.literals);
	names_free(&d.l.names);
	vec_free(&d.imported);
	vec_free(&d.files);
	vec_free(&d.loops);
	vec_free(&d.templates);
	vec_free(&d.lists);
	vec_free(&d.items);
	vec_free(&d.refused);
	vec_free(&d.l.custom);
	names_free(&d.l.customs);
	names_free(&d.l.lost);
	vec_free(&d.l.copies);
	vec_free(&d.l.value_uses);
	vec_free(&d.l.told);
	if (!again && !d.l.no_memory && diags->n_errors == errors_before) {
		arena_join(&plan->arena, &d.left_out->arena);
		*ret = plan;
		return 0;
	}
	arena_join(&diags->arena, &plan->arena);
	plan_free(plan);
	if (again)
		diags_free(diags);
	return d.l.no_memory ? -ENOMEM : again ? -EAGAIN : -EINVAL;
}

int plan_build_with(const struct source *sources, size_t n_sources, struct registry *registry,
		    const struct supplied *supplied, struct diags *diags, struct plan **ret)
{
	struct draft_left_out out = {.arena = ARENA_NULL};
	const struct draft d = {
		.l = {.diags = diags, .registry = registry, .supplied = supplied},
		.sources = sources,
		.n_sources = n_sources,
		.left_out = &out,
	};
	int r;

	do
		r = make(d, ret);
	while (r == -EAGAIN);
	names_free(&out.items);
	vec_free(&out.lists);
	vec_free(&out.texts);
	vec_free(&out.files);
	arena_free(&out.arena);
	return r;
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	vec_free(&plan->nodes);
	vec_free(&plan->edges);
	vec_free(&plan->literals);
	vec_free(&plan->files);
	vec_free(&plan->waiting);
	vec_free(&plan->templates);
	vec_free(&plan->lists);
	arena_free(&plan->arena);
	free(plan);
}
