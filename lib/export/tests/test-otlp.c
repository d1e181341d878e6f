/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP requests under the rules of the signal's own conformance checker: every table begins with
 * its zero value, no index leaves its table, nothing is there twice, and nothing that nobody refers
 * to. Read back by field numbers, with no line of the encoder's. */
#include "testing/test.h"
#include "base/vec.h"
#include "export/otlp.h"
#include "pprof/encode.h"
#include "protobuf/wire.h"

#include <errno.h>
#include <stdlib.h>

enum { MAPPING = 1, LOCATION, FUNCTION, LINK, STRING, ATTRIBUTE, STACK, TABLES };

struct table {
	VEC(struct str) entries;
	VEC(bool) used;
};

struct request {
	struct str resource, scope;
	VEC(struct str) profiles;
	struct table tables[TABLES];
};

static struct wire_field next(struct str *in)
{
	struct wire_field f;

	expect(wire_next(in, &f));
	return f;
}

static void read_dictionary(struct str in, struct request *r)
{
	while (in.n) {
		struct wire_field f = next(&in);

		expect(f.number >= MAPPING && f.number < TABLES && f.type == WIRE_BYTES);
		expect(vec_push(&r->tables[f.number].entries, f.bytes));
		expect(vec_push(&r->tables[f.number].used, false));
	}
}

static void read_scope(struct str in, struct request *r)
{
	while (in.n) {
		struct wire_field f = next(&in);

		if (f.number == 1)
			r->scope = f.bytes;
		else
			expect(f.number == 2 && vec_push(&r->profiles, f.bytes));
	}
}

static void read_request(struct str in, struct request *r)
{
	struct wire_field one = next(&in), two = next(&in), inner;

	expect(one.number == 1 && two.number == 2 && !in.n);
	read_dictionary(two.bytes, r);
	inner = next(&one.bytes);
	expect(inner.number == 1);
	r->resource = inner.bytes;
	inner = next(&one.bytes);
	expect(inner.number == 2 && !one.bytes.n);
	read_scope(inner.bytes, r);
}

static struct str use(struct request *r, int table, uint64_t index)
{
	expect(index < r->tables[table].entries.n);
	r->tables[table].used.p[index] = true;
	return r->tables[table].entries.p[index];
}

/* What the indices in these fields of an entry refer to; each is a number or a packed list. `to`
 * has the table of each field, 0: no index. */
static void follow(struct request *r, struct str entry, const int *to, size_t n)
{
	while (entry.n) {
		struct wire_field f = next(&entry);
		uint64_t index;

		if (f.number >= n || !to[f.number])
			continue;
		if (f.type == WIRE_VARINT)
			use(r, to[f.number], f.value);
		while (f.type == WIRE_BYTES && f.bytes.n) {
			expect(wire_get(&f.bytes, &index));
			use(r, to[f.number], index);
		}
	}
}

static void follow_all(struct request *r)
{
	static const int mapping[] = {0, 0, 0, 0, STRING, ATTRIBUTE};
	static const int location[] = {0, MAPPING, 0, 0, ATTRIBUTE}, line[] = {0, FUNCTION};
	static const int function[] = {0, STRING, STRING, STRING},
			 attribute[] = {0, STRING, 0, STRING};
	static const int stack[] = {0, LOCATION};

	vec_each (&r->tables[MAPPING].entries, e)
		follow(r, *e, mapping, 6);
	vec_each (&r->tables[LOCATION].entries, e) {
		struct str rest = *e;

		follow(r, *e, location, 5);
		while (rest.n) {
			struct wire_field f = next(&rest);

			if (f.number == 3)
				follow(r, f.bytes, line, 2);
		}
	}
	vec_each (&r->tables[FUNCTION].entries, e)
		follow(r, *e, function, 4);
	vec_each (&r->tables[ATTRIBUTE].entries, e)
		follow(r, *e, attribute, 4);
	vec_each (&r->tables[STACK].entries, e)
		follow(r, *e, stack, 2);
}

