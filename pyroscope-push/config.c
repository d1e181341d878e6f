/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to a push_config. Contract in options.h. */
#include "abi/log.h"
#include "abi/value.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "http/http.h"
#include "pyroscope-push/options.h"
#include "pyroscope-push/spool/spool.h"
#include "pyroscope-push/uploads/node-bandwidth.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/utsname.h>

#define SPOOL_DEFAULT_BYTES (INT64_C(256) << 20)

static bool has_scheme(struct str url)
{
	return str_search(url, STR("://")) < url.n;
}

/* Without user and password, which must not show up in logs. */
static char *display_url(struct arena *arena, struct str url)
{
	size_t scheme = str_search(url, STR("://")) + 3;
	struct str rest = str_skip(url, scheme);
	struct str authority = http_authority(url);
	size_t at = str_rfind(authority, '@');

	if (at < authority.n)
		rest = str_skip(rest, at + 1);
	return arena_printf(arena, "%.*s%.*s", STR_FMT(str_first(url, scheme)), STR_FMT(rest));
}

static int init_names(struct push_config *c, const struct andiron_value *args,
		      struct endpoint_options *e, struct error *err)
{
	struct str url = str_trim(value_str(args, "url", STR_NULL));
	struct str name = value_str(args, "name", STR_NULL);
	struct arena *arena = &c->arena;
	const char *why;

	if (c->protocol->http2 && !has_scheme(url)) {
		bool plain = value_bool(args, "insecure", false);

		url = str_of(arena_printf(arena, "http%s://%.*s", plain ? "" : "s", STR_FMT(url)));
		if (!url.n)
			return -ENOMEM;
	}
	why = http_url_fault(url);

	if (why)
		return error_set(err, -EINVAL, "endpoint.url \"%.*s\" %s",
				 STR_FMT(str_first(url, 200)), why);
	while (url.n && url.p[url.n - 1] == '/')
		url.n--;
	e->server = arena_printf(arena, "%.*s", STR_FMT(url));
	e->url = arena_printf(arena, "%.*s%s", STR_FMT(url), c->protocol->path);
	e->shown = display_url(arena, url);
	e->name = name.n ? arena_printf(arena, "%.*s", STR_FMT(name)) : e->shown;
	return e->server && e->url && e->shown && e->name ? 0 : -ENOMEM;
}

/* FNV-1a: it is stored, so it may not be one of lib/base, which are seeded. */
static uint64_t stable_hash(uint64_t hash, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * 0x100000001b3;
	return (hash ^ 0xff) * 0x100000001b3; /* where it ends */
}

/* By URL without its secrets, name and tenant; made unique among the others. */
static void init_id(const struct push_config *c, struct endpoint_options *e)
{
	e->id = stable_hash(0xcbf29ce484222325, str_of(e->shown));
	e->id = stable_hash(e->id, str_of(e->name));
	for (size_t i = 0; i < e->n_headers; i++)
		if (str_is(e->headers[i].name, "X-Scope-OrgID"))
			e->id = stable_hash(e->id, e->headers[i].value);
	for (size_t i = 0; i < c->n_endpoints; i++)
		if (c->endpoints[i].id == e->id) {
			e->id++;
			i = SIZE_MAX; /* against all of them again */
		}
}

static int init_endpoint(struct push_config *c, const struct andiron_value *args,
			 struct endpoint_options *e, struct error *err)
{
	int rc = init_names(c, args, e, err);

	if (rc)
		return rc;
	e->timeout_ms = value_int(args, "remote_timeout", 10 * NS_PER_SEC) / NS_PER_MSEC;
	e->min_backoff_ms = value_int(args, "min_backoff_period", NS_PER_SEC / 2) / NS_PER_MSEC;
	e->max_backoff_ms = value_int(args, "max_backoff_period", 300 * NS_PER_SEC) / NS_PER_MSEC;
	e->max_retries = value_int(args, "max_backoff_retries", 10);
	e->retry_limited = value_bool(args, "retry_on_http_429", true);
	e->queue_bytes = (uint64_t)value_int(args, "queue_bytes", 32 << 20);
	e->max_age_ns = value_int(args, "max_age", c->protocol->max_age_ns);
	e->at_least_once = value_bool(args, "at_least_once", false);
	if (e->max_backoff_ms < e->min_backoff_ms)
		return error_set(err, -EINVAL,
				 "endpoint.max_backoff_period is less than min_backoff_period");
	rc = client_headers(&c->arena, value_get(args, "headers"), &e->headers, &e->n_headers);
	if (rc)
		return rc;
	init_id(c, e);
	return client_config_init(&e->client, args, err);
}

