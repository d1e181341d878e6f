/* SPDX-License-Identifier: Apache-2.0 */
/* A Collector's file: what its pipelines of profiles take from the eBPF profiler, do, and send on.
 * One writer for each exporter of OTLP. Other signals and receivers stay with the Collector.
 *
 * Source: opentelemetry.io/docs/collector/configuration; exporter/otlpexporter and
 * otlphttpexporter of the Collector; processor/k8sattributesprocessor of contrib. */
#include "cli/convert/conversion.h"
#include "host/config.h"

#include <errno.h>
#include <string.h>

#define PROFILES_PATH "/v1development/profiles" /* of OTLP over HTTP */

struct collector {
	struct conversion *c;
	struct yaml_view *view;
	yaml_node_t *root;
	struct error *err;
	size_t n_profilers;
};

/* "otlp/name": the component's type. */
static struct str type_of(struct str id)
{
	return str_first(id, str_find(id, '/'));
}

static bool is_any(struct str word, const char *const *words)
{
	for (; *words; words++)
		if (settings_same_name(word, str_of(*words)))
			return true;
	return false;
}

static bool seen_before(struct yaml_view *view, yaml_node_t *list, size_t i, struct str id)
{
	while (i-- > 0)
		if (str_eq(yaml_view_text(view, yaml_view_item(view, list, i)), id))
			return true;
	return false;
}

static yaml_node_t *of(struct collector *k, const char *kind, struct str id)
{
	yaml_node_t *all = yaml_view_member(k->view, k->root, kind);

	for (size_t i = 0; yaml_view_value(k->view, all, i); i++)
		if (str_eq(yaml_view_key(k->view, all, i), id))
			return yaml_view_value(k->view, all, i);
	return NULL;
}

/* Receivers */

static int take_receiver(struct collector *k, struct str id)
{
	static const char *const profilers[] = {"profiling",      "otelreceiver", "ebpf_profiler",
						"ebpf_profiling", "profiler",     NULL};
	yaml_node_t *settings;

	if (!is_any(type_of(id), profilers)) {
		conversion_note(k->c,
				"receiver %.*s: it stays with the Collector; profiles that SDKs "
				"push are taken by pyroscope.receive_http",
				STR_FMT(id));
		return 0;
	}
	if (k->n_profilers++)
		return 0;
	settings = of(k, "receivers", id);
	return settings ? settings_add_map(&k->c->settings, otel_profiler_settings, k->view,
					   settings, k->err)
			: 0;
}

/* Processors */

static void take_pods(struct collector *k, struct str id)
{
	yaml_node_t *extract = yaml_view_member(k->view, of(k, "processors", id), "extract");

	if (k->c->pods)
		return;
	k->c->pods = true;
	conversion_copy_rule(k->c, "__meta_kubernetes_namespace", "namespace");
	conversion_copy_rule(k->c, "__meta_kubernetes_pod_name", "pod");
	conversion_copy_rule(k->c, "__meta_kubernetes_pod_container_name", "container");
	if (extract)
		conversion_note(k->c,
				"processor %.*s, extract: namespace, pod and container are taken; "
				"a rule of discovery.relabel takes any other label",
				STR_FMT(id));
}

/* The resource processor's upserts and inserts of texts become labels of every profile. */
static void take_resource(struct collector *k, struct str id)
{
	yaml_node_t *list = yaml_view_member(k->view, of(k, "processors", id), "attributes");
	struct buf *b = &k->c->sections[SECTION_LABELS];

	for (size_t i = 0; i < yaml_view_count(list); i++) {
		yaml_node_t *one = yaml_view_item(k->view, list, i);
		struct str key = yaml_view_text(k->view, yaml_view_member(k->view, one, "key"));
		struct str value = yaml_view_text(k->view, yaml_view_member(k->view, one, "value"));
		struct str action =
			yaml_view_text(k->view, yaml_view_member(k->view, one, "action"));

		if (key.n && value.p && (str_is(action, "upsert") || str_is(action, "insert"))) {
			config_quote(b, key);
			buf_str_append(b, STR(" = "));
			conversion_expression(b, value);
			buf_str_append(b, STR(",\n"));
		} else {
			conversion_note(k->c,
					"processor %.*s, %.*s: a rule of discovery.relabel or "
					"pyroscope.relabel does this",
					STR_FMT(id), STR_FMT(key));
		}
	}
}

