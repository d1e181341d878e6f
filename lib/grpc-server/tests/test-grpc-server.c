/* SPDX-License-Identifier: Apache-2.0 */
/* A server of gRPC and its clients, turn by turn in one thread. */
#include "grpc-server/tests/test-grpc-pair.h"

#include "testing/test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(a_call_is_answered)
{
	struct test_asked first = {0}, second = {0};
	struct test_client c;

	test_begin();
	test_client_init(&c);
	test_ask(&c, &first, TEST_WHOLE);
	test_until(&c, &first.closed);
	expect_str(str_of(first.status), "200");
	expect_str(str_of(first.code), "0");
	expect_eq(first.n_body, 9);
	expect(memcmp(first.body, "\0\0\0\0\4well", 9) == 0);
	expect_str(buf_str(&test_owner.body), "abc");
	expect_str(str_of(test_owner.encoding), "");
	test_ask_as(&c, &second, TEST_METHOD, "application/grpc", "gzip", STR("\1\0\0\0\0"));
	test_until(&c, &second.closed);
	expect_str(str_of(second.code), "0");
	expect_str(str_of(test_owner.encoding), "gzip");
	expect_eq(test_owner.body.n, 0);
	expect_eq(test_owner.over, 2);
	expect_eq(server_bodies(test_owner.server), 0);
	expect_eq(server_connections(test_owner.server), 1);
	test_client_fini(&c);
	test_end();
}

/* Later, and not in the order of the calls. */
TEST(calls_are_answered_side_by_side)
{
	struct test_asked asked[2] = {0};
	struct test_client c;

	test_begin();
	test_owner.later = true;
	test_client_init(&c);
	for (int i = 0; i < 2; i++)
		test_ask(&c, &asked[i], TEST_WHOLE);
	while (test_owner.n_waiting < 2) {
		test_turn(&c);
		server_run(test_owner.server);
	}
	expect_eq(server_bodies(test_owner.server), 6);
	server_answer_text(test_owner.waiting[1], 429, "no room");
	test_until(&c, &asked[1].closed);
	expect(!asked[0].closed);
	expect_str(str_of(asked[1].code), "14");
	expect_str(str_of(asked[1].message), "no room");
	server_answer(test_owner.waiting[0], &(struct server_answer){.status = 200});
	test_until(&c, &asked[0].closed);
	expect_str(str_of(asked[0].code), "0");
	test_client_fini(&c);
	test_end();
}

static void expect_refused(const char *path, const char *type, const char *encoding,
			   struct str bytes, const char *code, const char *says)
{
	struct test_asked a = {0};
	struct test_client c;

	test_client_init(&c);
	test_ask_as(&c, &a, path, type, encoding, bytes);
	test_until(&c, &a.closed);
	if (strcmp(a.code, code) != 0 || !strstr(a.message, says))
		test_fail(__FILE__, __LINE__, "%s, %s: not %s, %s", a.code, a.message, code, says);
	test_client_fini(&c);
}

TEST(what_is_no_call_is_refused)
{
	static char large[TEST_BODY_MAX + 6] = {0, 0x7f};
	const struct str body = {large, sizeof(large)}, whole = TEST_WHOLE;
	const char *method = TEST_METHOD, *grpc = "application/grpc";

	test_begin();
	expect_refused("/other", grpc, "identity", whole, "12", "no such method; 100 %25 sure");
	expect_refused(method, "application/grpc-web", "identity", whole, "12", "nothing else");
	expect_refused(method, "text/html", "identity", whole, "12", "nothing else");
	expect_refused(method, grpc, "identity", STR(""), "3", "one whole message");
	expect_refused(method, grpc, "identity", STR("\0\0\0"), "3", "one whole message");
	expect_refused(method, grpc, "identity", STR("\0\0\0\0\4abc"), "3", "one whole message");
	expect_refused(method, grpc, "identity", STR("\0\0\0\0\2abc"), "3", "one whole message");
	expect_refused(method, grpc, "identity", STR("\2\0\0\0\3abc"), "3", "one whole message");
	expect_refused(method, grpc, "zstd", STR("\1\0\0\0\3abc"), "12", "only compression");
	expect_refused(method, grpc, "zstd", whole, "0", ""); /* it is not compressed */
	/* By its frame, and by what comes though the frame does not say so. */
	expect_refused(method, grpc, "identity", body, "8", "100000");
	large[1] = 0;
	expect_refused(method, grpc, "identity", body, "8", "100000");
	expect_eq(test_owner.wrong, 1);
	expect_eq(test_owner.ready, 1);
	expect_eq(server_bodies(test_owner.server), 0);
	test_end();
}

