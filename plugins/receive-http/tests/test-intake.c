/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as SDKs send them, and the batches that are made of them. */
#include "receive-http/intake-private.h"

#include "abi/batch-build.h"
#include "base/buf.h"
#include "base/clock.h"
#include "pprof/gzip.h"
#include "protobuf/wire.h"
#include "receive-http/folded.h"
#include "testing/test.h"

#include <errno.h>

#define NOW (INT64_C(1790000000) * NS_PER_SEC)

static const struct intake_head head = {7, 1, NOW};

struct result {
	const struct andiron_batch *batch;
	struct batch_view view;
	unsigned int status;
	struct error error;
};

static int take(const struct intake_request *request, struct result *r)
{
	int rc;

	*r = (struct result){0};
	rc = intake_read(request, &head, &r->batch, &r->status, &r->error);
	if (!rc)
		expect_eq(batch_view_init(&r->view, r->batch), 0);
	return rc;
}

static void result_fini(struct result *r)
{
	batch_release(r->batch);
}

/* Label of a group; empty: it has none. */
static struct str label_of(const struct result *r, uint32_t n, const char *key)
{
	struct andiron_group group = batch_group(&r->view, n);
	struct str value;

	return batch_group_label(&r->view, &group, str_of(key), &value) ? value : STR("");
}

static struct str label(const struct result *r, const char *key)
{
	return label_of(r, 0, key);
}

/* A profile of these sample types, with one sample. */
static struct buf profile(const char *const *types, size_t n)
{
	struct buf b = BUF_NULL;

	for (size_t i = 0; i < n; i++) {
		struct buf type = BUF_NULL;

		wire_put_field(&type, 1, i + 1);
		wire_put_bytes(&b, 1, buf_str(&type));
		buf_free(&type);
	}
	wire_put_bytes(&b, 2, STR("\x12\x01\x05"));
	wire_put_bytes(&b, 6, STR(""));
	for (size_t i = 0; i < n; i++)
		wire_put_bytes(&b, 6, str_of(types[i]));
	expect(!b.failed);
	return b;
}

static struct buf cpu_profile(void)
{
	return profile((const char *const[]){"samples", "cpu"}, 2);
}

/* The bytes of a profile are those that came; its labels are Alloy's, its name Pyroscope's. */
TEST(a_profile_keeps_its_bytes)
{
	struct buf pprof = cpu_profile(), zipped = BUF_NULL;
	struct gzip_writer w = {0};
	struct andiron_encoded e;
	struct result r;

	expect_eq(gzip_open(&w, &zipped, 6), 0);
	gzip_write(&w, buf_str(&pprof));
	expect_eq(gzip_close(&w), 0);
	expect_eq(take(&(struct intake_request){.api = INTAKE_INGEST,
						.name = STR("shop{region=eu,__session_id__=4a}"),
						.from = STR("1789999990"),
						.until = STR("1790000000"),
						.spy_name = STR("gospy"),
						.format = STR("pprof"),
						.body = buf_str(&zipped)},
		       &r),
		  0);
	e = batch_encoded(&r.view, 0);
	expect_eq(e.format, ANDIRON_ENCODED_PPROF);
	expect_eq(e.raw_bytes, pprof.n);
	expect_eq(e.n_stacks, 1);
	expect_eq(e.start_ns, NOW - 10 * NS_PER_SEC);
	expect_eq(e.end_ns, NOW);
	expect(str_eq(batch_encoded_bytes(&r.view, &e), buf_str(&zipped)));
	expect_str(label(&r, "__name__"), "process_cpu");
	expect_str(label(&r, "service_name"), "shop");
	expect_str(label(&r, "region"), "eu");
	expect_str(label(&r, "pyroscope_spy"), "gospy");
	expect_eq(r.batch->samples, 1);
	result_fini(&r);
	buf_free(&pprof);
	buf_free(&zipped);
}

