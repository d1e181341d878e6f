/* SPDX-License-Identifier: Apache-2.0 */
/* Times, labels, and the splitting of what is too large. */
#include "abi/batch-build.h"
#include "base/clock.h"
#include "testing/test.h"
#include "pprof/decode.h"
#include "protobuf/wire.h"
#include "pyroscope-push/series.h"
#include "pyroscope-push/tests/test-host.h"

#include <stdlib.h>

/* No two profiles of a writer have one time, whatever the clock does, and the low bits stay the
 * process's own. */
TEST(times_rise_and_keep_their_tag)
{
	struct times a = times_init(1), b = times_init(2);
	int64_t now = clock_real(), last = 0, back = now - 3600 * NS_PER_SEC, later;
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
	/* A clock set back by an hour is followed, without taking a time again. */
	later = times_next(&a, back);
	expect(llabs(later - back) < TIMES_STEP_NS);
	expect(later % TIMES_STEP_NS != last % TIMES_STEP_NS);
}

/* A restart goes on after the last time of the run before. */
TEST(times_rise_across_restarts)
{
	struct times a = times_init(1), b = times_init(2);
	int64_t now = clock_real(), last = 0;

	for (int i = 0; i < 1000; i++)
		last = times_next(&a, now);
	times_resume(&b, last);
	expect(times_next(&b, now) > last);
	times_resume(&b, 5);
	expect(times_next(&b, now) > last);
}

struct sink {
	size_t n;
	uint64_t samples;
	int64_t value, last_time;
	size_t max_raw, max_samples;
	char labels[512]; /* of the last: "a=b,c=d" */
	char type[128];
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
	snprintf(sink->type, sizeof(sink->type), "%.*s:%.*s:%.*s:%.*s", STR_FMT(p->types[0].type),
		 STR_FMT(p->types[0].unit), STR_FMT(p->period_type.type),
		 STR_FMT(p->period_type.unit));
	profile_free(p);
	record_free(r);
}

/* Encodes a batch with these limits; what it could not is in `lost`. */
static struct series_repairs encode_batch(const struct andiron_batch *batch,
					  struct series_limits limits, struct sink *sink,
					  uint64_t *lost)
{
	static struct times times;
	static const struct label external[] = {{STR("cluster"), STR("c")},
						{STR("zone"), STR("z")}};
	struct protocol protocol = protocol_pyroscope;
	struct series_repairs repairs = {0};
	struct series_encoder e = {.protocol = &protocol,
				   .rules = {.external = external, .n_external = 2},
				   .times = &times,
				   .now_ns = clock_real(),
				   .emit = on_record,
				   .context = sink,
				   .repairs = &repairs};

	protocol.limits = limits;
	series_encode(&e, batch, lost);
	return repairs;
}

/* All of it arrives, in parts as they may be. */
static void encode(const struct test_shape *shape, struct series_limits limits, struct sink *sink)
{
	const struct andiron_batch *batch = test_batch(shape);
	uint64_t lost[SERIES_N_LOSSES];

	encode_batch(batch, limits, sink, lost);
	for (int i = 0; i < SERIES_N_LOSSES; i++)
		expect_eq(lost[i], 0);
	expect_eq(sink->samples, batch->samples);
	expect_eq(sink->value, (int64_t)batch->samples * 10000000);
	batch_release(batch);
}

TEST(a_group_is_a_series)
{
	struct test_shape shape = {7, 10, 5, 3, clock_real()};
	struct sink sink = {0};

	encode(&shape, protocol_pyroscope.limits, &sink);
	expect_eq(sink.n, 7);
	expect_str(str_of(sink.labels), "__name__=process_cpu,cluster=c,service_name=s6,zone=z");
}

