/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in test-otlp-build.h. */
#include "receive-http/tests/test-otlp-build.h"

#include "protobuf/wire.h"
#include "testing/test.h"

struct str test_otlp_label(const struct push_request *r, size_t profile, const char *name)
{
	const struct pushed *p = &r->profiles.p[profile];

	for (size_t i = 0; i < p->n_labels; i++)
		if (str_is(r->labels.p[p->label_start + i].name, name))
			return r->labels.p[p->label_start + i].value;
	return STR_NULL;
}

void test_otlp_message(struct buf *b, uint32_t field, struct buf *inner)
{
	wire_put_bytes(b, field, buf_str(inner));
	buf_clear(inner);
}

void test_otlp_put_profile(struct buf *scope, uint64_t type)
{
	struct buf x = BUF_NULL, y = BUF_NULL;

	wire_put_field(&x, 1, 1);
	wire_put_field(&x, 4, 3);
	test_otlp_message(&y, 2, &x);
	wire_put_field(&x, 1, type);
	test_otlp_message(&y, 1, &x);
	test_otlp_message(scope, 2, &y);
	buf_free(&x);
	buf_free(&y);
}

void test_otlp_put_attribute(struct buf *owner, struct str name, struct str value)
{
	struct buf x = BUF_NULL, y = BUF_NULL;

	wire_put_bytes(&x, 1, name);
	wire_put_bytes(&y, 1, value);
	test_otlp_message(&x, 2, &y);
	test_otlp_message(owner, 1, &x);
	buf_free(&x);
	buf_free(&y);
}

void test_otlp_put_attributes(struct buf *owner, size_t n, struct str value)
{
	struct buf name = BUF_NULL;

	for (size_t i = 0; i < n; i++) {
		buf_clear(&name);
		buf_printf(&name, "a%zu", i);
		test_otlp_put_attribute(owner, buf_str(&name), value);
	}
	buf_free(&name);
}

void test_otlp_put_resource(struct buf *body, struct buf *owner, struct buf *scope)
{
	struct buf x = BUF_NULL;

	test_otlp_message(&x, 1, owner);
	test_otlp_message(&x, 2, scope);
	test_otlp_message(body, 1, &x);
	buf_free(&x);
}

void test_otlp_put_dictionary(struct buf *body, size_t n, struct str of_location, struct str text)
{
	struct buf x = BUF_NULL, y = BUF_NULL, list = BUF_NULL;

	for (uint32_t table = 1; table <= 7; table++)
		wire_put_bytes(&x, table, STR_NULL);
	wire_put_bytes(&x, 5, STR("off_cpu"));
	wire_put_bytes(&x, 5, STR("f"));
	wire_put_bytes(&x, 5, text);
	wire_put_field(&y, 1, 3);
	test_otlp_message(&x, 6, &y); /* an attribute that has the text as its key */
	wire_put_field(&y, 2, 64);
	buf_str_append(&y, of_location);
	test_otlp_message(&x, 2, &y);
	for (size_t i = 0; i < n; i++)
		wire_put(&list, 1);
	test_otlp_message(&y, 1, &list);
	test_otlp_message(&x, 7, &y);
	test_otlp_message(body, 2, &x);
	buf_free(&x);
	buf_free(&y);
	buf_free(&list);
	expect(!body->failed);
}
