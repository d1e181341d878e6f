/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole writer against servers that fail. What every test protects:
 * taken = delivered + dropped + in flight, to the sample, and what is counted
 * as delivered is what the server has.
 */
#include "abi/batch-build.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/test.h"
#include "base/vec.h"
#include "http/test-loop.h"
#include "pprof/decode.h"
#include "pprof/wire.h"
#include "test-host.h"
#include "writer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n"
#define BODY_MAX (4u << 20)

/* What the server has, a profile once however often it came. */
struct stored {
	uint64_t hash;
	int64_t time_ns, samples;
};

struct receiver {
	unsigned int seed;
	bool faulty, hang;
	const char *poison; /* a request that holds this text is refused */
	VEC(struct stored) profiles;
	uint64_t n_requests;
	struct test_server *server;
};

static bool read_body(int fd, struct buf *b)
{
	size_t want = SIZE_MAX, head = 0;

	while (b->n - head < want) {
		char *p = buf_reserve(b, 65536);
		ssize_t r = p ? recv(fd, p, 65536, 0) : -1;
		size_t end;

		if (r <= 0)
			return false;
		b->n += (size_t)r;
		end = str_search(buf_str(b), STR("\r\n\r\n"));
		if (want == SIZE_MAX && end < b->n) {
			size_t at = str_search(buf_str(b), STR("Content-Length: "));

			expect(at < end && end + 4 < BODY_MAX);
			want = strtoul(b->p + at + 16, NULL, 10);
			head = end + 4;
		}
	}
	memmove(b->p, b->p + head, b->n - head);
	b->n -= head;
	return true;
}

/* Stores one series. Two profiles of one time would lose one: refused. */
static void store(struct receiver *r, struct str message)
{
	struct stored s = {.hash = hash_str(message)};
	struct error err = ERROR_NULL;
	struct profile *p;
	struct wire_field f = {0}, pprof;

	while (message.n)
		expect(wire_next(&message, &f));
	expect(f.number == 2 && wire_next(&f.bytes, &pprof));
	expect_eq(profile_decode(pprof.bytes, &p, &err), 0);
	s.time_ns = p->time_ns;
	for (uint32_t i = 0; i < p->n_samples; i++)
		s.samples += p->values[i] / p->period;
	profile_free(p);
	vec_each (&r->profiles, known) {
		if (known->hash == s.hash)
			return;
		expect(known->time_ns != s.time_ns);
	}
	expect(vec_push(&r->profiles, s));
}

static void store_all(struct receiver *r, struct str body)
{
	struct wire_field f;

	while (body.n) {
		expect(wire_next(&body, &f) && f.number == 1);
		if (!r->poison || str_search(f.bytes, str_of(r->poison)) == f.bytes.n)
			store(r, f.bytes);
	}
}

static const char *const failures[] = {
	"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 503 Later\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 429 Fast\r\nContent-Length: 23\r\n\r\npush rate limit exceeded",
	"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n",
	"\x01\x02 garbage",
	"",
};

/* One request a connection: stores before it fails as often as not. */
static void serve(int fd, void *context)
{
	struct receiver *r = context;
	struct buf body = BUF_NULL;
	unsigned int dice = (unsigned int)rand_r(&r->seed);

	if (read_body(fd, &body)) {
		bool poisoned = r->poison && str_search(buf_str(&body), str_of(r->poison)) < body.n;

		r->n_requests++;
		if (!r->faulty || dice & 1)
			store_all(r, buf_str(&body));
		if (r->hang)
			recv(fd, &dice, 1, 0);
		else if (r->faulty && dice % 16 < 8)
			test_say(fd, failures[dice / 16 % 6]);
		else if (poisoned)
			test_say(fd, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n");
		else if (!r->faulty || dice & 1)
			test_say(fd, OK_ANSWER);
	}
	buf_free(&body);
}

static int64_t stored_samples(const struct receiver *r)
{
	int64_t sum = 0;

	vec_each (&r->profiles, s)
		sum += s->samples;
	return sum;
}

/* Arguments by hand: an endpoint block per URL. */
struct arguments {
	char urls[2][64];
	int64_t backoff_ms, retries, timeout_ms, queue_bytes;
	size_t n;
	struct andiron_value values[2][6], blocks[2], list, root;
};

static const struct andiron_str endpoint_keys[] = {
	{"url", 3},
	{"min_backoff_period", 18},
	{"max_backoff_period", 18},
	{"max_backoff_retries", 19},
	{"remote_timeout", 14},
	{"queue_bytes", 11},
};
static const struct andiron_str root_keys[] = {{"endpoint", 8}};

static const struct andiron_value *arguments(struct arguments *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const int64_t numbers[] = {
			0,          a->backoff_ms * NS_PER_MSEC, a->backoff_ms * NS_PER_MSEC,
			a->retries, a->timeout_ms * NS_PER_MSEC, a->queue_bytes};

		for (size_t k = 1; k < 6; k++)
			a->values[i][k] = (struct andiron_value){.kind = ANDIRON_VALUE_INT,
								 .integer = numbers[k]};
		a->values[i][0] = (struct andiron_value){
			.kind = ANDIRON_VALUE_STRING, .string = {a->urls[i], strlen(a->urls[i])}};
		a->blocks[i] = (struct andiron_value){.kind = ANDIRON_VALUE_MAP,
						      .keys = endpoint_keys,
						      .items = a->values[i],
						      .n_items = 6};
	}
	a->list = (struct andiron_value){
		.kind = ANDIRON_VALUE_LIST, .items = a->blocks, .n_items = a->n};
	a->root = (struct andiron_value){
		.kind = ANDIRON_VALUE_MAP, .keys = root_keys, .items = &a->list, .n_items = 1};
	return &a->root;
}