/* A service that names itself keeps its name, and the application's stands beside it. */
TEST(a_service_keeps_its_name)
{
	struct buf pprof = cpu_profile();
	struct result r;

	expect_eq(take(&(struct intake_request){.api = INTAKE_INGEST,
						.name = STR("app{service_name=shop}"),
						.format = STR("pprof"),
						.body = buf_str(&pprof)},
		       &r),
		  0);
	expect_str(label(&r, "service_name"), "shop");
	expect_str(label(&r, "app_name"), "app");
	result_fini(&r);
	buf_free(&pprof);
}

static void expect_name(const char *const *types, size_t n, const char *config, const char *name)
{
	struct buf pprof = profile(types, n), body = BUF_NULL;
	struct result r;

	buf_printf(&body, "--b\r\nContent-Disposition: form-data; name=\"profile\"\r\n\r\n");
	buf_str_append(&body, buf_str(&pprof));
	buf_printf(&body,
		   "\r\n--b\r\nContent-Disposition: form-data; name=\"sample_type_config\"\r\n\r\n"
		   "%s\r\n--b--\r\n",
		   config);
	expect_eq(take(&(struct intake_request){.api = INTAKE_INGEST,
						.name = STR("shop"),
						.content_type =
							STR("multipart/form-data; boundary=b"),
						.body = buf_str(&body)},
		       &r),
		  0);
	expect_str(label(&r, "__name__"), name);
	result_fini(&r);
	buf_free(&pprof);
	buf_free(&body);
}

/* Which name a profile has follows from its types, and from what a form says of them. */
TEST(names_follow_from_types)
{
	expect_name((const char *const[]){"samples", "cpu"}, 2, "{}", "process_cpu");
	expect_name((const char *const[]){"cpu", "wall"}, 2, "{}", "wall");
	expect_name((const char *const[]){"alloc_objects", "inuse_space"}, 2, "", "memory");
	expect_name((const char *const[]){"goroutines"}, 1, "nonsense", "goroutines");
	expect_name((const char *const[]){"contentions", "delay"}, 2,
		    "{\"contentions\": {\"display-name\": \"mutex_count\"}}", "mutex");
	expect_name((const char *const[]){"contentions", "delay"}, 2,
		    "{\"delay\": {\"display-name\": \"block_duration\"}}", "block");
	expect_name((const char *const[]){"heat"}, 1, "{}", "heat");
}

/* Folded text becomes rows: time counts in periods, all else as it is, and is no number of samples.
 */
TEST(folded_text_becomes_rows)
{
	struct andiron_stack stack;
	struct andiron_row row;
	struct result r;

	expect_eq(take(&(struct intake_request){.api = INTAKE_INGEST,
						.name = STR("shop.cpu{region=eu}"),
						.sample_rate = STR("50"),
						.body = STR("main;work 3\n\nmain;idle loop 4\r\n")},
		       &r),
		  0);
	expect_eq(batch_count(&r.view, ANDIRON_COL_ROW), 2);
	expect_eq(r.batch->samples, 7);
	row = batch_row(&r.view, 0);
	expect_eq(row.value, 3 * NS_PER_SEC / 50);
	stack = batch_stack(&r.view, row.stack);
	expect_eq(stack.length, 2);
	expect_str(label(&r, "service_name"), "shop.cpu");
	result_fini(&r);
	expect_eq(take(&(struct intake_request){.api = INTAKE_INGEST,
						.name = STR("shop.alloc_space"),
						.format = STR("lines"),
						.body = STR("main;work\nmain;work\n")},
		       &r),
		  0);
	expect_eq(r.batch->samples, 2);
	expect_eq(batch_row(&r.view, 0).value, 1);
	result_fini(&r);
	expect_eq(take(&(struct intake_request){.api = INTAKE_INGEST,
						.name = STR("shop.alloc_space"),
						.body = STR("a 9223372036854775807\n"
							    "b 9223372036854775807\n")},
		       &r),
		  0);
	expect_eq(r.batch->samples, 2);
	expect_eq(batch_row(&r.view, 1).value, INT64_MAX);
	result_fini(&r);
}

