/* SPDX-License-Identifier: Apache-2.0 */
/* A server of gRPC and clients that say their bytes themselves. */
#include "grpc-server/grpc-server.h"

#include "testing/test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct server *server;

static void on_ready(void *context, struct server_request *r)
{
	server_answer(r, &(struct server_answer){.status = 200});
}

/* A server, and a connection to it. */
static int begin(void)
{
	const struct server_events events = {.ready = on_ready};
	const struct server_options options = {.open = grpc_server_open,
					       .address = "127.0.0.1",
					       .limits = {.connections = 4,
							  .memory = 4096,
							  .request_s = 60,
							  .answer_s = 60,
							  .idle_s = 60,
							  .max_body = 1000,
							  .max_bodies = 4000}};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct error err = ERROR_NULL;

	expect_eq(server_new(&options, &events, &server, &err), 0);
	expect_eq(server_listen(server, &options, &err), 0);
	a.sin_port = htons(server_port(server));
	expect(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	server_run(server);
	expect_eq(server_connections(server), 1);
	return fd;
}

static void end(int fd)
{
	close(fd);
	server_free(server);
}

/* A child that has not called exec yet holds a socket which was closed here: nothing is heard of it
 * any more. */
TEST(a_closed_connection_is_forgotten)
{
	struct pollfd fds = {.events = POLLIN};
	int fd = begin(), hold[2], status;
	char byte;
	pid_t child;

	expect(socketpair(AF_UNIX, SOCK_STREAM, 0, hold) == 0);
	child = fork();
	expect(child >= 0);
	if (child == 0) {
		close(fd);
		close(hold[0]);
		_exit(send(hold[1], "x", 1, 0) == 1 && recv(hold[1], &byte, 1, 0) == 0 ? 0 : 1);
	}
	close(hold[1]);
	expect_eq(recv(hold[0], &byte, 1, 0), 1);
	expect_eq(send(fd, "POST / HTTP/1.1\r\n\r\n", 19, 0), 19);
	while (server_connections(server) > 0)
		server_run(server);
	shutdown(fd, SHUT_WR);
	fds.fd = server_fd(server);
	expect_eq(poll(&fds, 1, 0), 0);
	close(hold[0]);
	expect(waitpid(child, &status, 0) == child && status == 0);
	end(fd);
}

/* Whoever causes frames without end, and takes none, is hung up on. */
TEST(frames_that_wait_are_bounded)
{
	static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	char heads[1500][9] = {0};
	int fd = begin();

	expect_eq(send(fd, hello, sizeof(hello) - 1, 0), sizeof(hello) - 1);
	for (int i = 0; i < 1500; i++) { /* of nothing, each of a stream of its own */
		heads[i][3] = 1;
		heads[i][4] = 5;
		heads[i][7] = (char)((2 * i + 1) >> 8);
		heads[i][8] = (char)(2 * i + 1);
	}
	expect_eq(send(fd, heads, sizeof(heads), 0), sizeof(heads));
	for (int i = 0; i < 10; i++)
		server_run(server);
	expect_eq(server_connections(server), 0);
	end(fd);
}
