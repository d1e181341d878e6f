/* SPDX-License-Identifier: Apache-2.0 */
/* parca-agent: its flags, which may also stand in its file, and the file's relabel rules.
 *
 * Its rules see each process of the node, with the labels of its container; what they drop is not
 * profiled. So the result discovers every process, joins the pods where a rule looks at them, and
 * profiles these targets only. Labels of a thread or CPU are in no target here. Without rules no
 * process is told from others, and nothing is discovered.
 *
 * Source: github.com/parca-dev/parca-agent, flags/flags.go and config/config.go, 0.49. */
#include "cli/convert/conversion.h"
#include "host/config.h"

#include <errno.h>
#include <string.h>

static int put_node(struct conversion *c, const struct setting *s, struct error *err)
{
	struct buf *b = &c->sections[SECTION_LABELS];

	buf_str_append(b, STR("\"node\" = "));
	conversion_expression(b, s->text);
	buf_str_append(b, STR(",\n"));
	return 0;
}

static int put_http_address(struct conversion *c, const struct setting *s, struct error *err)
{
	conversion_note(c, "%.*s: run it by `andiron run --server.http.listen-addr=%.*s …`",
			STR_FMT(s->name), STR_FMT(s->text));
	return 0;
}

static int put_format(struct conversion *c, const struct setting *s, struct error *err)
{
	if (str_is(s->text, "otlp"))
		conversion_note(c,
				"%.*s=otlp: write otlp.write in place of parca.write, if what "
				"takes the profiles is not Parca",
				STR_FMT(s->name));
	return 0;
}

/* The setting by its name, or by its former one. */
static const struct setting *find_of(const struct conversion *c, const char *name,
				     const char *former)
{
	const struct setting *found = settings_find(&c->settings, name);

	return found ? found : settings_find(&c->settings, former);
}

/* Of two tokens its calls carry that of the file: gRPC puts one credential over the other. */
static int put_token(struct conversion *c, const struct setting *s, struct error *err)
{
	const struct setting *file =
		find_of(c, "remote-store-bearer-token-file", "bearer-token-file");

	if (file && file->text.n)
		conversion_note(c, "%.*s: left out, since %.*s is used in its place",
				STR_FMT(s->name), STR_FMT(file->name));
	else
		conversion_put(c, SECTION_ENDPOINT, "bearer_token", s->text);
	return 0;
}

#define ALWAYS "not needed; it is always so here"
#define ITSELF "not needed; memory is sized by the machine"

