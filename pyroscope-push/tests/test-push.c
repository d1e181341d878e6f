/* SPDX-License-Identifier: Apache-2.0 */
/* The writer against a server that is given from outside, for tests/servers/test_push.py. What to
 * do stands in the environment:
 *
 *   PUSH_URL       the server; none: nothing is done
 *   PUSH_BATCHES, PUSH_SERIES, PUSH_ROWS, PUSH_SAMPLES   what is sent
 *   PUSH_PREFIX    the series are named PREFIX0, PREFIX1, …
 *   PUSH_LABELS    more labels of each: NAME=VALUE,NAME=VALUE
 *   PUSH_PAUSE_MS  between batches
 *   PUSH_DRAIN_MS, PUSH_TIMEOUT_MS, PUSH_BACKOFF_MS, PUSH_RETRIES
 *   PUSH_CA, PUSH_SERVER_NAME, PUSH_TENANT
 *   PUSH_PROTOCOL  "parca", "otlp", "otlp_grpc"; else Pyroscope's
 *   PUSH_SPOOL, PUSH_SPOOL_BYTES   the spool's directory and size
 *   PUSH_MAX_AGE_MS, PUSH_AT_LEAST_ONCE
 *   PUSH_ODD       so many batches of a producer that knows no rules
 *   PUSH_STEPS     it does what stands on its standard input, a line a step: "feed N" batches,
 *                  "settle" (until nothing is held), "settle memory"; and says "done" after each.
 * At the end of input it ends.
 *
 * Before each batch it says "taken N".
 *
 * Its last line but the plan's is the writer's row of the ledger, as JSON. */
#include "abi/batch-build.h"
#include "base/clock.h"
#include "testing/test.h"
#include "pyroscope-push/tests/test-host.h"
#include "pyroscope-push/tests/test-odd.h"
#include "pyroscope-push/writer.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t number(const char *name, int64_t absent)
{
	const char *text = getenv(name);

	return text ? strtoll(text, NULL, 10) : absent;
}

static struct str text(const char *name)
{
	return str_of(getenv(name));
}

/* The arguments as pyroscope.write would get them; what blocks and maps would say is put into the
 * finished config. */
