/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of the tests, and a plan as text. */
#include "host/lang/tests/test-lang.h"

#include "abi/value.h"

#include <errno.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct andiron_options no_options;

static const struct andiron_option kubernetes_options[] = {
	{.name = "role",
	 .type = ANDIRON_TYPE_STRING,
	 .flags = ANDIRON_OPTION_REQUIRED,
	 .doc = "what to watch: pod",
	 .choices = (const char *const[]){"pod", "node", "service", NULL}},
	{.name = "bearer_token", .type = ANDIRON_TYPE_SECRET},
};

static const struct andiron_option discover_options[] = {
	{.name = "exe", .type = ANDIRON_TYPE_BOOL, .default_text = "true"},
	{.name = "cwd", .type = ANDIRON_TYPE_BOOL, .default_text = "true"},
};
static const struct andiron_options discover = ANDIRON_OPTIONS(discover_options);

static const struct andiron_option process_options[] = {
	{.name = "join", .type = ANDIRON_TYPE_TARGETS},
	{.name = "refresh_interval",
	 .type = ANDIRON_TYPE_DURATION,
	 .default_text = "\"60s\"",
	 .min = 1000000000,
	 .max = 3600000000000},
	{.name = "discover_config",
	 .type = ANDIRON_TYPE_BLOCK,
	 .default_text = "{}",
	 .block = &discover},
};

static const struct andiron_option fetching_options[] = {
	{.name = "url", .type = ANDIRON_TYPE_STRING, .flags = ANDIRON_OPTION_REQUIRED},
};
static const struct andiron_options fetching = ANDIRON_OPTIONS(fetching_options);

static const struct andiron_option rule_options[] = {
	{.name = "source_labels", .type = ANDIRON_TYPE_STRINGS},
	{.name = "target_label", .type = ANDIRON_TYPE_STRING},
	{.name = "action",
	 .type = ANDIRON_TYPE_STRING,
	 .default_text = "\"replace\"",
	 .choices = (const char *const[]){"replace", "keep", "drop", NULL}},
};
static const struct andiron_options rule = ANDIRON_OPTIONS(rule_options);

static const struct andiron_option relabel_options[] = {
	{.name = "targets", .type = ANDIRON_TYPE_TARGETS, .flags = ANDIRON_OPTION_REQUIRED},
	{.name = "rule",
	 .type = ANDIRON_TYPE_BLOCK,
	 .flags = ANDIRON_OPTION_REPEATED,
	 .block = &rule},
};

static const struct andiron_option ebpf_options[] = {
	{.name = "forward_to",
	 .type = ANDIRON_TYPE_RECEIVERS,
	 .flags = ANDIRON_OPTION_REQUIRED,
	 .doc = "who gets the profiles"},
	{.name = "targets", .type = ANDIRON_TYPE_TARGETS},
	{.name = "targets_only", .type = ANDIRON_TYPE_BOOL, .default_text = "true"},
	{.name = "default_target", .type = ANDIRON_TYPE_MAP, .flags = ANDIRON_OPTION_LENIENT},
	{.name = "demangle",
	 .type = ANDIRON_TYPE_STRING,
	 .default_text = "\"none\"",
	 .choices = (const char *const[]){"none", "simplified", "templates", "full", NULL}},
	{.name = "sample_rate",
	 .type = ANDIRON_TYPE_INT,
	 .default_text = "19",
	 .min = 1,
	 .max = 1000},
	{.name = "collect_interval",
	 .type = ANDIRON_TYPE_DURATION,
	 .default_text = "\"15s\"",
	 .min = 1000000,
	 .max = 600000000000},
	{.name = "ignored_threshold",
	 .type = ANDIRON_TYPE_FLOAT,
	 .flags = ANDIRON_OPTION_IGNORED,
	 .effect = "no off-CPU profiles are made"},
	{.name = "verbose_mode", .type = ANDIRON_TYPE_BOOL, .flags = ANDIRON_OPTION_IGNORED},
	{.name = "cache_rounds",
	 .type = ANDIRON_TYPE_INT,
	 .flags = ANDIRON_OPTION_IGNORED,
	 .until = "Alloy 1.11"},
	{.name = "debug_info", .type = ANDIRON_TYPE_BLOCK, .flags = ANDIRON_OPTION_IGNORED},
};

static const struct andiron_option endpoint_options[] = {
	{.name = "url", .type = ANDIRON_TYPE_STRING, .flags = ANDIRON_OPTION_REQUIRED},
	{.name = "headers", .type = ANDIRON_TYPE_SECRETS},
	{.name = "remote_timeout", .type = ANDIRON_TYPE_DURATION, .default_text = "\"10s\""},
};
static const struct andiron_options endpoint = ANDIRON_OPTIONS(endpoint_options);