/* A recording of Java passes as it came, with what says how it is read. */
TEST(a_recording_passes_through)
{
	static const char body[] = "--b\r\nContent-Disposition: form-data; name=\"jfr\"\r\n\r\n"
				   "FLR\0\1\2\r\n--b--\r\n";
	const struct str whole = {body, sizeof(body) - 1};
	struct andiron_encoded e;
	struct result r;

	expect_eq(take(&(struct intake_request){.api = INTAKE_INGEST,
						.name = STR("shop"),
						.format = STR("jfr"),
						.sample_rate = STR("100"),
						.spy_name = STR("java spy"),
						.content_type =
							STR("multipart/form-data; boundary=b"),
						.body = whole},
		       &r),
		  0);
	e = batch_encoded(&r.view, 0);
	expect_eq(e.format, ANDIRON_ENCODED_JFR);
	expect(str_eq(batch_encoded_bytes(&r.view, &e), whole));
	expect_str(batch_str(&r.view, e.query), "format=jfr&sampleRate=100&spyName=java%20spy");
	expect_str(batch_str(&r.view, e.content_type), "multipart/form-data; boundary=b");
	result_fini(&r);
}

static void put_label(struct buf *series, const char *name, const char *value)
{
	struct buf pair = BUF_NULL;

	wire_put_bytes(&pair, 1, str_of(name));
	wire_put_bytes(&pair, 2, str_of(value));
	wire_put_bytes(series, 1, buf_str(&pair));
	buf_free(&pair);
}

/* A push request of one series with the profile. */
static struct buf push_of(struct str pprof)
{
	struct buf request = BUF_NULL, series = BUF_NULL, sample = BUF_NULL;

	wire_put_bytes(&sample, 1, pprof);
	wire_put_bytes(&series, 2, buf_str(&sample));
	put_label(&series, "__name__", "memory");
	put_label(&series, "service_name", "shop");
	wire_put_bytes(&request, 1, buf_str(&series));
	buf_free(&series);
	buf_free(&sample);
	return request;
}

/* A push request has the same meaning as protobuf and as JSON, cut off anywhere it has none. */
TEST(pushes_are_read)
{
	struct buf pprof = cpu_profile(), proto = push_of(buf_str(&pprof)), json = BUF_NULL;
	struct andiron_encoded e;
	struct result r;

	expect_eq(take(&(struct intake_request){.body = buf_str(&proto)}, &r), 0);
	e = batch_encoded(&r.view, 0);
	expect(str_eq(batch_encoded_bytes(&r.view, &e), buf_str(&pprof)));
	expect_str(label(&r, "__name__"), "memory");
	expect_str(label(&r, "service_name"), "shop");
	result_fini(&r);
	for (size_t n = 0; n < proto.n; n++) {
		expect_eq(take(&(struct intake_request){.api = INTAKE_PUSH,
							.body = {proto.p, n}},
			       &r),
			  -EBADMSG);
		expect_eq(r.status, 400);
		expect(r.error.text[0]);
	}
	/* The profile has one sample type, "x". */
	buf_printf(&json, "{\"series\":[{"
			  "\"labels\":[{\"name\":\"__name__\",\"value\":\"heat\"}],"
			  "\"samples\":[{\"rawProfile\":\"CgIIARIDEgEFMgAyAXg=\"}]}]}");
	expect_eq(take(&(struct intake_request){.api = INTAKE_PUSH,
						.content_type = STR("application/json"),
						.body = buf_str(&json)},
		       &r),
		  0);
	expect_str(label(&r, "__name__"), "heat");
	expect_str(label(&r, "service_name"), "heat");
	result_fini(&r);
	buf_free(&pprof);
	buf_free(&proto);
	buf_free(&json);
}

/* A request of one series: `n_labels` labels with values of `value` bytes, and `n` times a profile.
 */
static struct buf push_many(size_t n_labels, size_t value, struct str pprof, size_t n)
{
	struct buf request = BUF_NULL, series = BUF_NULL, sample = BUF_NULL, text = BUF_NULL;
	char name[32];

