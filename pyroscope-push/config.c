/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to a push_config. Contract in options.h. */
#include "abi/log.h"
#include "abi/value.h"
#include "base/check.h"
#include "base/clock.h"
#include "options.h"

#include <errno.h>
#include <stdlib.h>

static const char *bad_url(struct str url)
{
	if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://")))
		return "must begin with http:// or https://";
	if (url.n > 4096)
		return "is longer than 4096 bytes";
	for (size_t i = 0; i < url.n; i++)
		if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f)
			return "holds a space or a control character";
	return NULL;
}

/* Without user and password, which must not show up in logs. */
static char *display_url(struct arena *arena, struct str url)
{
	size_t scheme = str_search(url, STR("://")) + 3;
	struct str rest = str_skip(url, scheme);
	struct str authority = str_first(rest, str_find(rest, '/'));
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
	const char *why = bad_url(url);

	if (why)
		return error_set(err, -EINVAL, "endpoint.url \"%.*s\" %s",
				 STR_FMT(str_first(url, 200)), why);
	while (url.n && url.p[url.n - 1] == '/')
		url.n--;
	e->url = arena_printf(arena, "%.*s%s", STR_FMT(url), c->protocol->path);
	e->name = name.n ? arena_printf(arena, "%.*s", STR_FMT(name)) : display_url(arena, url);
	return e->url && e->name ? 0 : -ENOMEM;
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
	if (e->max_backoff_ms < e->min_backoff_ms)
		return error_set(err, -EINVAL,
				 "endpoint.max_backoff_period is less than min_backoff_period");
	rc = client_headers(&c->arena, value_get(args, "headers"), &e->headers, &e->n_headers);
	return rc ? rc : client_config_init(&e->client, args, err);
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

static int init(struct push_config *c, const struct andiron_value *args, struct error *err)
{
	const struct andiron_value *blocks = value_get(args, "endpoint");
	int rc = init_external(c, value_get(args, "external_labels"));

	if (rc || !blocks || !blocks->n_items)
		return rc;
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

int push_config_new(const struct protocol *protocol, const struct andiron_value *args,
		    struct push_config **ret, struct error *err)
{
	struct push_config *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->refs = 1;
	c->protocol = protocol;
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

void push_check(const struct andiron_host *host, const struct andiron_value *args,
		struct andiron_report *report)
{
	const struct andiron_value *blocks = value_get(args, "endpoint");

	if (!blocks || !blocks->n_items)
		abi_report(host, report, ANDIRON_REPORT_WARNING, NULL,
			   "there is no endpoint block, so nothing is sent; add endpoint { url = "
			   "\"http://HOST:4040\" }");
	for (uint64_t i = 0; blocks && i < blocks->n_items; i++) {
		const struct andiron_value *block = &blocks->items[i],
					   *url = value_get(block, "url");
		const char *why = url ? bad_url(str_trim(abi_str(url->string))) : NULL;

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
