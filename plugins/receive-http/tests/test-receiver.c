/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver within a host, asked by a client on loopback. */
#include "receive-http/receiver.h"

#include "abi/log.h"
#include "grpc-server/grpc-server.h"
#include "host/tests/test-support.h"
#include "http/tests/test-loop.h"
#include "receive-http/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
	struct host *host;
	struct probe receiver, writer;
	enum receive_protocol protocol;
	struct server_options options[RECEIVE_PROTOCOLS];
	struct receiver_counts counts; /* at its end */
	pthread_t client;
	sem_t live, go;
	char answers[2][4096];
};

static struct fixture *fixture_of(const struct andiron_value *args)
{
	return ((struct probe *)(uintptr_t)args->integer)->user;
}

/* The receiver's own verbs, for want of a configuration. */
static struct fixture *under_test;

static int32_t create(const struct andiron_host *host, uint64_t id,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	const struct abi_context context = {host, id};
	struct receiver *r;
	int rc = receiver_new(&context, fixture_of(args)->options, false, &r);

	if (!rc)
		*ret_self = r;
	return rc;
}

static int32_t start(void *self, struct andiron_error *err)
{
	struct error why = ERROR_NULL;

	return abi_error(receiver_host(self), err, &why, receiver_start(self, &why));
}

static void destroy(void *self)
{
	under_test->counts = receiver_counts(self);
	receiver_free(self);
}

static const struct andiron_component component = {.size = sizeof(component),
						   .name = "test.receiver",
						   .create = create,
						   .start = start,
						   .drain = receiver_drain,
						   .stop = receiver_stop,
						   .destroy = destroy};

static void on_live(void *context, const char *failed)
{
	expect(!failed);
	sem_post(&under_test->live);
}

static void fixture_run(struct fixture *f, void *(*client)(void *f))
{
	struct plan *plan = test_plan();
	uint32_t receiver, writer;

	under_test = f;
	f->receiver.user = f;
	f->options[f->protocol] = (struct server_options){
		.open = f->protocol == RECEIVE_GRPC ? grpc_server_open : NULL,
		.address = "127.0.0.1",
		.port = test_unused_port(),
		.limits = {.connections = 4, .memory = 16384, .request_s = 60, .answer_s = 60,
			   .idle_s = 60, .max_body = 1000, .max_bodies = 4000},
	};
	sem_init(&f->live, 0, 0);
	receiver = test_node(plan, "receiver", &component, &f->receiver);
	writer = test_node(plan, "writer", &test_writer, &f->writer);
	test_batches(plan, receiver, writer);
	f->host = test_host((struct host_options){
		.drain_ns = NS_PER_SEC, .workers = 3, .live = on_live});
	expect_eq(host_load(f->host, plan, NULL), 0);
	expect(pthread_create(&f->client, NULL, client, f) == 0);
}

