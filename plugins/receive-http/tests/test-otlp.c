/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of OTLP: what otlp.write makes comes back as it was, and what is forged is refused. */
#include "receive-http/tests/test-otlp-build.h"

#include "export/otlp.h"
#include "pprof/encode.h"
#include "protobuf/wire.h"
#include "testing/test.h"

#include <errno.h>
#include <string.h>

static uint32_t s(struct pprof_encoder *e, const char *text)
{
	return pprof_add_string(e, str_of(text));
}

static uint32_t function(struct pprof_encoder *e, const char *name, const char *file)
{
	const struct pprof_function f = {.name = s(e, name), .file = s(e, file), .start_line = 7};

	return pprof_add_function(e, &f);
}

/* 20 ms and 30 ms of CPU at 100 Hz: main → (work, inlined into step) and main → an address. */
static struct profile *pprof(void)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_line inlined[2], one;
	uint32_t frames[2], file, python;
	struct pprof_sample sample = {.locations = frames, .n_locations = 2};
	struct buf out = BUF_NULL;
	struct profile *p;
	int64_t value;

	expect(e);
	pprof_add_type(e, s(e, "cpu"), s(e, "nanoseconds"));
	file = pprof_add_mapping(e, &(struct pprof_mapping){.start = 0x1000,
							    .limit = 0x9000,
							    .offset = 0x1000,
							    .file = s(e, "/bin/shop"),
							    .build_id = s(e, "abcd12")});
	python = pprof_add_mapping(e, &(struct pprof_mapping){.file = s(e, "cpython")});
	inlined[0] = (struct pprof_line){function(e, "work", "a.c"), 12, 0};
	inlined[1] = (struct pprof_line){function(e, "step", "a.c"), 30, 0};
	one = (struct pprof_line){function(e, "main", "main.py"), 3, 0};
	frames[1] = pprof_add_location(e, &(struct pprof_location){
						  .mapping = python, .n_lines = 1, .lines = &one});
	for (int i = 0; i < 2; i++) {
		struct pprof_location l = {.address = 0x2000 + (uint64_t)i, .mapping = file};

		l.lines = inlined;
		l.n_lines = i ? 0 : 2;
		frames[0] = pprof_add_location(e, &l);
		value = i ? 30000000 : 20000000;
		sample.values = &value;
		pprof_add_sample(e, &sample);
	}
	expect_eq(pprof_finish(e,
			       &(struct pprof_head){.time_ns = 5000000000,
						    .duration_ns = 15000000000,
						    .period = 10000000},
			       1, &out, NULL),
		  0);
	expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
	buf_free(&out);
	pprof_encoder_free(e);
	return p;
}

static const struct otlp_attribute resource[] = {
	{.key = STR("service.name"), .text = STR("shop")},
	{.key = STR("k8s.pod.name"), .text = STR("shop-0")},
	{.key = STR("process.pid"), .text = STR("77"), .is_number = true},
};

static struct buf request_of(const struct otlp_attribute *attributes, size_t n)
{
	struct profile *p = pprof();
	struct otlp_head head = {.resource = attributes, .n_resource = n};
	struct buf out = BUF_NULL;

	expect_eq(otlp_encode(p, &head, &out), 0);
	profile_free(p);
	return out;
}

static void expect_same_frame(const struct profile *a, const struct profile_location *l,
			      const struct profile *b, const struct profile_location *m)
{
	const struct profile_mapping *f = &a->mappings[l->mapping], *g = &b->mappings[m->mapping];

	expect(str_eq(f->file, g->file) && str_eq(f->build_id, g->build_id));
	expect_eq(l->address, m->address);
	expect_eq(l->n_lines, m->n_lines);
	for (uint32_t n = 0; n < l->n_lines; n++) {
		const struct profile_line *c = &a->lines[l->line_start + n];
		const struct profile_line *d = &b->lines[m->line_start + n];

		expect_eq(c->line, d->line);
		expect(str_eq(a->functions[c->function].name, b->functions[d->function].name));
		expect(str_eq(a->functions[c->function].file, b->functions[d->function].file));
		expect_eq(b->functions[d->function].start_line, 7);
	}
}

static void expect_same(const struct profile *a, const struct profile *b)
{
	expect_eq(a->n_samples, b->n_samples);
	expect_str(b->types[0].type, "cpu");
	expect_str(b->types[0].unit, "nanoseconds");
	expect(a->period == b->period && a->time_ns == b->time_ns &&
	       a->duration_ns == b->duration_ns);
	for (size_t i = 0; i < a->n_samples; i++) {
		const struct profile_sample *x = &a->samples[i], *y = &b->samples[i];

		expect_eq(a->values[i], b->values[i]);
		expect_eq(x->n_frames, y->n_frames);
		for (uint32_t k = 0; k < x->n_frames; k++)
			expect_same_frame(a, &a->locations[a->frames[x->frame_start + k]], b,
					  &b->locations[b->frames[y->frame_start + k]]);
	}
}

