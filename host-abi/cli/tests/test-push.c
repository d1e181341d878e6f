/* SPDX-License-Identifier: Apache-2.0 */
/* What `andiron push` makes of files and labels before anything is sent. */
#include "base/clock.h"
#include "testing/test.h"
#include "pprof/gzip.h"
#include "protobuf/wire.h"
#include "cli/push/profile-file.h"

#include <errno.h>
#include <stdlib.h>

#define NOW (INT64_C(1800000000) * NS_PER_SEC)

struct shape {
	const char *type, *unit, *period_type;
	int64_t values[2], time_ns, duration_ns;
	size_t n_samples, padding;
};

static const struct shape plain = {
	"cpu", "nanoseconds", "cpu", {7, 5}, NOW - NS_PER_SEC, NS_PER_SEC, 2, 0};

/* A profile of one type, samples without frames, a period of 10. */
static void put(struct buf *out, const struct shape *s)
{
	static const char tail[] = "\x32\0\x32";
	struct buf padding = BUF_NULL;

	buf_append(out, "\x0a\x04\x08\x01\x10\x02", 6);
	for (size_t i = 0; i < s->n_samples; i++) {
		uint64_t value = (uint64_t)s->values[i % 2];

		wire_put_head(out, 2, 1 + wire_length(value));
		wire_put(out, 2 << 3);
		wire_put(out, value);
	}
	buf_append(out, tail, 2);
	wire_put_bytes(out, 6, str_of(s->type));
	wire_put_bytes(out, 6, str_of(s->unit));
	wire_put_bytes(out, 6, str_of(s->period_type));
	if (s->padding) {
		char *p = buf_reserve(&padding, s->padding);

		memset(p, 'x', s->padding);
		wire_put_bytes(out, 6, (struct str){p, s->padding});
	}
	buf_free(&padding);
	wire_put_field(out, 9, (uint64_t)s->time_ns);
	wire_put_field(out, 10, (uint64_t)s->duration_ns);
	if (s->period_type[0])
		buf_append(out, "\x5a\x04\x08\x03\x10\x02", 6);
	wire_put_field(out, 12, 10);
}

static int make(struct push_file *f, const struct shape *s, struct push_how how, struct error *err)
{
	struct buf raw = BUF_NULL;
	int r;

	put(&raw, s);
	how.present_ns = NOW;
	r = push_file_make(f, buf_str(&raw), &how, err);
	buf_free(&raw);
	return r;
}

static void expect_made(const struct shape *s, struct push_how how, int code, const char *words)
{
	struct error err = ERROR_NULL;
	struct push_file f;

	expect_eq(make(&f, s, how, &err), code);
	if (code && !strstr(err.text, words))
		test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", err.text, words);
	push_file_fini(&f);
}

/* Each with what to do about it; a limit that an operator may have raised can be passed. */
TEST(what_a_server_would_not_keep_is_found)
{
	const struct push_how pyroscope = {.kind = PUSH_PYROSCOPE}, parca = {.kind = PUSH_PARCA};
	const struct push_how force = {.kind = PUSH_PYROSCOPE, .force = true};
	const struct push_how now = {.kind = PUSH_PYROSCOPE, .now = true};
	struct shape s = plain;

	expect_made(&s, pyroscope, 0, NULL);
	expect_made(&s, parca, 0, NULL);
	s.n_samples = 0;
	expect_made(&s, pyroscope, -EINVAL, "no samples");
	s = plain, s.values[0] = s.values[1] = 0;
	expect_made(&s, parca, -EINVAL, "no samples");
	s.values[0] = -1, s.values[1] = 3;
	expect_made(&s, pyroscope, -EINVAL, "sample 1 is negative");
	expect_made(&s, parca, 0, NULL);
	s = plain, s.type = "wall-time";
	expect_made(&s, parca, -EINVAL, "servers refuse");
	s = plain, s.unit = "\x1b[2J";
	expect_made(&s, parca, -EINVAL, "servers refuse");
	s = plain, s.type = "";
	expect_made(&s, pyroscope, -EINVAL, "has no name");
	s = plain, s.period_type = "";
	expect_made(&s, parca, -EINVAL, "no period type");
	expect_made(&s, pyroscope, 0, NULL);
	s.values[1] = 0;
	expect_made(&s, pyroscope, -EINVAL, "sample 2 is zero");
	s = plain, s.time_ns = NOW - 7200 * NS_PER_SEC;
	expect_made(&s, pyroscope, -ERANGE, "taken 2h ago");
	expect_made(&s, force, 0, NULL);
	expect_made(&s, now, 0, NULL);
	expect_made(&s, parca, 0, NULL);
	s.time_ns = NOW + 3600 * NS_PER_SEC;
	expect_made(&s, pyroscope, -ERANGE, "from now");
	s = plain, s.n_samples = 16001;
	expect_made(&s, pyroscope, -ERANGE, "16001 samples");
	s = plain, s.padding = 2 << 20;
	expect_made(&s, pyroscope, -ERANGE, "2 MiB");
	expect_made(&s, force, 0, NULL);
	expect_made(&s, parca, 0, NULL);
}