struct bench {
	struct receiver receiver;
	struct arguments args;
	struct test_host *host;
	struct writer *writer;
	uint64_t taken;
};

static void set_url(struct arguments *a, size_t i, uint16_t port)
{
	snprintf(a->urls[i], sizeof(a->urls[i]), "http://127.0.0.1:%u", port);
}

static void bench_open(struct bench *t)
{
	t->receiver.seed = 11;
	t->receiver.server = test_server_new(serve, &t->receiver);
	set_url(&t->args, 0, test_server_port(t->receiver.server));
	t->args.n = 1;
	t->args.backoff_ms = 2;
	t->args.timeout_ms = 5000;
	t->args.queue_bytes = 32 << 20;
}

static void bench_start(struct bench *t)
{
	struct abi_context context;
	struct push_config *config;
	struct error err = ERROR_NULL;

	t->host = test_host_new();
	context = test_host_context();
	if (push_config_new(&protocol_pyroscope, arguments(&t->args), &config, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	expect_eq(writer_new(&context, config, &t->writer), 0);
	expect_eq(writer_start(t->writer, &err), 0);
}

static void bench_feed(struct bench *t, uint32_t n_groups, uint32_t n_rows)
{
	struct test_shape shape = {n_groups, n_rows, 4, 3, clock_real()};
	const struct andiron_batch *batch = test_batch(&shape);

	t->taken += batch->samples;
	writer_batch(t->writer, batch);
	batch_release(batch);
	expect_eq(t->taken, t->host->delivered + t->host->n_dropped + t->host->in_flight);
}

static void bench_drain(struct bench *t, int64_t ms)
{
	writer_drain(t->writer, ms * NS_PER_MSEC);
	expect(test_host_until(&t->host->drained, ms + 5000));
	expect_eq(t->host->in_flight, 0);
	expect_eq(t->taken, t->host->delivered + t->host->n_dropped);
}

static void bench_close(struct bench *t)
{
	writer_stop(t->writer);
	expect_eq(t->taken, t->host->delivered + t->host->n_dropped);
	writer_free(t->writer);
	test_host_free();
	test_server_free(t->receiver.server);
	vec_free(&t->receiver.profiles);
}

TEST(all_arrives_and_many_series_share_a_request)
{
	static struct bench t;

	bench_open(&t);
	bench_start(&t);
	for (int i = 0; i < 5; i++)
		bench_feed(&t, 100, 20);
	bench_drain(&t, 20000);
	expect_eq(t.host->delivered, t.taken);
	expect_eq(t.host->health, ANDIRON_HEALTH_HEALTHY);
	bench_close(&t);
	expect(t.receiver.n_requests <= 8);
}

/* A server that fails in every way at random, often after it has stored. */
TEST(all_arrives_through_faults)
{
	static struct bench t;

	bench_open(&t);
	t.receiver.faulty = true;
	bench_start(&t);
	for (int i = 0; i < 20; i++) {
		bool never = false;

		bench_feed(&t, 30, 10);
		test_host_until(&never, 5);
	}
	bench_drain(&t, 60000);
	expect_eq(t.host->delivered, t.taken);
	expect_eq(stored_samples(&t.receiver), (int64_t)t.taken);
	bench_close(&t);
}

/* One bad series among many takes none with it. */
TEST(a_refused_series_costs_itself_only)
{
	static struct bench t;

	bench_open(&t);
	t.receiver.poison = "s7";
	bench_start(&t);
	bench_feed(&t, 20, 10);
	bench_drain(&t, 20000);
	expect_eq(t.host->n_dropped, 30);
	expect_eq(test_host_dropped("refused"), 30);
	expect_eq(stored_samples(&t.receiver), (int64_t)t.host->delivered);
	bench_close(&t);
}

/* Without a server: unhealthy with the cause, bounded, and counted. */
TEST(an_absent_server_is_named_and_costs_bounded_memory)
{
	static struct bench t;
	static const bool never;

	bench_open(&t);
	t.args.queue_bytes = 1 << 20;
	t.args.backoff_ms = 60000;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	for (int i = 0; i < 10; i++)
		bench_feed(&t, 50, 300);
	test_host_until(&never, 100);
	expect_eq(t.host->health, ANDIRON_HEALTH_UNHEALTHY);
	expect(strstr(t.host->message, "connection refused by 127.0.0.1:"));
	expect(endpoint_counts(writer_endpoint(t.writer, 0))->queued_bytes <= 1 << 20);
	expect(test_host_dropped("queue_full") > 0);
	bench_drain(&t, 50);
	expect(test_host_dropped("deadline") > 0);
	bench_close(&t);
}

/* What was queued for a mistyped URL goes to the corrected one. */
TEST(an_update_takes_the_queue_along)
{
	static struct bench t;
	static const bool never;
	struct push_config *config;
	struct error err = ERROR_NULL;

	bench_open(&t);
	t.args.backoff_ms = 50;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 5, 5);
	test_host_until(&never, 100);
	expect_eq(t.host->health, ANDIRON_HEALTH_UNHEALTHY);
	set_url(&t.args, 0, test_server_port(t.receiver.server));
	expect_eq(push_config_new(&protocol_pyroscope, arguments(&t.args), &config, &err), 0);
	expect_eq(writer_update(t.writer, config), 0);
	bench_feed(&t, 5, 5);
	bench_drain(&t, 10000);
	expect_eq(t.host->health, ANDIRON_HEALTH_HEALTHY);
	expect_eq(t.host->delivered, t.taken);
	bench_close(&t);
}

TEST(retries_end_where_they_are_told_to)
{
	static struct bench t;
	static const bool never;

	bench_open(&t);
	t.args.retries = 3;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 1, 1);
	test_host_until(&never, 200);
	expect_eq(test_host_dropped("retries_exhausted"), t.taken);
	expect_eq(endpoint_counts(writer_endpoint(t.writer, 0))->requests, 4);
	bench_close(&t);
}

