/* SPDX-License-Identifier: Apache-2.0 */
/* Alloy's block tls of a server: its options, and how they become those of server.h. Source: Alloy,
 * internal/service/http/tls.go. */
#pragma once

#include "http-server/server.h"

#include <andiron/option.h>
#include <andiron/value.h>

extern const struct andiron_options server_tls_options;

/* What is wrong with the block that types alone cannot say; NULL: nothing, or there is no block. */
const char *server_tls_fault(const struct andiron_value *block);

/* Reads certificate, key and clients' authority, from texts or files, into options that have
 * none: 0, -ENOMEM, or a negative errno and a text. The caller frees all, also after a failure.
 * NULL: there is no block, and nothing is done. */
int server_tls_read(const struct andiron_value *block, struct server_options *options,
		    struct error *err);