static int init_external(struct push_config *c, const struct andiron_value *map)
{
	if (!map || !map->n_items)
		return 0;
	c->external = arena_array(&c->arena, struct label, map->n_items);
	if (!c->external)
		return -ENOMEM;
	for (uint64_t i = 0; i < map->n_items; i++) {
		struct label *l = &c->external[c->n_external++];

		l->name = arena_str(&c->arena, abi_str(map->keys[i]));
		l->value = arena_str(&c->arena, abi_str(map->items[i].string));
		if (!l->name.p || !l->value.p)
			return -ENOMEM;
	}
	return 0;
}

/* The node's name: what the pod's environment says, else the host's name. */
static int init_node(struct push_config *c)
{
	const char *name = getenv("NODE_NAME");
	bool in_pod = name && *name;
	struct utsname host;

	if (!c->protocol->node_label)
		return 0;
	if (!in_pod)
		name = uname(&host) == 0 ? host.nodename : NULL;
	if (!name)
		return 0;
	c->node = (struct label){STR("node"), arena_str(&c->arena, str_of(name))};
	if (c->protocol->renames) /* OpenTelemetry's names */
		c->node.name = in_pod ? STR("k8s.node.name") : STR("host.name");
	return c->node.value.p ? 0 : -ENOMEM;
}

static int init_spool(struct push_config *c, const struct andiron_value *block, struct error *err)
{
	struct str directory;

	if (!block)
		return 0;
	directory = value_str(block, "directory", STR_NULL);
	if (!directory.n || directory.p[0] != '/')
		return error_set(err, -EINVAL, "spool.directory \"%.*s\" is not an absolute path",
				 STR_FMT(str_first(directory, 200)));
	c->spool_directory = arena_printf(&c->arena, "%.*s", STR_FMT(directory));
	c->spool_bytes = (uint64_t)value_int(block, "max_bytes", SPOOL_DEFAULT_BYTES);
	if (c->spool_bytes < SPOOL_MIN_BYTES)
		return error_set(err, -EINVAL, "spool.max_bytes is less than %llu",
				 (unsigned long long)SPOOL_MIN_BYTES);
	return c->spool_directory ? 0 : -ENOMEM;
}

/* `block` may be NULL: then all is as it is by default. */
static void init_uploads(struct push_config *c, const struct andiron_value *block)
{
	static const struct andiron_value nothing = {.kind = ANDIRON_VALUE_MAP};
	const struct andiron_value *b = block ? block : &nothing;

	c->uploads = (struct uploads_options){
		.on = c->protocol->debuginfo && value_bool(b, "upload", true),
		.all = str_is(value_str(b, "files", STR_NULL), "all"),
		.strip = value_bool(b, "strip", true),
		.max_parallel = value_int(b, "max_parallel", 2),
		.bytes_per_second = value_int(b, "bytes_per_second", 64 << 20),
		.timeout_ms = value_int(b, "timeout", 900 * NS_PER_SEC) / NS_PER_MSEC,
		.max_file_bytes = (uint64_t)value_int(b, "max_file_bytes", 1000000000),
		.max_total_bytes = (uint64_t)value_int(b, "max_total_bytes", 0),
		.share = UPLOAD_SHARE_DIRECTORY,
	};
	if (c->uploads.max_parallel < 1)
		c->uploads.max_parallel = 1;
}

static int init(struct push_config *c, const struct andiron_value *args, struct error *err)
{
	const struct andiron_value *blocks = value_get(args, "endpoint");
	int rc = init_external(c, value_get(args, "external_labels"));

	if (rc == 0)
		rc = init_node(c);
	if (rc == 0)
		rc = init_spool(c, value_get(args, "spool"), err);
	init_uploads(c, value_get(args, "debuginfo"));
	if (rc || !blocks || !blocks->n_items)
		return rc;
	if (blocks->n_items > SPOOL_MAX_ENDPOINTS)
		return error_set(err, -EINVAL, "there are more than %u endpoint blocks",
				 SPOOL_MAX_ENDPOINTS);
	c->endpoints = arena_array(&c->arena, struct endpoint_options, blocks->n_items);
	if (!c->endpoints)
		return -ENOMEM;
	for (uint64_t i = 0; rc == 0 && i < blocks->n_items; i++) {
		rc = init_endpoint(c, &blocks->items[i], &c->endpoints[i], err);
		if (rc == 0)
			c->n_endpoints++;
	}
	return rc;
}

