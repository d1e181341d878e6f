/* SPDX-License-Identifier: Apache-2.0 */
/* A server of gRPC and its clients, turn by turn in one thread. */
#include "grpc-server/grpc-server.h"

#include "base/clock.h"
#include "http/grpc.h"
#include "testing/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define METHOD   "/a.Service/Method"
#define LIMIT_NS (120 * NS_PER_SEC)
#define BODY_MAX 100000

static struct {
	struct server *server;
	struct server_request *waiting[4];
	unsigned int n_waiting, ready, over, wrong;
	struct buf body;
	char encoding[16];
	bool later; /* the owner does not answer at once */
} owner;

static void on_begin(void *context, struct server_request *r)
{
	if (!str_is(server_request_path(r), METHOD)) {
		owner.wrong++;
		server_answer_text(r, 404, "no such method; 100 % sure\n");
	}
}

static void on_ready(void *context, struct server_request *r)
{
	struct str encoding = server_request_header(r, "Content-Encoding");

	expect(server_request_is(r, "POST") && server_request_is_local(r));
	expect(!server_request_query(r, "a").p);
	owner.ready++;
	buf_clear(&owner.body);
	buf_str_append(&owner.body, server_request_body(r));
	snprintf(owner.encoding, sizeof(owner.encoding), "%.*s", (int)encoding.n,
		 encoding.n ? encoding.p : "");
	if (owner.later)
		owner.waiting[owner.n_waiting++] = r;
	else
		server_answer(r, &(struct server_answer){.status = 200, .body = STR("well")});
}

static void on_over(void *context, struct server_request *r)
{
	owner.over++;
}

/* Each thing may take so many seconds. */
static int open_and_listen(unsigned int seconds)
{
	const struct server_events events = {NULL, on_begin, on_ready, on_over};
	const struct server_options options = {.open = grpc_server_open,
					       .address = "127.0.0.1",
					       .limits = {.connections = 4,
							  .memory = 4096,
							  .request_s = seconds,
							  .answer_s = seconds,
							  .idle_s = seconds,
							  .max_body = BODY_MAX,
							  .max_bodies = 2 * BODY_MAX}};
	struct error err = ERROR_NULL;

	return server_new(&options, &events, &owner.server, &err);
}

static void begin(void)
{
	expect_eq(open_and_listen(60), 0);
}

static void end(void)
{
	server_free(owner.server);
	buf_free(&owner.body);
}

struct client {
	int fd;
	nghttp2_session *session;
	bool hung_up, told_to_go;
};

struct asked {
	int32_t stream;
	char status[8], code[8], message[256], body[16];
	size_t n_body;
	bool closed;
	const char *data; /* to be sent */
	size_t n, at;
	bool endless; /* the end is not said */
};

static ssize_t read_data(nghttp2_session *session, int32_t stream, uint8_t *out, size_t n,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct asked *a = source->ptr;

	if (a->at == a->n && a->endless)
		return NGHTTP2_ERR_DEFERRED;
	if (n > a->n - a->at)
		n = a->n - a->at;
	memcpy(out, a->data + a->at, n);
	a->at += n;
	if (a->at == a->n && !a->endless)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
		     void *context)
{
	struct asked *a = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct str key = {(const char *)name, n_name}, text = {(const char *)value, n_value};

	if (str_is(key, ":status"))
		snprintf(a->status, sizeof(a->status), "%.*s", STR_FMT(text));
	else if (str_is(key, "grpc-status"))
		snprintf(a->code, sizeof(a->code), "%.*s", STR_FMT(text));
	else if (str_is(key, "grpc-message"))
		snprintf(a->message, sizeof(a->message), "%.*s", STR_FMT(text));
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t n, void *context)
{
	struct asked *a = nghttp2_session_get_stream_user_data(session, stream);

	expect(n <= sizeof(a->body) - a->n_body);
	memcpy(a->body + a->n_body, data, n);
	a->n_body += n;
	return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct asked *a = nghttp2_session_get_stream_user_data(session, stream);

	a->closed = true;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct client *c = context;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		c->told_to_go = true;
	return 0;
}

