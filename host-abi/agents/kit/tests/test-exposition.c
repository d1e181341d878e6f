/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of Prometheus's text format, whole and cut off. */
#include "agents/kit/exposition.h"
#include "testing/test.h"

#include <stdlib.h>

static struct exposition_sample next(struct exposition *x)
{
	struct exposition_sample s = {0};

	expect(exposition_next(x, &s));
	return s;
}

/* Samples come with their name, labels, value and kind; other lines are passed over. */
TEST(samples_are_read)
{
	struct exposition x = {.rest = STR("# HELP a_total Words.\n# TYPE a_total counter\n"
					   "a_total{w=\"x\",r=\"}, \\\"y\"} 7\n\n"
					   "# TYPE b gauge\nb 2.5 1700000000\n"
					   "broken{\nalone\nc{} NaN\n-\nd x\n{} 1\ne -1e3")};
	struct exposition_sample s = next(&x);
	struct str labels = s.labels, value;

	expect_str(s.name, "a_total");
	expect(s.counter);
	expect(s.value > 6.9 && s.value < 7.1);
	expect(exposition_label(&labels, &value));
	expect_str(value, "x");
	expect(exposition_label(&labels, &value));
	expect_str(value, "}, \\\"y");
	expect(!exposition_label(&labels, &value));
	s = next(&x);
	expect_str(s.name, "b");
	expect(!s.counter && s.value > 2.4 && s.value < 2.6);
	s = next(&x);
	expect_str(s.name, "c");
	expect(s.value != s.value);
	s = next(&x);
	expect_str(s.name, "e");
	expect(s.value < -999);
	expect(!exposition_next(&x, &s));
}

/* Whatever is cut off, reading ends. */
TEST(any_prefix_ends)
{
	static const char text[] = "# TYPE a counter\na{b=\"c\\\"\",d=\"e\\\\\"} 1 2\na{b=\"\\";

	for (size_t n = 0; n < sizeof(text); n++) {
		char *copy = str_dup((struct str){text, n});
		struct exposition x = {.rest = {copy, n}};
		struct exposition_sample s;
		struct str value;

		expect(copy);
		while (exposition_next(&x, &s))
			while (exposition_label(&s.labels, &value))
				expect(value.n < n);
		free(copy);
	}
}