/* Address and `insecure` make the URL, at the end. */
static const struct counterpart parca_agent_settings[] = {
	{"remote-store-address", IS_MOOT},
	{"remote-store-insecure", IS_MOOT_BOOL},
	{"remote-store-bearer-token", PUT_OWN, .put = put_token},
	{"remote-store-bearer-token-file", PUT_TEXT, SECTION_ENDPOINT, "bearer_token_file"},
	{"remote-store-insecure-skip-verify", PUT_BOOL, SECTION_TLS, "insecure_skip_verify"},
	{"remote-store-client-cert", PUT_TEXT, SECTION_TLS, "cert_file"},
	{"remote-store-client-key", PUT_TEXT, SECTION_TLS, "key_file"},
	{"remote-store-grpc-headers", PUT_MAP, SECTION_ENDPOINT, "headers"},
	{"remote-store-rpc-unary-timeout", PUT_DURATION, SECTION_ENDPOINT, "remote_timeout"},
	{"remote-store-format", PUT_OWN, .put = put_format},
	{"remote-store-use-v2-schema", IS_MOOT_BOOL},
	{"remote-store-rpc-logging-enable", HAS_NONE_BOOL, .ours = "see the block logging"},
	{"remote-store-*", HAS_NONE, .ours = "endpoint and spool have options of their own"},
	/* Before its 0.10. */
	{"store-address", IS_MOOT},
	{"insecure", IS_MOOT_BOOL},
	{"bearer-token", PUT_OWN, .put = put_token},
	{"bearer-token-file", PUT_TEXT, SECTION_ENDPOINT, "bearer_token_file"},
	{"insecure-skip-verify", PUT_BOOL, SECTION_TLS, "insecure_skip_verify"},
	{"node", PUT_OWN, .put = put_node},
	{"metadata-external-labels", PUT_MAP, SECTION_LABELS},
	{"metadata-external-label", PUT_MAP, SECTION_LABELS}, /* in parca-agent's manifests */
	{"external-label", PUT_MAP, SECTION_LABELS},          /* before its 0.10 */
	{"metadata-container-runtime-socket-path", HAS_NONE,
	 .ours = "containers are told apart by their cgroups, without the runtime"},
	{"metadata-disable-*", IS_MOOT_BOOL},
	{"metadata-enable-process-cmdline", IS_MOOT_BOOL},
	{"profiling-cpu-sampling-frequency", PUT_NUMBER, SECTION_SAMPLER, "sample_rate"},
	{"profiling-duration", PUT_DURATION, SECTION_SAMPLER, "collect_interval"},
	{"profiling-probabilistic-*", HAS_NONE, .ours = "profiling is not probabilistic"},
	{"profiling-enable-error-frames", HAS_NONE_BOOL, .ours = ALWAYS},
	{"profiling-*", IS_MOOT},
	{"debuginfo-strip", PUT_BOOL, SECTION_DEBUGINFO, "strip"},
	{"debuginfo-upload-disable", PUT_NOT, SECTION_DEBUGINFO, "upload"},
	{"debuginfo-upload-max-parallel", PUT_NUMBER, SECTION_DEBUGINFO, "max_parallel"},
	{"debuginfo-upload-timeout-duration", PUT_DURATION, SECTION_DEBUGINFO, "timeout"},
	{"debuginfo-address", HAS_NONE, .ours = "debug files go where the profiles go"},
	{"debuginfo-directories", HAS_NONE, .ours = "debug files are found where gdb finds them"},
	{"debuginfo-compress", HAS_NONE_BOOL, .ours = "debug files are sent as they are"},
	{"debuginfo-disable-caching", IS_MOOT_BOOL},
	{"debuginfo-*", IS_MOOT},
	{"log-level", PUT_TEXT, SECTION_LOGGING, "level"},
	{"log-format", PUT_TEXT, SECTION_LOGGING, "format"},
	{"http-address", PUT_OWN, .put = put_http_address},
	{"tracers", PUT_OWN, .put = conversion_tracers},
	{"local-store-directory", HAS_NONE,
	 .ours = "to write files use profile.file, or `andiron record`"},
	{"offline-mode-upload", HAS_NONE_BOOL, .ours = "`andiron push` sends files"},
	{"offline-mode-*", HAS_NONE, .ours = "a spool block of the writer keeps profiles on disk"},
	{"off-cpu-threshold", PUT_OWN, .put = conversion_off_cpu},
	{"include-env-var", HAS_NONE, .ours = "environment variables are not read"},
	{"symbolize-go", HAS_NONE_BOOL, .ours = ALWAYS},
	{"bpf-verbose-logging", HAS_NONE_BOOL, .ours = "see the block logging"},
	{"bpf-log-trace-pipe", HAS_NONE_BOOL, .ours = "see the block logging"},
	{"bpf-*", HAS_NONE, .ours = ITSELF},
	{"object-file-pool-*", IS_MOOT},
	{"memlock-rlimit", IS_MOOT},
	{"clock-sync-interval", IS_MOOT},
	{"dwarf-unwinding-*", HAS_NONE_BOOL, .ours = ALWAYS},
	{"python-unwinding-disable", PUT_NOT, SECTION_SAMPLER, "python_enabled"},
	{"java-unwinding-disable", PUT_NOT, SECTION_SAMPLER, "hotspot_enabled"},
	{"ruby-unwinding-disable", IS_MOOT_BOOL},
	{"symbolizer-jit-disable", IS_MOOT_BOOL},
	{"analytics-opt-out", HAS_NONE_BOOL, .ours = "nothing is ever reported to anybody"},
	{"telemetry-disable-panic-reporting", IS_MOOT_BOOL},
	{"telemetry-*", IS_MOOT},
	{"instrument-cuda-launch", HAS_NONE_BOOL, .ours = "GPUs are not profiled"},
	{"merge-gpu-profiles", HAS_NONE_BOOL, .ours = "GPUs are not profiled"},
	{"enable-oomprof", HAS_NONE_BOOL, .ours = "memory of killed processes is not profiled"},
	{"enable-oomprof-allocs", HAS_NONE_BOOL,
	 .ours = "memory of killed processes is not profiled"},
	{"otlp-logging", HAS_NONE_BOOL, .ours = "logs go to standard error"},
	{"otlp-*", HAS_NONE,
	 .ours = "andiron has no traces of itself; profiles go to such a server by otlp.write"},
	{"probe-config-file", HAS_NONE, .ours = "probes are not offered"},
	{"symbol-upload-allowlist", HAS_NONE, .ours = "see the options of the block debuginfo"},
	{"kubernetes", HAS_NONE_BOOL,
	 .ours = "for the names of pods write discovery.kubernetes, and its targets as `targets`"},
	{"config-path", IS_MOOT},
	{"*", HAS_NONE, .ours = "andiron has nothing like it"},
	{0},
};

