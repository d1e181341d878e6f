/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to an http_config. One list of rules serves `validate`, which reports all broken
 * ones, and client_config_init, which stops at the first. */
#include "abi/log.h"
#include "abi/value.h"
#include "client/options.h"

#include <errno.h>
#include <stdio.h>

/* Whether `name` was written: "member", "block.member" or deeper. */
static const struct andiron_value *given(const struct andiron_value *args, const char *name)
{
	const struct andiron_value *value;
	const char *dot;
	char head[32];

	for (; args && (dot = strchr(name, '.')); name = dot + 1) {
		snprintf(head, sizeof(head), "%.*s", (int)(dot - name), name);
		args = value_get(args, head);
	}
	value = args ? value_get(args, name) : NULL;
	return value && !(value->flags & ANDIRON_VALUE_DEFAULTED) ? value : NULL;
}

/* Where both are written: at the second. */
static const struct {
	const char *one, *other, *why;
} exclusive[] = {
	{"bearer_token", "bearer_token_file", "only one of bearer_token and bearer_token_file"},
	{"authorization.credentials", "authorization.credentials_file",
	 "only one of credentials and credentials_file"},
	{"basic_auth.password", "basic_auth.password_file",
	 "only one of password and password_file"},
	{"tls_config.ca_pem", "tls_config.ca_file", "only one of ca_pem and ca_file"},
	{"tls_config.cert_pem", "tls_config.cert_file", "only one of cert_pem and cert_file"},
	{"tls_config.key_pem", "tls_config.key_file", "only one of key_pem and key_file"},
	{"proxy_url", "proxy_from_environment", "only one of proxy_url and proxy_from_environment"},
	{"oauth2.client_secret", "oauth2.client_secret_file",
	 "only one of client_secret and client_secret_file"},
	{"oauth2.tls_config.ca_pem", "oauth2.tls_config.ca_file",
	 "only one of ca_pem and ca_file"},
	{"oauth2.tls_config.cert_pem", "oauth2.tls_config.cert_file",
	 "only one of cert_pem and cert_file"},
	{"oauth2.tls_config.key_pem", "oauth2.tls_config.key_file",
	 "only one of key_pem and key_file"},
	{"oauth2.proxy_url", "oauth2.proxy_from_environment",
	 "only one of proxy_url and proxy_from_environment"},
};

static const char *const auth_kinds[] = {"bearer_token", "bearer_token_file", "authorization",
					 "basic_auth", "oauth2"};

typedef void (*finding_fn)(void *context, const struct andiron_value *at, const char *text);

static bool is_true(const struct andiron_value *value)
{
	return value && (value->kind != ANDIRON_VALUE_BOOL || value->integer != 0);
}

static void check_auth(const struct andiron_value *args, finding_fn found, void *context)
{
	const char *first = NULL;
	char text[160];

	for (size_t i = 0; i < sizeof(auth_kinds) / sizeof(auth_kinds[0]); i++) {
		const struct andiron_value *value = given(args, auth_kinds[i]);

		if (!value)
			continue;
		/* Token and token file are one kind, and have a rule of their own. */
		if (first && !(i == 1 && strcmp(first, auth_kinds[0]) == 0)) {
			snprintf(text, sizeof(text),
				 "at most one way to authenticate: %s stands beside %s",
				 auth_kinds[i], first);
			found(context, value, text);
		}
		first = first ? first : auth_kinds[i];
	}
}

static void check_oauth2(const struct andiron_value *args, finding_fn found, void *context)
{
	const struct andiron_value *url = given(args, "oauth2.token_url");
	const char *fault = url ? http_url_fault(abi_str(url->string)) : NULL;
	char text[160];

	if (!given(args, "oauth2"))
		return;
	if (!given(args, "oauth2.client_id") || !url)
		found(context, given(args, "oauth2"), "oauth2 needs client_id and token_url");
	if (!fault)
		return;
	snprintf(text, sizeof(text), "token_url %s", fault);
	found(context, url, text);
}