static const struct protocol *protocol(void)
{
	static const struct {
		const char *name;
		const struct protocol *protocol;
	} all[] = {{"parca", &protocol_parca},
		   {"otlp", &protocol_otlp},
		   {"otlp_grpc", &protocol_otlp_grpc}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (str_is(text("PUSH_PROTOCOL"), all[i].name))
			return all[i].protocol;
	return &protocol_pyroscope;
}

static struct push_config *make_config(const char *url)
{
	static const struct andiron_str keys[] = {{"url", 3},
						  {"remote_timeout", 14},
						  {"min_backoff_period", 18},
						  {"max_backoff_retries", 19}};
	static const struct andiron_str list_key[] = {{"endpoint", 8}};
	static struct http_header tenant = {STR("X-Scope-OrgID"), STR_NULL};
	const struct andiron_value values[] = {
		{.kind = ANDIRON_VALUE_STRING, .string = {url, strlen(url)}},
		{.kind = ANDIRON_VALUE_INT,
		 .integer = number("PUSH_TIMEOUT_MS", 5000) * NS_PER_MSEC},
		{.kind = ANDIRON_VALUE_INT, .integer = number("PUSH_BACKOFF_MS", 20) * NS_PER_MSEC},
		{.kind = ANDIRON_VALUE_INT, .integer = number("PUSH_RETRIES", 10)},
	};
	const struct andiron_value block = {
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = values, .n_items = 4};
	const struct andiron_value list = {
		.kind = ANDIRON_VALUE_LIST, .items = &block, .n_items = 1};
	const struct andiron_value root = {
		.kind = ANDIRON_VALUE_MAP, .keys = list_key, .items = &list, .n_items = 1};
	struct push_config *config;
	struct error err = ERROR_NULL;

	if (push_config_new(protocol(), &root, &config, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	config->endpoints[0].client.http.ca_file = text("PUSH_CA");
	config->endpoints[0].client.http.server_name = text("PUSH_SERVER_NAME");
	tenant.value = text("PUSH_TENANT");
	config->endpoints[0].headers = &tenant;
	config->endpoints[0].n_headers = tenant.value.n > 0;
	config->endpoints[0].at_least_once = number("PUSH_AT_LEAST_ONCE", 0);
	config->endpoints[0].max_age_ns =
		number("PUSH_MAX_AGE_MS", config->endpoints[0].max_age_ns / NS_PER_MSEC) *
		NS_PER_MSEC;
	config->spool_directory = getenv("PUSH_SPOOL");
	config->spool_bytes = (uint64_t)number("PUSH_SPOOL_BYTES", SPOOL_MIN_BYTES);
	return config;
}

static uint64_t feed(struct writer *w, struct test_host *host, int64_t batches)
{
	struct test_shape shape = {
		.n_groups = (uint32_t)number("PUSH_SERIES", 1),
		.n_rows = (uint32_t)number("PUSH_ROWS", 10),
		.n_depth = 20,
		.samples = (uint64_t)number("PUSH_SAMPLES", 1),
		.prefix = getenv("PUSH_PREFIX"),
		.labels = getenv("PUSH_LABELS"),
	};
	static const bool never;

	for (int64_t i = batches; i > 0; i--) {
		const struct andiron_batch *batch;

		shape.end_ns = clock_real();
		batch = test_batch(&shape);
		host->taken += batch->samples;
		printf("taken %llu\n", (unsigned long long)host->taken);
		fflush(stdout);
		writer_batch(w, batch);
		batch_release(batch);
		test_host_until(&never, number("PUSH_PAUSE_MS", 0));
	}
	return host->taken;
}

/* Until nothing is held, or nothing that only memory has. */
static void settle(const struct test_host *host, bool all)
{
	while (host->in_flight + (all ? host->spooled : 0) > 0)
		test_host_until(&(const bool){false}, 1);
}

static uint64_t follow_steps(struct writer *w, struct test_host *host)
{
	char line[64];
	int64_t n;

	for (;;) {
		struct pollfd in = {.fd = 0, .events = POLLIN};

		while (poll(&in, 1, 0) == 0)
			test_host_until(&(const bool){false}, 1);
		if (!fgets(line, sizeof(line), stdin))
			return host->taken;
		if (sscanf(line, "feed %lld", (long long *)&n) == 1)
			feed(w, host, n);
		else if (strcmp(line, "settle\n") == 0)
			settle(host, true);
		else if (strcmp(line, "settle memory\n") == 0)
			settle(host, false);
		else
			test_fail(__FILE__, __LINE__, "unknown step: %s", line);
		printf("done\n");
		fflush(stdout);
	}
}

/* Waits for the server now and then, so that the queue holds all. */
static uint64_t feed_odd(struct writer *w, int64_t n, struct test_odd_counts *counts)
{
	static const bool never;
	unsigned int seed = (unsigned int)number("PUSH_SEED", 1);
	uint64_t taken = 0;

	for (int64_t i = 0; i < n; i++) {
		const struct andiron_batch *batch = test_odd_batch(&seed, counts);

		taken += batch->samples;
		writer_batch(w, batch);
		batch_release(batch);
		while (endpoint_counts(writer_endpoint(w, 0))->queued_profiles > 1000)
			test_host_until(&never, 1);
	}
	return taken;
}

static void print_figures(const struct writer *w)
{
	const struct series_repairs *r = writer_repairs(w);

	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	printf("\"peak_kib\": %ld, \"sent_bytes\": %llu, ", used.ru_maxrss,
	       (unsigned long long)endpoint_counts(writer_endpoint(w, 0))->sent_bytes);
	printf("\"repairs\": {\"dropped\": %llu, \"cut\": %llu, \"spelled\": %llu, "
	       "\"moved\": %llu}, "
	       "\"profiles\": %llu, ",
	       (unsigned long long)r->labels.dropped, (unsigned long long)r->labels.cut,
	       (unsigned long long)r->labels.spelled, (unsigned long long)r->moved,
	       (unsigned long long)endpoint_counts(writer_endpoint(w, 0))->sent_profiles);
}

TEST(push)
{
	const char *url = getenv("PUSH_URL");
	struct abi_context context;
	struct test_host *host;
	struct error err = ERROR_NULL;
	struct writer *w;
	struct test_odd_counts odd = {0};
	uint64_t taken;

	alarm(0);
	setvbuf(stdin, NULL, _IONBF, 0); /* poll sees all that waits */
	if (!url)
		test_skip("PUSH_URL names no server; tests/servers/test_push.py sets it");
	host = test_host_new();
	host->verbose = true;
	context = test_host_context();
	expect_eq(writer_new(&context, make_config(url), &w), 0);
	expect_eq(writer_start(w, &err), 0);
	if (number("PUSH_ODD", 0))
		taken = feed_odd(w, number("PUSH_ODD", 0), &odd);
	else if (getenv("PUSH_STEPS"))
		taken = follow_steps(w, host);
	else
		taken = feed(w, host, number("PUSH_BATCHES", 1));
	writer_drain(w, number("PUSH_DRAIN_MS", 20000) * NS_PER_MSEC);
	expect(test_host_until(&host->drained, 60000));
	expect_eq(taken + host->carried,
		  host->delivered + host->spooled + host->uncertain + host->n_dropped);
	printf("{");
	print_figures(w);
	printf("\"groups\": %llu, \"plain\": %llu, ", (unsigned long long)odd.groups,
	       (unsigned long long)odd.plain);
	printf("\"taken\": %llu, \"carried\": %llu, \"delivered\": %llu, \"spooled\": %llu, "
	       "\"uncertain\": %llu, \"healthy\": %s, \"requests\": %llu, \"retries\": %llu, "
	       "\"dropped\": {",
	       (unsigned long long)taken, (unsigned long long)host->carried,
	       (unsigned long long)host->delivered, (unsigned long long)host->spooled,
	       (unsigned long long)host->uncertain,
	       host->health == ANDIRON_HEALTH_HEALTHY ? "true" : "false",
	       (unsigned long long)endpoint_counts(writer_endpoint(w, 0))->requests,
	       (unsigned long long)endpoint_counts(writer_endpoint(w, 0))->retries);
	for (size_t i = 0; i < 16 && host->dropped[i].reason[0]; i++)
		printf("%s\"%s\": %llu", i ? ", " : "", host->dropped[i].reason,
		       (unsigned long long)host->dropped[i].samples);
	printf("}}\n# %s\n", host->message);
	writer_free(w);
	test_host_free();
}