/* A label that parca-agent's rules may look at, and what has its value here. */
static const struct {
	const char *theirs, *ours; /* NULL: by a rule of its own */
} labels[] = {
	{"__meta_process_pid", "__process_pid__"},
	{"__meta_process_cmdline", "__meta_process_commandline"},
	{"__meta_process_cgroup", "__meta_process_cgroup_path"},
	{"__meta_systemd_unit", "__meta_process_systemd_unit"},
	{"__meta_system_systemd_unit", "__meta_process_systemd_unit"},
	{"comm", "__meta_process_comm"},
	{"__meta_process_executable_name", NULL},
};

static void put_program_rule(struct conversion *c)
{
	if (str_search(buf_str(&c->rules), STR("\"__meta_process_executable_name\"\n}")) <
	    c->rules.n)
		return;
	buf_str_append(&c->rules, STR("rule {\nsource_labels = [\"__meta_process_exe\"]\n"
				      "regex = \"(?:.*/)?([^/]+)\"\n"
				      "target_label = \"__meta_process_executable_name\"\n}\n"));
}

static const char *const absent[] = {
	"__meta_thread_",      "__meta_cpu",    "__meta_env_var_", "__meta_process_executable_",
	"__meta_process_ppid", "__meta_agent_", "__meta_system_"};

/* Our name of a label; a NULL str if no target has it. */
static struct str label_here(struct conversion *c, struct str name)
{
	c->pods |= str_starts(name, STR("__meta_kubernetes_"));
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (str_is(name, labels[i].theirs)) {
			if (!labels[i].ours)
				return name;
			c->cgroups |= strcmp(labels[i].ours, "__meta_process_cgroup_path") == 0;
			return str_of(labels[i].ours);
		}
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (str_starts(name, str_of(absent[i])))
			return STR_NULL;
	return name;
}

struct rules {
	struct conversion *c;
	struct yaml_view *view;
	size_t n; /* from 1, for messages */
};

static void put_rule_text(struct buf *rule, const char *name, struct str text)
{
	if (!text.p)
		return;
	buf_printf(rule, "%s = ", name);
	config_quote(rule, text);
	buf_putc(rule, '\n');
}

/* False if one of them is in no target. */
static bool put_sources(struct rules *r, yaml_node_t *sources, struct buf *rule)
{
	size_t n = yaml_view_count(sources);

	if (!n)
		return true;
	buf_str_append(rule, STR("source_labels = ["));
	for (size_t i = 0; i < n; i++) {
		struct str name = yaml_view_text(r->view, yaml_view_item(r->view, sources, i));
		struct str here = label_here(r->c, name);

		if (!here.p) {
			conversion_note(r->c,
					"rule %zu of relabel_configs: no target has %.*s; targets "
					"are processes and containers",
					r->n, STR_FMT(name));
			return false;
		}
		if (str_is(name, "__meta_process_executable_name"))
			put_program_rule(r->c);
		buf_str_append(rule, i ? STR(", ") : STR(""));
		config_quote(rule, here);
	}
	buf_str_append(rule, STR("]\n"));
	return true;
}

