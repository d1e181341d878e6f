/* SPDX-License-Identifier: Apache-2.0 */
/* A client, whatever stands behind it. Contract in http.h. */
#include "http/client.h"

void http_ready(struct http_client *client, int fd, uint32_t events)
{
	client->calls->ready(client, fd, events);
}

void http_timeout(struct http_client *client)
{
	client->calls->timeout(client);
}

int http_send(struct http_client *client, const struct http_config *config,
	      const struct http_request *request, uint64_t *ret_id, struct error *err)
{
	return client->calls->send(client, config, request, ret_id, err);
}

void http_cancel(struct http_client *client, uint64_t id)
{
	client->calls->cancel(client, id);
}

bool http_withdraw(struct http_client *client, uint64_t id)
{
	return client->calls->withdraw(client, id);
}

void http_client_free(struct http_client *client)
{
	if (client)
		client->calls->free(client);
}