/* A head that is too large ends its call alone. */
TEST(a_large_head_is_refused)
{
	static char path[8000] = "/";
	struct test_asked large = {0}, small = {0};
	struct test_client c;

	memset(path + 1, 'a', sizeof(path) - 2);
	test_begin();
	test_client_init(&c);
	test_ask_as(&c, &large, path, "application/grpc", "identity", TEST_WHOLE);
	test_until(&c, &large.closed);
	expect_str(str_of(large.code), "");
	test_ask(&c, &small, TEST_WHOLE);
	test_until(&c, &small.closed);
	expect_str(str_of(small.code), "0");
	test_client_fini(&c);
	test_end();
}

/* A path is kept as far as a method's may go: a longer one is none. */
TEST(a_long_path_is_no_method)
{
	static char path[3000] = TEST_METHOD;

	memset(path + strlen(TEST_METHOD), 'a', sizeof(path) - 1 - strlen(TEST_METHOD));
	test_begin();
	expect_refused(path, "application/grpc", "identity", TEST_WHOLE, "12", "no such method");
	path[255] = '\0';
	expect_refused(path, "application/grpc", "identity", TEST_WHOLE, "12", "no such method");
	expect_eq(test_owner.longest, 255);
	test_end();
}

/* Who speaks HTTP/1.1 is told, and all that is nothing is hung up on. */
TEST(others_are_told)
{
	char text[512] = "";
	ssize_t n = 0, got;
	int fd;

	test_begin();
	fd = test_connect_to_server();
	expect(send(fd, "POST /v1development/profiles HTTP/1.1\r\nHost: x\r\n\r\n", 49, 0) == 49);
	do {
		server_run(test_owner.server);
		got = recv(fd, text + n, sizeof(text) - 1 - (size_t)n, MSG_DONTWAIT);
		n += got > 0 ? got : 0;
	} while (got > 0 || (got < 0 && errno == EAGAIN));
	expect(strstr(text, "HTTP/1.1 505 ") == text && strstr(text, "the other port"));
	expect_eq(server_connections(test_owner.server), 0);
	close(fd);
	test_end();
}

TEST(connections_are_bounded)
{
	int fds[6];
	char byte;

	test_begin();
	for (int i = 0; i < 6; i++)
		fds[i] = test_connect_to_server();
	server_run(test_owner.server);
	expect_eq(server_connections(test_owner.server), 4);
	expect_eq(recv(fds[5], &byte, 1, 0), 0);
	expect_eq(server_refused(test_owner.server), 2);
	expect_eq(server_waiting(test_owner.server), 0);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	while (server_connections(test_owner.server) > 0)
		server_run(test_owner.server);
	test_end();
}

/* A call that begins and never ends is answered. Who does not take an answer, says no word, or has
 * no call is hung up on. */