/* A profile that otlp.write sends is the same behind otlp.receive, under its resource's labels. */
TEST(comes_back_as_it_was)
{
	struct buf body = request_of(resource, 3);
	struct profile *before = pprof(), *after;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
	expect_eq(rejected.n, 0);
	expect_eq(r.profiles.n, 1);
	expect_str(test_otlp_label(&r, 0, "service_name"), "shop");
	expect_str(test_otlp_label(&r, 0, "k8s_pod_name"), "shop-0");
	expect_str(test_otlp_label(&r, 0, "process_pid"), "77");
	expect_str(test_otlp_label(&r, 0, "__name__"), "process_cpu");
	expect_eq(profile_decode(r.profiles.p[0].profile, &after, &err), 0);
	expect_same(before, after);
	profile_free(before);
	profile_free(after);
	push_request_fini(&r);
	buf_free(&body);
}

/* Who names no service gets the name that servers give it. */
TEST(a_service_has_a_name)
{
	static const struct otlp_attribute other[] = {
		{.key = STR("process.executable.name"), .text = STR("nginx")},
		{.key = STR("0.odd-key"), .text = STR("x")},
	};

	for (size_t n = 0; n <= 2; n += 2) {
		struct buf body = request_of(other, n);
		struct push_request r = {0};
		struct otlp_rejected rejected;
		struct error err = ERROR_NULL;

		expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
		expect_str(test_otlp_label(&r, 0, "service_name"),
			   n ? "unknown_service:nginx" : "unknown_service");
		expect(!n || str_is(test_otlp_label(&r, 0, "_0_odd_key"), "x"));
		push_request_fini(&r);
		buf_free(&body);
	}
}

/* Whatever is cut off or changed is refused or read, and nothing is read beyond it. */
TEST(what_is_damaged_is_refused)
{
	struct buf body = request_of(resource, 3);

	for (size_t i = 0; i < 2 * body.n; i++) {
		struct str text = buf_str(&body);
		struct push_request r = {0};
		struct otlp_rejected rejected;
		struct error err = ERROR_NULL;
		char *copy;
		int rc;

		if (i < body.n)
			text.n = i;
		copy = malloc(text.n + 1); /* so that a sanitizer sees its end */
		expect(copy);
		memcpy(copy, text.p, text.n);
		if (i >= body.n)
			copy[i - body.n] = (char)~copy[i - body.n];
		rc = otlp_request_parse((struct str){copy, text.n}, &r, &rejected, &err);
		expect(rc == 0 || (rc == -EBADMSG && err.code));
		push_request_fini(&r);
		free(copy);
	}
	buf_free(&body);
}

/* --- By hand --- */

/* Two profiles of one sample each; the second one's stack is `stack`. Tables have two entries. */
static struct buf by_hand(uint64_t stack, size_t padding)
{
	struct buf body = BUF_NULL, dictionary = BUF_NULL, x = BUF_NULL, y = BUF_NULL, z = BUF_NULL;

	for (uint32_t table = 1; table <= 7; table++)
		wire_put_bytes(&dictionary, table, STR_NULL);
	wire_put_bytes(&dictionary, 5, STR("f"));
	wire_put_field(&x, 1, 1);
	test_otlp_message(&dictionary, 3, &x); /* a function */
	wire_put_field(&y, 1, 1);
	test_otlp_message(&x, 3, &y); /* a line */
	for (size_t i = 0; i < padding; i++)
		wire_put_field(&x, 15, 1); /* which nobody knows */
	test_otlp_message(&dictionary, 2, &x);       /* a location */
	wire_put_field(&x, 1, 1);
	test_otlp_message(&dictionary, 7, &x); /* a stack */
	for (uint64_t i = 0; i < 2; i++) {
		wire_put_field(&x, 1, i ? stack : 1);
		wire_put_field(&x, 4, 3);
		test_otlp_message(&y, 2, &x); /* a sample */
		wire_put_field(&x, 1, 1);
		test_otlp_message(&y, 1, &x); /* its type */
		test_otlp_message(&z, 2, &y); /* a profile of the scope */
	}
	test_otlp_message(&y, 2, &z);
	test_otlp_message(&body, 1, &y);
	test_otlp_message(&body, 2, &dictionary); /* which may stand behind */
	buf_free(&dictionary);
	buf_free(&x);
	buf_free(&y);
	buf_free(&z);
	expect(!body.failed);
	return body;
}

/* A profile with an index that leads nowhere is left out and counted; the others are taken. Where
 * none is left the request is at fault. */
TEST(a_wrong_index_costs_its_profile)
{
	struct buf body = by_hand(9, 0);
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
	expect_eq(r.profiles.n, 1);
	expect_eq(rejected.n, 1);
	expect(strstr(rejected.why.text, "entry 9 of the dictionary's table 7 is not there"));
	push_request_fini(&r);
	buf_free(&body);

	body = by_hand(0, 0); /* a sample without frames is one all the same */
	r = (struct push_request){0};
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
	expect_eq(r.profiles.n, 2);
	push_request_fini(&r);
	buf_free(&body);
}