/* The deadline is kept by a server that never answers, and by one that is
 * not asked any more. */
TEST(a_deadline_is_kept)
{
	static struct bench t;
	int64_t before;

	bench_open(&t);
	t.receiver.hang = true;
	bench_start(&t);
	bench_feed(&t, 10, 10);
	before = clock_mono();
	bench_drain(&t, 100);
	expect(clock_mono() - before < 3 * NS_PER_SEC);
	expect_eq(test_host_dropped("deadline"), t.taken);
	bench_close(&t);
}

/* The writer's row is that of its worst endpoint. */
TEST(delivered_means_all_endpoints)
{
	static struct bench t;
	static const bool never;

	bench_open(&t);
	t.args.n = 2;
	t.args.retries = 1;
	set_url(&t.args, 1, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 10, 10);
	test_host_until(&never, 200);
	bench_drain(&t, 5000);
	expect_eq(test_host_dropped("retries_exhausted"), t.taken);
	expect_eq(t.host->delivered, 0);
	expect_eq(endpoint_counts(writer_endpoint(t.writer, 0))->sent_profiles, 10);
	bench_close(&t);
	expect_eq(t.receiver.n_requests, 1);
}

/* Stopping without a drain counts what is left. */
TEST(a_stop_counts_what_is_left)
{
	static struct bench t;

	bench_open(&t);
	t.receiver.hang = true;
	bench_start(&t);
	bench_feed(&t, 10, 10);
	writer_stop(t.writer);
	expect_eq(test_host_dropped("stopped"), t.taken);
	bench_close(&t);
}

/* Nothing is left of arguments that cannot be used. */
TEST(bad_arguments_are_refused)
{
	static const char *const urls[] = {"", "pyroscope:4040", "ftp://x", "http://a b"};
	struct arguments a = {.n = 1, .backoff_ms = 1, .timeout_ms = 1, .queue_bytes = 1 << 20};
	struct error err = ERROR_NULL;
	struct push_config *config;

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		snprintf(a.urls[0], sizeof(a.urls[0]), "%s", urls[i]);
		expect_eq(push_config_new(&protocol_pyroscope, arguments(&a), &config, &err),
			  -EINVAL);
		expect(strstr(err.text, "endpoint.url"));
	}
	snprintf(a.urls[0], sizeof(a.urls[0]), "https://me:secret@host:4040/base/");
	expect_eq(push_config_new(&protocol_pyroscope, arguments(&a), &config, &err), 0);
	expect_str(str_of(config->endpoints[0].name), "https://host:4040/base");
	expect_str(str_of(config->endpoints[0].url),
		   "https://me:secret@host:4040/base/push.v1.PusherService/Push");
	push_config_release(config);
}

static int make_config(void *context)
{
	struct push_config *config;
	int rc = push_config_new(&protocol_pyroscope, arguments(context), &config, NULL);

	if (rc == 0)
		push_config_release(config);
	return rc;
}

TEST(configs_survive_short_memory)
{
	struct arguments a = {.n = 2, .backoff_ms = 1, .timeout_ms = 1, .queue_bytes = 1 << 20};

	set_url(&a, 0, 1);
	set_url(&a, 1, 2);
	test_each_failing_allocation(make_config, &a);
}
