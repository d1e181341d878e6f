/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded profiles through the whole writer: what arrives is what was given, byte for byte, with
 * the labels of its group; and each counts as one, whatever becomes of it. */
#include "abi/batch-build.h"
#include "base/clock.h"
#include "base/hash.h"
#include "pprof/decode.h"
#include "pprof/encode.h"
#include "protobuf/wire.h"
#include "pyroscope-push/tests/test-bench.h"
#include "testing/test.h"

#include <stdlib.h>
#include <sys/socket.h>

#define OK_PUSH   "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n"
#define OK_INGEST "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

struct request {
	struct buf bytes;
	struct str path, type, body;
};

/* What came, in order, and what /ingest says to it. */
static struct captured {
	VEC(struct request) requests;
	const char *ingest_says;
} captured;

static bool read_request(int fd, struct request *r)
{
	size_t want = SIZE_MAX;

	while (r->bytes.n < want) {
		char *p = buf_reserve(&r->bytes, 65536);
		ssize_t got = p ? recv(fd, p, 65536, 0) : -1;
		size_t end;

		if (got <= 0)
			return false;
		r->bytes.n += (size_t)got;
		end = str_search(buf_str(&r->bytes), STR("\r\n\r\n"));
		if (want == SIZE_MAX && end < r->bytes.n)
			want = end + 4 +
			       strtoul(strstr(r->bytes.p, "Content-Length: ") + 16, NULL, 10);
	}
	return true;
}

static struct str header(struct str head, struct str name)
{
	struct str rest = str_skip(head, str_search(head, name) + name.n);

	return str_first(rest, str_search(rest, STR("\r\n")));
}

static void serve(int fd, void *context)
{
	struct request r = {0};
	bool ingest;

	(void)context;
	if (!read_request(fd, &r)) {
		buf_free(&r.bytes);
		return;
	}
	r.body = buf_str(&r.bytes);
	r.path = header(r.body, STR("POST "));
	r.path.n = str_find(r.path, ' ');
	r.type = header(r.body, STR("Content-Type: "));
	r.body = str_skip(r.body, str_search(r.body, STR("\r\n\r\n")) + 4);
	ingest = str_starts(r.path, STR("/ingest"));
	expect(vec_push(&captured.requests, r));
	test_say(fd, !ingest ? OK_PUSH : captured.ingest_says ? captured.ingest_says : OK_INGEST);
}

static void open_bench(struct bench *t)
{
	t->receiver.server = test_server_new(serve, NULL);
	bench_arguments(t);
	set_url(&t->args, 0, test_server_port(t->receiver.server));
	captured.ingest_says = NULL;
}

static void close_bench(struct bench *t)
{
	bench_close(t);
	vec_each (&captured.requests, r)
		buf_free(&r->bytes);
	vec_free(&captured.requests);
}

static void feed(struct bench *t, const struct encoded_profile *profiles, size_t n)
{
	struct batch_head head = {.start_ns = clock_real() - NS_PER_SEC, .end_ns = clock_real()};
	const struct andiron_batch *batch;

	expect_eq(encoded_batch(profiles, n, &head, &batch), 0);
	t->taken += batch->samples;
	writer_batch(t->writer, batch);
	batch_release(batch);
	bench_check(t);
}

static void write_profile(uint32_t n_samples, bool period, struct buf *out)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {.time_ns = clock_real(), .duration_ns = 1, .period = 1};
	struct pprof_mapping m = {.start = 4096, .limit = 1 << 30};
	uint32_t mapping;

	pprof_add_type(e, pprof_add_string(e, STR("alloc_space")),
		       pprof_add_string(e, STR("bytes")));
	m.file = pprof_add_string(e, STR("/bin/shop"));
	mapping = pprof_add_mapping(e, &m);
	for (uint32_t i = 0; i < n_samples; i++) {
		struct pprof_location l = {.address = 4096 + i, .mapping = mapping};
		uint32_t location = pprof_add_location(e, &l);
		int64_t value = 2;

		pprof_add_sample(e, &(struct pprof_sample){&location, NULL, &value, 1, 0});
	}
	head.period_type = pprof_add_string(e, STR("space"));
	head.period_unit = pprof_add_string(e, STR("bytes"));
	expect_eq(pprof_finish(e, &head, 0, out, NULL), 0);
	pprof_encoder_free(e);
	if (!period) { /* field 11, as other writers leave it out */
		struct str rest = buf_str(out);
		struct buf without = BUF_NULL;
		struct wire_field f;

		while (rest.n) {
			const char *from = rest.p;

			expect(wire_next(&rest, &f));
			if (f.number != 11)
				buf_append(&without, from, (size_t)(rest.p - from));
			if (!rest.n)
				break;
		}
		buf_free(out);
		*out = without;
	}
}

