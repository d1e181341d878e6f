/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments to settings. Contract in settings.h. As in Prometheus, HTTP client arguments mean
 * nothing to a socket. */
#include "docker/settings.h"

#include "abi/log.h"
#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <sys/un.h>

#define UNIX "unix://"
#define TCP  "tcp://"

/* What is wrong with a host, in words that follow it, or NULL. */
static const char *host_fault(struct str host)
{
	if (str_starts(host, STR(UNIX))) {
		struct str path = str_skip(host, strlen(UNIX));

		if (path.n == 0 || path.p[0] != '/')
			return "names no socket: write unix:///var/run/docker.sock";
		return path.n < sizeof(((struct sockaddr_un *)0)->sun_path)
			       ? NULL
			       : "is longer than the path of a socket can be";
	}
	if (str_starts(host, STR(TCP)))
		return http_authority(host).n ? NULL : "names no host";
	if (str_starts(host, STR("http://")) || str_starts(host, STR("https://")))
		return http_url_fault(host);
	return "is no address of an engine: write unix:///var/run/docker.sock, tcp://HOST:2375 or "
	       "https://HOST:2376";
}

int32_t settings_check(const struct andiron_host *host, const struct andiron_value *args,
		       struct andiron_report *report)
{
	const struct andiron_value *value = value_get(args, "host");
	const char *fault = value ? host_fault(abi_str(value->string)) : NULL;

	if (fault)
		abi_report(host, report, ANDIRON_REPORT_ERROR, value, "host %s", fault);
	client_check(host, args, report);
	return 0;
}

static int read_host(struct settings *s, const struct andiron_value *args, struct error *err)
{
	struct str host = value_str(args, "host", STR(""));
	const char *fault = host_fault(host), *base;

	if (fault)
		return error_set(err, -EINVAL, "host %s", fault);
	s->host = arena_str(&s->arena, host);
	if (!s->host.p)
		return -ENOMEM;
	host = s->host;
	while (host.n && host.p[host.n - 1] == '/')
		host.n--;
	s->http = s->client.http;
	s->base = host;
	if (str_starts(host, STR(UNIX))) {
		s->http = (struct http_config){.unix_socket = str_skip(s->host, strlen(UNIX))};
		s->base = STR("http://localhost");
	} else if (str_starts(host, STR(TCP))) {
		base = arena_printf(&s->arena, "%s://%.*s",
				    value_get(args, "tls_config") ? "https" : "http",
				    STR_FMT(str_skip(host, strlen(TCP))));
		s->base = str_of(base);
		return base ? 0 : -ENOMEM;
	}
	return 0;
}

/* {"name":["value",…],…} without the braces. Filters of one name are one. */
static int read_filters(struct settings *s, const struct andiron_value *args)
{
	static const char *const of_state[] = {"status", "exited", "health", "isolation"};
	const struct andiron_value *blocks = value_get(args, "filter");
	struct buf out = BUF_NULL;

	s->running = true;
	for (uint64_t i = 0; blocks && i < blocks->n_items; i++) {
		struct str name = value_str(&blocks->items[i], "name", STR(""));
		bool first = true, before = false;

		for (uint64_t k = 0; k < i; k++)
			before |= str_eq(value_str(&blocks->items[k], "name", STR("")), name);
		if (before)
			continue;
		for (size_t k = 0; k < sizeof(of_state) / sizeof(*of_state); k++)
			s->running &= !str_is(name, of_state[k]);
		s->by_id |= str_is(name, "id");
		buf_printf(&out, out.n ? "," : "");
		json_put_str(&out, name);
		buf_printf(&out, ":[");
		for (uint64_t k = i; k < blocks->n_items; k++) {
			const struct andiron_value *list = value_get(&blocks->items[k], "values");

			if (!str_eq(value_str(&blocks->items[k], "name", STR("")), name))
				continue;
			for (uint64_t v = 0; list && v < list->n_items; v++, first = false) {
				buf_printf(&out, first ? "" : ",");
				json_put_str(&out, abi_str(list->items[v].string));
			}
		}
		buf_putc(&out, ']');
	}
	s->filters = out.failed ? STR_NULL : arena_str(&s->arena, buf_str(&out));
	buf_free(&out);
	return s->filters.p ? 0 : -ENOMEM;
}

/* What both components are told. */
static int read_common(struct settings *s, const struct andiron_value *args, struct error *err)
{
	int r;

	*s = (struct settings){0};
	r = client_config_init(&s->client, args, err);
	if (r < 0)
		return r;
	s->refresh_ns = value_int(args, "refresh_interval", 60 * NS_PER_SEC);
	r = read_host(s, args, err);
	if (r == 0)
		r = read_filters(s, args);
	if (r < 0)
		settings_fini(s);
	return r;
}

int settings_init(struct settings *ret, const struct andiron_value *args, struct error *err)
{
	struct str host = value_str(args, "host_networking_host", STR("localhost"));
	int r = read_common(ret, args, err);

	if (r < 0)
		return r;
	ret->targets = (struct target_options){
		.port = (uint16_t)value_int(args, "port", 80),
		.host_networking_host = arena_str(&ret->arena, host),
		.first_network = value_bool(args, "match_first_network", true),
		.without_network = value_bool(args, "containers_without_network", false),
	};
	if (ret->targets.host_networking_host.p)
		return 0;
	settings_fini(ret);
	return -ENOMEM;
}

int settings_init_swarm(struct settings *ret, const struct andiron_value *args, struct error *err)
{
	struct str role = value_str(args, "role", STR(""));
	int r = read_common(ret, args, err);

	if (r < 0)
		return r;
	ret->swarm = (struct swarm_options){
		.role = swarm_role(role),
		.port = (uint16_t)value_int(args, "port", 80),
		.without_network = value_bool(args, "tasks_without_network", false),
	};
	if (ret->swarm.role)
		return 0;
	settings_fini(ret);
	return error_set(err, -EINVAL, "role is none of services, tasks, nodes");
}

void settings_fini(struct settings *s)
{
	client_config_fini(&s->client);
	arena_free(&s->arena);
}

void settings_url(const struct settings *s, struct buf *url, const char *path, struct str filters)
{
	buf_printf(url, "%.*s%s", STR_FMT(s->base), path);
	if (filters.n == 0)
		return;
	buf_printf(url, "?filters=");
	buf_percent_append(url, filters, "");
}

void settings_list_url(const struct settings *s, struct buf *url, const char *path,
		       const struct str *ids, size_t n)
{
	struct buf filters = BUF_NULL;

	buf_printf(&filters, "{%.*s", STR_FMT(s->filters));
	for (size_t i = 0; i < n; i++) {
		buf_printf(&filters, i ? "," : s->filters.n ? ",\"id\":[" : "\"id\":[");
		json_put_str(&filters, ids[i]);
	}
	buf_printf(&filters, n ? "]}" : "}");
	settings_url(s, url, path, buf_str(&filters));
	url->failed |= filters.failed;
	buf_free(&filters);
}

const char *settings_events(const struct settings *s)
{
	return s->running ? "{\"type\":[\"container\",\"network\"],\"event\":[\"start\","
			    "\"die\",\"destroy\",\"rename\",\"update\",\"connect\","
			    "\"disconnect\"]}"
			  : "{\"type\":[\"container\",\"network\"],\"event\":[\"start\","
			    "\"die\",\"destroy\",\"rename\",\"update\",\"connect\","
			    "\"disconnect\",\"create\",\"stop\",\"pause\",\"unpause\","
			    "\"health_status\"]}";
}
