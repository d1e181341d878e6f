/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind a client: libcurl in this process (http.c), or a process of its own
 * (sender/sender.h). Private to lib/http. */
#pragma once

#include "http/http.h"

/* As the functions of http.h. */
struct http_client_calls {
	void (*ready)(struct http_client *client, int fd, uint32_t events);
	void (*timeout)(struct http_client *client);
	int (*send)(struct http_client *client, const struct http_config *config,
		    const struct http_request *request, uint64_t *ret_id, struct error *err);
	void (*cancel)(struct http_client *client, uint64_t id);
	bool (*withdraw)(struct http_client *client, uint64_t id);
	void (*free)(struct http_client *client);
};

struct http_client {
	const struct http_client_calls *calls;
};
