/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfig files. Contract in kubeconfig.h. libyaml makes a document of nodes, in which aliases
 * are references and not copies; all that is read of it are paths of known depth, so a file of any
 * shape costs what it weighs. */
#include "k8s-discovery/api/kubeconfig.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "k8s-discovery/api/impersonate.h"
#include "yaml/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_FILE (1u << 20)

struct load {
	struct arena *arena;
	struct str folder; /* of the file, with its slash; "" for the current one */
	const char *path;
	struct yaml_view yaml;
	struct kubeconfig *config;
	struct error *err;
};

static int keep(struct load *l, struct str text, struct str *ret)
{
	*ret = arena_str(l->arena, text);
	return ret->p ? 0 : -ENOMEM;
}

/* The text of a member, kept; nothing where it is absent or empty. */
static int text(struct load *l, yaml_node_t *map, const char *name, struct str *ret)
{
	struct str s = yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, map, name));

	return s.n ? keep(l, s, ret) : 0;
}

static int resolve(struct load *l, struct str path, struct str *ret)
{
	char *whole;

	if (path.p[0] == '/')
		return keep(l, path, ret);
	whole = arena_printf(l->arena, "%.*s%.*s", STR_FMT(l->folder), STR_FMT(path));
	*ret = str_of(whole);
	return whole ? 0 : -ENOMEM;
}

static int file_name(struct load *l, yaml_node_t *map, const char *name, struct str *ret)
{
	struct str s = yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, map, name));

	return s.n ? resolve(l, s, ret) : 0;
}

static int decode(struct load *l, const char *name, struct str in, struct str *ret)
{
	char *out = arena_alloc(l->arena, in.n / 4 * 3 + 2);
	ssize_t n = out ? base64_decode(out, in, BUF_BASE64, true) : 0;

	if (!out)
		return -ENOMEM;
	if (n < 0)
		return error_set(l->err, -EINVAL, "%s: %s is not base64", l->path, name);
	*ret = (struct str){out, (size_t)n};
	return 0;
}

/* What stands in the file itself wins over a path. */
static int data(struct load *l, yaml_node_t *map, const char *name, struct str *ret)
{
	struct str s = yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, map, name));

	return s.n ? decode(l, name, s, ret) : 0;
}

/* The item of a list of {name: …, INNER: {…}} that has this name. */
static int named(struct load *l, const char *list, const char *inner, struct str name,
		 yaml_node_t **ret)
{
	yaml_node_t *items = yaml_view_member(&l->yaml, yaml_view_root(&l->yaml), list), *item;

	for (size_t i = 0; (item = yaml_view_item(&l->yaml, items, i)); i++) {
		if (!str_eq(yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, item, "name")),
			    name))
			continue;
		*ret = yaml_view_member(&l->yaml, item, inner);
		return 0;
	}
	return error_set(l->err, -EINVAL, "%s: there is no \"%.*s\" among its %s", l->path,
			 STR_FMT(name), list);
}

static int read_cluster(struct load *l, yaml_node_t *cluster)
{
	struct http_config *http = &l->config->http;
	struct str server = yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, cluster, "server"));
	int r;

	while (server.n && server.p[server.n - 1] == '/')
		server.n--;
	if (server.n == 0)
		return error_set(l->err, -EINVAL, "%s: the cluster has no server", l->path);
	if (http_host(server).n < http_authority(server).n)
		return error_set(l->err, -EINVAL,
				 "%s: the cluster's server holds a user, whom the log would show; "
				 "put username and password into the user's part",
				 l->path);
	r = keep(l, server, &l->config->server);
	if (r == 0)
		r = data(l, cluster, "certificate-authority-data", &http->ca_pem);
	if (r == 0 && !http->ca_pem.p)
		r = file_name(l, cluster, "certificate-authority", &http->ca_file);
	if (r == 0)
		r = text(l, cluster, "tls-server-name", &http->server_name);
	if (r == 0)
		r = text(l, cluster, "proxy-url", &http->proxy_url);
	http->proxy_from_environment = !http->proxy_url.p;
	http->insecure_skip_verify =
		yaml_view_true(&l->yaml,
			       yaml_view_member(&l->yaml, cluster, "insecure-skip-tls-verify"));
	return r;
}

