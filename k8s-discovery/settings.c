/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments to settings. Contract in settings.h. */
#include "k8s-discovery/settings.h"

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
		return error_set(
			err, -ENOENT,
			"no api_server is given and this is not a pod (KUBERNETES_SERVICE_HOST and "
			"KUBERNETES_SERVICE_PORT are not set); give kubeconfig_file, or "
			"api_server with bearer_token_file and tls_config");
	server = arena_printf(&s->arena,
			      str_find(str_of(host), ':') < strlen(host) ? "https://[%s]:%s"
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

static int from_file(struct settings *s, struct str file, struct error *err)
{
	_cleanup_(freep) char *path = str_dup(file);
	int r = path ? kubeconfig_load(&s->arena, path, &s->kubeconfig, err) : -ENOMEM;

	if (r < 0 && r != -ENOMEM && r != -EINVAL)
		r = -ENOENT; /* it may come to be */
	if (r < 0)
		return r;
	s->api.server = s->kubeconfig.server;
	s->api.http = &s->kubeconfig.http;
	return 0;
}

static int read_server(struct settings *s, const struct andiron_value *args, const char *account,
		       struct error *err)
{
	struct str server = value_str(args, "api_server", STR_NULL);
	struct str file = value_str(args, "kubeconfig_file", STR_NULL);

	if (file.n)
		return from_file(s, file, err);
	if (server.n == 0)
		return in_cluster(s, account, err);
	while (server.n && server.p[server.n - 1] == '/')
		server.n--;
	return keep(s, server, &s->api.server);
}

static int own_namespace(struct settings *s, const char *account, struct str *ret,
			 struct error *err)
{
	_cleanup_(freep) char *path = NULL;
	struct buf text = BUF_NULL;
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
		r = keep(s, str_trim(buf_str(&text)), ret);
	buf_free(&text);
	return r;
}

struct names {
	VEC(struct str) list;
};

/* The namespaces to look into; one empty name for all. */
static int read_namespaces(struct settings *s, const struct andiron_value *args,
			   const char *account, struct names *ret, struct error *err)
{
	const struct andiron_value *block = value_get(args, "namespaces");
	const struct andiron_value *names = block ? value_get(block, "names") : NULL;
	struct str name = STR_NULL;
	int r = 0;

	for (uint64_t i = 0; names && i < names->n_items && r == 0; i++) {
		r = keep(s, abi_str(names->items[i].string), &name);
		if (r == 0 && !vec_push(&ret->list, name))
			r = -ENOMEM;
	}
	if (r == 0 && block && value_bool(block, "own_namespace", false)) {
		r = own_namespace(s, account, &name, err);
		if (r == 0 && !vec_push(&ret->list, name))
			r = -ENOMEM;
	}
	if (r == 0 && ret->list.n == 0 && !vec_push(&ret->list, STR_NULL))
		r = -ENOMEM;
	return r;
}

static int read_selector(struct settings *s, const struct andiron_value *args,
			 struct selection *what)
{
	const struct andiron_value *blocks = value_get(args, "selectors");
	int r = 0;

	for (uint64_t i = 0; blocks && i < blocks->n_items && r == 0; i++) {
		const struct andiron_value *block = &blocks->items[i];

		if (!str_is(value_str(block, "role", STR_NULL), kinds[what->kind].role))
			continue;
		r = keep(s, value_str(block, "label", STR("")), &what->label);
		if (r == 0)
			r = keep(s, value_str(block, "field", STR("")), &what->field);
	}
	return r;
}

/* Pods of other nodes are of no use to an agent on each node, and what a cluster of agents would
 * cost the API server grows with its square. */
static int scope_to_node(struct settings *s, struct selection *what)
{
	const char *field = what->kind == KIND_POD    ? "spec.nodeName"
			    : what->kind == KIND_NODE ? "metadata.name"
						      : NULL;
	char *both;

	if (!s->node.n || !field || str_search(what->field, STR("spec.nodeName")) < what->field.n)
		return 0;
	both = arena_printf(&s->arena, "%s=%.*s%s%.*s", field, STR_FMT(s->node),
			    what->field.n ? "," : "", STR_FMT(what->field));
	what->field = str_of(both);
	return both ? 0 : -ENOMEM;
}

static int read_annotations(struct settings *s, const struct andiron_value *args)
{
	const struct andiron_value *list = value_get(args, "annotations");
	struct str *names;

	if (!list)
		return 0;
	names = arena_array(&s->arena, struct str, list->n_items + 1);
	if (!names)
		return -ENOMEM;
	s->annotations = (struct annotations){names, list->n_items};
	for (uint64_t i = 0; i < list->n_items; i++)
		if (keep(s, abi_str(list->items[i].string), &names[i]) < 0)
			return -ENOMEM;
	return 0;
}

/* The selection points into the settings, which stay where they are. */
static int select_kind(struct settings *s, const struct andiron_value *args, enum kind kind,
		       const struct names *names)
{
	struct selection what = {.kind = kind,
				 .annotations = s->annotations.names ? &s->annotations : NULL};
	int r = read_selector(s, args, &what);

	if (r == 0)
		r = scope_to_node(s, &what);
	for (size_t i = 0; i < names->list.n && r == 0; i++) {
		what.namespace_ = names->list.p[i];
		if (!vec_push(&s->selections, what))
			r = -ENOMEM;
		if (!kinds[kind].namespaced)
			break;
	}
	return r;
}

static int read_role(struct settings *s, const struct andiron_value *args, struct error *err)
{
	const struct andiron_value *attach = value_get(args, "attach_metadata");
	struct str scope = value_str(args, "scope", STR_NULL);
	const char *node = getenv("NODE_NAME");

	s->role = role_find(value_str(args, "role", STR_NULL));
	if (!s->role)
		return error_set(err, -EINVAL, "there is no such role");
	s->options = (struct role_options){
		.attach_node = attach && value_bool(attach, "node", false),
		.attach_namespace = attach && value_bool(attach, "namespace", false),
		.ephemeral = value_bool(args, "ephemeral_containers", false),
		.without_ip = value_bool(args, "pods_without_ip", false),
	};
	s->options.attach_node &= s->role->takes_node;
	if (s->role->primary != KIND_POD)
		return 0;
	if (str_is(scope, "node") && (!node || !*node))
		return error_set(err, -ENOENT,
				 "scope is \"node\", but NODE_NAME is not set; set it in the pod's "
				 "specification from the field spec.nodeName");
	s->all_nodes = node && *node && str_is(scope, "cluster");
	return node && *node && !s->all_nodes ? keep(s, str_of(node), &s->node) : 0;
}

static int read_selections(struct settings *s, const struct andiron_value *args,
			   const char *account, struct error *err)
{
	unsigned int wanted = role_kinds(s->role, &s->options);
	struct names names = {0};
	int r = read_namespaces(s, args, account, &names, err);

	for (int kind = 0; kind < N_KINDS && r == 0; kind++)
		if (wanted & 1u << kind)
			r = select_kind(s, args, (enum kind)kind, &names);
	vec_free(&names.list);
	return r;
}

int settings_init_server(struct settings *ret, const struct andiron_value *args,
			 const char *account, struct error *err)
{
	int r;

	*ret = (struct settings){0};
	r = client_config_init(&ret->client, args, err);
	if (r < 0)
		return r;
	ret->api.http = &ret->client.http;
	r = read_server(ret, args, account, err);
	if (r < 0)
		settings_fini(ret);
	return r;
}

int settings_init(struct settings *ret, const struct andiron_value *args, const char *account,
		  struct error *err)
{
	int r = settings_init_server(ret, args, account, err);

	if (r < 0)
		return r;
	r = read_role(ret, args, err);
	if (r == 0)
		r = read_annotations(ret, args);
	if (r == 0)
		r = read_selections(ret, args, account, err);
	if (r < 0)
		settings_fini(ret);
	return r;
}

void settings_fini(struct settings *s)
{
	client_config_fini(&s->client);
	vec_free(&s->selections);
	arena_free(&s->arena);
}