static const struct andiron_option write_options[] = {
	{.name = "endpoint",
	 .type = ANDIRON_TYPE_BLOCK,
	 .flags = ANDIRON_OPTION_REPEATED,
	 .block = &endpoint},
	{.name = "external_labels", .type = ANDIRON_TYPE_MAP},
};

static const struct andiron_option pass_options[] = {
	{.name = "forward_to", .type = ANDIRON_TYPE_RECEIVERS, .default_text = "[]"},
	{.name = "lines", .type = ANDIRON_TYPE_BOOL, .default_text = "false"},
};

static const struct andiron_option symbolize_options[] = {
	{.name = "forward_to", .type = ANDIRON_TYPE_RECEIVERS, .flags = ANDIRON_OPTION_REQUIRED},
	{.name = "lines", .type = ANDIRON_TYPE_BOOL, .default_text = "false"},
};

static const struct andiron_option any_options[] = {
	{.name = "value", .type = 999},
};

static const struct andiron_option lenient_options[] = {
	{.name = "value", .type = ANDIRON_TYPE_BOOL, .flags = ANDIRON_OPTION_LENIENT},
};

static const struct andiron_option named_options[] = {
	{.name = "n", .type = ANDIRON_TYPE_UINT},
};
static const struct andiron_options named = ANDIRON_OPTIONS(named_options);
static const struct andiron_option count_options[] = {
	{.name = "named",
	 .type = ANDIRON_TYPE_BLOCK,
	 .flags = ANDIRON_OPTION_LABELLED,
	 .block = &named},
	{.name = "n", .type = ANDIRON_TYPE_UINT},
	{.name = "text", .type = ANDIRON_TYPE_STRING},
};

static const struct andiron_option spool_options[] = {
	{.name = "directory",
	 .type = ANDIRON_TYPE_STRING,
	 .flags = ANDIRON_OPTION_REQUIRED | ANDIRON_OPTION_STORED},
};
static const struct andiron_options spool = ANDIRON_OPTIONS(spool_options);
static const struct andiron_option listener_options[] = {
	{.name = "port", .type = ANDIRON_TYPE_INT},
	{.name = "tls", .type = ANDIRON_TYPE_BLOCK, .block = &no_options},
	{.name = "auth", .type = ANDIRON_TYPE_BLOCK, .block = &no_options},
};
static const struct andiron_option patient_options[] = {
	{.name = "grace",
	 .type = ANDIRON_TYPE_DURATION,
	 .flags = ANDIRON_OPTION_IGNORED,
	 .default_text = "\"2m\"",
	 .effect = "the agent's own deadline holds"},
};
static const struct andiron_option spooling_options[] = {
	{.name = "spool", .type = ANDIRON_TYPE_BLOCK, .block = &spool},
};

static const struct andiron_options kubernetes = ANDIRON_OPTIONS(kubernetes_options),
				    process = ANDIRON_OPTIONS(process_options),
				    relabel = ANDIRON_OPTIONS(relabel_options),
				    ebpf = ANDIRON_OPTIONS(ebpf_options),
				    writer = ANDIRON_OPTIONS(write_options),
				    pass = ANDIRON_OPTIONS(pass_options),
				    symbolize = ANDIRON_OPTIONS(symbolize_options),
				    any = ANDIRON_OPTIONS(lenient_options),
				    count = ANDIRON_OPTIONS(count_options),
				    listener = ANDIRON_OPTIONS(listener_options),
				    patient = ANDIRON_OPTIONS(patient_options),
				    spooling = ANDIRON_OPTIONS(spooling_options),
				    newer = ANDIRON_OPTIONS(any_options);

static const struct andiron_export targets_export[] = {{"targets", ANDIRON_EXPORT_TARGETS, 0, ""}};
static const struct andiron_export output_export[] = {{"output", ANDIRON_EXPORT_TARGETS, 0, ""},
						      {"rules", ANDIRON_EXPORT_CAPSULE, 0, ""}};
static const struct andiron_export receiver_export[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, ""}};
static const struct andiron_export value_export[] = {{"data", ANDIRON_EXPORT_VALUE, 0, ""}};
static const struct andiron_export content_export[] = {{"content", ANDIRON_EXPORT_VALUE, 0, ""}};
static const struct andiron_export both_exports[] = {{"receiver", ANDIRON_EXPORT_RECEIVER, 0, ""},
						     {"targets", ANDIRON_EXPORT_TARGETS, 0, ""}};