/* A dictionary in pieces is too large as one in a piece is. */
TEST(what_is_too_much_is_refused)
{
	struct buf body = BUF_NULL, dictionary = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	for (size_t i = 0; i < OTLP_MAX_ENTRIES / 2; i++)
		wire_put_bytes(&dictionary, 5, STR_NULL);
	for (int i = 0; i < 3; i++)
		wire_put_bytes(&body, 2, buf_str(&dictionary));
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), -E2BIG);
	expect(strstr(err.text, "more than 1048576 entries"));
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&dictionary);
}

/* An entry that is large, and referred to often, is read no more often than is bounded. */
TEST(work_is_bounded)
{
	struct buf body = by_hand(1, 1 << 20), many = BUF_NULL, scope = BUF_NULL, sample = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	wire_put_field(&sample, 1, 1);
	wire_put_field(&sample, 4, 1);
	test_otlp_message(&scope, 2, &sample);
	wire_put_field(&sample, 1, 1);
	test_otlp_message(&scope, 1, &sample);
	for (int i = 0; i < 200; i++)
		wire_put_bytes(&many, 2, buf_str(&scope));
	buf_clear(&scope);
	test_otlp_message(&scope, 2, &many);
	wire_put_bytes(&body, 1, buf_str(&scope));
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), -E2BIG);
	expect(strstr(err.text, "more than 256 MiB of the dictionary"));
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&many);
	buf_free(&scope);
	buf_free(&sample);
}

/* A profile without a type, and one whose stack is too deep, are left out and told. */
TEST(faults_cost_their_profile)
{
	for (int deep = 0; deep < 2; deep++) {
		struct buf body = BUF_NULL, owner = BUF_NULL, scope = BUF_NULL;
		struct push_request r = {0};
		struct otlp_rejected rejected;
		struct error err = ERROR_NULL;

		test_otlp_put_profile(&scope, deep ? 1 : 0);
		test_otlp_put_resource(&body, &owner, &scope);
		test_otlp_put_dictionary(&body, deep ? 16385 : 16384, STR_NULL, STR_NULL);
		expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), -EBADMSG);
		expect(strstr(err.text, deep ? "more than 16384 frames" : "no sample type"));
		expect_eq(rejected.n, 1);
		push_request_fini(&r);
		buf_free(&body);
		buf_free(&owner);
		buf_free(&scope);
	}
}

/* Texts that attributes name are a part of the work. */
TEST(texts_of_attributes_are_work)
{
	struct buf body = BUF_NULL, owner = BUF_NULL, scope = BUF_NULL, text = BUF_NULL;
	struct buf location = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	expect(buf_reserve(&text, 1 << 20));
	memset(text.p, 'x', 1 << 20);
	text.n = 1 << 20;
	wire_put_bytes(&location, 15, buf_str(&text)); /* which nobody knows */
	for (int i = 0; i < 256; i++)
		wire_put_field(&location, 4, 1);
	test_otlp_put_profile(&scope, 1);
	test_otlp_put_profile(&scope, 1);
	test_otlp_put_resource(&body, &owner, &scope);
	test_otlp_put_dictionary(&body, 1, buf_str(&location), buf_str(&text));
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), -E2BIG);
	expect(strstr(err.text, "more than 256 MiB of the dictionary"));
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&owner);
	buf_free(&scope);
	buf_free(&text);
	buf_free(&location);
}

/* An entry is read once for each profile; that a frame refers to it again costs next to nothing. */
TEST(references_are_cheap)
{
	struct buf body = BUF_NULL, owner = BUF_NULL, scope = BUF_NULL, location = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	for (int i = 0; i < 1024; i++)
		wire_put_field(&location, 15, 1); /* which nobody knows */
	for (int i = 0; i < 20; i++)
		test_otlp_put_profile(&scope, 1);
	test_otlp_put_resource(&body, &owner, &scope);
	test_otlp_put_dictionary(&body, 16384, buf_str(&location), STR_NULL);
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
	expect_eq(r.profiles.n, 20);
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&owner);
	buf_free(&scope);
	buf_free(&location);
}

/* Small requests do not become large ones: profiles end where nobody would take them any more. */
TEST(what_it_becomes_is_bounded)
{
	struct buf body = BUF_NULL, owner = BUF_NULL, scope = BUF_NULL, text = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	for (int i = 0; i < 1 << 18; i++)
		buf_str_append(&text, STR("type"));
	for (int i = 0; i < 60; i++)
		test_otlp_put_profile(&scope, 3);
	test_otlp_put_resource(&body, &owner, &scope);
	test_otlp_put_dictionary(&body, 1, STR_NULL, buf_str(&text));
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), -E2BIG);
	expect(strstr(err.text, "more than 48 MiB as pprof"));
	expect_eq(r.profiles.n, 47);
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&owner);
	buf_free(&scope);
	buf_free(&text);
}

static int parse(void *context)
{
	const struct buf *body = context;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;
	int rc = otlp_request_parse(buf_str(body), &r, &rejected, &err);

	push_request_fini(&r);
	return rc;
}

TEST(survives_out_of_memory)
{
	struct buf body = request_of(resource, 3);

	test_each_failing_allocation(parse, &body);
	buf_free(&body);
}
