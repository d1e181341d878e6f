/* SPDX-License-Identifier: Apache-2.0 */
/* One object, asked for by name. Contract in remote.h. It is polled as in Alloy, not watched: a
 * watch of one object needs the verbs list and watch, which show every other one of its kind. */
#include "k8s-discovery/remote.h"

#include "abi/value.h"
#include "base/clock.h"
#include "k8s-discovery/api/exec.h"
#include "k8s-discovery/api/stream.h"
#include "k8s-discovery/arguments.h"
#include "k8s-discovery/entries.h"
#include "k8s-discovery/settings.h"

#include <errno.h>
#include <stdlib.h>

/* An object has at most 1 MiB of entries; base64 and what else stands in it are beside. */
#define MAX_BYTES ((uint64_t)4 << 20)

struct remote {
	struct abi_context context;
	struct settings settings;
	struct error refused; /* why it cannot be asked for at all */
	struct client_poll *poll;
	struct exec *exec; /* where a program gives out credentials */
	const char *namespace_, *name;
	size_t left_out; /* entries of the last value */
	bool secret;
};

static const char *resource(const struct remote *m)
{
	return m->secret ? "secrets" : "configmaps";
}

int32_t remote_check(const struct andiron_host *host, const struct andiron_value *args,
		     struct andiron_report *report)
{
	static const char *const names[] = {"namespace", "name"};
	const struct andiron_value *client = value_get(args, "client");

	for (size_t i = 0; i < 2; i++)
		if (value_str(args, names[i], STR("")).n == 0)
			abi_report(host, report, ANDIRON_REPORT_ERROR, value_get(args, names[i]),
				   "%s is empty", names[i]);
	if (client)
		arguments_check_server(host, client, report);
	return 0;
}

static int take(void *context, const struct http_response *response, struct error *err)
{
	struct remote *m = context;
	struct arena arena = ARENA_NULL;
	struct andiron_value value;
	size_t left_out;
	int r = entries_read(&arena, response->body, m->secret, &value, &left_out, err);

	if (r == 0)
		r = client_poll_send(m->poll, &value, err);
	if (r == 0 && left_out && left_out != m->left_out)
		abi_log(&m->context, ANDIRON_LOG_WARN,
			"%zu entries of %s/%s are left out: they are not UTF-8 text", left_out,
			m->namespace_, m->name);
	if (r == 0)
		m->left_out = left_out;
	arena_free(&arena);
	return r;
}

static void describe(void *context, const struct http_response *response, char *out, size_t n)
{
	struct remote *m = context;
	struct str server = m->settings.api.server;
	char said[256];

	if (response->status == 401 && m->exec)
		exec_refused(m->exec);
	if (response->status == 0 || response->result != 0) {
		snprintf(out, n, "%.*s: %s", STR_FMT(server),
			 response->error ? response->error : "no answer");
		return;
	}
	status_text(response->body, said, sizeof(said));
	snprintf(out, n, "%.*s answered %d: %s", STR_FMT(server), response->status, said);
	if (response->status == 403)
		snprintf(out, n,
			 "%.*s answered 403: %s; who asks needs the verb get on %s in the "
			 "namespace %s",
			 STR_FMT(server), said, resource(m), m->namespace_);
}