/* As pyroscope.ebpf's would: a map is meant where "false" stands. */
static int32_t validate_ebpf(const struct andiron_host *host, const struct andiron_value *args,
			     struct andiron_report *report)
{
	static const char text[] = "default_target is a map of labels; the string is ignored";
	const struct andiron_value *target = value_get(args, "default_target");

	if (target && target->kind != ANDIRON_VALUE_MAP)
		host->report_add(report, ANDIRON_REPORT_WARNING, target, text, strlen(text));
	return 0;
}

static int32_t validate_file(const struct andiron_host *host, const struct andiron_value *args,
			     struct andiron_report *report)
{
	host->report_add(report, ANDIRON_REPORT_ERROR, NULL, "no path", 7);
	return 0;
}

static int32_t validate_count(const struct andiron_host *host, const struct andiron_value *args,
			      struct andiron_report *report)
{
	const struct andiron_value *v = value_get(args, "text");

	if (v && str_is((struct str){v->string.ptr, v->string.len}, "odd"))
		host->report_add(report, ANDIRON_REPORT_ERROR, v, "that is odd", 11);
	return 0;
}

#define COMPONENT(name_, options_, ...)                                                            \
	{                                                                                          \
		.size = sizeof(struct andiron_component), .name = (name_), .options = (options_),  \
		__VA_ARGS__                                                                        \
	}
#define EXPORTS(array) .exports = (array), .n_exports = COUNT(array)

static const struct andiron_component components[] = {
	COMPONENT("andiron.clock", &no_options, .flags = ANDIRON_COMPONENT_SERVICE,
		  .offers = (const char *const[]){"andiron.clock/1", NULL}),
	COMPONENT("andiron.events", &no_options, .flags = ANDIRON_COMPONENT_SERVICE,
		  .offers = (const char *const[]){"andiron.events/1", NULL},
		  .needs = (const char *const[]){"andiron.clock/1", NULL}),
	COMPONENT("discovery.kubernetes", &kubernetes, EXPORTS(targets_export)),
	COMPONENT("discovery.process", &process, EXPORTS(targets_export),
		  .needs = (const char *const[]){"andiron.events/1", "andiron.objects/1", NULL}),
	COMPONENT("discovery.relabel", &relabel, EXPORTS(output_export)),
	COMPONENT("import.http", &fetching, EXPORTS(content_export)),
	COMPONENT("profile.file", &no_options, EXPORTS(receiver_export),
		  .flags = ANDIRON_COMPONENT_WRITER | ANDIRON_COMPONENT_WANTS_NAMES,
		  .validate = validate_file),
	COMPONENT("pyroscope.ebpf", &ebpf, .flags = ANDIRON_COMPONENT_RAW_FRAMES,
		  .validate = validate_ebpf),
	COMPONENT("pyroscope.relabel", &pass, EXPORTS(receiver_export)),
	COMPONENT("pyroscope.write", &writer, EXPORTS(receiver_export),
		  .flags = ANDIRON_COMPONENT_WRITER | ANDIRON_COMPONENT_WANTS_NAMES),
	COMPONENT("raw.write", &no_options, EXPORTS(receiver_export),
		  .flags = ANDIRON_COMPONENT_WRITER),
	COMPONENT("status.http", &listener, .flags = ANDIRON_COMPONENT_NO_LABEL),
	COMPONENT("test.any", &any, EXPORTS(targets_export)),
	COMPONENT("test.both", &ebpf, EXPORTS(both_exports)),
	COMPONENT("test.count", &count, .validate = validate_count),
	COMPONENT("test.newer", &newer),
	COMPONENT("test.patient", &patient),
	COMPONENT("test.spool", &spooling),
	COMPONENT("test.single", &no_options, .flags = ANDIRON_COMPONENT_NO_LABEL,
		  EXPORTS(targets_export)),
	COMPONENT("test.value", &any, EXPORTS(value_export)),
	COMPONENT("test.wanting", &any, EXPORTS(targets_export),
		  .wants = (const char *const[]){"andiron.ev", "andiron.moon", NULL}),
	/* Last, so that it can be left out. */
	COMPONENT("profile.symbolize", &symbolize, EXPORTS(receiver_export),
		  .flags = ANDIRON_COMPONENT_SYMBOLIZER),
};

static struct registered_component registered[COUNT(components)];

size_t registry_components(const struct registry *r, const struct registered_component **ret)
{
	for (size_t i = 0; i < COUNT(components); i++)
		registered[i].component = &components[i];
	*ret = registered;
	return r->no_plugin ? 0 : COUNT(components) - (r->no_symbolizer ? 1 : 0);
}

int registry_require(struct registry *r, const struct str *names, size_t n)
{
	r->n_all += !names;
	return 0;
}