static int refuse_unknown(struct load *l, yaml_node_t *user)
{
	if (!yaml_view_member(&l->yaml, user, "auth-provider"))
		return 0;
	return error_set(
		l->err, -EINVAL,
		"%s: the user has auth-provider, which is not supported; use exec, a token or a "
		"certificate",
		l->path);
}

static int read_certificate(struct load *l, yaml_node_t *user)
{
	struct http_config *http = &l->config->http;
	int r = data(l, user, "client-certificate-data", &http->cert_pem);

	if (r == 0 && !http->cert_pem.p)
		r = file_name(l, user, "client-certificate", &http->cert_file);
	if (r == 0)
		r = data(l, user, "client-key-data", &http->key_pem);
	if (r == 0 && !http->key_pem.p)
		r = file_name(l, user, "client-key", &http->key_file);
	if (r == 0 &&
	    !(http->cert_pem.p || http->cert_file.p) != !(http->key_pem.p || http->key_file.p))
		r = error_set(l->err, -EINVAL,
			      "%s: a client certificate needs both a certificate and a key",
			      l->path);
	return r;
}

/* A name without a slash is looked for in PATH. */
static int find_command(struct load *l, struct str name, const char **ret)
{
	struct str path = str_of(getenv("PATH")), folder, whole;
	int r;

	if (str_find(name, '/') < name.n) {
		r = resolve(l, name, &whole);
		*ret = whole.p;
		if (r == 0 && whole.p[0] != '/')
			*ret = arena_printf(l->arena, "/proc/self/cwd/%s", whole.p);
		return r == 0 && *ret ? 0 : -ENOMEM;
	}
	while (path.n) {
		folder = str_cut(&path, ':');
		*ret = arena_printf(l->arena, "%.*s/%.*s", STR_FMT(folder), STR_FMT(name));
		if (!*ret)
			return -ENOMEM;
		if (folder.n && folder.p[0] == '/' && access(*ret, X_OK) == 0)
			return 0;
	}
	return error_set(l->err, -EINVAL, "%s: the command \"%.*s\" is not in PATH", l->path,
			 STR_FMT(name));
}

static const char **text_list(struct load *l, const char *first, yaml_node_t *list, size_t n)
{
	const char **out = arena_array(l->arena, const char *, n + 2);
	size_t used = 0;
	struct str s;

	if (!out)
		return NULL;
	if (first)
		out[used++] = first;
	for (size_t i = 0; i < n; i++) {
		if (keep(l, yaml_view_text(&l->yaml, yaml_view_item(&l->yaml, list, i)), &s) < 0)
			return NULL;
		out[used++] = s.p;
	}
	return out;
}

/* A list of {name: …, value: …}. */
static const char **variables(struct load *l, yaml_node_t *list)
{
	size_t n = yaml_view_count(list);
	const char **out = arena_array(l->arena, const char *, n + 1);

	for (size_t i = 0; out && i < n; i++) {
		yaml_node_t *item = yaml_view_item(&l->yaml, list, i);
		struct str name =
			yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, item, "name"));
		struct str value =
			yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, item, "value"));

		out[i] = arena_printf(l->arena, "%.*s=%.*s", STR_FMT(name), STR_FMT(value));
		if (!out[i])
			return NULL;
	}
	return out;
}

