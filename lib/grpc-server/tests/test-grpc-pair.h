/* SPDX-License-Identifier: Apache-2.0 */
/* A server of gRPC and its clients, turn by turn in one thread: for tests. */
#pragma once

#include "base/buf.h"
#include "grpc-server/grpc-server.h"

#include <nghttp2/nghttp2.h>

#define TEST_METHOD   "/a.Service/Method"
#define TEST_BODY_MAX 100000
#define TEST_WHOLE    STR("\0\0\0\0\3abc")

/* The server's, and what it was asked. It answers "well" to calls of the method. */
struct test_owner {
	struct server *server;
	struct server_request *waiting[4];
	unsigned int n_waiting, ready, over, wrong;
	size_t longest; /* path */
	struct buf body;
	char encoding[16];
	bool later; /* the owner does not answer at once */
};
extern struct test_owner test_owner;

/* Each thing may take so many seconds. 0 or a negative errno. */
int test_open_and_listen(unsigned int seconds);
/* With time enough. */
void test_begin(void);
void test_end(void);

struct test_client {
	int fd;
	nghttp2_session *session;
	bool hung_up, told_to_go;
};

struct test_asked {
	int32_t stream;
	char status[8], code[8], message[256], body[16];
	size_t n_body;
	bool closed;
	const char *data; /* to be sent */
	size_t n, at;
	bool endless; /* the end is not said */
};

int test_connect_to_server(void);
/* `window`: how much of an answer it takes. */
void test_client_init_as(struct test_client *c, uint32_t window);
void test_client_init(struct test_client *c);
void test_client_fini(struct test_client *c);

/* Asks with the bytes as they are. */
void test_ask_as(struct test_client *c, struct test_asked *a, const char *path, const char *type,
		 const char *encoding, struct str bytes);
void test_ask(struct test_client *c, struct test_asked *a, struct str bytes);
/* A turn of the client's. */
void test_turn(struct test_client *c);
/* Turns of both. */
void test_until(struct test_client *c, const bool *flag);