static int connect_to_server(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(server_port(owner.server)),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

/* `window`: how much of an answer it takes. */
static void client_init_as(struct client *c, uint32_t window)
{
	const nghttp2_settings_entry settings = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
	nghttp2_session_callbacks *callbacks;

	*c = (struct client){.fd = connect_to_server()};
	expect_eq(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	expect_eq(nghttp2_session_client_new(&c->session, callbacks, c), 0);
	nghttp2_session_callbacks_del(callbacks);
	expect_eq(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &settings, 1), 0);
}

static void client_init(struct client *c)
{
	client_init_as(c, 65535);
}

static void client_fini(struct client *c)
{
	nghttp2_session_del(c->session);
	close(c->fd);
}

static nghttp2_nv pair(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
			    strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* Asks with the bytes as they are. */
static void ask_as(struct client *c, struct asked *a, const char *path, const char *type,
		   const char *encoding, struct str bytes)
{
	nghttp2_data_provider provider = {.source.ptr = a, .read_callback = read_data};
	const nghttp2_nv head[] = {
		pair(":method", "POST"),
		pair(":scheme", "http"),
		pair(":path", path),
		pair(":authority", "x"),
		pair("te", "trailers"),
		pair("content-type", type),
		pair("grpc-encoding", encoding),
	};

	a->data = bytes.p;
	a->n = bytes.n;
	a->stream = nghttp2_submit_request(c->session, NULL, head, sizeof(head) / sizeof(head[0]),
					   &provider, a);
	expect(a->stream > 0);
}

static void ask(struct client *c, struct asked *a, struct str bytes)
{
	ask_as(c, a, METHOD, "application/grpc+proto", "identity", bytes);
}

/* A turn of the client's. */
static void turn(struct client *c)
{
	uint8_t bytes[4096];
	const uint8_t *out;
	ssize_t n;

	if (c->hung_up)
		return;
	while ((n = nghttp2_session_mem_send(c->session, &out)) > 0)
		for (ssize_t at = 0, sent; at < n; at += sent) {
			sent = send(c->fd, out + at, (size_t)(n - at), MSG_NOSIGNAL | MSG_DONTWAIT);
			if (sent < 0 && errno == EAGAIN) {
				server_run(owner.server);
				sent = 0;
			}
			if (sent < 0) {
				c->hung_up = true;
				return;
			}
		}
	n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n > 0)
		expect_eq(nghttp2_session_mem_recv(c->session, bytes, (size_t)n), n);
	else if (n == 0 || errno != EAGAIN)
		c->hung_up = true;
}

static void until(struct client *c, const bool *flag)
{
	int64_t limit = clock_mono() + LIMIT_NS;

	while (!*flag) {
		struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN},
				       {.fd = server_fd(owner.server), .events = POLLIN}};

		expect(clock_mono() < limit);
		turn(c);
		server_run(owner.server);
		if (!*flag && !c->hung_up)
			poll(fds, 2, 10);
	}
}

#define WHOLE STR("\0\0\0\0\3abc")

TEST(a_call_is_answered)
{
	struct asked first = {0}, second = {0};
	struct client c;

	begin();
	client_init(&c);
	ask(&c, &first, WHOLE);
	until(&c, &first.closed);
	expect_str(str_of(first.status), "200");
	expect_str(str_of(first.code), "0");
	expect_eq(first.n_body, 9);
	expect(memcmp(first.body, "\0\0\0\0\4well", 9) == 0);
	expect_str(buf_str(&owner.body), "abc");
	expect_str(str_of(owner.encoding), "");
	ask_as(&c, &second, METHOD, "application/grpc", "gzip", STR("\1\0\0\0\0"));
	until(&c, &second.closed);
	expect_str(str_of(second.code), "0");
	expect_str(str_of(owner.encoding), "gzip");
	expect_eq(owner.body.n, 0);
	expect_eq(owner.over, 2);
	expect_eq(server_bodies(owner.server), 0);
	expect_eq(server_connections(owner.server), 1);
	client_fini(&c);
	end();
}

/* Later, and not in the order of the calls. */
TEST(calls_are_answered_side_by_side)
{
	struct asked asked[2] = {0};
	struct client c;

	begin();
	owner.later = true;
	client_init(&c);
	for (int i = 0; i < 2; i++)
		ask(&c, &asked[i], WHOLE);
	while (owner.n_waiting < 2) {
		turn(&c);
		server_run(owner.server);
	}
	expect_eq(server_bodies(owner.server), 6);
	server_answer_text(owner.waiting[1], 429, "no room");
	until(&c, &asked[1].closed);
	expect(!asked[0].closed);
	expect_str(str_of(asked[1].code), "14");
	expect_str(str_of(asked[1].message), "no room");
	server_answer(owner.waiting[0], &(struct server_answer){.status = 200});
	until(&c, &asked[0].closed);
	expect_str(str_of(asked[0].code), "0");
	client_fini(&c);
	end();
}

