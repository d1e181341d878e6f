/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a configuration as texts, for a process that may read none. */
#pragma once

#include "base/buf.h"
#include "http/http.h"

#define READABLE_TEXTS 8 /* four of the server, four of its token's */

struct readable {
	struct http_config config; /* names no file that could be read */
	struct http_oauth2 oauth2; /* config's, where it has one */
	struct buf texts[READABLE_TEXTS];
};

/* Reads them all: 0; or a negative errno with a text where one cannot be read. Certificates that
 * cannot are left to be named by the end that needs them, for whom `tls` is false. In both cases
 * readable_fini. */
int readable_init(struct readable *r, const struct http_config *config, bool tls,
		  struct error *err);
void readable_fini(struct readable *r);