static const struct target_label labels[] = {
	{{"__name__", 8}, {"memory", 6}},
	{{"__delta__", 9}, {"false", 5}},
	{{"__address__", 11}, {"10.0.0.1:80", 11}},
	{{"service_name", 12}, {"shop", 4}},
	{{"pod", 3}, {"a,b", 3}},
};
#define LABELS .labels = labels, .n_labels = 5

/* Label `name=value` of a RawProfileSeries, in wire form. */
static bool has_label(struct str series, const char *name, const char *value)
{
	struct buf pair = BUF_NULL, label = BUF_NULL;
	bool found;

	wire_put_bytes(&pair, 1, str_of(name));
	wire_put_bytes(&pair, 2, str_of(value));
	wire_put_bytes(&label, 1, buf_str(&pair));
	found = str_search(series, buf_str(&label)) < series.n;
	buf_free(&pair);
	buf_free(&label);
	return found;
}

/* Takes the profile of the next series of a Push out; STR_NULL at the end. */
static struct str next_profile(struct str *body, struct str *ret_series)
{
	struct wire_field f, sample = {0};
	struct str series;

	if (!body->n)
		return STR_NULL;
	expect(wire_next(body, &f) && f.number == 1);
	*ret_series = series = f.bytes;
	while (series.n)
		expect(wire_next(&series, &sample));
	expect(sample.number == 2 && wire_next(&sample.bytes, &f) && f.number == 1);
	return f.bytes;
}

TEST(a_scraped_profile_arrives_as_it_was)
{
	static struct bench t;
	struct buf pprof = BUF_NULL;
	struct str body, series, got;

	write_profile(10, true, &pprof);
	struct encoded_profile two[] = {
		{LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = buf_str(&pprof)},
		{LABELS,
		 .format = ANDIRON_ENCODED_PPROF,
		 .bytes = buf_str(&pprof),
		 .raw_bytes = pprof.n,
		 .n_stacks = 10},
	};
	open_bench(&t);
	bench_start(&t);
	feed(&t, two, 2);
	bench_drain(&t, 20000);
	expect_eq(t.taken, 2);
	expect_eq(t.host->delivered, 2);
	expect_eq(captured.requests.n, 1);
	expect_str(captured.requests.p[0].path, "/push.v1.PusherService/Push");
	body = captured.requests.p[0].body;
	for (int i = 0; i < 2; i++) {
		got = next_profile(&body, &series);
		expect(str_eq(got, buf_str(&pprof)));
		expect(has_label(series, "__name__", "memory"));
		expect(has_label(series, "__delta__", "false"));
		expect(has_label(series, "service_name", "shop"));
		expect(has_label(series, "pod", "a,b"));
		expect(!has_label(series, "__address__", "10.0.0.1:80"));
	}
	expect_eq(body.n, 0);
	expect_eq(endpoint_counts(writer_endpoint(t.writer, 0))->sent_profiles, 2);
	close_bench(&t);
	buf_free(&pprof);
}

static const struct encoded_profile recording = {
	LABELS,
	.format = ANDIRON_ENCODED_JFR,
	.bytes = {"FLR\0\0\2\0\0recording", 17},
	.query = {"format=jfr&sampleRate=100", 25},
};

static const struct request *ingested(size_t nth)
{
	vec_each (&captured.requests, r)
		if (str_starts(r->path, STR("/ingest")) && nth-- == 0)
			return r;
	return NULL;
}

static void expect_recording(const struct request *r)
{
	expect(r != NULL);
	expect(str_starts(r->path, STR("/ingest?name=shop%7Bpod%3Da_b%7D&from=")));
	expect(str_ends(r->path, STR("&format=jfr&sampleRate=100")));
	expect_str(r->type, "application/octet-stream");
	expect(str_eq(r->body, recording.bytes));
}