	for (size_t i = 0; i < value; i++)
		buf_putc(&text, 'v');
	buf_putc(&text, '\0');
	expect(!text.failed);
	for (size_t i = 0; i < n_labels; i++) {
		snprintf(name, sizeof(name), "l%zu", i);
		put_label(&series, name, text.p);
	}
	put_label(&series, "__name__", "heat");
	wire_put_bytes(&sample, 1, pprof);
	for (size_t i = 0; i < n; i++)
		wire_put_bytes(&series, 2, buf_str(&sample));
	wire_put_bytes(&request, 1, buf_str(&series));
	expect(!request.failed);
	buf_free(&series);
	buf_free(&sample);
	buf_free(&text);
	return request;
}

/* Each profile has the labels of its series, and of no other. */
TEST(series_are_told_apart)
{
	struct buf pprof = cpu_profile(), request = push_of(buf_str(&pprof));
	struct buf second = push_many(1, 1, buf_str(&pprof), 2);
	struct result r;

	buf_str_append(&request, buf_str(&second));
	expect_eq(take(&(struct intake_request){.body = buf_str(&request)}, &r), 0);
	expect_eq(batch_count(&r.view, ANDIRON_COL_ENCODED), 3);
	expect_str(label_of(&r, 0, "service_name"), "shop");
	expect_str(label_of(&r, 0, "app_name"), "memory");
	for (uint32_t i = 1; i < 3; i++) {
		expect_str(label_of(&r, i, "service_name"), "heat");
		expect_str(label_of(&r, i, "app_name"), "");
		expect_str(label_of(&r, i, "l0"), "v");
	}
	result_fini(&r);
	buf_free(&pprof);
	buf_free(&request);
	buf_free(&second);
}

static void expect_refused(const struct intake_request *request, unsigned int status,
			   const char *why)
{
	struct result r;

	expect(take(request, &r) < 0);
	expect_eq(r.status, status);
	if (!strstr(r.error.text, why))
		test_fail(__FILE__, __LINE__, "says %s, not %s", r.error.text, why);
}

#define INGEST(...) (&(struct intake_request){.api = INTAKE_INGEST, __VA_ARGS__})

/* What cannot be taken is told in a sentence. */
TEST(faults_are_named)
{
	struct buf zeros = BUF_NULL, bomb = BUF_NULL;
	struct gzip_writer w = {0};

	expect_refused(INGEST(.body = STR("a 1")), 400, "names no application");
	expect_refused(INGEST(.name = STR("a{b=c"), .body = STR("a 1")), 400, "do not end");
	expect_refused(INGEST(.name = STR("a{b}"), .body = STR("a 1")), 400, "no \"=\"");
	expect_refused(INGEST(.name = STR("\xff"), .body = STR("a 1")), 400, "not UTF-8");
	expect_refused(INGEST(.name = STR("a.b"), .body = STR("a 1")), 400, "no type of profile");
	expect_refused(INGEST(.name = STR("a"), .body = STR("a 1\nb")), 400, "line 2");
	expect_refused(INGEST(.name = STR("a"), .body = STR("")), 400, "no stacks");
	expect_refused(INGEST(.name = STR("a"), .body = STR("a 9223372036854775807")), 400,
		       "too large");
	expect_refused(INGEST(.name = STR("a"), .sample_rate = STR("1000"),
			      .body = STR("a 1099511627776\nb 1")),
		       400, "2^40");
	expect_refused(INGEST(.name = STR("a"), .format = STR("svg")), 400, "format=svg");
	expect_refused(INGEST(.name = STR("a"), .format = STR("jfr"), .body = STR("abc")), 400,
		       "no JFR");
	expect_refused(INGEST(.name = STR("a"), .format = STR("pprof")), 400, "empty");
	expect_refused(INGEST(.name = STR("a"), .content_encoding = STR("gzip"),
			      .body = STR("a 1")),
		       400, "Content-Encoding");
	/* 64 MiB of zeros are 64 KiB. */
	expect_eq(gzip_open(&w, &bomb, 9), 0);
	expect(buf_reserve(&zeros, 1 << 20));
	memset(zeros.p, 0, 1 << 20);
	for (int i = 0; i < 64; i++)
		gzip_write(&w, (struct str){zeros.p, 1 << 20});
	expect_eq(gzip_close(&w), 0);
	expect_refused(INGEST(.name = STR("a"), .content_encoding = STR("gzip"),
			      .body = buf_str(&bomb)),
		       413, "uncompressed");
	expect_refused(INGEST(.name = STR("a"), .format = STR("pprof"), .body = buf_str(&bomb)),
		       413, "uncompressed");
	buf_free(&zeros);
	buf_free(&bomb);
}