static int take_processor(struct collector *k, struct str id)
{
	struct str type = type_of(id);

	if (is_any(type, (const char *const[]){"k8sattributes", "k8s_attributes", NULL}))
		take_pods(k, id);
	else if (is_any(type, (const char *const[]){"resource", "attributes", NULL}))
		take_resource(k, id);
	else if (is_any(type, (const char *const[]){"batch", "memorylimiter", NULL}))
		conversion_note(k->c,
				"processor %.*s: not needed; queue_bytes and the block spool of "
				"otlp.write say what may wait",
				STR_FMT(id));
	else if (is_any(type, (const char *const[]){"resourcedetection", NULL}))
		conversion_note(k->c,
				"processor %.*s: the node's name is sent by itself; "
				"external_labels of otlp.write add others",
				STR_FMT(id));
	else
		conversion_note(k->c,
				"processor %.*s: the rules of discovery.relabel and "
				"pyroscope.relabel change and drop profiles",
				STR_FMT(id));
	return 0;
}

/* Exporters */

static int put_min_version(struct conversion *c, const struct setting *s, struct error *err)
{
	struct buf version = BUF_NULL;

	buf_str_append(&version, STR("TLS"));
	for (size_t i = 0; i < s->text.n; i++)
		if (s->text.p[i] != '.')
			buf_putc(&version, s->text.p[i]);
	conversion_put(c, SECTION_TLS, "min_version", buf_str(&version));
	c->sections[SECTION_TLS].failed |= version.failed;
	buf_free(&version);
	return 0;
}

/* The endpoint and `insecure` make the URL, at the end. */
static const struct counterpart exporter_settings[] = {
	{"endpoint", IS_MOOT},
	{"profiles_endpoint", IS_MOOT},
	{"tls-insecure", IS_MOOT_BOOL},
	{"insecure", IS_MOOT_BOOL},
	{"tls-insecure_skip_verify", PUT_BOOL, SECTION_TLS, "insecure_skip_verify"},
	{"tls-ca_file", PUT_TEXT, SECTION_TLS, "ca_file"},
	{"tls-ca_pem", PUT_TEXT, SECTION_TLS, "ca_pem"},
	{"tls-cert_file", PUT_TEXT, SECTION_TLS, "cert_file"},
	{"tls-cert_pem", PUT_TEXT, SECTION_TLS, "cert_pem"},
	{"tls-key_file", PUT_TEXT, SECTION_TLS, "key_file"},
	{"tls-key_pem", PUT_TEXT, SECTION_TLS, "key_pem"},
	{"tls-server_name_override", PUT_TEXT, SECTION_TLS, "server_name"},
	{"tls-min_version", PUT_OWN, .put = put_min_version},
	{"tls-*", HAS_NONE, .ours = "see the block tls_config"},
	{"headers", PUT_MAP, SECTION_ENDPOINT, "headers"},
	{"proxy_url", PUT_TEXT, SECTION_ENDPOINT, "proxy_url"},
	{"timeout", PUT_DURATION, SECTION_ENDPOINT, "remote_timeout"},
	{"retry_on_failure-initial_interval", PUT_DURATION, SECTION_ENDPOINT, "min_backoff_period"},
	{"retry_on_failure-max_interval", PUT_DURATION, SECTION_ENDPOINT, "max_backoff_period"},
	{"retry_on_failure-max_elapsed_time", PUT_DURATION, SECTION_ENDPOINT, "max_age"},
	{"retry_on_failure-*", IS_MOOT},
	{"sending_queue-storage", HAS_NONE,
	 .ours = "the block spool of otlp.write keeps profiles on disk"},
	{"sending_queue-*", HAS_NONE, .ours = "queue_bytes says what may wait in memory"},
	{"auth-*", HAS_NONE,
	 .ours = "write basic_auth, authorization or bearer_token_file in the endpoint"},
	{"compression", IS_MOOT},
	{"encoding", HAS_NONE, .ours = "bodies are protobuf"},
	{"*", IS_MOOT},
	{0},
};

/* A server's address; NULL if there is none. `profiles_endpoint` is a whole URL, to which a
 * Collector adds nothing, and otlp.write its path. */
static struct str address_of(struct conversion *c)
{
	const struct setting *whole = settings_find(&c->settings, "profiles_endpoint");
	const struct setting *base = settings_find(&c->settings, "endpoint");

	if (!whole)
		return base ? base->text : STR_NULL;
	if (str_ends(whole->text, STR(PROFILES_PATH)))
		return str_first(whole->text, whole->text.n - strlen(PROFILES_PATH));
	conversion_note(c, "profiles_endpoint: otlp.write adds " PROFILES_PATH " to its URL");
	return whole->text;
}