/* The parts keep their sum, stay below the limits and have times of their own. */
TEST(what_is_too_large_is_split)
{
	struct test_shape shape = {2, 20000, 3, 1, clock_real()};
	struct series_limits limits = protocol_pyroscope.limits;
	struct sink sink = {0};

	encode(&shape, limits, &sink);
	expect(sink.n >= 4);
	expect(sink.max_samples <= limits.max_samples);
	expect(sink.max_raw <= limits.hard_raw);
	memset(&sink, 0, sizeof(sink));
	limits.max_samples = 100;
	encode(&shape, limits, &sink);
	expect_eq(sink.n, 400);
	expect_eq(sink.max_samples, 100);
	memset(&sink, 0, sizeof(sink));
	limits = protocol_pyroscope.limits;
	limits.max_raw = 20000;
	encode(&shape, limits, &sink);
	expect(sink.max_raw <= 24000);
}

/* What passes the hard limit only when it is encoded goes in halves; a single stack beyond it is
 * counted, and takes none of the others with it. */
TEST(no_part_passes_the_hard_limit)
{
	struct test_shape shape = {1, 1000, 3, 1, clock_real()};
	struct series_limits limits = protocol_pyroscope.limits;
	struct sink sink = {0};
	const struct andiron_batch *batch;
	uint64_t lost[SERIES_N_LOSSES];

	limits.hard_raw = 5000;
	encode(&shape, limits, &sink);
	expect(sink.n > 10 && sink.max_raw <= 5000);
	memset(&sink, 0, sizeof(sink));
	batch = test_batch(&shape);
	limits.hard_raw = 1;
	encode_batch(batch, limits, &sink, lost);
	expect_eq(sink.n, 0);
	expect_eq(lost[SERIES_TOO_LARGE], batch->samples);
	batch_release(batch);
}

/* A time that servers refuse becomes the present one, and is counted. */
TEST(a_time_that_servers_refuse_is_now)
{
	static const int64_t off_s[] = {-3600, 3600, -100000000};

	for (size_t i = 0; i < 3; i++) {
		struct test_shape shape = {1, 3, 3, 1, clock_real() + off_s[i] * NS_PER_SEC};
		const struct andiron_batch *batch = test_batch(&shape);
		struct sink sink = {0};
		uint64_t lost[SERIES_N_LOSSES];
		struct series_repairs repairs =
			encode_batch(batch, protocol_pyroscope.limits, &sink, lost);

		expect_eq(repairs.moved, 1);
		expect(llabs(sink.last_time - clock_real()) < 60 * NS_PER_SEC);
		batch_release(batch);
	}
}

/* A batch of one group with a type of these names and rows of these values, each of one sample. */
static const struct andiron_batch *odd_batch(const char *name, const char *type,
					     const int64_t *values, size_t n)
{
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type t = {.period = 10000000};
	struct andiron_mapping mapping = {0};
	const struct andiron_batch *batch;
	uint32_t index, map;

	t.name = batch_add_string(b, str_of(name));
	t.type = batch_add_string(b, str_of(type));
	t.unit = t.period_unit = batch_add_string(b, STR("nano seconds"));
	index = batch_add_type(b, &t);
	mapping.file = batch_add_string(b, STR("/bin/x"));
	map = batch_add_mapping(b, &mapping);
	batch_group_begin(b, NULL, 0);
	for (size_t i = 0; i < n; i++) {
		struct andiron_location at = {
			.address = 4096 + i, .mapping = map, .kind = ANDIRON_FRAME_NATIVE};
		uint32_t frame = batch_add_location(b, &at);
		struct andiron_row row = {.value = values[i], .samples = 1, .type = index};

		row.stack = batch_add_stack(b, &frame, 1);
		expect(batch_add_row(b, &row));
	}
	expect_eq(batch_finish(b, &(struct batch_head){.end_ns = clock_real()}, &batch), 0);
	return batch;
}