static void expect_refused(const char *path, const char *type, const char *encoding,
			   struct str bytes, const char *code, const char *says)
{
	struct asked a = {0};
	struct client c;

	client_init(&c);
	ask_as(&c, &a, path, type, encoding, bytes);
	until(&c, &a.closed);
	if (strcmp(a.code, code) != 0 || !strstr(a.message, says))
		test_fail(__FILE__, __LINE__, "%s, %s: not %s, %s", a.code, a.message, code, says);
	client_fini(&c);
}

TEST(what_is_no_call_is_refused)
{
	static char large[BODY_MAX + 6] = {0, 0x7f};
	const char *grpc = "application/grpc";

	begin();
	expect_refused("/other", grpc, "identity", WHOLE, "12", "no such method; 100 %25 sure");
	expect_refused(METHOD, "application/grpc-web", "identity", WHOLE, "12", "nothing else");
	expect_refused(METHOD, "text/html", "identity", WHOLE, "12", "nothing else");
	expect_refused(METHOD, grpc, "identity", STR(""), "3", "one whole message");
	expect_refused(METHOD, grpc, "identity", STR("\0\0\0"), "3", "one whole message");
	expect_refused(METHOD, grpc, "identity", STR("\0\0\0\0\4abc"), "3", "one whole message");
	expect_refused(METHOD, grpc, "identity", STR("\0\0\0\0\2abc"), "3", "one whole message");
	expect_refused(METHOD, grpc, "identity", STR("\2\0\0\0\3abc"), "3", "one whole message");
	expect_refused(METHOD, grpc, "zstd", STR("\1\0\0\0\3abc"), "12", "only compression");
	expect_refused(METHOD, grpc, "zstd", WHOLE, "0", ""); /* it is not compressed */
	/* By its frame, and by what comes though the frame does not say so. */
	expect_refused(METHOD, grpc, "identity", (struct str){large, sizeof(large)}, "8", "100000");
	large[1] = 0;
	expect_refused(METHOD, grpc, "identity", (struct str){large, sizeof(large)}, "8", "100000");
	expect_eq(owner.wrong, 1);
	expect_eq(owner.ready, 1);
	expect_eq(server_bodies(owner.server), 0);
	end();
}

/* A head that is too large ends its call alone. */
TEST(a_large_head_is_refused)
{
	static char path[8000] = "/";
	struct asked large = {0}, small = {0};
	struct client c;

	memset(path + 1, 'a', sizeof(path) - 2);
	begin();
	client_init(&c);
	ask_as(&c, &large, path, "application/grpc", "identity", WHOLE);
	until(&c, &large.closed);
	expect_str(str_of(large.code), "");
	ask(&c, &small, WHOLE);
	until(&c, &small.closed);
	expect_str(str_of(small.code), "0");
	client_fini(&c);
	end();
}

/* Who speaks HTTP/1.1 is told, and all that is nothing is hung up on. */
TEST(others_are_told)
{
	char text[512] = "";
	ssize_t n = 0, got;
	int fd;

	begin();
	fd = connect_to_server();
	expect(send(fd, "POST /v1development/profiles HTTP/1.1\r\nHost: x\r\n\r\n", 49, 0) == 49);
	do {
		server_run(owner.server);
		got = recv(fd, text + n, sizeof(text) - 1 - (size_t)n, MSG_DONTWAIT);
		n += got > 0 ? got : 0;
	} while (got > 0 || (got < 0 && errno == EAGAIN));
	expect(strstr(text, "HTTP/1.1 505 ") == text && strstr(text, "the other port"));
	expect_eq(server_connections(owner.server), 0);
	close(fd);
	end();
}

