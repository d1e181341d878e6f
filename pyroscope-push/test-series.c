/* SPDX-License-Identifier: Apache-2.0 */
/* Times, labels, and the splitting of what is too large. */
#include "abi/batch-build.h"
#include "base/clock.h"
#include "base/test.h"
#include "pprof/decode.h"
#include "pprof/wire.h"
#include "series.h"
#include "test-host.h"

#include <stdlib.h>

/* No two profiles of a writer have one time, whatever the clock does, and the
 * low bits stay the process's own. */
TEST(times_rise_and_keep_their_tag)
{
	struct times a = times_init(1), b = times_init(2);
	int64_t now = clock_real(), last = 0;
	unsigned int seed = 3;

	expect(a.tag != b.tag);
	for (int i = 0; i < 100000; i++) {
		int64_t end = now + i * 1000 - rand_r(&seed) % NS_PER_SEC;
		int64_t time = times_next(&a, end);

		expect(time > last);
		expect_eq(time % TIMES_STEP_NS, a.tag);
		last = time;
	}
	expect(llabs(times_next(&b, now) - now) < TIMES_STEP_NS);
	/* A clock set back by an hour is followed. */
	expect(llabs(times_next(&a, now - 3600 * NS_PER_SEC) - (now - 3600 * NS_PER_SEC)) <
	       TIMES_STEP_NS);
}

struct sink {
	size_t n;
	uint64_t samples;
	int64_t value, last_time;
	size_t max_raw, max_samples;
	char labels[512]; /* of the last: "a=b,c=d" */
};

/* RawProfileSeries back into its labels and its profile. */
static struct str parse_series(struct str message, struct sink *sink)
{
	struct str pprof = STR_NULL;
	size_t n = 0;

	while (message.n) {
		struct wire_field f, one, two;

		expect(wire_next(&message, &f) && f.type == WIRE_BYTES);
		expect(wire_next(&f.bytes, &one) && one.number == 1);
		if (f.number == 2) {
			pprof = one.bytes;
			continue;
		}
		expect(f.number == 1 && wire_next(&f.bytes, &two) && two.number == 2);
		n += (size_t)snprintf(sink->labels + n, sizeof(sink->labels) - n, "%s%.*s=%.*s",
				      n ? "," : "", STR_FMT(one.bytes), STR_FMT(two.bytes));
	}
	return pprof;
}

static void on_record(void *context, struct record *r)
{
	struct sink *sink = context;
	struct profile *p;
	struct error err = ERROR_NULL;
	struct str pprof = parse_series(buf_str(&r->message), sink);

	if (profile_decode(pprof, &p, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	expect_eq(p->time_ns, r->time_ns);
	expect(r->time_ns > sink->last_time);
	sink->last_time = r->time_ns;
	sink->n++;
	sink->samples += r->samples;
	for (uint32_t i = 0; i < p->n_samples; i++)
		sink->value += p->values[i];
	sink->max_samples = p->n_samples > sink->max_samples ? p->n_samples : sink->max_samples;
	sink->max_raw = r->raw_bytes > sink->max_raw ? r->raw_bytes : sink->max_raw;
	expect_eq(p->period, 10000000);
	profile_free(p);
	record_free(r);
}

static void encode(const struct test_shape *shape, struct series_limits limits, struct sink *sink)
{
	static struct times times;
	static const struct series_label external[] = {{STR("cluster"), STR("c")},
						       {STR("zone"), STR("z")}};
	const struct andiron_batch *batch = test_batch(shape);
	struct series_encoder e = {.external = external,
				   .n_external = 2,
				   .limits = limits,
				   .times = &times,
				   .emit = on_record,
				   .context = sink};

	expect_eq(series_encode(&e, batch), 0);
	expect_eq(sink->samples, batch->samples);
	expect_eq(sink->value, (int64_t)batch->samples * 10000000);
	batch_release(batch);
}

TEST(a_group_is_a_series)
{
	struct test_shape shape = {7, 10, 5, 3, clock_real()};
	struct sink sink = {0};

	encode(&shape, (struct series_limits){SERIES_MAX_SAMPLES, SERIES_MAX_RAW}, &sink);
	expect_eq(sink.n, 7);
	expect_str(str_of(sink.labels), "__name__=process_cpu,cluster=c,service_name=s6,zone=z");
}

/* The parts keep their sum, stay below the limits and have times of their own. */
TEST(what_is_too_large_is_split)
{
	struct test_shape shape = {2, 20000, 3, 1, clock_real()};
	struct sink sink = {0};

	encode(&shape, (struct series_limits){SERIES_MAX_SAMPLES, SERIES_MAX_RAW}, &sink);
	expect(sink.n >= 4);
	expect(sink.max_samples <= SERIES_MAX_SAMPLES);
	expect(sink.max_raw <= SERIES_MAX_RAW + (64u << 10));
	memset(&sink, 0, sizeof(sink));
	encode(&shape, (struct series_limits){100, SERIES_MAX_RAW}, &sink);
	expect_eq(sink.n, 400);
	expect_eq(sink.max_samples, 100);
	memset(&sink, 0, sizeof(sink));
	encode(&shape, (struct series_limits){SERIES_MAX_SAMPLES, 20000}, &sink);
	expect(sink.max_raw <= 24000);
}

/* External labels win; names of two underscores stay behind, but for the
 * profile's name. */
TEST(labels_follow_the_rules)
{
	static const struct series_label external[] = {{STR("b"), STR("mine")}};
	struct series_encoder e = {.external = external, .n_external = 1};
	struct batch_builder *b = batch_builder_new();
	uint32_t labels[4] = {batch_add_str_attribute(b, STR("__meta_x"), STR("1")),
			      batch_add_str_attribute(b, STR("__name__"), STR("wall")),
			      batch_add_str_attribute(b, STR("a"), STR("1")),
			      batch_add_str_attribute(b, STR("b"), STR("theirs"))};
	const struct andiron_batch *batch;
	struct batch_view view;
	struct andiron_group group;
	struct series_label out[8];

	batch_group_begin(b, labels, 4);
	expect_eq(batch_finish(b, &(struct batch_head){0}, &batch), 0);
	expect_eq(batch_view_init(&view, batch), 0);
	group = batch_group(&view, 0);
	expect_eq(series_labels(&e, &view, &group, STR("process_cpu"), out), 4);
	expect_str(out[0].name, "__name__");
	expect_str(out[0].value, "wall");
	expect_str(out[1].name, "a");
	expect_str(out[2].value, "mine");
	expect_str(out[3].value, "unspecified");
	batch_release(batch);
}

static void drop_record(void *context, struct record *r)
{
	*(uint64_t *)context += r->samples;
	record_free(r);
}

static int encode_all(void *context)
{
	struct times times = times_init(1);
	uint64_t emitted = 0;
	const struct andiron_batch *batch = context;
	struct series_encoder e = {.limits = {SERIES_MAX_SAMPLES, SERIES_MAX_RAW},
				   .times = &times,
				   .emit = drop_record,
				   .context = &emitted};
	uint64_t lost = series_encode(&e, batch);

	expect_eq(emitted + lost, batch->samples);
	return lost ? -12 : 0;
}

/* What memory did not suffice for is counted, to the sample. */
TEST(short_memory_is_counted)
{
	struct test_shape shape = {3, 20, 4, 1, clock_real()};
	const struct andiron_batch *batch = test_batch(&shape);

	test_each_failing_allocation(encode_all, (void *)(uintptr_t)batch);
	batch_release(batch);
}