static int connect_to_it(const struct fixture *f)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(f->options[f->protocol].port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

/* A connection over which this was asked. */
static int ask(const struct fixture *f, const char *text)
{
	int fd = connect_to_it(f);

	expect(test_say(fd, text));
	return fd;
}

static void hear(int fd, char ret[4096])
{
	size_t n = 0;
	ssize_t r;

	while (n < 4095 && (r = recv(fd, ret + n, 4095 - n, 0)) > 0)
		n += (size_t)r;
	ret[n] = '\0';
	close(fd);
}

static void expect_answer(const struct fixture *f, const char *request, const char *status,
			  const char *says)
{
	char answer[4096];

	hear(ask(f, request), answer);
	if (!strstr(answer, status) || !strstr(answer, says))
		test_fail(__FILE__, __LINE__, "says %s, not %s %s", answer, status, says);
}

#define FOLDED                                                                                     \
	"POST /ingest?name=a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"                         \
	"Content-Length: 4\r\n\r\na 1\n"

static void *various(void *context)
{
	struct fixture *f = context;

	sem_wait(&f->live);
	expect_answer(f, FOLDED, " 200 ", "");
	expect_answer(f, "POST /else HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", " 404 ",
		      "/ingest");
	expect_answer(f,
		      "POST /ingest HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		      "Content-Length: 1001\r\n\r\n",
		      " 413 ", "larger than 1000 bytes");
	host_stop(f->host);
	return NULL;
}

/* Every answer counts, also what the server answers by itself. */
TEST(answers_are_counted)
{
	struct fixture f = {0};

	fixture_run(&f, various);
	test_run(f.host, 0);
	pthread_join(f.client, NULL);
	expect_eq(test_writer_row(f.host, "writer")->delivered, 1);
	host_free(f.host);
	expect_eq(f.counts.accepted, 1);
	expect_eq(f.counts.bytes, 4);
	expect_eq(f.counts.refused, 2);
	expect_eq(f.counts.failed, 0);
}

static void *two(void *context)
{
	struct fixture *f = context;
	int fds[2];

	sem_wait(&f->live);
	for (int i = 0; i < 2; i++)
		fds[i] = ask(f, FOLDED);
	for (int i = 0; i < 2; i++)
		hear(fds[i], f->answers[i]);
	return NULL;
}

/* Stops when one batch is in the writer's hands and another waits; lets the first go when the other
 * was dropped. */
static void stop_between(void *context)
{
	struct fixture *f = context;
	struct instance *writer = host_instance_of(&f->writer);
	bool inside = atomic_load(&f->writer.inside) && f->writer.n_start > 0;

	if (!writer)
		return;
	if (f->host->n_stops_seen == 0 && inside && queue_bytes(writer) > 0)
		host_stop(f->host);
	else if (f->host->n_stops_seen > 0 && queue_bytes(writer) == 0)
		sem_post(&f->go);
}

/* What was dropped from a queue is no 200. */
TEST(a_dropped_profile_is_told)
{
	struct fixture f = {0};

	sem_init(&f.go, 0, 0);
	f.writer.block_batch = &f.go;
	fixture_run(&f, two);
	expect_eq(host_timer(f.host, NS_PER_MSEC, NS_PER_MSEC, stop_between, &f), 0);
	test_run(f.host, 0);
	expect_eq(test_dropped(f.host, "writer", "writer:deadline"), 1);
	host_free(f.host);
	pthread_join(f.client, NULL);
	expect(strstr(f.answers[0], "has stopped, or has not started") ||
	       strstr(f.answers[1], "has stopped, or has not started"));
	expect(strstr(f.answers[0], " 503 ") || strstr(f.answers[1], " 503 "));
	expect(f.counts.failed >= 1);
}

#define METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

static void put_frame(struct buf *b, uint8_t type, uint8_t flags, uint8_t stream, struct str bytes)
{
	const char head[9] = {0, 0, (char)bytes.n, (char)type, (char)flags, 0, 0, 0, (char)stream};

	buf_append(b, head, sizeof(head));
	buf_str_append(b, bytes);
}

/* Calls that are whole, and each of them broken off, in one go: no work returns in between. */
static void *break_off(void *context)
{
	static const char grpc[] = "application/grpc";
	struct fixture *f = context;
	struct buf said = BUF_NULL, head = BUF_NULL;
	char byte;
	int fd;

	sem_wait(&f->live);
	/* POST, http, host, path and content type, by numbers of HPACK's static table. */
	buf_printf(&head, "\x83\x86\1\1x\x04%c" METHOD "\x0f\x10%c%s", (int)strlen(METHOD),
		   (int)strlen(grpc), grpc);
	buf_str_append(&said, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	put_frame(&said, 4, 0, 0, STR_NULL);
	for (uint8_t stream = 1; stream < 41; stream += 2) {
		put_frame(&said, 1, 4, stream, buf_str(&head));
		put_frame(&said, 0, 1, stream, STR("\0\0\0\0\3abc"));
		put_frame(&said, 3, 0, stream, STR("\0\0\0\10"));
	}
	expect(!said.failed && !head.failed);
	fd = connect_to_it(f);
	expect_eq(send(fd, said.p, said.n, MSG_NOSIGNAL), said.n);
	expect_eq(recv(fd, &byte, 1, 0), 1); /* all of it has been read */
	close(fd);
	buf_free(&said);
	buf_free(&head);
	host_stop(f->host);
	return NULL;
}

/* What callers leave behind is bounded as bodies are. */
TEST(calls_that_are_broken_off_are_bounded)
{
	struct fixture f = {.protocol = RECEIVE_GRPC};

	fixture_run(&f, break_off);
	test_run(f.host, 0);
	pthread_join(f.client, NULL);
	host_free(f.host);
	expect(f.counts.rejected > 10);
	expect(f.counts.broken_off > 0);
	expect_eq(f.counts.rejected + f.counts.broken_off, 20);
	expect_eq(f.counts.held_bytes, 0);
	expect_eq(f.counts.refused + f.counts.failed, 0);
}
