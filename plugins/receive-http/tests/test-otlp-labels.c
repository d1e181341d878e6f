/* SPDX-License-Identifier: Apache-2.0 */
/* Under which labels and names OTLP's profiles go on. */
#include "receive-http/tests/test-otlp-build.h"

#include "pprof/decode.h"
#include "protobuf/wire.h"
#include "testing/test.h"

#include <errno.h>
#include <string.h>

/* Labels of a resource are counted once, however many profiles have them; those of one name are a
 * series. */
TEST(labels_are_the_resources_own)
{
	static const uint64_t types[] = {1, 1, 2, 1};
	struct buf body = BUF_NULL, owner = BUF_NULL, scope = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	for (int i = 0; i < 1200; i++) {
		test_otlp_put_attributes(&owner, 40, STR("v"));
		test_otlp_put_profile(&scope, 2);
		test_otlp_put_resource(&body, &owner, &scope);
	}
	test_otlp_put_attributes(&owner, 2, STR("w"));
	for (size_t i = 0; i < 4; i++)
		test_otlp_put_profile(&scope, types[i]);
	test_otlp_put_resource(&body, &owner, &scope);
	test_otlp_put_dictionary(&body, 1, STR_NULL, STR_NULL);
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
	expect_eq(r.profiles.n, 1204);
	for (size_t i = 0; i < 1204; i++) {
		bool last = i >= 1200;

		expect_eq(r.profiles.p[i].n_labels, last ? 4 : 42);
		expect_str(test_otlp_label(&r, i, last ? "a1" : "a39"), last ? "w" : "v");
		expect_str(test_otlp_label(&r, i, "service_name"), "unknown_service");
		expect_str(test_otlp_label(&r, i, "__name__"),
			   last && types[i - 1200] == 1 ? "off_cpu" : "process_cpu");
	}
	expect_eq(r.profiles.p[1200].label_start, r.profiles.p[1201].label_start);
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&owner);
	buf_free(&scope);
}

/* Attributes that are too many, or too long for a label, cost themselves alone. */
TEST(attributes_are_bounded)
{
	char large[2049];
	struct buf body = BUF_NULL, owner = BUF_NULL, scope = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	memset(large, 'x', sizeof(large));
	test_otlp_put_attributes(&owner, 3, (struct str){large, sizeof(large)});
	test_otlp_put_attributes(&owner, 200, (struct str){large, sizeof(large) - 1});
	test_otlp_put_profile(&scope, 1);
	test_otlp_put_resource(&body, &owner, &scope);
	test_otlp_put_dictionary(&body, 1, STR_NULL, STR_NULL);
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
	expect_eq(r.profiles.p[0].n_labels, 128);
	expect_eq(test_otlp_label(&r, 0, "a0").n, 2048);
	expect_eq(test_otlp_label(&r, 0, "a125").n, 2048);
	expect_eq(test_otlp_label(&r, 0, "a126").n, 0);
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&owner);
	buf_free(&scope);
}

/* The name of the only profile's service, behind n other attributes. */
static void expect_service(size_t n, struct str key, struct str value, struct str name)
{
	struct buf body = BUF_NULL, owner = BUF_NULL, scope = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	test_otlp_put_attributes(&owner, n, STR("v"));
	test_otlp_put_attribute(&owner, key, value);
	test_otlp_put_attribute(&owner, STR("service_name"), STR("an impostor"));
	test_otlp_put_profile(&scope, 1);
	test_otlp_put_resource(&body, &owner, &scope);
	test_otlp_put_dictionary(&body, 1, STR_NULL, STR_NULL);
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
	expect(str_eq(test_otlp_label(&r, 0, "service_name"), name));
	for (size_t i = 0, seen = 0; i < r.profiles.p[0].n_labels; i++) {
		seen += str_is(r.labels.p[i].name, "service_name");
		expect(seen <= 1);
	}
	expect(r.profiles.p[0].n_labels <= 128);
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&owner);
	buf_free(&scope);
}

