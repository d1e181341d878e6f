/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenTelemetry eBPF profiler: its flags, its file of flags, or a Collector's file where it is
 * a receiver.
 *
 * Source: github.com/open-telemetry/opentelemetry-ebpf-profiler, cli_flags.go and
 * collector/config. */
#include "cli/convert/conversion.h"

#include <errno.h>
#include <string.h>

static int put_verbose(struct conversion *c, const struct setting *s, struct error *err)
{
	if (str_is(s->text, "true"))
		conversion_put(c, SECTION_LOGGING, "level", STR("debug"));
	return 0;
}

/* The collector's address and `disable-tls` make the URL, at the end. */
const struct counterpart otel_profiler_settings[] = {
	{"collection-agent", IS_MOOT},
	{"disable-tls", IS_MOOT_BOOL},
	{"samples-per-second", PUT_NUMBER, SECTION_SAMPLER, "sample_rate"},
	{"reporter-interval", PUT_DURATION, SECTION_SAMPLER, "collect_interval"},
	{"reporter-jitter", IS_MOOT},
	{"t", PUT_OWN, .put = conversion_tracers},
	{"tracers", PUT_OWN, .put = conversion_tracers},
	{"v", PUT_OWN_BOOL, .put = put_verbose},
	{"verbose", PUT_OWN_BOOL, .put = put_verbose},
	{"verbose-mode", PUT_OWN_BOOL, .put = put_verbose},
	{"off-cpu-threshold", PUT_OWN, .put = conversion_off_cpu},
	{"probabilistic-*", HAS_NONE, .ours = "profiling is not probabilistic"},
	{"send-error-frames", HAS_NONE_BOOL, .ours = "not needed; it is always so here"},
	{"send-idle-frames", HAS_NONE_BOOL, .ours = "an idle CPU is not sampled"},
	{"include-env-vars", HAS_NONE, .ours = "environment variables are not read"},
	{"env-vars", HAS_NONE, .ours = "environment variables are not read"},
	{"load-probe", HAS_NONE_BOOL, .ours = "probes are not offered"},
	{"probe-link*", HAS_NONE, .ours = "probes are not offered"},
	{"uprobe-link*", HAS_NONE, .ours = "probes are not offered"},
	{"pprof", HAS_NONE, .ours = "andiron profiles itself as any process"},
	{"map-scale-factor", HAS_NONE, .ours = "not needed; memory is sized by the machine"},
	{"go-labels-map-scale-factor", IS_MOOT},
	{"monitor-interval", IS_MOOT},
	{"clock-sync-interval", IS_MOOT},
	{"bpf-log-level", IS_MOOT},
	{"bpf-verifier-log-level", IS_MOOT},
	{"no-kernel-version-check", IS_MOOT_BOOL},
	{"max-grpc-retries", IS_MOOT},
	{"max-rpc-msg-size", IS_MOOT},
	{"copyright", IS_MOOT_BOOL},
	{"version", IS_MOOT_BOOL},
	{"config", IS_MOOT},
	{0},
};

/* A flag and its value on each line; `#` begins a comment. */
static int read_plain(struct conversion *c, const char *path, struct str text, struct error *err)
{
	int r = 0;

	for (size_t line = 1; text.n && r == 0; line++) {
		struct str value = str_trim(str_cut(&text, '\n'));
		struct setting s = {.line = line};
		size_t comment = str_search(value, STR(" #"));

		if (!value.n || *value.p == '#')
			continue;
		value = str_trim(str_first(value, comment));
		s.name = str_cut(&value, ' ');
		s.text = str_trim(value);
		if (!str_utf8(s.name) || !str_utf8(s.text))
			return error_set(err, -EINVAL, "%s: line %zu is not UTF-8", path, line);
		r = settings_add(&c->settings, otel_profiler_settings, &s);
	}
	return r;
}

static bool is_collector(struct yaml_view *view, yaml_node_t *root)
{
	return yaml_view_member(view, root, "service") || yaml_view_member(view, root, "receivers");
}

/* Of YAML, or of none, which the profiler's own file is. */
static int read_file(struct conversion *c, const char *path, struct str text, bool *ret_collector,
		     struct error *err)
{
	struct error no_yaml = ERROR_NULL;
	struct yaml_view view;
	yaml_node_t *root;
	int r = yaml_view_init(&view, text, path, &no_yaml);

	if (r < 0)
		return r == -ENOMEM ? r : read_plain(c, path, text, err);
	root = yaml_view_root(&view);
	*ret_collector = is_collector(&view, root);
	r = conversion_check_file(&view, path, err);
	if (r < 0)
		;
	else if (*ret_collector)
		r = convert_collector(c, &view, err);
	else if (root && root->type == YAML_MAPPING_NODE)
		r = settings_add_map(&c->settings, otel_profiler_settings, &view, root, err);
	else
		r = read_plain(c, path, text, err);
	yaml_view_fini(&view);
	return r;
}

int convert_otel_profiler(struct conversion *c, const char *path, struct str text, int argc,
			  char **argv, struct error *err)
{
	const struct setting *address, *plain;
	bool collector = false;
	int r;

	c->from = "the OpenTelemetry eBPF profiler";
	r = text.n ? read_file(c, path, text, &collector, err) : 0;
	if (r == 0)
		r = settings_add_flags(&c->settings, otel_profiler_settings, argc, argv, err);
	if (r == 0)
		r = conversion_apply(c, err);
	conversion_default(c, "sample_rate", "20");
	conversion_default(c, "collect_interval", "\"5s\"");
	if (r < 0 || collector)
		return r;
	address = settings_find(&c->settings, "collection-agent");
	plain = settings_find(&c->settings, "disable-tls");
	conversion_url(c, address ? address->text : STR_NULL, plain && str_is(plain->text, "true"),
		       "http://collector:4317", "--collection-agent");
	conversion_end_writer(c, "otlp.write", STR("collector"), "grpc");
	return 0;
}