/* JFR goes by /ingest, each alone; what is pprof around it shares its requests. */
TEST(a_recording_goes_by_ingest)
{
	static struct bench t;
	struct buf pprof = BUF_NULL;

	write_profile(10, true, &pprof);
	struct encoded_profile p = {
		LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = buf_str(&pprof)};
	struct encoded_profile five[] = {p, recording, p, recording, p};

	open_bench(&t);
	bench_start(&t);
	feed(&t, five, 5);
	bench_drain(&t, 20000);
	expect_eq(t.host->delivered, 5);
	expect_eq(captured.requests.n, 3);
	expect_recording(ingested(0));
	expect_recording(ingested(1));
	close_bench(&t);
	buf_free(&pprof);
}

/* Folded text whose service has no name: the application's has its type in it. */
TEST(other_formats_keep_their_query_and_type)
{
	static const struct target_label name[] = {{{"__name__", 8}, {"shop.cpu", 8}}};
	static struct bench t;
	struct encoded_profile folded = {.labels = name,
					 .n_labels = 1,
					 .format = ANDIRON_ENCODED_INGEST,
					 .bytes = STR("main;work 3\n"),
					 .content_type = STR("text/plain"),
					 .query = STR("format=folded&units=samples"),
					 .start_ns = clock_real() - NS_PER_SEC,
					 .end_ns = clock_real()};
	char path[200];

	snprintf(path, sizeof(path),
		 "/ingest?name=shop.cpu&from=%lld&until=%lld&format=folded&units=samples",
		 (long long)folded.start_ns, (long long)folded.end_ns);
	open_bench(&t);
	bench_start(&t);
	feed(&t, &folded, 1);
	bench_drain(&t, 20000);
	expect_eq(t.host->delivered, 1);
	expect_str(ingested(0)->path, path);
	expect_str(ingested(0)->type, "text/plain");
	expect_str(ingested(0)->body, "main;work 3\n");
	close_bench(&t);
}

static void turn_until_dropped(const char *reason, uint64_t n)
{
	while (test_host_dropped(reason) < n)
		test_host_until(&(const bool){false}, 1);
}

/* A server that refuses one, or finds it too large again and again, is asked no more. */
TEST(a_refused_recording_costs_itself_only)
{
	static struct bench t;
	struct buf pprof = BUF_NULL;

	write_profile(10, true, &pprof);
	struct encoded_profile p = {
		LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = buf_str(&pprof)};
	struct encoded_profile two[] = {p, recording};

	open_bench(&t);
	captured.ingest_says = "HTTP/1.1 422 No\r\nContent-Length: 4\r\n\r\nwhat";
	bench_start(&t);
	feed(&t, two, 2);
	turn_until_dropped("refused", 1);
	captured.ingest_says = "HTTP/1.1 429 No\r\nContent-Length: 15\r\n\r\npush rate limit";
	feed(&t, two, 2);
	turn_until_dropped("refused", 2);
	bench_drain(&t, 20000);
	expect_eq(t.host->delivered, 2);
	close_bench(&t);
	buf_free(&pprof);
}

/* The spool keeps both kinds as they are, for the next run. */
TEST(the_spool_keeps_them_over_a_restart)
{
	static struct bench t;
	struct buf pprof = BUF_NULL;
	struct str body, series;

	write_profile(10, true, &pprof);
	struct encoded_profile two[] = {
		{LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = buf_str(&pprof)}, recording};

	bench_make_directory(&t);
	open_bench(&t);
	t.args.timeout_ms = 5000;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	feed(&t, two, 2);
	bench_end(&t);
	t.taken = 0;
	bench_start(&t);
	expect_eq(t.host->carried, 2);
	set_url(&t.args, 0, test_server_port(t.receiver.server));
	struct push_config *config;
	struct error err = ERROR_NULL;

	expect_eq(push_config_new(&protocol_pyroscope, arguments(&t.args), &config, &err), 0);
	expect_eq(writer_update(t.writer, config, &err), 0);
	bench_drain(&t, 20000);
	expect_eq(t.host->delivered, 2);
	expect(str_eq(ingested(0)->body, recording.bytes));
	vec_each (&captured.requests, r) {
		body = r->body;
		if (!str_starts(r->path, STR("/ingest")))
			expect(str_eq(next_profile(&body, &series), buf_str(&pprof)));
	}
	close_bench(&t);
	bench_remove_directory(&t);
	buf_free(&pprof);
}

