/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd in its epoll mode, its descriptor handed to the host's loop. Contract in server.h.
 * A page is answered when its head has been read: a body is never waited for, and where there is
 * one the connection ends. */
#include "status-http/server.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>

#define MEMORY (8u << 10) /* of a connection */
#define ROUNDS 16         /* at most in one go, so that others get their turn */

struct server {
	struct MHD_Daemon *daemon;
	server_page_fn fn;
	void *context;
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool parse(const char *text, union address *ret)
{
	*ret = (union address){0};
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		return true;
	}
	if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) != 1)
		return false;
	ret->v6.sin6_family = AF_INET6;
	return true;
}

bool server_address_ok(const char *address, bool *ret_loopback)
{
	union address a;

	if (!parse(address, &a))
		return false;
	if (a.any.sa_family == AF_INET)
		*ret_loopback = ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
	else
		*ret_loopback = IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
	return true;
}

static enum MHD_Result send_page(struct MHD_Connection *connection, struct server_page *page)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(page->body.n,
						page->body.n ? page->body.p
							     : (void *)(uintptr_t) "",
						MHD_RESPMEM_MUST_COPY);
	enum MHD_Result rc = MHD_NO;

	if (response &&
	    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page->type) == MHD_YES)
		rc = MHD_queue_response(connection, page->status, response);
	if (response)
		MHD_destroy_response(response);
	return rc;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *data,
			      size_t *n_data, void **request)
{
	struct server *s = context;
	struct server_page page = {MHD_HTTP_NOT_FOUND, "text/plain; charset=utf-8", BUF_NULL};
	enum MHD_Result rc;

	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		s->fn(s->context, str_of(path), &page);
	else
		page.status = MHD_HTTP_METHOD_NOT_ALLOWED;
	if (page.body.failed)
		page.status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	if (page.body.n == 0 && page.status == MHD_HTTP_NOT_FOUND)
		buf_str_append(&page.body, STR("there are /metrics, /-/ready and /-/healthy\n"));
	rc = send_page(connection, &page);
	buf_free(&page.body);
	return rc;
}

int server_new(const char *address, uint16_t port, server_page_fn fn, void *context,
	       struct server **ret, struct error *err)
{
	struct server *s = calloc(1, sizeof(*s));
	union address at;

	if (!s)
		return -ENOMEM;
	s->fn = fn;
	s->context = context;
	if (!parse(address, &at)) {
		free(s);
		return error_set(err, -EINVAL, "%s is no IP address", address);
	}
	at.v4.sin_port = htons(port); /* in the same place for both */
	errno = 0;
	s->daemon =
		MHD_start_daemon(MHD_USE_EPOLL | (at.any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0u),
				 port, NULL, NULL, answer, s, MHD_OPTION_SOCK_ADDR, &at.any,
				 MHD_OPTION_CONNECTION_LIMIT, (unsigned int)SERVER_CONNECTIONS,
				 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
				 MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)SERVER_IDLE_S,
				 MHD_OPTION_END);
	if (!s->daemon) {
		int code = errno ? -errno : -EIO;

		free(s);
		return error_errno(err, code,
				   "cannot listen at %s port %u; name another listen_port", address,
				   port);
	}
	*ret = s;
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	MHD_stop_daemon(s->daemon);
	free(s);
}

int server_fd(const struct server *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

uint16_t server_port(const struct server *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

int64_t server_run(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG ms = 0;

	for (int i = 0; i < ROUNDS; i++) {
		MHD_run(s->daemon);
		if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
			return -1;
		if (ms > 0)
			break;
	}
	return (int64_t)ms;
}