/* The sum of a profile's values, its samples checked on the way. */
static int64_t read_profile(struct request *r, struct str in, struct wire_field *heads)
{
	static const int sample[] = {0, STACK, ATTRIBUTE, LINK}, type[] = {0, STRING, STRING};
	int64_t sum = 0;

	while (in.n) {
		struct wire_field f = next(&in);
		struct str rest = f.bytes;

		expect(f.number < 8);
		heads[f.number] = f;
		if (f.number == 1 || f.number == 5)
			follow(r, f.bytes, type, 3);
		if (f.number != 2)
			continue;
		follow(r, f.bytes, sample, 4);
		while (rest.n) {
			struct wire_field value = next(&rest);
			uint64_t number;

			if (value.number != 4)
				continue;
			expect(wire_get(&value.bytes, &number) && !value.bytes.n); /* one value */
			sum += (int64_t)number;
		}
	}
	return sum;
}

static void conforms(struct request *r)
{
	follow_all(r);
	for (int t = MAPPING; t < TABLES; t++) {
		struct table *table = &r->tables[t];

		expect(table->entries.n > 0 && table->entries.p[0].n == 0);
		for (size_t i = 0; i < table->entries.n; i++) {
			if (i && !table->used.p[i])
				test_fail(__FILE__, __LINE__, "entry %zu of table %d is an orphan",
					  i, t);
			for (size_t k = i + 1; k < table->entries.n; k++)
				if (str_eq(table->entries.p[i], table->entries.p[k]))
					test_fail(__FILE__, __LINE__, "table %d: %zu is %zu", t, k,
						  i);
		}
	}
}

static void request_free(struct request *r)
{
	for (int t = 0; t < TABLES; t++) {
		vec_free(&r->tables[t].entries);
		vec_free(&r->tables[t].used);
	}
	vec_free(&r->profiles);
}

/* A profile of n stacks over named and unnamed frames, each of 3 samples. */
static struct profile *make_profile(uint32_t n, const char *build_id, int64_t odd)
{
	struct pprof_encoder *e = pprof_encoder_new();
	uint32_t cpu = pprof_add_string(e, STR("cpu")),
		 ns = pprof_add_string(e, STR("nanoseconds"));
	struct pprof_mapping mapping = {.file = pprof_add_string(e, STR("/bin/x")),
					.build_id = pprof_add_string(e, str_of(build_id))};
	uint32_t map = pprof_add_mapping(e, &mapping);
	struct pprof_head head = {.time_ns = 1234567890123456789,
				  .duration_ns = 15000000000,
				  .period = 10000000,
				  .period_type = cpu,
				  .period_unit = ns};
	struct buf out = BUF_NULL;
	struct profile *p;

	pprof_add_type(e, cpu, ns);
	for (uint32_t i = 0; i < n; i++) {
		char name[32];
		struct pprof_function f = {0};
		struct pprof_line line = {.line = i};
		struct pprof_location l = {.address = 4096 + i, .mapping = map, .lines = &line};
		struct pprof_label label = {
			.key = pprof_add_string(e, STR("process")),
			.text = pprof_add_string(e, i % 3 ? STR("a") : STR("b"))};
		uint32_t frames[2];
		int64_t value = 30000000 + (i ? 0 : odd);
		struct pprof_sample s = {frames, &label, &value, 2, i % 2};

		snprintf(name, sizeof(name), "f%u", i / 2);
		f.name = pprof_add_string(e, str_of(name));
		line.function = pprof_add_function(e, &f);
		l.n_lines = i % 4 != 0;
		frames[0] = pprof_add_location(e, &l);
		l = (struct pprof_location){.address = 64, .mapping = map};
		frames[1] = pprof_add_location(e, &l);
		pprof_add_sample(e, &s);
	}
	expect_eq(pprof_finish(e, &head, 0, &out, NULL), 0);
	expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
	pprof_encoder_free(e);
	buf_free(&out);
	return p;
}

static const struct otlp_attribute resource[] = {
	{STR("service.name"), STR("shop"), false},
	{STR("process.pid"), STR("42"), true},
};
static const struct otlp_head head = {resource, 2, STR("andiron"), STR("1"), 7};

