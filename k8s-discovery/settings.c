/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments to settings. Contract in settings.h. */
#include "settings.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static int keep(struct settings *s, struct str text, struct str *ret)
{
	*ret = arena_str(&s->arena, text);
	return ret->p ? 0 : -ENOMEM;
}

/* The address of the API server from inside the cluster. */
static int in_cluster(struct settings *s, const char *account, struct error *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	struct http_config *http = &s->client.http;
	char *server, *token, *ca;

	if (!host || !port || !*host || !*port)
		return error_set(err, -ENOENT,
				 "no api_server is given and this is not a pod (KUBERNETES_SERVICE_HOST and "
				 "KUBERNETES_SERVICE_PORT are not set); give api_server, with "
				 "bearer_token_file and tls_config");
	server = arena_printf(&s->arena, str_find(str_of(host), ':') < strlen(host)
						 ? "https://[%s]:%s"
						 : "https://%s:%s",
			      host, port);
	token = arena_printf(&s->arena, "%s/token", account);
	ca = arena_printf(&s->arena, "%s/ca.crt", account);
	if (!server || !token || !ca)
		return -ENOMEM;
	s->api.server = str_of(server);
	http->bearer_token_file = str_of(token);
	http->ca_file = str_of(ca);
	return 0;
}

static int read_server(struct settings *s, const struct andiron_value *args, const char *account,
		       struct error *err)
{
	struct str server = value_str(args, "api_server", STR_NULL);

	if (server.n == 0)
		return in_cluster(s, account, err);
	while (server.n && server.p[server.n - 1] == '/')
		server.n--;
	return keep(s, server, &s->api.server);
}

static int own_namespace(struct settings *s, const char *account, struct error *err)
{
	_cleanup_(freep) char *path = NULL;
	struct buf text = BUF_NULL;
	struct str name = STR_NULL;
	int r;

	if (asprintf(&path, "%s/namespace", account) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = file_read(AT_FDCWD, path, &text, 4096);
	if (r < 0)
		error_errno(err, r, "own_namespace is asked for, but %s cannot be read", path);
	else if (str_trim(buf_str(&text)).n == 0)
		r = error_set(err, -EINVAL, "own_namespace is asked for, but %s is empty", path);
	else
		r = keep(s, str_trim(buf_str(&text)), &name);
	buf_free(&text);
	if (r == 0 && !vec_push(&s->namespaces, name))
		r = -ENOMEM;
	return r;
}

static int read_namespaces(struct settings *s, const struct andiron_value *args,
			   const char *account, struct error *err)
{
	const struct andiron_value *block = value_get(args, "namespaces");
	const struct andiron_value *names = block ? value_get(block, "names") : NULL;
	int r = 0;

	for (uint64_t i = 0; names && i < names->n_items && r == 0; i++) {
		struct str name;

		r = keep(s, abi_str(names->items[i].string), &name);
		if (r == 0 && !vec_push(&s->namespaces, name))
			r = -ENOMEM;
	}
	if (r == 0 && block && value_bool(block, "own_namespace", false))
		r = own_namespace(s, account, err);
	if (r == 0 && s->namespaces.n == 0 && !vec_push(&s->namespaces, STR("")))
		r = -ENOMEM;
	return r;
}

static int read_selectors(struct settings *s, const struct andiron_value *args)
{
	const struct andiron_value *blocks = value_get(args, "selectors");
	int r = 0;

	for (uint64_t i = 0; blocks && i < blocks->n_items && r == 0; i++) {
		r = keep(s, value_str(&blocks->items[i], "label", STR_NULL), &s->api.label_selector);
		if (r == 0)
			r = keep(s, value_str(&blocks->items[i], "field", STR_NULL),
				 &s->api.field_selector);
	}
	return r;
}

int settings_init(struct settings *ret, const struct andiron_value *args, const char *account,
		  struct error *err)
{
	int r;

	*ret = (struct settings){0};
	r = client_config_init(&ret->client, args, err);
	if (r < 0)
		return r;
	r = read_server(ret, args, account, err);
	if (r == 0)
		r = read_namespaces(ret, args, account, err);
	if (r == 0)
		r = read_selectors(ret, args);
	if (r < 0)
		settings_fini(ret);
	else
		ret->api.http = &ret->client.http;
	return r;
}

void settings_fini(struct settings *s)
{
	client_config_fini(&s->client);
	vec_free(&s->namespaces);
	arena_free(&s->arena);
}
