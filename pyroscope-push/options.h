/* SPDX-License-Identifier: Apache-2.0 */
/* The writers' arguments: the tables, and what the engine makes of them. pyroscope.write's are
 * Alloy's, plus max_age, queue_bytes and spool. */
#pragma once

#include "client/options.h"
#include "push-protocols/protocol.h"

extern const struct andiron_options pyroscope_options;
extern const struct andiron_options parca_options;
extern const struct andiron_options otlp_options;

struct endpoint_options {
	uint64_t id;  /* the same over restarts, no other's: see SPOOL_… */
	char *url;    /* of the call */
	char *server; /* the URL without the call's path */
	char *shown;  /* the URL without its secrets */
	char *name;   /* in messages and metrics: the argument, or the URL without its secrets */
	struct client_config client;
	const struct http_header *headers;
	size_t n_headers;
	int64_t timeout_ms, min_backoff_ms, max_backoff_ms;
	int64_t max_retries; /* 0: for ever */
	bool retry_limited;
	bool at_least_once; /* sends again what may have arrived and would count twice */
	int64_t max_age_ns; /* older profiles are not sent; 0: of any age */
	uint64_t queue_bytes;
};

/* Which files are offered to a server that asks for debug information, and within what. */
struct uploads_options {
	bool on;
	bool all;   /* also of files all of whose frames have names */
	bool strip; /* their debug information alone */
	int64_t max_parallel, bytes_per_second, timeout_ms;
	uint64_t max_file_bytes, max_total_bytes; /* total 0: any */
	const char *share;                        /* the directory of node-bandwidth.h */
};

struct push_config {
	struct arena arena;
	const struct protocol *protocol;
	struct endpoint_options *endpoints;
	size_t n_endpoints;
	struct label *external;
	size_t n_external;
	struct label node; /* a default; name STR_NULL: none */
	bool addresses;    /* what frames without a name stay */
	struct uploads_options uploads;
	char *spool_directory; /* NULL: no spool */
	uint64_t spool_bytes;
	uint32_t refs;
};

/* A config with one reference: 0, -ENOMEM, or -EINVAL and a text. `args` is not needed afterwards.
 */
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
void push_check(const struct protocol *protocol, const struct andiron_host *host,
		const struct andiron_value *args, struct andiron_report *report);

/* How long to wait after that many tries: half to all of min·2^(tries-1), so that many senders do
 * not come at once. */
int64_t push_backoff_ns(const struct endpoint_options *o, int64_t tries, uint64_t *random);