TEST(requests_conform)
{
	static const uint32_t sizes[] = {1, 2, 5, 300};

	for (size_t i = 0; i < 4; i++) {
		struct profile *p = make_profile(sizes[i], "ab12", 0);
		struct request r = {0};
		struct wire_field heads[8] = {0};
		struct buf out = BUF_NULL;

		expect_eq(otlp_encode(p, &head, &out), 0);
		read_request(buf_str(&out), &r);
		expect_eq(r.profiles.n, 1);
		expect_eq(read_profile(&r, r.profiles.p[0], heads), 3 * sizes[i]);
		conforms(&r);
		expect_eq(heads[3].type, WIRE_I64);
		expect_eq(heads[4].value, 15000000000);
		expect_eq(heads[6].value, 10000000);
		expect_eq(heads[7].bytes.n, 16);
		expect_eq(r.tables[MAPPING].entries.n, 2); /* one file, named or not */
		expect(str_search(r.resource, STR("shop")) < r.resource.n);
		request_free(&r);
		buf_free(&out);
		profile_free(p);
	}
}

static bool has(const struct request *r, int table, const char *text)
{
	vec_each (&r->tables[table].entries, e)
		if (str_is(*e, text))
			return true;
	return false;
}

/* Whole periods are counted samples; what is not stays what it is. Build ids have the name of their
 * kind. */
TEST(types_and_ids_have_their_names)
{
	static const struct {
		const char *id, *key, *type;
		int64_t odd, sum;
	} rows[] = {{"ab12", "process.executable.build_id.gnu", "samples", 0, 30},
		    {"x/y", "process.executable.build_id.go", "cpu", 1, 300000001}};

	for (size_t i = 0; i < 2; i++) {
		struct profile *p = make_profile(10, rows[i].id, rows[i].odd);
		struct request r = {0};
		struct wire_field heads[8] = {0};
		struct buf out = BUF_NULL;

		expect_eq(otlp_encode(p, &head, &out), 0);
		read_request(buf_str(&out), &r);
		expect_eq(read_profile(&r, r.profiles.p[0], heads), rows[i].sum);
		expect(has(&r, STRING, rows[i].key) && has(&r, STRING, rows[i].type));
		expect(has(&r, STRING, "process.executable.name"));
		request_free(&r);
		buf_free(&out);
		profile_free(p);
	}
}

/* Of samples and their CPU time one is sent, since receivers add both up; and that is the samples
 * where there is no time. */
TEST(cpu_time_is_sent_once)
{
	for (int64_t ns = 0; ns <= 20000000; ns += 20000000) {
		struct pprof_encoder *e = pprof_encoder_new();
		uint32_t samples = pprof_add_string(e, STR("samples")),
			 count = pprof_add_string(e, STR("count")),
			 cpu = pprof_add_string(e, STR("cpu")),
			 unit = pprof_add_string(e, STR("nanoseconds")), frame;
		struct pprof_head by = {
			.period = 10000000, .period_type = cpu, .period_unit = unit};
		struct pprof_location l = {.address = 64};
		int64_t values[] = {3, ns};
		struct pprof_sample s = {&frame, NULL, values, 1, 0};
		struct wire_field heads[8] = {0};
		struct request r = {0};
		struct buf out = BUF_NULL;
		struct profile *p;

		pprof_add_type(e, samples, count);
		pprof_add_type(e, cpu, unit);
		frame = pprof_add_location(e, &l);
		pprof_add_sample(e, &s);
		expect_eq(pprof_finish(e, &by, 0, &out, NULL), 0);
		expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
		buf_clear(&out);
		expect_eq(otlp_encode(p, &head, &out), 0);
		read_request(buf_str(&out), &r);
		expect_eq(r.profiles.n, 1);
		expect_eq(read_profile(&r, r.profiles.p[0], heads), ns ? 2 : 3);
		conforms(&r);
		request_free(&r);
		buf_free(&out);
		profile_free(p);
		pprof_encoder_free(e);
	}
}

