/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials from a program. Contract in exec.h. */
#include "k8s-discovery/api/exec.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/vec.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_NS (60 * NS_PER_SEC)
#define MAX_OUTPUT  (1u << 20)
#define RETRY_NS    NS_PER_SEC
#define LONGEST_NS  (30 * NS_PER_SEC)
#define AHEAD_NS    (60 * NS_PER_SEC) /* of their end, credentials are renewed */
#define LATEST_NS   (24 * 3600 * NS_PER_SEC)

struct exec {
	struct exec_owner owner;
	struct kubeconfig *config;
	struct arena arena; /* of the credentials in use */
	uint64_t timer;
	int64_t wait_ns;
	int64_t ran_ns; /* when the last run ended */
	bool running, orphan;
};

struct exec *exec_new(const struct exec_owner *owner, struct kubeconfig *config)
{
	struct exec *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->owner = *owner;
	e->config = config;
	e->wait_ns = RETRY_NS;
	return e;
}

static void cancel_timer(struct exec *e)
{
	if (e->timer)
		e->owner.host->host->timer_cancel(e->owner.host->instance, e->timer);
	e->timer = 0;
}

void exec_free(struct exec *e)
{
	if (!e)
		return;
	cancel_timer(e);
	e->orphan = true;
	if (e->running)
		return;
	arena_free(&e->arena);
	free(e);
}

static void run(void *context);

static void run_after(struct exec *e, int64_t ns)
{
	const struct abi_context *c = e->owner.host;

	cancel_timer(e);
	if (c->host->timer_set(c->instance, ns, 0, run, e, &e->timer) < 0)
		abi_log(c, ANDIRON_LOG_ERROR, "out of memory: credentials are not renewed");
}

static void fail(struct exec *e, const char *text)
{
	char line[768];

	snprintf(line, sizeof(line), "%s, which should give out credentials: %s",
		 e->config->exec->command, text);
	run_after(e, e->wait_ns);
	e->wait_ns = e->wait_ns * 2 < LONGEST_NS ? e->wait_ns * 2 : LONGEST_NS;
	e->owner.failed(e->owner.context, line);
}

/* "2026-01-02T03:04:05Z" */
static bool read_time(const char *text, int64_t *ret_ns)
{
	struct tm tm = {0};
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	time_t seconds;

	if (!rest || (*rest != 'Z' && *rest != '.' && *rest != '+' && *rest != '-'))
		return false;
	seconds = timegm(&tm);
	*ret_ns = (int64_t)seconds * NS_PER_SEC;
	return seconds > 0;
}

static int keep(struct arena *arena, const json_t *status, const char *name, struct str *ret)
{
	const json_t *s = json_object_get(status, name);

	*ret = STR_NULL;
	if (!json_is_string(s) || json_string_length(s) == 0)
		return 0;
	*ret = arena_str(arena, (struct str){json_string_value(s), json_string_length(s)});
	return ret->p ? 0 : -ENOMEM;
}

int exec_read(struct str output, struct arena *arena, struct http_config *http,
	      int64_t *ret_expires_ns, struct error *err)
{
	json_auto_t *root = json_loadb(output.p ? output.p : "", output.n, 0, NULL);
	const json_t *status = json_object_get(root, "status");
	const char *expires = json_string_value(json_object_get(status, "expirationTimestamp"));
	const char *kind = json_string_value(json_object_get(root, "kind"));
	struct str token, cert, key;
	int64_t expires_ns = 0;

	if (!kind || strcmp(kind, "ExecCredential") != 0 || !json_is_object(status))
		return error_set(err, -EINVAL, "it printed no ExecCredential with a status");
	if (keep(arena, status, "token", &token) < 0 ||
	    keep(arena, status, "clientCertificateData", &cert) < 0 ||
	    keep(arena, status, "clientKeyData", &key) < 0)
		return -ENOMEM;
	if ((!token.p && !cert.p) || !cert.p != !key.p)
		return error_set(
			err, -EINVAL,
			"its ExecCredential has neither a token nor a certificate with its "
			"key");
	if (expires && !read_time(expires, &expires_ns))
		return error_set(err, -EINVAL, "its expirationTimestamp is no time");
	http->bearer_token = token;
	http->cert_pem = cert;
	http->key_pem = key;
	*ret_expires_ns = expires_ns;
	return 0;
}