TEST(time_is_bounded)
{
	struct test_asked slow = {.endless = true}, late = {0}, untaken = {0};
	struct test_client c, full;
	char byte;
	int mute;

	expect_eq(test_open_and_listen(1), 0);
	mute = test_connect_to_server();
	test_client_init(&c);
	test_ask(&c, &slow, STR("\0\0\0\0\5ab"));
	test_until(&c, &slow.closed);
	expect_str(str_of(slow.code), "4");
	test_owner.later = true;
	test_ask(&c, &late, TEST_WHOLE);
	test_until(&c, &late.closed);
	expect_str(str_of(late.code), "4");
	expect(strstr(late.message, "may have been taken"));
	test_until(&c, &c.told_to_go);
	test_until(&c, &c.hung_up);
	while (recv(mute, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		server_run(test_owner.server);
	test_owner.later = false;
	test_client_init_as(&full, 0);
	test_ask(&full, &untaken, TEST_WHOLE);
	test_until(&full, &full.hung_up);
	expect_str(str_of(untaken.code), "");
	expect_eq(server_connections(test_owner.server), 0);
	expect_eq(test_owner.over, 3);
	test_client_fini(&full);
	close(mute);
	test_client_fini(&c);
	test_end();
}

/* The owner hears of each call, however it ends. */
TEST(what_is_under_way_is_over_at_the_end)
{
	struct test_asked a = {0}, half = {.endless = true};
	struct test_client c, gone;

	test_begin();
	test_owner.later = true;
	test_client_init(&c);
	test_client_init(&gone);
	test_ask(&c, &a, TEST_WHOLE);
	test_ask(&gone, &half, STR("\0\0\0\0\5ab"));
	while (test_owner.n_waiting < 1 || server_bodies(test_owner.server) < 5) {
		test_turn(&c);
		test_turn(&gone);
		server_run(test_owner.server);
	}
	test_client_fini(&gone);
	while (test_owner.over < 1)
		server_run(test_owner.server);
	expect_eq(server_bodies(test_owner.server), 3);
	test_end();
	expect_eq(test_owner.over, 2);
	test_client_fini(&c);
}

/* Takes what has come until the server hangs up. */
static void hear_out(struct test_client *c)
{
	while (!c->hung_up)
		test_turn(c);
}

/* At the end calls are answered that they may be made again, whole or not, and whoever is connected
 * is told to go. */
TEST(an_end_is_told)
{
	struct test_asked whole = {0}, half = {.endless = true}, done = {0};
	struct test_client c, idle, mute;

	test_begin();
	test_client_init(&c);
	test_client_init(&idle);
	test_client_init(&mute);
	test_ask(&idle, &done, TEST_WHOLE);
	test_until(&idle, &done.closed);
	test_owner.later = true;
	test_ask(&c, &whole, TEST_WHOLE);
	test_ask(&c, &half, STR("\0\0\0\0\5ab"));
	while (test_owner.n_waiting < 1 || server_bodies(test_owner.server) < 5) {
		test_turn(&c);
		server_run(test_owner.server);
	}
	test_ask(&c, &done, TEST_WHOLE); /* which it does not come to read */
	test_turn(&c);
	test_end();
	hear_out(&c);
	expect(c.told_to_go && whole.closed && half.closed);
	expect_str(str_of(whole.code), "14");
	expect_str(str_of(half.code), "14");
	expect_str(str_of(half.message), "stopping");
	hear_out(&idle);
	expect(idle.told_to_go);
	hear_out(&mute);
	expect(!mute.told_to_go);
	test_client_fini(&c);
	test_client_fini(&idle);
	test_client_fini(&mute);
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
	struct test_asked a = {0};
	struct test_client c;
	const uint8_t *out;
	ssize_t n;

	test_begin();
	test_client_init(&c);
	test_ask(&c, &a, TEST_WHOLE);
	while ((n = nghttp2_session_mem_send(c.session, &out)) > 0) {
		expect(n_said + (size_t)n <= sizeof(said));
		memcpy(said + n_said, out, (size_t)n);
		n_said += (size_t)n;
	}
	test_client_fini(&c);
	for (int round = 0; round < 3000; round++) {
		uint8_t damaged[sizeof(said)], bytes[4096];
		int fd = test_connect_to_server();

		memcpy(damaged, said, n_said);
		for (uint32_t i = 0, times = 1 + random_of(3); i < times; i++)
			damaged[24 + random_of((uint32_t)n_said - 24)] = (uint8_t)random_of(256);
		expect_eq(send(fd, damaged, n_said, MSG_NOSIGNAL), n_said);
		shutdown(fd, SHUT_WR);
		do {
			server_run(test_owner.server);
			n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		} while (n > 0 || (n < 0 && errno == EAGAIN));
		close(fd);
	}
	while (server_connections(test_owner.server) > 0)
		server_run(test_owner.server);
	expect_eq(server_bodies(test_owner.server), 0);
	printf("# %u of 3000 damaged calls were whole\n", test_owner.ready);
	test_end();
}

/* Memory that is short costs the call or its connection. */
static int call_once(void *context)
{
	struct test_asked a = {0};
	struct test_client c;
	int rc = test_open_and_listen(60);

	if (rc != 0)
		return rc;
	test_client_init(&c);
	test_ask(&c, &a, TEST_WHOLE);
	while (!a.closed && !c.hung_up) {
		test_turn(&c);
		server_run(test_owner.server);
	}
	test_client_fini(&c);
	test_end();
	return a.code[0] == '0' && !test_owner.body.failed ? 0 : -ENOMEM;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(call_once, NULL);
}