/* A sample of one frame, in this mapping and source file, of a thread. */
static void add_sample(struct pprof_encoder *e, const char *mapping, const char *ids,
		       const char *source)
{
	struct pprof_mapping m = {.file = pprof_add_string(e, str_of(mapping)),
				  .build_id = pprof_add_string(e, str_of(ids))};
	struct pprof_function f = {.name = pprof_add_string(e, STR("f")),
				   .file = pprof_add_string(e, str_of(source))};
	struct pprof_line line = {.function = pprof_add_function(e, &f)};
	struct pprof_location l = {
		.address = 64, .mapping = pprof_add_mapping(e, &m), .lines = &line, .n_lines = 1};
	struct pprof_label labels[] = {
		{.key = pprof_add_string(e, STR("comm")), .text = pprof_add_string(e, STR("io"))},
		{.key = pprof_add_string(e, STR("tid")), .number = 4321}};
	uint32_t frame = pprof_add_location(e, &l);
	int64_t value = 1;
	struct pprof_sample sample = {&frame, labels, &value, 1, 2};

	pprof_add_sample(e, &sample);
}

/* The type of a location's frames, by its attribute; empty: it has none. */
static struct str type_of(const struct request *r, struct str location)
{
	while (location.n) {
		struct wire_field f = next(&location), text;
		struct str attribute, value;
		uint64_t index;

		if (f.number != 4)
			continue;
		expect(wire_get(&f.bytes, &index) && !f.bytes.n);
		attribute = r->tables[ATTRIBUTE].entries.p[index];
		expect_str(r->tables[STRING].entries.p[next(&attribute).value],
			   "profile.frame.type");
		value = next(&attribute).bytes;
		text = next(&value);
		return text.bytes;
	}
	return STR_NULL;
}

/* Frames have OpenTelemetry's types: by their mapping, which runtimes name, or by their source. All
 * ids of a file are there, each by its name; and what is known of the thread. */
TEST(frames_and_threads_are_described)
{
	static const char *const rows[][3] = {
		{"[cpython]", "a.py", "cpython"},
		{"[jvm]", "A.java", "jvm"},
		{"[kernel.kallsyms]", "", "kernel"},
		{"/bin/go", "/src/main.go", "go"},
		{"/bin/rust", "src/main.rs", "rust"},
		{"/bin/c", "a.c", "native"},
		{"[anon]", "", "native"},
		{"[vdso]", "", "native"},
		{"[andiron]", "", ""},
	};
	const size_t n = sizeof(rows) / sizeof(rows[0]);
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head profile_head = {.time_ns = 1, .duration_ns = 1};
	struct wire_field heads[8] = {0};
	struct request r = {0};
	struct buf pprof = BUF_NULL, out = BUF_NULL;
	struct profile *p;

	pprof_add_type(e, pprof_add_string(e, STR("x")), pprof_add_string(e, STR("count")));
	for (size_t i = 0; i < n; i++)
		add_sample(e, rows[i][0], i == 3 ? "ab12 x/y/z htlhash:0123" : "", rows[i][1]);
	expect_eq(pprof_finish(e, &profile_head, 0, &pprof, NULL), 0);
	expect_eq(profile_decode(buf_str(&pprof), &p, NULL), 0);
	expect_eq(otlp_encode(p, &head, &out), 0);
	read_request(buf_str(&out), &r);
	expect_eq(read_profile(&r, r.profiles.p[0], heads), n);
	conforms(&r);
	expect_eq(r.tables[LOCATION].entries.n, n + 1);
	for (size_t i = 0; i < n; i++)
		expect_str(type_of(&r, r.tables[LOCATION].entries.p[i + 1]), rows[i][2]);
	expect(has(&r, STRING, "process.executable.build_id.gnu"));
	expect(has(&r, STRING, "process.executable.build_id.go"));
	expect(has(&r, STRING, "process.executable.build_id.htlhash"));
	expect(has(&r, STRING, "thread.name") && has(&r, STRING, "thread.id"));
	expect(str_search(buf_str(&out), STR("htlhash:")) == out.n);
	request_free(&r);
	profile_free(p);
	pprof_encoder_free(e);
	buf_free(&pprof);
	buf_free(&out);
}

static int encode(void *context)
{
	struct buf out = BUF_NULL;
	int rc = otlp_encode(context, &head, &out);

	expect(rc == 0 || out.n == 0);
	buf_free(&out);
	return rc;
}

TEST(requests_survive_short_memory)
{
	struct profile *p = make_profile(6, "ab12", 0);

	test_each_failing_allocation(encode, p);
	profile_free(p);
}
