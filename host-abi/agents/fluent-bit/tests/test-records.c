/* SPDX-License-Identifier: Apache-2.0 */
/* Records for Fluent Bit: their bytes, and their bound. */
#include "agents/fluent-bit/records.h"
#include "base/clock.h"
#include "testing/test.h"

#include <stdlib.h>

static const struct cpu_usage_sum sum = {
	.service = "s", .target = "", .cpu_ns = 258 * NS_PER_MSEC, .end_ns = 3 * NS_PER_SEC + 4};

/* Bytes as msgpack's spec and Fluent's EventTime have them. */
TEST(a_record_is_msgpack)
{
	static const char expected[] = "\x92\xd7\0\0\0\0\x03\0\0\0\x04\x84"
				       "\xda\0\x04kind\xda\0\x03"
				       "cpu\xda\0\x07service\xda\0\x01s\xda\0\x06target\xda\0\0"
				       "\xda\0\x06"
				       "cpu_ms\xcf\0\0\0\0\0\0\x01\x02";
	struct records r;
	size_t n = 0;
	char *bytes;

	records_init(&r);
	expect(!records_take(&r, &n));
	records_add_cpu(&r, &sum);
	bytes = records_take(&r, &n);
	expect(bytes);
	expect_eq(n, sizeof(expected) - 1);
	expect_eq(memcmp(bytes, expected, n), 0);
	free(bytes);
	expect(!records_take(&r, &n));
	records_fini(&r);
}

/* What nobody takes is bounded; what did not fit is a record, and there is room again. */
TEST(what_waits_is_bounded)
{
	struct records r;
	size_t n = 0, one;
	uint64_t added = 0;
	char *bytes;

	records_init(&r);
	records_add_cpu(&r, &sum);
	one = r.bytes.n;
	while (r.dropped == 0 && ++added)
		records_add_cpu(&r, &sum);
	records_add_cpu(&r, &sum);
	expect_eq(r.bytes.n, added * one);
	bytes = records_take(&r, &n);
	expect(bytes && n > added * one && n < RECORDS_BYTES + 100);
	expect_eq(bytes[n - 1], 2);
	free(bytes);
	records_add_cpu(&r, &sum);
	bytes = records_take(&r, &n);
	expect(bytes);
	expect_eq(n, one);
	free(bytes);
	records_fini(&r);
}
