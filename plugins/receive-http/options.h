/* SPDX-License-Identifier: Apache-2.0 */
/* The options of pyroscope.receive_http and otlp.receive. Source: Alloy,
 * internal/component/common/net, and its reference on pyroscope.receive_http. */
#pragma once

#include "http-server/server.h"

#include <andiron/host.h>
#include <andiron/option.h>

extern const struct andiron_options receive_options, receive_otlp_options;

/* Reports what types alone cannot say. No side effects. */
void receive_check(const struct andiron_host *host, const struct andiron_value *args,
		   struct andiron_report *report);

/* The protocols, each with a place of its own. */
enum receive_protocol { RECEIVE_HTTP, RECEIVE_GRPC, RECEIVE_PROTOCOLS };

struct receive_places {
	struct server_options of[RECEIVE_PROTOCOLS]; /* without an address: it is not spoken */
};

/* Where and how to listen, certificate and key having been read; `otlp`: by the arguments of
 * otlp.receive. 0, -ENOMEM, or a negative errno and a text. receive_places_fini frees it. */
int receive_places_init(struct receive_places *ret, const struct andiron_value *args, bool otlp,
			struct error *err);
void receive_places_fini(struct receive_places *places);
