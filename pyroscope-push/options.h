/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope.write's arguments: the table, and what the engine makes of them.
 * Alloy's, plus queue_bytes.
 */
#ifndef PUSH_OPTIONS_H
#define PUSH_OPTIONS_H

#include "client/options.h"
#include "protocol.h"

extern const struct andiron_options push_options;

struct endpoint_options {
	char *url;  /* of the Push call */
	char *name; /* in messages and metrics: the argument, or the URL without its secrets */
	struct client_config client;
	const struct http_header *headers;
	size_t n_headers;
	int64_t timeout_ms, min_backoff_ms, max_backoff_ms;
	int64_t max_retries; /* 0: for ever */
	bool retry_limited;
	uint64_t queue_bytes;
};

struct push_config {
	struct arena arena;
	const struct protocol *protocol;
	struct endpoint_options *endpoints;
	size_t n_endpoints;
	struct label *external;
	size_t n_external;
	uint32_t refs;
};

/* A config with one reference: 0, -ENOMEM, or -EINVAL and a text. `args` is
 * not needed afterwards. */
int push_config_new(const struct protocol *protocol, const struct andiron_value *args,
		    struct push_config **ret, struct error *err);

/* A running request keeps the config that it was made from. */
static inline struct push_config *push_config_retain(struct push_config *c)
{
	c->refs++;
	return c;
}
void push_config_release(struct push_config *c);

/* For `validate`. */
void push_check(const struct andiron_host *host, const struct andiron_value *args,
		struct andiron_report *report);

#endif