static void put_rule(struct rules *r, yaml_node_t *node)
{
	static const char *const texts[] = {"separator", "regex", "target_label", "replacement",
					    "action"};
	struct buf rule = BUF_NULL;
	struct str modulus = yaml_view_text(r->view, yaml_view_member(r->view, node, "modulus"));
	struct str regex = yaml_view_text(r->view, yaml_view_member(r->view, node, "regex"));
	uint64_t number;

	if (put_sources(r, yaml_view_member(r->view, node, "source_labels"), &rule)) {
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			put_rule_text(&rule, texts[i],
				      yaml_view_text(r->view,
						     yaml_view_member(r->view, node, texts[i])));
		if (str_u64(modulus, &number))
			buf_printf(&rule, "modulus = %llu\n", (unsigned long long)number);
		r->c->pods |= str_search(regex, STR("__meta_kubernetes_")) < regex.n;
		buf_printf(&r->c->rules, "rule {\n%.*s}\n", STR_FMT(buf_str(&rule)));
		r->c->rules.failed |= rule.failed;
	}
	buf_free(&rule);
}

static int read_rules(struct conversion *c, struct yaml_view *view, yaml_node_t *list,
		      struct error *err)
{
	struct rules r = {c, view, 0};

	if (list && list->type != YAML_SEQUENCE_NODE)
		return error_set(err, -EINVAL, "line %zu: relabel_configs is no list of rules",
				 list->start_mark.line + 1);
	for (r.n = 1; r.n <= yaml_view_count(list); r.n++) {
		yaml_node_t *node = yaml_view_item(view, list, r.n - 1);

		if (!node || node->type != YAML_MAPPING_NODE)
			return error_set(err, -EINVAL,
					 "rule %zu of relabel_configs is no map of its fields",
					 r.n);
		put_rule(&r, node);
	}
	c->processes = c->only_targets = c->rules.n > 0;
	return 0;
}

/* The file's other members are flags. The list of rules is none of them. */
static int read_file(struct conversion *c, const char *path, struct str text, struct error *err)
{
	struct yaml_view view;
	yaml_node_t *root;
	int r = yaml_view_init(&view, text, path, err);

	if (r < 0)
		return r;
	root = yaml_view_root(&view);
	if (root && root->type != YAML_MAPPING_NODE)
		r = error_set(err, -EINVAL, "%s is no YAML map, as parca-agent's file is", path);
	if (r == 0)
		r = conversion_check_file(&view, path, err);
	for (size_t i = 0; r == 0 && yaml_view_value(&view, root, i); i++) {
		struct str key = yaml_view_key(&view, root, i);

		if (str_is(key, "relabel_configs"))
			r = read_rules(c, &view, yaml_view_value(&view, root, i), err);
		else
			r = settings_add_member(&c->settings, parca_agent_settings, &view, root, i,
						err);
	}
	yaml_view_fini(&view);
	return r;
}

static bool says_true(const struct setting *s)
{
	return s && !str_is(s->text, "false") && !str_is(s->text, "0");
}

int convert_parca_agent(struct conversion *c, const char *path, struct str text, int argc,
			char **argv, struct error *err)
{
	const struct setting *address, *insecure;
	int r = text.n ? read_file(c, path, text, err) : 0;

	c->from = "parca-agent";
	if (r == 0)
		r = settings_add_flags(&c->settings, parca_agent_settings, argc, argv, err);
	if (r < 0)
		return r;
	address = find_of(c, "remote-store-address", "store-address");
	insecure = find_of(c, "remote-store-insecure", "insecure");
	conversion_url(c, address ? address->text : STR_NULL, says_true(insecure),
		       "http://parca:7070", "--remote-store-address");
	r = conversion_apply(c, err);
	conversion_default(c, "sample_rate", "19");
	conversion_default(c, "collect_interval", "\"5s\"");
	conversion_end_writer(c, "parca.write", STR("server"), NULL);
	return r;
}
