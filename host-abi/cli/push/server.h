/* SPDX-License-Identifier: Apache-2.0 */
/* A profile to a server and back: Pyroscope by Connect (push.v1, querier.v1), Parca by gRPC
 * (profilestore.v1alpha1, query.v1alpha1). One exchange at a time, waited for. */
#pragma once

#include "cli/push/profile-file.h"
#include "cli/remote.h"

#include "http/polled.h"

struct push_server {
	enum push_kind kind;
	struct http_polled wait;
	const struct remote *remote;
	struct str url; /* of `remote`, without "parca+" */
	int64_t timeout_ms;
};

/* Sends it. 0, or negative errno with what the server said; -ECONNRESET: it may have it, the answer
 * was lost. */
int push_server_send(struct push_server *s, const struct push_file *f, const struct label *labels,
		     size_t n_labels, struct error *err);

/* The sum of what the server has of a type and selector ("type{…}" parts), in the millisecond of
 * `time_ns`. 0, or negative errno with a text. */
int push_server_total(struct push_server *s, struct str type, struct str selector, int64_t time_ns,
		      int64_t *ret, struct error *err);