static int read_exec(struct load *l, yaml_node_t *exec)
{
	yaml_node_t *args = yaml_view_member(&l->yaml, exec, "args");
	struct kubeconfig_exec *e;
	struct str command = STR_NULL, version = STR_NULL;
	int r = text(l, exec, "command", &command);

	if (r == 0)
		r = text(l, exec, "apiVersion", &version);
	if (r == 0 && (!command.n || !str_starts(version, STR("client.authentication.k8s.io/"))))
		r = error_set(l->err, -EINVAL,
			      "%s: exec needs a command, and an apiVersion of "
			      "client.authentication.k8s.io",
			      l->path);
	e = r == 0 ? arena_array(l->arena, struct kubeconfig_exec, 1) : NULL;
	if (r < 0 || !e)
		return r < 0 ? r : -ENOMEM;
	e->api_version = version.p;
	e->provide_cluster_info =
		yaml_view_true(&l->yaml, yaml_view_member(&l->yaml, exec, "provideClusterInfo"));
	r = find_command(l, command, &e->command);
	if (r < 0)
		return r;
	e->argv = text_list(l, e->command, args, yaml_view_count(args));
	e->env = variables(l, yaml_view_member(&l->yaml, exec, "env"));
	if (!e->argv || !e->env)
		return -ENOMEM;
	l->config->exec = e;
	return 0;
}

static int read_user(struct load *l, yaml_node_t *user)
{
	struct http_config *http = &l->config->http;
	yaml_node_t *exec = yaml_view_member(&l->yaml, user, "exec");
	int r = refuse_unknown(l, user);

	if (r == 0)
		r = read_certificate(l, user);
	if (r == 0)
		r = impersonate_read(l->arena, &l->yaml, user, l->path, http, l->err);
	if (r == 0)
		r = file_name(l, user, "tokenFile", &http->bearer_token_file);
	if (r == 0 && !http->bearer_token_file.p)
		r = text(l, user, "token", &http->bearer_token);
	if (r == 0)
		r = text(l, user, "username", &http->basic_username);
	if (r == 0)
		r = text(l, user, "password", &http->basic_password);
	return r == 0 && exec ? read_exec(l, exec) : r;
}

/* What a program that wants to know the cluster is told of it. */
static int read_cluster_info(struct load *l, yaml_node_t *cluster)
{
	struct kubeconfig_exec *e = (struct kubeconfig_exec *)(uintptr_t)l->config->exec;

	return e && e->provide_cluster_info
		       ? text(l, cluster, "certificate-authority-data", &e->ca_data)
		       : 0;
}

static int read_context(struct load *l)
{
	yaml_node_t *root = yaml_view_root(&l->yaml), *context = NULL, *cluster = NULL,
		    *user = NULL;
	struct str name =
		yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, root, "current-context"));
	struct str user_name;
	int r;

	if (name.n == 0)
		return error_set(l->err, -EINVAL,
				 "%s has no current-context; choose one with kubectl config "
				 "use-context",
				 l->path);
	r = named(l, "contexts", "context", name, &context);
	if (r == 0)
		r = named(l, "clusters", "cluster",
			  yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, context, "cluster")),
			  &cluster);
	if (r == 0)
		r = read_cluster(l, cluster);
	user_name = yaml_view_text(&l->yaml, yaml_view_member(&l->yaml, context, "user"));
	if (r == 0 && user_name.n)
		r = named(l, "users", "user", user_name, &user);
	if (r == 0 && user)
		r = read_user(l, user);
	return r == 0 ? read_cluster_info(l, cluster) : r;
}

int kubeconfig_load(struct arena *arena, const char *path, struct kubeconfig *ret,
		    struct error *err)
{
	_cleanup_(buf_free) struct buf file = BUF_NULL;
	struct str all = str_of(path);
	struct load l = {.arena = arena, .path = path, .config = ret, .err = err};
	int r;

	*ret = (struct kubeconfig){.http = {.follow_redirects = true, .enable_http2 = true}};
	if (str_find(all, '/') < all.n)
		l.folder = str_first(all, str_rfind(all, '/') + 1);
	r = file_read(AT_FDCWD, path, &file, MAX_FILE);
	if (r < 0)
		return error_errno(err, r, "cannot read the kubeconfig file %s", path);
	r = yaml_view_init(&l.yaml, buf_str(&file), path, err);
	if (r < 0)
		return r;
	r = read_context(&l);
	yaml_view_fini(&l.yaml);
	return r;
}