/* Its settings are a list of their own, since the next exporter has the same names. */
static int convert_exporter(struct collector *k, struct str id, yaml_node_t *node, bool grpc)
{
	struct conversion *c = k->c;
	struct settings outer = c->settings;
	const struct setting *plain, *old;
	int r;

	c->settings = (struct settings){0};
	r = node ? settings_add_map(&c->settings, exporter_settings, k->view, node, k->err) : 0;
	if (r == 0) {
		plain = settings_find(&c->settings, "tls-insecure");
		old = settings_find(&c->settings, "insecure");
		conversion_url(c, address_of(c),
			       (plain && str_is(plain->text, "true")) ||
				       (old && str_is(old->text, "true")),
			       grpc ? "http://collector:4317" : "http://collector:4318",
			       "the exporter's endpoint");
		r = conversion_apply(c, k->err);
	}
	conversion_end_writer(c, "otlp.write", id, grpc ? "grpc" : "http");
	settings_fini(&c->settings);
	c->settings = outer;
	return r;
}

static int take_exporter(struct collector *k, struct str id)
{
	struct str type = type_of(id);
	bool grpc = is_any(type, (const char *const[]){"otlp", "otlpgrpc", NULL});

	if (grpc || is_any(type, (const char *const[]){"otlphttp", NULL}))
		return convert_exporter(k, id, of(k, "exporters", id), grpc);
	conversion_note(k->c, "exporter %.*s: profiles go out by %s", STR_FMT(id),
			is_any(type, (const char *const[]){"debug", "file", "logging", NULL})
				? "profile.file, if they are to be looked at here"
				: "otlp.write, pyroscope.write and parca.write only");
	return 0;
}

/* What a pipeline names under `kind`, each once. */
static int take_each(struct collector *k, yaml_node_t *pipeline, const char *kind,
		     int (*take)(struct collector *k, struct str id))
{
	yaml_node_t *list = yaml_view_member(k->view, pipeline, kind);
	int r = 0;

	for (size_t i = 0; i < yaml_view_count(list) && r == 0; i++) {
		struct str id = yaml_view_text(k->view, yaml_view_item(k->view, list, i));

		if (id.n && !seen_before(k->view, list, i, id))
			r = take(k, id);
	}
	return r;
}

static int take_pipeline(struct collector *k, yaml_node_t *pipeline)
{
	int r = take_each(k, pipeline, "receivers", take_receiver);

	if (r == 0)
		r = take_each(k, pipeline, "processors", take_processor);
	return r == 0 ? take_each(k, pipeline, "exporters", take_exporter) : r;
}

static yaml_node_t *below(struct yaml_view *view, yaml_node_t *node, const char *const *names)
{
	for (; *names; names++)
		node = yaml_view_member(view, node, *names);
	return node;
}

/* One pipeline is converted. Of a second one the labels would be the first one's, too. */
int convert_collector(struct conversion *c, struct yaml_view *view, struct error *err)
{
	struct collector k = {c, view, yaml_view_root(view), err, 0};
	yaml_node_t *pipelines =
		below(view, k.root, (const char *const[]){"service", "pipelines", NULL});
	struct str level =
		yaml_view_text(view, below(view, k.root,
					   (const char *const[]){"service", "telemetry", "logs",
								 "level", NULL}));
	size_t n = 0;
	int r = 0;

	if (level.n)
		conversion_put(c, SECTION_LOGGING, "level", level);
	for (size_t i = 0; yaml_view_value(view, pipelines, i) && r == 0; i++) {
		struct str id = yaml_view_key(view, pipelines, i);

		if (!str_is(type_of(id), "profiles"))
			conversion_note(c, "pipeline %.*s: it stays with the Collector",
					STR_FMT(id));
		else if (n++)
			conversion_note(c,
					"pipeline %.*s: only the first pipeline of profiles is "
					"converted",
					STR_FMT(id));
		else
			r = take_pipeline(&k, yaml_view_value(view, pipelines, i));
	}
	if (r == 0 && !n)
		r = error_set(
			err, -EINVAL,
			"service.pipelines has no pipeline of profiles, so there is nothing to "
			"convert");
	if (r == 0 && !k.n_profilers)
		r = error_set(err, -EINVAL,
			      "no pipeline of profiles has the eBPF profiler's receiver "
			      "(\"profiling\"), so there is nothing to convert");
	return r;
}
