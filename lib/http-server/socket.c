/* SPDX-License-Identifier: Apache-2.0 */
/* The socket that a server of any protocol listens at, and who connects there. It is apart from the
 * connections: it can go to another server, or be given up and opened again, and they stay.
 * Contracts in server.h and protocol.h. */
#include "http-server/protocol.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTED 64 /* in one go, so that others get their turn */

static bool parse(const char *text, union server_address *ret)
{
	*ret = (union server_address){0};
	if (strcmp(text, "localhost") == 0)
		text = "127.0.0.1";
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		return true;
	}
	if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) != 1)
		return false;
	ret->v6.sin6_family = AF_INET6;
	return true;
}

/* On a socket for both, 127.0.0.1 is ::ffff:127.0.0.1. */
bool server_address_is_loopback(const union server_address *a)
{
	const struct in6_addr *v6 = &a->v6.sin6_addr;

	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

bool server_address_ok(const char *address, bool *ret_loopback)
{
	union server_address a;

	if (!parse(address, &a))
		return false;
	*ret_loopback = server_address_is_loopback(&a);
	return true;
}

int server_socket_init(struct server *s)
{
	struct epoll_event event = {.events = EPOLLIN};

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll >= 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->protocol->fd(s), &event) == 0)
		return 0;
	server_socket_fini(s);
	return -errno;
}

void server_socket_fini(struct server *s)
{
	int code = errno;

	if (s->socket >= 0)
		close(s->socket);
	if (s->epoll >= 0)
		close(s->epoll);
	errno = code;
}

/* The socket becomes the server's, also where it fails. */
static int adopt(struct server *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	socklen_t n = sizeof(s->at);
	int code;

	if (getsockname(fd, &s->at.any, &n) != 0 ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		code = -errno;
		close(fd);
		return code;
	}
	s->socket = fd;
	s->port = ntohs(s->at.v4.sin_port);
	s->heeded = true;
	return 0;
}

static int listen_at(struct server *s, const union server_address *at, bool dual)
{
	bool v6 = at->any.sa_family == AF_INET6;
	socklen_t n = v6 ? sizeof(at->v6) : sizeof(at->v4);
	int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, alone = !dual, code;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (v6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &alone, sizeof(alone));
	if (bind(fd, &at->any, n) == 0 && listen(fd, SOMAXCONN) == 0) {
		s->dual = dual;
		return adopt(s, fd);
	}
	code = -errno;
	close(fd);
	return code;
}

int server_listen(struct server *s, const struct server_options *options, struct error *err)
{
	bool any = !options->address[0];
	const char *address = any ? "::" : options->address;
	union server_address at;
	int rc;

	if (!parse(address, &at))
		return error_set(err, -EINVAL, "%s is no IP address", address);
	at.v4.sin_port = htons(options->port); /* in the same place for both */
	rc = listen_at(s, &at, any);
	/* A machine without IPv6. Where it is in use, IPv4 alone would not be all. */
	if ((rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL) && any && parse("0.0.0.0", &at)) {
		at.v4.sin_port = htons(options->port);
		rc = listen_at(s, &at, false);
	}
	return rc ? error_errno(err, rc, "cannot listen at %s port %u; name another listen_port",
				any ? "any address" : address, options->port)
		  : 0;
}

int server_share(struct server *s, const struct server *other)
{
	int fd = fcntl(other->socket, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	s->dual = other->dual;
	return adopt(s, fd);
}

int server_relisten(struct server *s, struct error *err)
{
	uint16_t port = ntohs(s->at.v4.sin_port);
	int rc = listen_at(s, &s->at, s->dual);

	return rc ? error_errno(err, rc, "cannot listen at port %u again", port) : 0;
}

static bool is_full(const struct server *s)
{
	return s->n_connections >= s->limits.connections;
}

static void take(struct server *s, unsigned int most)
{
	s->starved = false;
	for (unsigned int i = 0; i < most && s->socket >= 0; i++) {
		union server_address peer = {0};
		socklen_t n = sizeof(peer);
		bool full = is_full(s);
		int fd;

		if (full && s->protocol->queues)
			break;
		fd = accept4(s->socket, &peer.any, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			s->starved = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
			break;
		}
		if (full) {
			s->refused++;
			close(fd);
		} else {
			s->protocol->connect(s, fd, &peer);
		}
	}
}

void server_accept(struct server *s)
{
	take(s, ACCEPTED);
}

void server_unlisten(struct server *s)
{
	take(s, s->limits.connections); /* there is room for no more */
	/* Also where a child that has not yet called exec holds it. */
	shutdown(s->socket, SHUT_RDWR);
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->socket, NULL);
	close(s->socket);
	s->socket = -1;
	s->port = 0;
}

/* Who waits keeps the socket readable, also where it cannot be helped yet. */
void server_heed(struct server *s)
{
	bool heeded = !s->starved && !(s->protocol->queues && is_full(s));
	struct epoll_event event = {.events = heeded ? EPOLLIN : 0};

	if (s->socket < 0 || s->heeded == heeded)
		return;
	s->heeded = heeded;
	epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->socket, &event);
}

uint16_t server_port(const struct server *s)
{
	return s->port;
}

unsigned int server_waiting(const struct server *s)
{
	struct tcp_info info;
	socklen_t n = sizeof(info);

	/* Of a socket that listens, the kernel says so where others have unacknowledged bytes. */
	if (!s->protocol->queues || !is_full(s) || s->socket < 0 ||
	    getsockopt(s->socket, IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
		return 0;
	return info.tcpi_unacked;
}

uint64_t server_refused(const struct server *s)
{
	return s->refused;
}