/* Of a block, or of all arguments. */
static void check_pairs(const struct andiron_value *args, finding_fn found, void *context)
{
	const struct andiron_value *cert = given(args, "tls_config.cert_pem");
	const struct andiron_value *key = given(args, "tls_config.key_pem");

	cert = cert ? cert : given(args, "tls_config.cert_file");
	key = key ? key : given(args, "tls_config.key_file");
	if (!cert != !key)
		found(context, cert ? cert : key,
		      "a client certificate needs both a cert and a key");
	if (given(args, "no_proxy") && !given(args, "proxy_url") &&
	    !is_true(given(args, "proxy_from_environment")))
		found(context, given(args, "no_proxy"), "no_proxy needs proxy_url");
}

static void each_finding(const struct andiron_value *args, finding_fn found, void *context)
{
	char text[160];

	check_auth(args, found, context);
	for (size_t i = 0; i < sizeof(exclusive) / sizeof(exclusive[0]); i++) {
		const struct andiron_value *other = given(args, exclusive[i].other);

		if (!is_true(given(args, exclusive[i].one)) || !is_true(other))
			continue;
		snprintf(text, sizeof(text), "%s can be given", exclusive[i].why);
		found(context, other, text);
	}
	check_pairs(args, found, context);
	check_oauth2(args, found, context);
	if (given(args, "oauth2"))
		check_pairs(given(args, "oauth2"), found, context);
}

struct reporter {
	const struct andiron_host *host;
	struct andiron_report *report;
};

static void report_finding(void *context, const struct andiron_value *at, const char *text)
{
	struct reporter *r = context;

	abi_report(r->host, r->report, ANDIRON_REPORT_ERROR, at, "%s", text);
}

void client_check(const struct andiron_host *host, const struct andiron_value *args,
		  struct andiron_report *report)
{
	struct reporter r = {host, report};

	each_finding(args, report_finding, &r);
}

static void keep_first(void *context, const struct andiron_value *at, const char *text)
{
	struct error *err = context;

	if (!err->code)
		error_set(err, -EINVAL, "%s", text);
}

int client_headers(struct arena *arena, const struct andiron_value *map,
		   const struct http_header **ret, size_t *ret_n)
{
	struct http_header *headers;
	size_t n = 0;

	*ret = NULL;
	*ret_n = 0;
	for (size_t i = 0; map && i < map->n_items; i++)
		n += map->items[i].kind == ANDIRON_VALUE_LIST ? map->items[i].n_items : 1;
	if (!n)
		return 0;
	headers = arena_array(arena, struct http_header, n);
	if (!headers)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < map->n_items; i++) {
		const struct andiron_value *item = &map->items[i];
		bool list = item->kind == ANDIRON_VALUE_LIST;

		for (size_t k = 0; k < (list ? item->n_items : 1); k++, n++) {
			headers[n].name = arena_str(arena, abi_str(map->keys[i]));
			headers[n].value =
				arena_str(arena, abi_str((list ? &item->items[k] : item)->string));
			if (!headers[n].name.p || !headers[n].value.p)
				return -ENOMEM;
		}
	}
	*ret = headers;
	*ret_n = n;
	return 0;
}

/* Copies what `name` says into *ret; what is absent stays STR_NULL. An empty text counts as absent,
 * as it does in Alloy. */
static bool copy(struct arena *arena, const struct andiron_value *map, const char *name,
		 struct str *ret)
{
	struct str s = map ? value_str(map, name, STR_NULL) : STR_NULL;

	if (s.n == 0)
		return true;
	*ret = arena_str(arena, s);
	return ret->p != NULL;
}

static bool copy_auth(struct arena *arena, const struct andiron_value *args, struct http_config *c)
{
	const struct andiron_value *basic = value_get(args, "basic_auth");
	const struct andiron_value *authorization = value_get(args, "authorization");

	return copy(arena, args, "bearer_token", &c->bearer_token) &&
	       copy(arena, args, "bearer_token_file", &c->bearer_token_file) &&
	       copy(arena, basic, "username", &c->basic_username) &&
	       copy(arena, basic, "password", &c->basic_password) &&
	       copy(arena, basic, "password_file", &c->basic_password_file) &&
	       copy(arena, authorization, "type", &c->authorization_type) &&
	       copy(arena, authorization, "credentials", &c->authorization_credentials) &&
	       copy(arena, authorization, "credentials_file", &c->authorization_credentials_file);
}

