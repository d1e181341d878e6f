/* SPDX-License-Identifier: Apache-2.0 */
/* The options of pyroscope.receive_http and otlp.receive. Source: Alloy,
 * internal/component/common/net, and its reference on pyroscope.receive_http. */
#pragma once

#include "http-server/server.h"

#include <andiron/host.h>
#include <andiron/option.h>

extern const struct andiron_options receive_options, receive_otlp_options;

#define RECEIVE_PORT      8080
#define RECEIVE_OTLP_PORT 4318

/* Reports what types alone cannot say. No side effects. */
void receive_check(const struct andiron_host *host, const struct andiron_value *args,
		   struct andiron_report *report);

/* Where and how to listen, certificate and key having been read; `port` where none is given: 0,
 * -ENOMEM, or a negative errno and a text. receive_place_fini frees it. */
int receive_place_init(struct server_options *ret, const struct andiron_value *args, uint16_t port,
		       struct error *err);
void receive_place_fini(struct server_options *place);