/* otlp.write has two, of which an argument names one. */
static const struct protocol *spoken(const struct protocol *protocol,
				     const struct andiron_value *args)
{
	return protocol == &protocol_otlp && str_is(value_str(args, "protocol", STR_NULL), "grpc")
		       ? &protocol_otlp_grpc
		       : protocol;
}

int push_config_new(const struct protocol *protocol, const struct andiron_value *args,
		    struct push_config **ret, struct error *err)
{
	struct push_config *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->refs = 1;
	c->protocol = spoken(protocol, args);
	c->addresses = str_is(value_str(args, "unnamed", STR("")), "address") ||
		       (c->protocol->addresses && !value_get(args, "unnamed"));
	rc = init(c, args, err);
	if (rc) {
		push_config_release(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void push_config_release(struct push_config *c)
{
	if (!c)
		return;
	check(c->refs > 0);
	if (--c->refs)
		return;
	for (size_t i = 0; i < c->n_endpoints; i++)
		client_config_fini(&c->endpoints[i].client);
	arena_free(&c->arena);
	free(c);
}

static void check_spool(const struct andiron_host *host, const struct andiron_value *block,
			struct andiron_report *report)
{
	const struct andiron_value *directory = block ? value_get(block, "directory") : NULL;

	if (directory && !str_starts(abi_str(directory->string), STR("/")))
		abi_report(host, report, ANDIRON_REPORT_ERROR, directory,
			   "a spool's directory must be an absolute path, or the agent needs a "
			   "storage directory: --storage.path");
}

static void check_protocol(const struct andiron_host *host, const struct andiron_value *value,
			   struct andiron_report *report)
{
	if (value && !str_is(abi_str(value->string), "http") &&
	    !str_is(abi_str(value->string), "grpc"))
		abi_report(host, report, ANDIRON_REPORT_ERROR, value,
			   "protocol is \"http\" or \"grpc\"");
}

void push_check(const struct protocol *protocol, const struct andiron_host *host,
		const struct andiron_value *args, struct andiron_report *report)
{
	const struct andiron_value *blocks = value_get(args, "endpoint");
	bool takes_hosts = spoken(protocol, args)->http2;

	check_spool(host, value_get(args, "spool"), report);
	check_protocol(host, value_get(args, "protocol"), report);
	if (!blocks || !blocks->n_items)
		abi_report(host, report, ANDIRON_REPORT_WARNING, NULL,
			   "there is no endpoint block, so nothing is sent; add endpoint { url = "
			   "\"http://HOST:PORT\" }");
	for (uint64_t i = 0; blocks && i < blocks->n_items; i++) {
		const struct andiron_value *block = &blocks->items[i],
					   *url = value_get(block, "url");
		struct str text = url ? str_trim(abi_str(url->string)) : STR_NULL;
		const char *why =
			url && (has_scheme(text) || !takes_hosts) ? http_url_fault(text) : NULL;

		if (why)
			abi_report(host, report, ANDIRON_REPORT_ERROR, url, "this URL %s", why);
		if (value_int(block, "max_backoff_period", INT64_MAX) <
		    value_int(block, "min_backoff_period", 0))
			abi_report(host, report, ANDIRON_REPORT_ERROR,
				   value_get(block, "max_backoff_period"),
				   "max_backoff_period is less than min_backoff_period");
		client_check(host, block, report);
	}
}

int64_t push_backoff_ns(const struct endpoint_options *o, int64_t tries, uint64_t *random)
{
	int64_t ms = o->min_backoff_ms, half;

	check(ms >= 0 && o->max_backoff_ms >= 0);
	for (int64_t i = 1; i < tries && ms < o->max_backoff_ms; i++)
		ms *= 2;
	ms = ms < o->max_backoff_ms ? ms : o->max_backoff_ms;
	half = ms * NS_PER_MSEC / 2;
	*random = hash_u64(*random + 1);
	return half + (int64_t)(*random % (uint64_t)(half + 1));
}
