/* SPDX-License-Identifier: Apache-2.0 */
/* A swarm followed, over HTTP, of an engine that is this test's. */
#include "docker/swarm.h"
#include "docker/tests/test-host.h"
#include "testing/test.h"

#include <errno.h>
#include <unistd.h>

#define REFRESH  (30 * NS_PER_SEC)
#define SERVICES "[{\"ID\":\"sv\",\"Spec\":{\"Name\":\"web\"}}]"
#define NODES    "[{\"ID\":\"nd\",\"Status\":{\"Addr\":\"192.0.2.1\"}}]"
#define TASK(id)                                                                                   \
	"{\"ID\":\"" id "\",\"ServiceID\":\"sv\",\"NodeID\":\"nd\",\"NetworksAttachments\":"       \
	"[{\"Addresses\":[\"10.0.0.1/24\"]}]}"

struct engine {
	struct test_server *server;
	atomic_int rounds; /* lists of tasks that were asked for */
	atomic_int events; /* attempts to follow */
	atomic_int filtered;
	/* What it answers; changed while nothing is asked for. */
	const char *_Atomic tasks, *_Atomic nodes;
	atomic_int status;
	atomic_bool streams; /* a stream of events is one event, and ends */
	atomic_bool endless; /* an answer about tasks goes on until nobody takes it */
	struct swarm *s;
};