static bool copy_tls(struct arena *arena, const struct andiron_value *tls, struct http_config *c)
{
	c->insecure_skip_verify = tls && value_bool(tls, "insecure_skip_verify", false);
	return copy(arena, tls, "ca_pem", &c->ca_pem) && copy(arena, tls, "ca_file", &c->ca_file) &&
	       copy(arena, tls, "cert_pem", &c->cert_pem) &&
	       copy(arena, tls, "cert_file", &c->cert_file) &&
	       copy(arena, tls, "key_pem", &c->key_pem) &&
	       copy(arena, tls, "key_file", &c->key_file) &&
	       copy(arena, tls, "server_name", &c->server_name) &&
	       copy(arena, tls, "min_version", &c->min_version);
}

/* Parameters in which the server is asked for more than the grant. */
static bool make_form(struct arena *arena, const struct andiron_value *block, struct str *ret)
{
	const struct andiron_value *scopes = value_get(block, "scopes");
	const struct andiron_value *more = value_get(block, "endpoint_params");
	struct buf b = BUF_NULL;

	for (size_t i = 0; scopes && i < scopes->n_items; i++) {
		buf_str_append(&b, i ? STR("%20") : STR("&scope="));
		buf_percent_append(&b, abi_str(scopes->items[i].string), "");
	}
	for (size_t i = 0; more && i < more->n_items; i++) {
		buf_putc(&b, '&');
		buf_percent_append(&b, abi_str(more->keys[i]), "");
		buf_putc(&b, '=');
		buf_percent_append(&b, abi_str(more->items[i].string), "");
	}
	*ret = b.failed ? STR_NULL : arena_str(arena, b.n ? buf_str(&b) : STR(""));
	buf_free(&b);
	return ret->p;
}

static bool copy_oauth2(struct arena *arena, const struct andiron_value *block,
			struct http_config *c)
{
	struct http_oauth2 *o = block ? arena_array(arena, struct http_oauth2, 1) : NULL;

	if (!block || !o)
		return !block;
	c->oauth2 = o;
	o->server.proxy_from_environment = value_bool(block, "proxy_from_environment", false);
	o->server.enable_http2 = true;
	return copy(arena, block, "token_url", &o->token_url) &&
	       copy(arena, block, "client_id", &o->client_id) &&
	       copy(arena, block, "client_secret", &o->client_secret) &&
	       copy(arena, block, "client_secret_file", &o->client_secret_file) &&
	       copy(arena, block, "proxy_url", &o->server.proxy_url) &&
	       copy(arena, block, "no_proxy", &o->server.no_proxy) &&
	       client_headers(arena, value_get(block, "proxy_connect_header"),
			      &o->server.proxy_headers, &o->server.n_proxy_headers) == 0 &&
	       copy_tls(arena, value_get(block, "tls_config"), &o->server) &&
	       make_form(arena, block, &o->form);
}

int client_config_init(struct client_config *ret, const struct andiron_value *args,
		       struct error *err)
{
	struct client_config c = {.arena = ARENA_NULL};
	struct error first = ERROR_NULL;

	each_finding(args, keep_first, &first);
	if (first.code)
		return error_set(err, first.code, "%s", first.text);
	c.http.proxy_from_environment = value_bool(args, "proxy_from_environment", false);
	c.http.follow_redirects = value_bool(args, "follow_redirects", true);
	c.http.enable_http2 = value_bool(args, "enable_http2", true);
	if (copy_auth(&c.arena, args, &c.http) &&
	    copy_oauth2(&c.arena, value_get(args, "oauth2"), &c.http) &&
	    copy_tls(&c.arena, value_get(args, "tls_config"), &c.http) &&
	    copy(&c.arena, args, "proxy_url", &c.http.proxy_url) &&
	    copy(&c.arena, args, "no_proxy", &c.http.no_proxy) &&
	    client_headers(&c.arena, value_get(args, "http_headers"), &c.http.headers,
			   &c.http.n_headers) == 0 &&
	    client_headers(&c.arena, value_get(args, "proxy_connect_header"), &c.http.proxy_headers,
			   &c.http.n_proxy_headers) == 0) {
		*ret = c;
		return 0;
	}
	arena_free(&c.arena);
	return -ENOMEM;
}

void client_config_fini(struct client_config *config)
{
	arena_free(&config->arena);
	*config = (struct client_config){.arena = ARENA_NULL};
}