/* A service has its name wherever among the attributes that stands, and however long it is. */
TEST(a_service_is_found)
{
	static const char unknown[] = "unknown_service:";
	char large[5000], named[2048];

	for (size_t i = 0; i < sizeof(large); i += 2)
		memcpy(large + i, "ä", 2);
	expect_service(0, STR("service.name"), STR("shop"), STR("shop"));
	expect_service(125, STR("service.name"), STR("shop"), STR("shop"));
	expect_service(126, STR("service.name"), STR("shop"), STR("shop"));
	expect_service(4000, STR("service.name"), STR("shop"), STR("shop"));
	expect_service(4000, STR("service.name"), (struct str){large, sizeof(large)},
		       (struct str){large, 2048});
	large[0] = 'a'; /* so that a character stands across the end */
	large[1] = 'b';
	memmove(large + 1, large + 2, sizeof(large) - 2);
	expect_service(1, STR("service.name"), (struct str){large, 4999},
		       (struct str){large, 2047});
	memcpy(named, unknown, strlen(unknown));
	memcpy(named + strlen(unknown), large, sizeof(named) - strlen(unknown));
	expect_service(4000, STR("process.executable.name"), (struct str){large, 4999},
		       (struct str){named, 2047});
}

/* Where its name cannot be read within the bounds, the request is refused. */
TEST(a_service_is_not_lost_silently)
{
	struct buf body = BUF_NULL, owner = BUF_NULL, scope = BUF_NULL, text = BUF_NULL;
	struct buf x = BUF_NULL;
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;

	for (int i = 0; i < 1 << 18; i++)
		buf_str_append(&text, STR("name"));
	for (int i = 0; i < 256; i++) { /* attributes whose keys are long, by reference */
		wire_put_field(&x, 3, 3);
		test_otlp_message(&owner, 1, &x);
	}
	test_otlp_put_attribute(&owner, STR("service.name"), STR("shop"));
	test_otlp_put_profile(&scope, 1);
	test_otlp_put_resource(&body, &owner, &scope);
	test_otlp_put_dictionary(&body, 1, STR_NULL, buf_str(&text));
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), -E2BIG);
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&owner);
	buf_free(&scope);
	buf_free(&text);
	buf_free(&x);
}

/* A profile of one sample, 3, as its only clock says; its parts are indices of strings. */
static void expect_named(const char *type, const char *unit, const char *clock, const char *name,
			 const char *written, int64_t value)
{
	struct buf body = BUF_NULL, dictionary = BUF_NULL, x = BUF_NULL, y = BUF_NULL, z = BUF_NULL;
	const char *const texts[] = {"", type, unit, clock, "nanoseconds"};
	struct push_request r = {0};
	struct otlp_rejected rejected;
	struct error err = ERROR_NULL;
	struct profile *p;

	for (size_t i = 0; i < 5; i++)
		wire_put_bytes(&dictionary, 5, str_of(texts[i]));
	wire_put_bytes(&dictionary, 7, STR_NULL);
	wire_put_field(&x, 1, 1);
	wire_put_field(&x, 2, 2);
	test_otlp_message(&y, 1, &x); /* its type */
	wire_put_field(&x, 4, 3);
	test_otlp_message(&y, 2, &x); /* a sample */
	if (*clock) {
		wire_put_field(&x, 1, 3);
		wire_put_field(&x, 2, 4);
		test_otlp_message(&y, 5, &x);
		wire_put_field(&y, 6, 10000000);
	}
	test_otlp_message(&z, 2, &y);
	test_otlp_message(&y, 2, &z);
	test_otlp_message(&body, 1, &y);
	test_otlp_message(&body, 2, &dictionary);
	expect_eq(otlp_request_parse(buf_str(&body), &r, &rejected, &err), 0);
	expect_eq(r.profiles.n, 1);
	expect_str(test_otlp_label(&r, 0, "__name__"), name);
	expect_eq(profile_decode(r.profiles.p[0].profile, &p, &err), 0);
	expect_str(p->types[0].type, written);
	expect_eq(p->values[0], value);
	profile_free(p);
	push_request_fini(&r);
	buf_free(&body);
	buf_free(&dictionary);
	buf_free(&x);
	buf_free(&y);
	buf_free(&z);
}

/* Time is that of the clock which the profile names: time of the wall is no CPU time. */
TEST(a_profile_is_named_by_its_clock)
{
	expect_named("samples", "count", "cpu", "process_cpu", "cpu", 30000000);
	expect_named("samples", "count", "wall", "wall", "wall", 30000000);
	expect_named("wall", "nanoseconds", "wall", "wall", "wall", 3);
	expect_named("wall", "nanoseconds", "", "wall", "wall", 3);
	expect_named("cpu", "nanoseconds", "", "process_cpu", "cpu", 3);
	expect_named("off_cpu", "nanoseconds", "", "off_cpu", "off_cpu", 3);
	expect_named("alloc_space", "bytes", "space", "space", "alloc_space", 3);
}
