/* SPDX-License-Identifier: Apache-2.0 */
/* One request, sent again and again, whose answers become the value of an export
 * (andiron/values.h). A poll that fails leaves the value as it is and is told in the component's
 * health. Before the first value it is repeated after 1 s, 2 s and so on up to 30 s, where that is
 * sooner than the interval. One request runs at a time. Used under the component's strand. */
#pragma once

#include "abi/log.h"
#include "abi/option.h"
#include "http/http.h"

#include <andiron/component.h>
#include <andiron/values.h>

/* Rows of an option table; the texts are Alloy's defaults. */
#define CLIENT_POLL_OPTIONS(frequency, timeout)                                                    \
	OPTION(DURATION, "poll_frequency", frequency, "How often it is asked for.",                \
	       .min = 1000000000, .max = INT64_MAX),                                               \
		OPTION(DURATION, "poll_timeout", timeout, "How long an answer may take.",          \
		       .min = 1000000, .max = INT64_MAX)

struct client_poll;

/* Strings and tables are borrowed, and outlive it. */
struct client_poll_how {
	const struct abi_context *host;
	const char *export_name;
	const struct http_config *http;
	struct http_request request; /* without timeout and callbacks */
	int64_t frequency_ns, timeout_ns;
	void *context;
	/* An answer of status 200 has come: calls client_poll_send. Its result, or a negative errno
	 * with a text for people. */
	int (*take)(void *context, const struct http_response *response, struct error *err);
	/* Any other one has: what it means, as a line for people. `status` 0: there is none. */
	void (*describe)(void *context, const struct http_response *response, char *out, size_t n);
};

/* 0 or -ENOMEM. */
int client_poll_new(const struct client_poll_how *how, struct client_poll **ret);
void client_poll_free(struct client_poll *p);

/* 0; -ENOENT and a text where the host takes no values; -ENOMEM; what client_loop_start says. The
 * first request is for client_poll_ask. */
int client_poll_start(struct client_poll *p, struct error *err);
void client_poll_stop(struct client_poll *p);

/* Sends the request now, unless it runs. The first call begins the polling: before it, nothing is
 * asked. */
void client_poll_ask(struct client_poll *p);

/* Gives the value to the host: 0, -ENOMEM, or -EINVAL or -EPERM and a text for one that it does not
 * take. */
int client_poll_send(struct client_poll *p, const struct andiron_value *value, struct error *err);

/* Says in health and log that there is no new value, for another reason than a poll's. */
void client_poll_fail(struct client_poll *p, const char *why);

struct client_poll_counts {
	uint64_t polls, failures;
};
struct client_poll_counts client_poll_counts(const struct client_poll *p);
/* These, and what client_loop_metrics says; of none (NULL) that nothing has happened. */
void client_poll_metrics(const struct client_poll *p, const struct andiron_metric_sink *sink);

/* Reports a poll_timeout that is not below poll_frequency, as Alloy does for remote.http. */
void client_poll_check(const struct andiron_host *host, const struct andiron_value *args,
		       struct andiron_report *report);
