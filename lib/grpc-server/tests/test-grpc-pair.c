/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in test-grpc-pair.h. */
#include "grpc-server/tests/test-grpc-pair.h"

#include "base/clock.h"
#include "testing/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT_NS (120 * NS_PER_SEC)

struct test_owner test_owner;

static void on_begin(void *context, struct server_request *r)
{
	size_t n = server_request_path(r).n;

	if (n > test_owner.longest)
		test_owner.longest = n;
	if (!str_is(server_request_path(r), TEST_METHOD)) {
		test_owner.wrong++;
		server_answer_text(r, 404, "no such method; 100 % sure\n");
	}
}

static void on_ready(void *context, struct server_request *r)
{
	struct str encoding = server_request_header(r, "Content-Encoding");

	expect(server_request_is(r, "POST") && server_request_is_local(r));
	expect(!server_request_query(r, "a").p);
	test_owner.ready++;
	buf_clear(&test_owner.body);
	buf_str_append(&test_owner.body, server_request_body(r));
	snprintf(test_owner.encoding, sizeof(test_owner.encoding), "%.*s", (int)encoding.n,
		 encoding.n ? encoding.p : "");
	if (test_owner.later)
		test_owner.waiting[test_owner.n_waiting++] = r;
	else
		server_answer(r, &(struct server_answer){.status = 200, .body = STR("well")});
}

static void on_over(void *context, struct server_request *r)
{
	test_owner.over++;
}

int test_open_and_listen(unsigned int seconds)
{
	const struct server_events events = {NULL, on_begin, on_ready, on_over};
	const struct server_options options = {.open = grpc_server_open,
					       .address = "127.0.0.1",
					       .limits = {.connections = 4,
							  .memory = 4096,
							  .request_s = seconds,
							  .answer_s = seconds,
							  .idle_s = seconds,
							  .max_body = TEST_BODY_MAX,
							  .max_bodies = 2 * TEST_BODY_MAX}};
	struct error err = ERROR_NULL;

	int rc = server_new(&options, &events, &test_owner.server, &err);

	if (rc)
		return rc;
	rc = server_listen(test_owner.server, &options, &err);
	if (rc)
		server_free(test_owner.server);
	return rc;
}

void test_begin(void)
{
	expect_eq(test_open_and_listen(60), 0);
}

void test_end(void)
{
	server_free(test_owner.server);
	buf_free(&test_owner.body);
}

static ssize_t read_data(nghttp2_session *session, int32_t stream, uint8_t *out, size_t n,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct test_asked *a = source->ptr;

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
	struct test_asked *a = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
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
	struct test_asked *a = nghttp2_session_get_stream_user_data(session, stream);

	expect(n <= sizeof(a->body) - a->n_body);
	memcpy(a->body + a->n_body, data, n);
	a->n_body += n;
	return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct test_asked *a = nghttp2_session_get_stream_user_data(session, stream);

	a->closed = true;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct test_client *c = context;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		c->told_to_go = true;
	return 0;
}

int test_connect_to_server(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(server_port(test_owner.server)),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

void test_client_init_as(struct test_client *c, uint32_t window)
{
	const nghttp2_settings_entry settings = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
	nghttp2_session_callbacks *callbacks;

	*c = (struct test_client){.fd = test_connect_to_server()};
	expect_eq(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	expect_eq(nghttp2_session_client_new(&c->session, callbacks, c), 0);
	nghttp2_session_callbacks_del(callbacks);
	expect_eq(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &settings, 1), 0);
}

void test_client_init(struct test_client *c)
{
	test_client_init_as(c, 65535);
}

void test_client_fini(struct test_client *c)
{
	nghttp2_session_del(c->session);
	close(c->fd);
}

static nghttp2_nv pair(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
			    strlen(value), NGHTTP2_NV_FLAG_NONE};
}

void test_ask_as(struct test_client *c, struct test_asked *a, const char *path, const char *type,
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

void test_ask(struct test_client *c, struct test_asked *a, struct str bytes)
{
	test_ask_as(c, a, TEST_METHOD, "application/grpc+proto", "identity", bytes);
}

void test_turn(struct test_client *c)
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
				server_run(test_owner.server);
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

void test_until(struct test_client *c, const bool *flag)
{
	int64_t limit = clock_mono() + LIMIT_NS;

	while (!*flag) {
		struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN},
				       {.fd = server_fd(test_owner.server), .events = POLLIN}};

		expect(clock_mono() < limit);
		test_turn(c);
		server_run(test_owner.server);
		if (!*flag && !c->hung_up)
			poll(fds, 2, 10);
	}
}