static void go_on(int fd)
{
	static char spaces[64 << 10];

	memset(spaces, ' ', sizeof(spaces));
	test_say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[");
	while (test_send(fd, spaces, sizeof(spaces)))
		;
}

static void serve(int fd, void *context)
{
	static const char event[] = "{\"Type\":\"service\",\"Action\":\"update\"}\n";
	static char request[TEST_REQUEST_MAX];
	struct engine *e = context;

	if (!test_read_request(fd, request))
		return;
	if (!strncmp(request, "GET /events", 11)) {
		atomic_fetch_add(&e->events, 1);
		if (e->streams)
			test_host_answer(fd, 200, event);
		else
			test_host_answer(fd, 403, "no events here");
	} else if (!strncmp(request, "GET /tasks?", 11)) {
		atomic_fetch_add(&e->rounds, 1);
		e->filtered += strstr(request, "filters=%7B%22name%22%3A%5B%22web%22%5D%7D") !=
			       NULL;
		if (e->endless)
			go_on(fd);
		else
			test_host_answer(fd, e->status, e->tasks);
	} else if (!strncmp(request, "GET /services ", 14)) {
		test_host_answer(fd, 200, SERVICES);
	} else if (!strncmp(request, "GET /nodes ", 11)) {
		test_host_answer(fd, 200, e->nodes);
	} else {
		test_host_answer(fd, 200, "[]");
	}
}

static void begin(struct engine *e)
{
	char address[64];
	const struct andiron_str keys[] = {
		{"host", 4}, {"refresh_interval", 16}, {"role", 4}, {"filter", 6}};
	const struct andiron_str filter_keys[] = {{"name", 4}, {"values", 6}};
	const struct andiron_value web = {.kind = ANDIRON_VALUE_STRING, .string = {"web", 3}};
	const struct andiron_value filter_values[] = {
		{.kind = ANDIRON_VALUE_STRING, .string = {"name", 4}},
		{.kind = ANDIRON_VALUE_LIST, .items = &web, .n_items = 1},
	};
	const struct andiron_value filter = {.kind = ANDIRON_VALUE_MAP,
					     .keys = filter_keys,
					     .items = filter_values,
					     .n_items = 2};
	struct andiron_value values[] = {
		{.kind = ANDIRON_VALUE_STRING, .string = {address, 0}},
		{.kind = ANDIRON_VALUE_INT, .integer = REFRESH},
		{.kind = ANDIRON_VALUE_STRING, .string = {"tasks", 5}},
		{.kind = ANDIRON_VALUE_LIST, .items = &filter, .n_items = 1},
	};
	const struct andiron_value args = {
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = values, .n_items = 4};
	void *self;

	test_host_begin();
	if (!e->tasks)
		e->tasks = "[" TASK("t1") "]";
	e->nodes = NODES;
	e->status = e->status ? e->status : 200;
	e->server = test_server_new(serve, e);
	snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", test_server_port(e->server));
	values[0].string.len = strlen(address);
	expect_eq(swarm_create(&test_host_calls, 1, &args, &self, NULL), 0);
	e->s = self;
	expect_eq(swarm_start(e->s, NULL), 0);
	test_host.ahead_ns += NS_PER_SEC;
}

static void end(struct engine *e)
{
	swarm_stop(e->s);
	if (e->server)
		test_server_free(e->server);
	swarm_free(e->s);
	test_host_end();
}

/* Only the role's own list is filtered; where no events come, all is listed each interval, and only
 * what has changed is sent. */
TEST(rounds_are_made_each_interval)
{
	struct engine e = {0};

	begin(&e);
	expect(test_host_until_targets(1));
	expect(test_host_until_says("1 tasks are known, listed every 30s: the Docker engine"));
	expect_eq(e.rounds, 1);
	expect_eq(e.filtered, 1);
	e.tasks = "[" TASK("t0") "," TASK("t1") "]";
	test_host.ahead_ns += REFRESH;
	expect(test_host_until_targets(2));
	expect_eq(test_host.changes[TARGET_ADDED], 2);
	expect_eq(test_host.changes[TARGET_CHANGED] + test_host.changes[TARGET_REMOVED], 0);
	e.tasks = "[]";
	test_host.ahead_ns += REFRESH;
	expect(test_host_until_targets(0));
	expect_eq(swarm_counts(e.s).updates, 3);
	end(&e);
}

/* An event has the swarm listed, and listed again soon: no event tells when a task runs. */
TEST(an_event_begins_rounds)
{
	struct engine e = {.streams = true};
	int before;

	begin(&e);
	expect(test_host_until_targets(1));
	e.streams = false;
	before = e.rounds;
	for (int i = 1; i <= 3; i++) {
		test_host.ahead_ns += 4 * NS_PER_SEC;
		expect(test_host_until(&e.rounds, before + i));
	}
	expect(swarm_counts(e.s).events > 0);
	end(&e);
}

/* What does not answer, or answers with other things, costs no target, and is said; then the rounds
 * go on. */
TEST(trouble_keeps_the_targets)
{
	static const struct {
		int status;
		const char *tasks, *says;
	} rows[] = {
		{503, "{\"message\":\"This node is not a swarm manager.\"}",
		 "answered 503 when asked for its tasks: {\"message\":\"This node is not a swarm"},
		{200, "<html>", "the list of tasks is not JSON"},
		{200, "{}", "is JSON, but no list"},
	};
	struct engine e = {0};

	begin(&e);
	expect(test_host_until_targets(1));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		e.status = rows[i].status;
		e.tasks = rows[i].tasks;
		test_host.ahead_ns += REFRESH;
		expect(test_host_until_says(rows[i].says));
		expect(strstr(test_host.health, "the last targets stay"));
		expect_eq(target_table_count(test_host.targets), 1);
	}
	e.status = 200;
	e.tasks = "[" TASK("t1") "," TASK("t2") "]";
	test_host.ahead_ns += REFRESH;
	expect(test_host_until_targets(2));
	e.endless = true;
	test_host.ahead_ns += REFRESH;
	expect(test_host_until_says("is larger than 33554432 bytes"));
	e.endless = false;
	e.nodes = "[";
	test_host.ahead_ns += REFRESH;
	expect(test_host_until_says("the list of nodes is not JSON"));
	test_server_free(e.server);
	e.server = NULL;
	test_host.ahead_ns += REFRESH;
	expect(test_host_until_says("cannot be asked"));
	expect_eq(target_table_count(test_host.targets), 2);
	end(&e);
}