TEST(connections_are_bounded)
{
	int fds[6];
	char byte;

	begin();
	for (int i = 0; i < 6; i++)
		fds[i] = connect_to_server();
	server_run(owner.server);
	expect_eq(server_connections(owner.server), 4);
	expect_eq(recv(fds[5], &byte, 1, 0), 0);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	while (server_connections(owner.server) > 0)
		server_run(owner.server);
	end();
}

/* A call that begins and never ends is answered. Who does not take an answer, says no word, or has
 * no call is hung up on. */
TEST(time_is_bounded)
{
	struct asked slow = {.endless = true}, late = {0}, untaken = {0};
	struct client c, full;
	char byte;
	int mute;

	expect_eq(open_and_listen(1), 0);
	mute = connect_to_server();
	client_init(&c);
	ask(&c, &slow, STR("\0\0\0\0\5ab"));
	until(&c, &slow.closed);
	expect_str(str_of(slow.code), "4");
	owner.later = true;
	ask(&c, &late, WHOLE);
	until(&c, &late.closed);
	expect_str(str_of(late.code), "4");
	expect(strstr(late.message, "may have been taken"));
	until(&c, &c.told_to_go);
	until(&c, &c.hung_up);
	while (recv(mute, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		server_run(owner.server);
	owner.later = false;
	client_init_as(&full, 0);
	ask(&full, &untaken, WHOLE);
	until(&full, &full.hung_up);
	expect_str(str_of(untaken.code), "");
	expect_eq(server_connections(owner.server), 0);
	expect_eq(owner.over, 3);
	client_fini(&full);
	close(mute);
	client_fini(&c);
	end();
}

/* The owner hears of each call, however it ends. */
TEST(what_is_under_way_is_over_at_the_end)
{
	struct asked a = {0}, half = {.endless = true};
	struct client c, gone;

	begin();
	owner.later = true;
	client_init(&c);
	client_init(&gone);
	ask(&c, &a, WHOLE);
	ask(&gone, &half, STR("\0\0\0\0\5ab"));
	while (owner.n_waiting < 1 || server_bodies(owner.server) < 5) {
		turn(&c);
		turn(&gone);
		server_run(owner.server);
	}
	client_fini(&gone);
	while (owner.over < 1)
		server_run(owner.server);
	expect_eq(server_bodies(owner.server), 3);
	end();
	expect_eq(owner.over, 2);
	client_fini(&c);
}

static uint32_t random_state = 1;

static uint32_t random_of(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)random_state * n >> 32);
}

/* What a client says, with some bytes changed. */
TEST(damaged_frames_do_no_harm)
{
	uint8_t said[512];
	size_t n_said = 0;
	struct asked a = {0};
	struct client c;
	const uint8_t *out;
	ssize_t n;

	begin();
	client_init(&c);
	ask(&c, &a, WHOLE);
	while ((n = nghttp2_session_mem_send(c.session, &out)) > 0) {
		expect(n_said + (size_t)n <= sizeof(said));
		memcpy(said + n_said, out, (size_t)n);
		n_said += (size_t)n;
	}
	client_fini(&c);
	for (int round = 0; round < 3000; round++) {
		uint8_t damaged[sizeof(said)], bytes[4096];
		int fd = connect_to_server();

		memcpy(damaged, said, n_said);
		for (uint32_t i = 0, times = 1 + random_of(3); i < times; i++)
			damaged[24 + random_of((uint32_t)n_said - 24)] = (uint8_t)random_of(256);
		expect_eq(send(fd, damaged, n_said, MSG_NOSIGNAL), n_said);
		shutdown(fd, SHUT_WR);
		do {
			server_run(owner.server);
			n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		} while (n > 0 || (n < 0 && errno == EAGAIN));
		close(fd);
	}
	while (server_connections(owner.server) > 0)
		server_run(owner.server);
	expect_eq(server_bodies(owner.server), 0);
	printf("# %u of 3000 damaged calls were whole\n", owner.ready);
	end();
}

/* Memory that is short costs the call or its connection. */
static int call_once(void *context)
{
	struct asked a = {0};
	struct client c;
	int rc = open_and_listen(60);

	if (rc != 0)
		return rc;
	client_init(&c);
	ask(&c, &a, WHOLE);
	while (!a.closed && !c.hung_up) {
		turn(&c);
		server_run(owner.server);
	}
	client_fini(&c);
	end();
	return a.code[0] == '0' && !owner.body.failed ? 0 : -ENOMEM;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(call_once, NULL);
}