/* What servers drop without a word is counted here, and not sent. */
TEST(values_without_meaning_are_counted)
{
	static const int64_t values[] = {0, -1, 10000000, 10000000};
	const struct andiron_batch *batch = odd_batch("process_cpu", "cpu", values, 4);
	struct sink sink = {0};
	uint64_t lost[SERIES_N_LOSSES];

	encode_batch(batch, protocol_pyroscope.limits, &sink, lost);
	expect_eq(lost[SERIES_ZERO], 1);
	expect_eq(lost[SERIES_NEGATIVE], 1);
	expect_eq(sink.samples, 2);
	expect_eq(sink.max_samples, 2);
	batch_release(batch);
}

/* A type that servers cannot spell is spelled for them; one without a name is counted. */
TEST(types_are_spelled)
{
	static const int64_t values[] = {1};
	const struct andiron_batch *batch = odd_batch("my-cpu", "c:p-u", values, 1);
	struct sink sink = {0};
	uint64_t lost[SERIES_N_LOSSES];
	struct series_repairs repairs = encode_batch(batch, protocol_pyroscope.limits, &sink, lost);

	expect_eq(repairs.labels.spelled, 1);
	expect_str(str_of(sink.labels),
		   "__name__=my_cpu,cluster=c,service_name=unspecified,zone=z");
	expect_str(str_of(sink.type), "c_p_u:nano_seconds:c_p_u:nano_seconds");
	batch_release(batch);
	memset(&sink, 0, sizeof(sink));
	batch = odd_batch("", "cpu", values, 1);
	encode_batch(batch, protocol_pyroscope.limits, &sink, lost);
	expect_eq(sink.n, 0);
	expect_eq(lost[SERIES_NO_TYPE], 1);
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
	struct series_repairs repairs = {0};
	struct series_encoder e = {.protocol = &protocol_pyroscope,
				   .times = &times,
				   .now_ns = clock_real(),
				   .emit = drop_record,
				   .context = &emitted,
				   .repairs = &repairs};
	uint64_t lost[SERIES_N_LOSSES], sum = 0;

	series_encode(&e, batch, lost);
	for (int i = 0; i < SERIES_N_LOSSES; i++)
		sum += lost[i];
	expect_eq(emitted + sum, batch->samples);
	expect_eq(sum, lost[SERIES_NO_MEMORY]);
	return sum ? -12 : 0;
}

/* What memory did not suffice for is counted, to the sample. */
TEST(short_memory_is_counted)
{
	struct test_shape shape = {3, 20, 4, 1, clock_real()};
	const struct andiron_batch *batch = test_batch(&shape);

	test_each_failing_allocation(encode_all, (void *)(uintptr_t)batch);
	batch_release(batch);
}

/* Whatever a stranger's batch says, it is read within its bounds. */
TEST(mutated_batches_are_encoded_within_their_bounds)
{
	struct test_shape shape = {3, 20, 4, 1, clock_real()};
	const struct andiron_batch *batch = test_batch(&shape);
	struct andiron_segment segment = batch->segments[0];
	struct andiron_batch mutant = *batch;
	unsigned int seed = 5;
	char *copy = malloc(segment.size);

	expect_eq(batch->n_segments, 1);
	segment.base = copy;
	mutant.segments = &segment;
	for (int run = 0; run < 3000; run++) {
		struct times times = times_init(1);
		uint64_t emitted = 0, lost[SERIES_N_LOSSES];
		struct series_repairs repairs = {0};
		struct series_encoder e = {.protocol = &protocol_pyroscope,
					   .times = &times,
					   .now_ns = clock_real(),
					   .emit = drop_record,
					   .context = &emitted,
					   .repairs = &repairs};

		memcpy(copy, batch->segments[0].base, segment.size);
		for (int k = rand_r(&seed) % 6 + 1; k; k--)
			copy[(size_t)rand_r(&seed) % segment.size] = (char)rand_r(&seed);
		series_encode(&e, &mutant, lost);
	}
	free(copy);
	batch_release(batch);
}
