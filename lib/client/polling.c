/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in polling.h. */
#include "client/polling.h"

#include "abi/metrics.h"
#include "abi/value.h"
#include "base/clock.h"
#include "client/loop.h"

#include <errno.h>
#include <stdlib.h>

/* Until there is a value, for which others wait; each time the double, but not longer. */
#define AGAIN_NS         NS_PER_SEC
#define AGAIN_LONGEST_NS (30 * NS_PER_SEC)

struct client_poll {
	struct client_poll_how how;
	struct abi_context host;
	struct client_loop *loop;
	struct andiron_extension values;
	uint64_t timer, request;
	uint64_t again; /* a timer, or 0 */
	int64_t again_ns;
	bool begun, had, reported;
	struct client_poll_counts counts;
};

int client_poll_new(const struct client_poll_how *how, struct client_poll **ret)
{
	struct client_poll *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->how = *how;
	p->host = *how->host;
	p->again_ns = AGAIN_NS;
	*ret = p;
	return 0;
}

void client_poll_free(struct client_poll *p)
{
	if (!p)
		return;
	client_loop_free(p->loop);
	free(p);
}

static void on_again(void *context)
{
	struct client_poll *p = context;

	p->again = 0;
	client_poll_ask(p);
}

/* Where that fails the interval's timer is left. */
static void ask_again(struct client_poll *p)
{
	const struct andiron_host *host = p->host.host;

	if (p->had || p->again || !p->timer || p->again_ns >= p->how.frequency_ns)
		return;
	if (host->timer_set(p->host.instance, p->again_ns, 0, on_again, p, &p->again) < 0)
		p->again = 0;
	p->again_ns *= 2;
	if (p->again_ns > AGAIN_LONGEST_NS)
		p->again_ns = AGAIN_LONGEST_NS;
}

static void fail(struct client_poll *p, const char *why)
{
	client_poll_fail(p, why);
	ask_again(p);
}

void client_poll_fail(struct client_poll *p, const char *why)
{
	p->counts.failures++;
	if (!p->reported)
		abi_log(&p->host, ANDIRON_LOG_WARN, "%s; trying again", why);
	p->reported = true;
	abi_health(&p->host, ANDIRON_HEALTH_UNHEALTHY, "%s%s", why,
		   p->had ? "; the last value stays" : "; it has given no value since it started");
}

int client_poll_send(struct client_poll *p, const struct andiron_value *value, struct error *err)
{
	const struct andiron_values *values = p->values.table;
	int r = values->send(p->values.self, p->host.instance, p->how.export_name, value);

	if (r == -EPERM)
		return error_set(err, r,
				 "its value is refused where it is named; the log says why");
	return r == -EINVAL ? error_set(err, r, "the answer is more than 1 MiB, or not UTF-8 text")
			    : r;
}

static void on_answer(void *context, const struct http_response *response)
{
	struct client_poll *p = context;
	struct error err = ERROR_NULL;
	char text[768];

	p->request = 0;
	p->counts.polls++;
	if (response->status != 200 || response->result != 0) {
		p->how.describe(p->how.context, response, text, sizeof(text));
		fail(p, text);
	} else if (p->how.take(p->how.context, response, &err) < 0) {
		fail(p, err.code ? err.text : "out of memory for the answer");
	} else {
		p->had = true;
		p->reported = false;
		abi_health(&p->host, ANDIRON_HEALTH_HEALTHY, "the value is up to date");
	}
}

void client_poll_ask(struct client_poll *p)
{
	struct http_request request = p->how.request;
	struct error err = ERROR_NULL;

	p->begun = true;
	if (p->request || !p->loop)
		return;
	request.timeout_ms = p->how.timeout_ns / NS_PER_MSEC;
	request.done = on_answer;
	request.context = p;
	if (http_send(client_loop_http(p->loop), p->how.http, &request, &p->request, &err) < 0)
		fail(p, err.code ? err.text : "out of memory for a request");
}

static void on_timer(void *context)
{
	struct client_poll *p = context;

	if (p->begun)
		client_poll_ask(p);
}

int client_poll_start(struct client_poll *p, struct error *err)
{
	const struct andiron_host *host = p->host.host;
	int r;

	if (host->extension(p->host.instance, ANDIRON_VALUES_ID, &p->values) < 0)
		return error_set(err, -ENOENT,
				 "this host takes no values of components (%s); `andiron run` does",
				 ANDIRON_VALUES_ID);
	r = client_loop_start(&p->host, &p->loop, err);
	if (r < 0)
		return r;
	return host->timer_set(p->host.instance, p->how.frequency_ns, p->how.frequency_ns, on_timer,
			       p, &p->timer);
}

void client_poll_stop(struct client_poll *p)
{
	if (p->timer)
		p->host.host->timer_cancel(p->host.instance, p->timer);
	if (p->again)
		p->host.host->timer_cancel(p->host.instance, p->again);
	p->timer = p->again = 0;
	client_loop_free(p->loop);
	p->loop = NULL;
}

struct client_poll_counts client_poll_counts(const struct client_poll *p)
{
	return p->counts;
}

void client_poll_metrics(const struct client_poll *p, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_remote_polls_total", ABI_COUNTER(struct client_poll_counts, polls),
		 "Requests for a value that have ended."},
		{"andiron_remote_failures_total", ABI_COUNTER(struct client_poll_counts, failures),
		 "Requests for a value that gave none."},
	};
	static const struct client_poll_counts none;

	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), p ? &p->counts : &none);
	client_loop_metrics(p ? p->loop : NULL, sink);
}

void client_poll_check(const struct andiron_host *host, const struct andiron_value *args,
		       struct andiron_report *report)
{
	const struct andiron_value *timeout = value_get(args, "poll_timeout");
	const struct andiron_value *frequency = value_get(args, "poll_frequency");

	if (timeout && frequency && timeout->integer >= frequency->integer)
		abi_report(host, report, ANDIRON_REPORT_ERROR,
			   timeout->flags & ANDIRON_VALUE_DEFAULTED ? frequency : timeout,
			   "poll_timeout must be less than poll_frequency");
}