static int64_t time_in(const struct buf *packed)
{
	struct profile *p = NULL;
	struct error err;
	int64_t time_ns;

	expect_eq(profile_decode(buf_str(packed), &p, &err), 0);
	expect(gzip_is(buf_str(packed)));
	time_ns = p->time_ns;
	profile_free(p);
	return time_ns;
}

/* Plain bytes are compressed, gzip goes as it is, and a time is set where there is none or --now.
 */
TEST(bytes_and_times_are_as_asked_for)
{
	struct shape s = plain;
	struct push_file f, again;
	struct error err;

	expect_eq(make(&f, &s, (struct push_how){0}, &err), 0);
	expect_eq(time_in(&f.packed), plain.time_ns);
	expect_eq(push_file_make(&again, buf_str(&f.packed), &(struct push_how){.present_ns = NOW},
				 &err),
		  0);
	expect(str_eq(buf_str(&again.packed), buf_str(&f.packed)));
	push_file_fini(&again);
	expect_eq(push_file_make(&again, buf_str(&f.packed),
				 &(struct push_how){.now = true, .present_ns = NOW}, &err),
		  0);
	expect_eq(time_in(&again.packed), NOW);
	expect_eq(again.time_ns, NOW);
	push_file_fini(&again);
	push_file_fini(&f);
	s.time_ns = 0;
	expect_eq(make(&f, &s, (struct push_how){0}, &err), 0);
	expect_eq(time_in(&f.packed), NOW);
	push_file_fini(&f);
}

static void expect_read(const struct shape *s, enum push_kind kind, const char *type, int64_t total)
{
	struct buf text = BUF_NULL;
	struct push_file f;
	struct error err;

	expect_eq(make(&f, s, (struct push_how){.kind = kind}, &err), 0);
	push_file_put_type(&text, &f, 0, push_file_name(f.profile), kind);
	expect_str(buf_str(&text), type);
	expect_eq(push_file_total(&f, 0, kind), total);
	buf_free(&text);
	push_file_fini(&f);
}

/* Parca makes time of counts, and tells what lasts from what is. */
TEST(names_and_totals_are_the_servers)
{
	struct shape s = plain;

	expect_read(&s, PUSH_PYROSCOPE, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 12);
	expect_read(&s, PUSH_PARCA, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", 12);
	s.type = "inuse_space", s.unit = "bytes", s.period_type = "space", s.duration_ns = 0;
	expect_read(&s, PUSH_PARCA, "memory:inuse_space:bytes:space:bytes", 12);
	s.type = "goroutine", s.period_type = "goroutine";
	expect_read(&s, PUSH_PYROSCOPE, "goroutines:goroutine:bytes:goroutine:bytes", 12);
	s.type = "fish", s.period_type = "x";
	expect_read(&s, PUSH_PYROSCOPE, "fish:fish:bytes:x:bytes", 12);
	s.type = "a fish";
	expect_read(&s, PUSH_PYROSCOPE, "profile:a fish:bytes:x:bytes", 12);
}

static int labels_of(const char *a, const char *b, struct label *out, struct error *err)
{
	const char *texts[] = {a, b};

	return push_labels(&(struct texts){texts, a ? b ? 2 : 1 : 0, 2}, STR("shop"), STR("cpu"),
			   out, err);
}

TEST(labels_are_read_sorted_and_checked)
{
	struct label out[4];
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;

	expect_eq(labels_of(NULL, NULL, out, &err), 2);
	expect_str(out[0].name, "__name__");
	expect_str(out[0].value, "cpu");
	expect_eq(labels_of("zone=a=\"b\\\n", "build.id=7", out, &err), 4);
	expect_str(out[1].name, "build.id");
	expect_str(out[3].value, "a=\"b\\\n");
	push_put_selector(&text, out, 4);
	expect_str(buf_str(&text), "{service_name=\"shop\",zone=\"a=\\\"b\\\\\\n\"}");
	buf_free(&text);
	expect_eq(labels_of("__name__=block", NULL, out, &err), 2);
	expect_str(out[0].value, "block");
	expect_eq(labels_of("__name__=a-b", NULL, out, &err), -EINVAL);
	expect_eq(labels_of("x", NULL, out, &err), -EINVAL);
	expect_eq(labels_of("=x", NULL, out, &err), -EINVAL);
	expect_eq(labels_of("x=1", "x=2", out, &err), -EINVAL);
	expect(strstr(err.text, "given twice"));
	expect_eq(labels_of("service_name=other", NULL, out, &err), -EINVAL);
	expect_eq(labels_of("x=\xff", NULL, out, &err), -EINVAL);
}

static int make_plain(void *context)
{
	const struct push_how how = {.now = true, .present_ns = NOW};
	struct error err = ERROR_NULL;
	struct push_file f;
	int r = push_file_make(&f, buf_str(context), &how, &err);

	push_file_fini(&f);
	return r;
}

TEST(survives_out_of_memory)
{
	struct buf raw = BUF_NULL;

	put(&raw, &plain);
	test_each_failing_allocation(make_plain, &raw);
	buf_free(&raw);
}
