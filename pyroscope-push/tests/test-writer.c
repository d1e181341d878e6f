/* SPDX-License-Identifier: Apache-2.0 */
/* The whole writer against servers that fail. What every test protects: taken = delivered + dropped
 * + in flight, to the sample, and what is counted as delivered is what the server has. */
#include "base/clock.h"
#include "testing/test.h"
#include "pyroscope-push/tests/test-bench.h"

#include <errno.h>
#include <stdlib.h>

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

static void turn(void)
{
	test_host_until(&(const bool){false}, 1);
}

static void until_unhealthy(const struct bench *t)
{
	while (t->host->health != ANDIRON_HEALTH_UNHEALTHY)
		turn();
}

static void until_dropped(const char *reason, uint64_t samples)
{
	while (test_host_dropped(reason) < samples)
		turn();
}

/* One bad series among many takes none with it. */
TEST(a_refused_series_costs_itself_only)
{
	static struct bench t;

	bench_open(&t);
	t.receiver.poison = BENCH_SERIES_7;
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

	bench_open(&t);
	t.args.queue_bytes = 1 << 20;
	t.args.backoff_ms = 60000;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	for (int i = 0; i < 10; i++)
		bench_feed(&t, 50, 300);
	until_unhealthy(&t);
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
	struct push_config *config;
	struct error err = ERROR_NULL;

	bench_open(&t);
	t.args.backoff_ms = 50;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 5, 5);
	until_unhealthy(&t);
	set_url(&t.args, 0, test_server_port(t.receiver.server));
	expect_eq(push_config_new(&protocol_pyroscope, arguments(&t.args), &config, &err), 0);
	expect_eq(writer_update(t.writer, config, &err), 0);
	bench_feed(&t, 5, 5);
	bench_drain(&t, 10000);
	expect_eq(t.host->health, ANDIRON_HEALTH_HEALTHY);
	expect_eq(t.host->delivered, t.taken);
	bench_close(&t);
}

TEST(retries_end_where_they_are_told_to)
{
	static struct bench t;

	bench_open(&t);
	t.args.retries = 3;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 1, 1);
	until_dropped("retries_exhausted", t.taken);
	expect_eq(endpoint_counts(writer_endpoint(t.writer, 0))->requests, 4);
	bench_close(&t);
}

/* The deadline is kept by a server that never answers; it may have what it was sent. */
TEST(a_deadline_is_kept)
{
	static struct bench t;
	int64_t before;

	bench_open(&t);
	t.receiver.hang = true;
	bench_start(&t);
	bench_feed(&t, 10, 10);
	while (__atomic_load_n(&t.receiver.n_requests, __ATOMIC_RELAXED) == 0)
		turn();
	before = clock_mono();
	bench_drain(&t, 100);
	expect(clock_mono() - before < 3 * NS_PER_SEC);
	expect_eq(t.host->uncertain, t.taken);
	expect_eq(t.host->n_dropped, 0);
	bench_close(&t);
}

/* The writer's row is that of its worst endpoint. */
TEST(delivered_means_all_endpoints)
{
	static struct bench t;

	bench_open(&t);
	t.args.n = 2;
	t.args.retries = 1;
	set_url(&t.args, 1, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 10, 10);
	until_dropped("retries_exhausted", t.taken);
	bench_drain(&t, 20000);
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

static bool keeps_addresses(const struct protocol *protocol, const char *word)
{
	const struct andiron_str key = {"unnamed", 7};
	const struct andiron_value text = {.kind = ANDIRON_VALUE_STRING,
					   .string = {word ? word : "", word ? strlen(word) : 0}};
	const struct andiron_value root = {
		.kind = ANDIRON_VALUE_MAP, .keys = &key, .items = &text, .n_items = word != NULL};
	struct push_config *config;
	bool addresses;

	expect_eq(push_config_new(protocol, &root, &config, NULL), 0);
	addresses = config->addresses;
	push_config_release(config);
	return addresses;
}

static const char *default_of(const struct andiron_options *options, const char *name)
{
	for (uint32_t i = 0; i < options->count; i++)
		if (!strcmp(options->items[i].name, name))
			return options->items[i].default_text;
	return "";
}

/* Each server gets what it can use of frames without a name, as the help says, unless it is told
 * otherwise. */
TEST(frames_without_a_name_are_sent_as_the_server_can_use_them)
{
	static const struct {
		const struct protocol *protocol;
		const struct andiron_options *options;
		bool addresses;
	} writers[] = {{&protocol_pyroscope, &pyroscope_options, false},
		       {&protocol_parca, &parca_options, true},
		       {&protocol_otlp, &otlp_options, true}};

	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		expect_eq(keeps_addresses(writers[i].protocol, NULL), writers[i].addresses);
		expect(keeps_addresses(writers[i].protocol, "address"));
		expect(!keeps_addresses(writers[i].protocol, "function"));
		expect_str(str_of(default_of(writers[i].options, "unnamed")),
			   writers[i].addresses ? "\"address\"" : "\"function\"");
	}
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
