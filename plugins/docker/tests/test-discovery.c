/* SPDX-License-Identifier: Apache-2.0 */
/* The engine followed, over HTTP. It is a proxy here that refuses /events, as many do. */
#include "docker/discovery.h"
#include "docker/tests/test-host.h"
#include "testing/test.h"

#include <unistd.h>

#define REFRESH (30 * NS_PER_SEC) /* events that were refused are not asked for yet */
#define CONTAINER                                                                                  \
	"{\"Id\":\"aa\",\"Names\":[\"/web\"],\"HostConfig\":{\"NetworkMode\":\"shop\"},"           \
	"\"NetworkSettings\":{\"Networks\":{\"shop\":{\"NetworkID\":\"n1\",\"IPAddress\":"         \
	"\"10.0.0.2\"}}}}"

struct engine {
	struct test_server *server;
	atomic_int lists, networks; /* requests */
	int failing;                /* lists that fail at first */
	int go[2];                  /* a byte for each answer about networks */
	struct discovery *d;
};

static void serve(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	struct engine *e = context;
	char byte;

	if (!test_read_request(fd, request))
		return;
	if (!strncmp(request, "GET /networks ", 14)) {
		atomic_fetch_add(&e->networks, 1);
		if (read(e->go[0], &byte, 1) == 1)
			test_host_answer(fd, 403, "no networks here");
	} else if (!strncmp(request, "GET /containers/json", 20)) {
		bool fails = atomic_fetch_add(&e->lists, 1) < e->failing;

		test_host_answer(fd, fails ? 500 : 200, fails ? "not yet" : "[" CONTAINER "]");
	} else {
		test_host_answer(fd, 403, "no events here");
	}
}

/* Starts; the first list is asked for once the engine's events have been waited for. */
static void begin(struct engine *e)
{
	char address[64];
	const struct andiron_str keys[] = {{"host", 4}, {"refresh_interval", 16}};
	struct andiron_value values[] = {
		{.kind = ANDIRON_VALUE_STRING, .string = {address, 0}},
		{.kind = ANDIRON_VALUE_INT, .integer = REFRESH},
	};
	const struct andiron_value args = {
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = values, .n_items = 2};
	void *self;

	test_host_begin();
	expect(pipe(e->go) == 0);
	e->server = test_server_new(serve, e);
	snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", test_server_port(e->server));
	values[0].string.len = strlen(address);
	expect_eq(discovery_create(&test_host_calls, 1, &args, &self, NULL), 0);
	e->d = self;
	expect_eq(discovery_start(e->d, NULL), 0);
	test_host.ahead_ns += NS_PER_SEC;
}

static void end(struct engine *e)
{
	discovery_stop(e->d);
	close(e->go[1]); /* whoever waits for a byte gets none */
	test_server_free(e->server);
	discovery_free(e->d);
	test_host_end();
	close(e->go[0]);
}

/* What was to be listed while the networks were asked for, and refused, is listed after that. The
 * targets are published without what is not known of them, and that is said. */
TEST(a_refusal_of_networks_holds_up_nothing)
{
	struct engine e = {0};

	begin(&e);
	expect(test_host_until(&e.networks, 1));
	expect_eq(e.lists, 1);
	test_host.ahead_ns += REFRESH;
	test_host_call();
	expect_eq(write(e.go[1], "y", 1), 1);
	expect(test_host_until_says("403 when asked for its networks"));
	expect(strstr(test_host.health, "labels"));
	expect(!strstr(test_host.health, "the last targets stay"));
	expect_eq(target_table_count(test_host.targets), 1);
	expect(test_host_until(&e.lists, 2));
	end(&e);
}

/* A list that failed is asked for again soon, although events were refused for longer. */
TEST(a_failed_list_is_tried_again_soon)
{
	struct engine e = {.failing = 1};

	begin(&e);
	expect(test_host_until(&e.lists, 2));
	end(&e);
}