/* What the server would refuse for its size goes in parts, and is still one. */
TEST(a_large_profile_is_sent_in_parts)
{
	static struct bench t;
	struct buf pprof = BUF_NULL;
	int64_t sum = 0, times[8];
	size_t n = 0;

	write_profile(40000, true, &pprof);
	struct encoded_profile p = {
		LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = buf_str(&pprof)};

	open_bench(&t);
	bench_start(&t);
	feed(&t, &p, 1);
	bench_drain(&t, 20000);
	expect_eq(t.host->delivered, 1);
	vec_each (&captured.requests, r) {
		struct str body = r->body, series, got;

		while ((got = next_profile(&body, &series)).n) {
			struct profile *profile;

			expect_eq(profile_decode(got, &profile, NULL), 0);
			expect(profile->n_samples <= 16000);
			for (size_t i = 0; i < profile->n_samples; i++)
				sum += profile->values[i];
			expect(n < 8);
			times[n++] = profile->time_ns;
			profile_free(profile);
		}
	}
	expect_eq(sum, 80000);
	expect(n >= 3);
	for (size_t i = 1; i < n; i++)
		expect(times[i] != times[0]);
	expect_eq(writer_repairs(t.writer)->split, 1);
	close_bench(&t);
	buf_free(&pprof);
}

TEST(what_is_no_profile_is_dropped)
{
	static struct bench t;
	struct encoded_profile p = {
		LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = STR("<html>login</html>")};

	open_bench(&t);
	bench_start(&t);
	feed(&t, &p, 1);
	expect_eq(test_host_dropped("malformed"), 1);
	p.format = 77;
	feed(&t, &p, 1);
	expect_eq(test_host_dropped("no_format"), 1);
	bench_drain(&t, 20000);
	expect_eq(captured.requests.n, 0);
	close_bench(&t);
}

struct sent {
	VEC(struct record *) records;
};

static void on_record(void *context, struct record *r)
{
	expect(vec_push(&((struct sent *)context)->records, r));
}

static void encode(const struct protocol *protocol, const struct encoded_profile *profiles,
		   size_t n, struct sent *sent, uint64_t *lost)
{
	static struct times times;
	struct series_repairs repairs = {0};
	struct series_encoder e = {.protocol = protocol,
				   .times = &times,
				   .now_ns = clock_real(),
				   .emit = on_record,
				   .context = sent,
				   .repairs = &repairs};
	struct batch_head head = {.start_ns = 1, .end_ns = clock_real()};
	const struct andiron_batch *batch;

	expect_eq(encoded_batch(profiles, n, &head, &batch), 0);
	series_encode(&e, batch, lost);
	batch_release(batch);
}

static void free_sent(struct sent *sent)
{
	vec_each (&sent->records, r)
		record_free(*r);
	vec_free(&sent->records);
}

/* Servers that die of a profile without samples or period type get none; those that take pprof
 * alone get no recording. */
TEST(parca_gets_whole_profiles_alone)
{
	struct buf good = BUF_NULL, bare = BUF_NULL, empty = BUF_NULL;
	struct sent sent = {0};
	uint64_t lost[SERIES_N_LOSSES];
	struct profile *profile;

	write_profile(10, true, &good);
	write_profile(10, false, &bare);
	write_profile(0, true, &empty);
	struct encoded_profile all[] = {
		{LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = buf_str(&good)},
		{LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = buf_str(&bare)},
		{LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = buf_str(&empty)},
		{LABELS, .format = ANDIRON_ENCODED_PPROF, .bytes = str_first(buf_str(&good), 60)},
		recording,
	};
	encode(&protocol_parca, all, 5, &sent, lost);
	expect_eq(sent.records.n, 2);
	expect_eq(lost[SERIES_ZERO], 1);
	expect_eq(lost[SERIES_MALFORMED], 1);
	expect_eq(lost[SERIES_FORMAT], 1);
	expect(str_search(buf_str(&sent.records.p[0]->message), buf_str(&good)) <
	       sent.records.p[0]->message.n);
	for (size_t i = 0; i < 2; i++) {
		struct str message = buf_str(&sent.records.p[i]->message);
		struct wire_field f, sample = {0};

		while (message.n)
			expect(wire_next(&message, &sample));
		expect(wire_next(&sample.bytes, &f));
		expect_eq(profile_decode(f.bytes, &profile, NULL), 0);
		expect(profile->period_type.type.n > 0);
		expect_eq(profile->n_samples, 10);
		profile_free(profile);
	}
	free_sent(&sent);
	encode(&protocol_otlp, all, 5, &sent, lost);
	expect_eq(sent.records.n, 2);
	expect_eq(lost[SERIES_FORMAT], 1);
	free_sent(&sent);
	buf_free(&good);
	buf_free(&bare);
	buf_free(&empty);
}
