/* SPDX-License-Identifier: Apache-2.0 */
/* The component behind its verbs, with a host that only keeps books: what was taken in is
 * delivered, dropped or in flight, at every moment. */
#include "abi/batch-build.h"
#include "testing/test.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
	uint64_t delivered, dropped, in_flight;
	char reason[32];
	uint32_t health;
	unsigned int findings, drained;
} books;

static void ledger_add(uint64_t instance, uint32_t entry, const struct andiron_str *reason,
		       uint64_t samples)
{
	if (entry == ANDIRON_LEDGER_DELIVERED)
		books.delivered += samples;
	if (entry != ANDIRON_LEDGER_DROPPED)
		return;
	books.dropped += samples;
	snprintf(books.reason, sizeof(books.reason), "%.*s", (int)reason->len, reason->ptr);
}

static void ledger_set(uint64_t instance, uint32_t entry, uint64_t samples)
{
	expect_eq(entry, ANDIRON_LEDGER_IN_FLIGHT);
	books.in_flight = samples;
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	books.health = state;
}

static void report_add(struct andiron_report *report, uint32_t severity,
		       const struct andiron_value *at, const char *text, uint64_t len)
{
	books.findings++;
}

static void drained(uint64_t instance)
{
	books.drained++;
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 0;
}

static const struct andiron_host host = {
	.size = sizeof(host),
	.ledger_add = ledger_add,
	.ledger_set = ledger_set,
	.health = health,
	.report_add = report_add,
	.drained = drained,
	.log_enabled = log_enabled,
};

static const struct andiron_component *component(void)
{
	return andiron_plugin_v1.components[0];
}

/* The arguments { paths = [path] }. */
struct arguments {
	struct andiron_str key;
	struct andiron_value path, list, map;
};

static const struct andiron_value *arguments(struct arguments *a, const char *path)
{
	*a = (struct arguments){.key = {"paths", 5}};
	a->path.kind = ANDIRON_VALUE_STRING;
	a->path.string = (struct andiron_str){path, strlen(path)};
	a->list =
		(struct andiron_value){.kind = ANDIRON_VALUE_LIST, .items = &a->path, .n_items = 1};
	a->map = (struct andiron_value){
		.kind = ANDIRON_VALUE_MAP, .keys = &a->key, .items = &a->list, .n_items = 1};
	return &a->map;
}

static const struct andiron_batch *make_batch(uint64_t samples)
{
	static const struct batch_head head = {.start_ns = 1, .end_ns = 2};
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type t = {.name = batch_add_string(b, STR("process_cpu"))};
	struct andiron_location l = {.kind = ANDIRON_FRAME_KERNEL, .address = 1};
	struct andiron_row row = {.value = 1, .samples = samples};
	const struct andiron_batch *batch;
	uint32_t frame;

	batch_add_type(b, &t);
	batch_group_begin(b, NULL, 0);
	frame = batch_add_location(b, &l);
	row.stack = batch_add_stack(b, &frame, 1);
	batch_add_row(b, &row);
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}

static void send(void *self, uint64_t samples)
{
	const struct andiron_batch *batch = make_batch(samples);

	component()->batch(self, batch);
	batch_release(batch);
}

static void *start(struct arguments *a, const char *path)
{
	void *self = NULL;

	expect_eq(component()->create(&host, 1, arguments(a, path), &self, NULL), 0);
	expect_eq(component()->start(self, NULL), 0);
	return self;
}

static void end(void *self)
{
	component()->stop(self);
	component()->stop(self);
	component()->destroy(self);
}

TEST(samples_are_in_flight_until_the_files_are_there)
{
	char path[] = "/tmp/andiron-test-XXXXXX.folded";
	struct arguments a;
	int fd = mkstemps(path, 7);
	void *self = start(&a, path);

	close(fd);
	send(self, 5);
	send(self, 7);
	expect_eq(books.in_flight, 12);
	expect_eq(books.delivered, 0);
	expect_eq(component()->drain(self, 1000), 0);
	expect_eq(books.drained, 1);
	expect_eq(books.in_flight, 0);
	expect_eq(books.delivered, 12);
	/* What still comes is written by stop, and counted once. */
	send(self, 3);
	expect_eq(books.in_flight, 3);
	end(self);
	expect_eq(books.in_flight, 0);
	expect_eq(books.delivered, 15);
	expect_eq(books.dropped, 0);
	unlink(path);
}

TEST(samples_of_a_failed_write_are_dropped_with_their_reason)
{
	struct arguments a;
	void *self = start(&a, "/nonexistent/p.html");

	expect_eq(books.health, ANDIRON_HEALTH_HEALTHY);
	send(self, 5);
	expect_eq(component()->drain(self, 1000), 0);
	end(self);
	expect_eq(books.delivered, 0);
	expect_eq(books.dropped, 5);
	expect_eq(books.in_flight, 0);
	expect_str(str_of(books.reason), "write_failed");
	expect_eq(books.health, ANDIRON_HEALTH_UNHEALTHY);
}

/* The one profile of a run has no place for them. */
TEST(encoded_profiles_are_dropped_and_counted)
{
	static const struct batch_head head = {.start_ns = 1, .end_ns = 2};
	struct encoded_profile p = {.format = ANDIRON_ENCODED_PPROF, .bytes = STR("pprof")};
	const struct andiron_batch *batch;
	struct arguments a;
	void *self = start(&a, "/nonexistent/p.html");

	expect_eq(encoded_batch(&p, 1, &head, &batch), 0);
	component()->batch(self, batch);
	batch_release(batch);
	expect_eq(books.dropped, 1);
	expect_str(str_of(books.reason), "file_not_mergeable");
	expect_eq(books.in_flight, 0);
	end(self);
	expect_eq(books.dropped, 1);
}

TEST(unknown_suffixes_are_refused_by_validate)
{
	struct arguments a;

	expect_eq(component()->validate(&host, arguments(&a, "x.svg"), NULL), 0);
	expect_eq(books.findings, 1);
	expect_eq(component()->validate(&host, arguments(&a, "x.html"), NULL), 0);
	expect_eq(books.findings, 1);
	a.list.n_items = 0;
	expect_eq(component()->validate(&host, &a.map, NULL), 0);
	expect_eq(books.findings, 2);
}

TEST(an_instance_that_never_started_can_be_destroyed)
{
	struct arguments a;
	void *self = NULL;

	expect_eq(component()->create(&host, 1, arguments(&a, "x.html"), &self, NULL), 0);
	end(self);
	expect_eq(books.delivered + books.dropped, 0);
}