static void expect_push_refused(struct buf request, unsigned int status, const char *why)
{
	expect_refused(&(struct intake_request){.body = buf_str(&request)}, status, why);
	buf_free(&request);
}

/* Few bytes may neither be many labels nor, all together, large profiles. */
TEST(small_pushes_stay_small)
{
	struct buf pprof = cpu_profile(), large = cpu_profile();
	struct buf zeros = BUF_NULL, zipped = BUF_NULL;
	struct gzip_writer w = {0};

	expect_push_refused(push_many(128, 1, buf_str(&pprof), 1), 400, "more than 128 labels");
	expect_push_refused(push_many(1, 1 << 20, buf_str(&pprof), 60), 413, "with their labels");
	expect(buf_reserve(&zeros, 20 << 20));
	memset(zeros.p, 0, 20 << 20);
	wire_put_bytes(&large, 1000, (struct str){zeros.p, 20 << 20});
	expect_eq(gzip_open(&w, &zipped, 6), 0);
	gzip_write(&w, buf_str(&large));
	expect_eq(gzip_close(&w), 0);
	expect_push_refused(push_many(1, 1, buf_str(&zipped), 3), 413, "profiles of the request");
	buf_free(&pprof);
	buf_free(&large);
	buf_free(&zeros);
	buf_free(&zipped);
}

/* Seconds, milliseconds, microseconds and nanoseconds are told apart by their size. */
TEST(times_are_read)
{
	expect_eq(intake_time(STR("1790000000"), 5), NOW);
	expect_eq(intake_time(STR("1790000000000"), 5), NOW);
	expect_eq(intake_time(STR("1790000000000000"), 5), NOW);
	expect_eq(intake_time(STR("1790000000000000000"), 5), NOW);
	expect_eq(intake_time(STR("now-10s"), NOW), NOW - 10 * NS_PER_SEC);
	expect_eq(intake_time(STR(""), 5), 5);
	expect_eq(intake_time(STR("yesterday"), 5), 5);
	/* No time that is told overflows when it is added to or subtracted from. */
	expect_eq(intake_time(STR("99999999999"), 5), 5);
	expect_eq(intake_time(STR("99999999999999"), 5), 5);
	expect_eq(intake_time(STR("99999999999999999"), 5), 5);
	expect_eq(intake_time(STR("9223372036854775807"), 5), 5);
	expect_eq(intake_time(STR("18446744073709551615"), 5), 5);
	expect_eq(intake_time(STR("now-4294967294s"), NOW), NOW);
	expect_eq(intake_time(STR("now-18446744073709551615s"), NOW), NOW);
}

static int each_api(void *context)
{
	struct buf *bodies = context;
	const struct intake_request requests[] = {
		{.api = INTAKE_PUSH, .body = buf_str(&bodies[1])},
		{.api = INTAKE_INGEST,
		 .name = STR("a{b=c}"),
		 .format = STR("pprof"),
		 .body = buf_str(&bodies[0])},
		{.api = INTAKE_INGEST, .name = STR("a{b=c}"), .body = STR("a;b 1\nc 2\n")},
	};

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const struct andiron_batch *batch;
		unsigned int status;
		struct error err = ERROR_NULL;
		int rc = intake_read(&requests[i], &head, &batch, &status, &err);

		if (rc)
			return rc;
		batch_release(batch);
	}
	return 0;
}

TEST(intake_survives_out_of_memory)
{
	struct buf bodies[2] = {cpu_profile()};

	bodies[1] = push_of(buf_str(&bodies[0]));
	test_each_failing_allocation(each_api, bodies);
	buf_free(&bodies[0]);
	buf_free(&bodies[1]);
}