const struct registered_component *registry_find(const struct registry *r, struct str name)
{
	const struct registered_component *all;
	size_t n = registry_components(r, &all);

	for (size_t i = 0; i < n && !(r->no_import && str_is(name, "import.http")); i++)
		if (str_is(name, all[i].component->name))
			return &all[i];
	return NULL;
}

const struct registered_component *registry_offering(const struct registry *r, struct str id)
{
	const struct registered_component *all;
	size_t n = registry_components(r, &all);

	for (size_t i = 0; i < n; i++)
		for (const char *const *o = all[i].component->offers; o && *o; o++)
			if (str_is(id, *o))
				return &all[i];
	return NULL;
}

size_t registry_plugins(const struct registry *r, const struct registered_plugin **ret)
{
	static const struct registered_plugin plugins[] = {
		{.path = "/plugins/andiron-good.so"},
		{.path = "/plugins/andiron-half.so", .refused = "the file is cut off"},
	};

	*ret = plugins;
	return COUNT(plugins);
}

const char *registry_searched(const struct registry *r)
{
	return "/plugins\n/elsewhere (does not exist)";
}

void value_print(const struct andiron_value *v, FILE *out)
{
	const char *separator = "";

	switch (v->kind) {
	case ANDIRON_VALUE_NULL:
		fputs("null", out);
		break;
	case ANDIRON_VALUE_BOOL:
		fputs(v->integer ? "true" : "false", out);
		break;
	case ANDIRON_VALUE_INT:
		fprintf(out, "%lld", (long long)v->integer);
		break;
	case ANDIRON_VALUE_FLOAT:
		fprintf(out, "%gf", v->number);
		break;
	case ANDIRON_VALUE_STRING:
		fprintf(out, "\"%.*s\"", (int)v->string.len, v->string.ptr);
		break;
	case ANDIRON_VALUE_CAPSULE:
		fprintf(out, "<%.*s>", (int)v->string.len, v->string.ptr);
		break;
	default:
		fputc(v->kind == ANDIRON_VALUE_MAP ? '{' : '[', out);
		for (uint64_t i = 0; i < v->n_items; i++, separator = " ") {
			fputs(separator, out);
			if (v->kind == ANDIRON_VALUE_MAP)
				fprintf(out, "%.*s=", (int)v->keys[i].len, v->keys[i].ptr);
			value_print(&v->items[i], out);
		}
		fputc(v->kind == ANDIRON_VALUE_MAP ? '}' : ']', out);
	}
	if (v->flags & ANDIRON_VALUE_SECRET)
		fputc('?', out);
	if (v->flags & ANDIRON_VALUE_DEFAULTED)
		fputc('*', out);
}

char *diags_text(const struct diags *d, bool colour)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	diags_print(d, out, colour);
	fclose(out);
	return text;
}

static void print_plan(const struct plan *plan, FILE *out)
{
	vec_each (&plan->waiting, node)
		fprintf(out, "%s waits for %s%s\n", node->id, node->waits_for,
			node->registered ? "" : ", whatever it is");
	vec_each (&plan->nodes, node) {
		fprintf(out, "node %s%s: ", node->id, node->implicit ? " implicit" : "");
		value_print(node->args, out);
		fputc('\n', out);
	}
	vec_each (&plan->edges, e)
		fprintf(out, "edge %s.%s → %s.%s #%u\n", plan->nodes.p[e->from].id,
			e->kind == PLAN_TARGETS ? e->export_name : e->port, plan->nodes.p[e->to].id,
			e->kind == PLAN_TARGETS ? e->port : e->export_name, e->order);
	vec_each (&plan->literals, literal) {
		fprintf(out, "literal → %s.%s #%u: ", plan->nodes.p[literal->to].id, literal->port,
			literal->order);
		value_print(literal->targets, out);
		fputc('\n', out);
	}
}

char *plan_text_of(const struct source *sources, size_t n, struct registry *registry)
{
	struct diags diags = {0};
	struct plan *plan = NULL;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	int r = plan_build_with(sources, n, registry, registry->supplied, &diags, &plan);

	diags_print(&diags, out, false);
	if (r == 0 && (plan->log_level || plan->log_format))
		fprintf(out, "logging level=%s format=%s\n",
			plan->log_level ? plan->log_level : "-",
			plan->log_format ? plan->log_format : "-");
	if (r == 0)
		print_plan(plan, out);
	else if (r == -ENOMEM)
		fputs("out of memory\n", out);
	if (r == -EINVAL && !diags.n_errors)
		fputs("no reason\n", out);
	fclose(out);
	plan_free(plan);
	diags_free(&diags);
	return text;
}

char *plan_text(struct str text)
{
	struct registry registry = {false};
	struct source source = {"f", text};

	return plan_text_of(&source, 1, &registry);
}