static int make_poll(struct remote *m, const struct andiron_value *args)
{
	static const struct http_header accept = {STR("Accept"), STR("application/json")};
	struct client_poll_how how = {
		.host = &m->context,
		.export_name = "data",
		.http = m->settings.api.http,
		.request = {.method = "GET",
			    .headers = &accept,
			    .n_headers = 1,
			    .max_response = MAX_BYTES},
		.frequency_ns = value_int(args, "poll_frequency", 60 * NS_PER_SEC),
		.timeout_ns = value_int(args, "poll_timeout", 15 * NS_PER_SEC),
		.context = m,
		.take = take,
		.describe = describe,
	};
	struct buf url = BUF_NULL;

	m->namespace_ = arena_str(&m->settings.arena, value_str(args, "namespace", STR(""))).p;
	m->name = arena_str(&m->settings.arena, value_str(args, "name", STR(""))).p;
	if (!m->namespace_ || !m->name)
		return -ENOMEM;
	buf_printf(&url, "%.*s/api/v1/namespaces/", STR_FMT(m->settings.api.server));
	buf_percent_append(&url, str_of(m->namespace_), "");
	buf_printf(&url, "/%s/", resource(m));
	buf_percent_append(&url, str_of(m->name), "");
	how.request.url = url.failed ? STR_NULL : arena_str(&m->settings.arena, buf_str(&url));
	buf_free(&url);
	return how.request.url.p ? client_poll_new(&how, &m->poll) : -ENOMEM;
}

static int make(struct remote *m, const struct andiron_value *args, struct error *err)
{
	static const struct andiron_value nothing = {.kind = ANDIRON_VALUE_MAP};
	const struct andiron_value *client = value_get(args, "client");
	int r = settings_init_server(&m->settings, client ? client : &nothing, SERVICE_ACCOUNT,
				     &m->refused);

	/* Not being in a cluster is for `start` to say: the rest of the graph runs. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		*err = m->refused;
	return r < 0 ? r : make_poll(m, args);
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, bool secret, void **ret_self,
		      struct andiron_error *ret_err)
{
	struct remote *m = calloc(1, sizeof(*m));
	struct error err = ERROR_NULL;
	int r;

	if (!m)
		return -ENOMEM;
	m->context = (struct abi_context){host, instance};
	m->secret = secret;
	r = make(m, args, &err);
	if (r < 0) {
		remote_free(m);
		return abi_error(host, ret_err, &err, r);
	}
	*ret_self = m;
	return 0;
}

int32_t remote_create_secret(const struct andiron_host *host, uint64_t instance,
			     const struct andiron_value *args, void **ret_self,
			     struct andiron_error *ret_err)
{
	return create(host, instance, args, true, ret_self, ret_err);
}

int32_t remote_create_configmap(const struct andiron_host *host, uint64_t instance,
				const struct andiron_value *args, void **ret_self,
				struct andiron_error *ret_err)
{
	return create(host, instance, args, false, ret_self, ret_err);
}

void remote_free(void *self)
{
	struct remote *m = self;

	if (!m)
		return;
	exec_free(m->exec);
	client_poll_free(m->poll);
	settings_fini(&m->settings);
	free(m);
}

static void on_credentials(void *context)
{
	struct remote *m = context;

	client_poll_ask(m->poll);
}

static void on_no_credentials(void *context, const char *text)
{
	struct remote *m = context;

	client_poll_fail(m->poll, text);
}

int32_t remote_start(void *self, struct andiron_error *ret_err)
{
	struct remote *m = self;
	const struct exec_owner owner = {&m->context, m, on_credentials, on_no_credentials};
	struct error err = ERROR_NULL;
	int r;

	if (!m->poll) {
		abi_health(&m->context, ANDIRON_HEALTH_UNHEALTHY, "%s", m->refused.text);
		return 0;
	}
	r = client_poll_start(m->poll, &err);
	if (r < 0)
		return abi_error(m->context.host, ret_err, &err, r);
	if (!m->settings.kubeconfig.exec) {
		client_poll_ask(m->poll);
		return 0;
	}
	m->exec = exec_new(&owner, &m->settings.kubeconfig);
	if (!m->exec)
		return -ENOMEM;
	exec_start(m->exec);
	return 0;
}

void remote_stop(void *self)
{
	struct remote *m = self;

	exec_free(m->exec);
	m->exec = NULL;
	if (m->poll)
		client_poll_stop(m->poll);
}

void remote_metrics(void *self, const struct andiron_metric_sink *sink)
{
	const struct remote *m = self;

	client_poll_metrics(m->poll, sink);
}