static void describe_end(const struct andiron_spawn_result *r, char *out, size_t n)
{
	struct str said = str_trim((struct str){r->errors.ptr, r->errors.len});

	said = str_first(said, str_find(said, '\n'));
	if (said.n > 300)
		said.n = 300;
	if (r->status == -ETIMEDOUT)
		snprintf(out, n, "it did not end within %d s", (int)(DEADLINE_NS / NS_PER_SEC));
	else if (WIFSIGNALED(r->status))
		snprintf(out, n, "it was ended by signal %d", WTERMSIG(r->status));
	else
		snprintf(out, n, "it ended with %d: %.*s", WEXITSTATUS(r->status), STR_FMT(said));
}

/* When to run it again: a while before the end of what it gave. */
static void renew(struct exec *e, int64_t expires_ns)
{
	int64_t left = expires_ns - clock_real();

	if (!expires_ns)
		return;
	left = left > 2 * AHEAD_NS ? left - AHEAD_NS : left / 2;
	if (left > LATEST_NS)
		left = LATEST_NS;
	run_after(e, left < RETRY_NS ? RETRY_NS : left);
}

static void take(struct exec *e, struct str output)
{
	struct arena arena = ARENA_NULL;
	struct error err = ERROR_NULL;
	int64_t expires_ns = 0;

	if (exec_read(output, &arena, &e->config->http, &expires_ns, &err) < 0) {
		arena_free(&arena);
		fail(e, err.code ? err.text : "out of memory");
		return;
	}
	arena_free(&e->arena);
	e->arena = arena;
	e->wait_ns = RETRY_NS;
	renew(e, expires_ns);
	e->owner.ready(e->owner.context);
}

static void ended(void *context, const struct andiron_spawn_result *result)
{
	struct exec *e = context;
	char text[512];

	e->running = false;
	e->ran_ns = clock_mono();
	if (e->orphan) {
		exec_free(e);
		return;
	}
	if (result->status == 0) {
		take(e, (struct str){result->output.ptr, result->output.len});
		return;
	}
	describe_end(result, text, sizeof(text));
	fail(e, text);
}

/* What the program is told about why it runs. To be freed. */
static char *exec_info(const struct kubeconfig *c)
{
	const struct kubeconfig_exec *x = c->exec;
	json_auto_t *cluster = NULL, *root = NULL;
	char *text, *whole = NULL;

	root = json_pack("{ss ss s{sb}}", "apiVersion", x->api_version, "kind", "ExecCredential",
			 "spec", "interactive", 0);
	if (x->provide_cluster_info) {
		cluster = json_pack("{ss ss* ss* sb}", "server", c->server.p, "tls-server-name",
				    c->http.server_name.p, "certificate-authority-data",
				    x->ca_data.p, "insecure-skip-tls-verify",
				    c->http.insecure_skip_verify);
		if (!cluster ||
		    json_object_set(json_object_get(root, "spec"), "cluster", cluster) < 0)
			return NULL;
	}
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	if (text && asprintf(&whole, "KUBERNETES_EXEC_INFO=%s", text) < 0)
		whole = NULL;
	free(text);
	return whole;
}

struct words {
	VEC(const char *) list;
};

static bool environment(const struct kubeconfig_exec *x, const char *info, struct words *ret)
{
	bool good = true;

	for (char **v = environ; *v && good; v++)
		good = vec_push(&ret->list, *v);
	for (const char *const *v = x->env; *v && good; v++)
		good = vec_push(&ret->list, *v);
	return good && vec_push(&ret->list, info) && vec_push(&ret->list, NULL);
}

static void run(void *context)
{
	struct exec *e = context;
	const struct abi_context *c = e->owner.host;
	struct andiron_spawn spawn = {.size = sizeof(spawn),
				      .argv = e->config->exec->argv,
				      .deadline_ns = DEADLINE_NS,
				      .max_output = MAX_OUTPUT};
	char *info = exec_info(e->config);
	struct words env = {0};
	int r = -ENOMEM;

	check(!e->running);
	e->timer = 0;
	if (info && environment(e->config->exec, info, &env)) {
		spawn.envp = env.list.p;
		r = c->host->spawn(c->instance, &spawn, ended, e);
	}
	free(info);
	vec_free(&env.list);
	e->running = r == 0;
	if (r < 0)
		fail(e, strerror(-r));
}

void exec_start(struct exec *e)
{
	run(e);
}

void exec_refused(struct exec *e)
{
	if (e->running || clock_mono() - e->ran_ns < RETRY_NS)
		return;
	cancel_timer(e);
	run(e);
}
