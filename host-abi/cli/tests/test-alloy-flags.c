/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of Alloy's `run`. */
#include "cli/run/alloy-flags.h"

#include "testing/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The configuration that an address becomes, or why it is refused. */
static const char *listener(const char *address, struct buf *out, struct error *err)
{
	const struct alloy_flags flags = {.listen = address};

	buf_clear(out);
	*err = ERROR_NULL;
	if (alloy_flags_config(&flags, out, err) < 0)
		return err->text;
	buf_putc(out, '\0');
	return out->p;
}

/* An address as Go's net.Listen takes it listens at the same place. */
TEST(an_address_becomes_a_listener)
{
	static const char *const good[][3] = {
		{"127.0.0.1:12345", "127.0.0.1", "12345"}, {"0.0.0.0:80", "0.0.0.0", "80"},
		{"[::1]:1", "::1", "1"},		   {"[::]:65535", "::", "65535"},
		{":12345", "*", "12345"},		   {"localhost:0", "127.0.0.1", "0"},
	};
	struct buf out = BUF_NULL;
	struct error err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text),
			 "status.http {\n\tlisten_address = \"%s\"\n\tlisten_port    = %s\n"
			 "\treload         = true\n}\n",
			 good[i][1], good[i][2]);
		expect_str(str_of(listener(good[i][0], &out, &err)), text);
	}
	buf_free(&out);
}

/* What is no address does not get into the configuration, whatever it holds. */
TEST(what_is_no_address_is_refused)
{
	static const char *const bad[] = {
		"",
		"12345",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		"127.0.0.1:x",
		"127.0.0.1:-1",
		"127.0.0.1:1 ",
		"::1:80",
		"[::1]",
		"[::1:80",
		"[127.0.0.1]:80",
		"[]:80",
		"node-1:12345",
		"\"}\nx{}:80",
	};
	struct buf out = BUF_NULL;
	struct error err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		expect(strstr(listener(bad[i], &out, &err), "is an IP address and a port"));
		expect_eq(out.n, 0);
	}
	buf_free(&out);
}

TEST(another_format_is_refused)
{
	struct buf out = BUF_NULL;
	struct error err = ERROR_NULL;

	expect_eq(alloy_flags_config(&(struct alloy_flags){.format = "alloy"}, &out, &err), 0);
	expect_eq(out.n, 0);
	expect_eq(alloy_flags_config(&(struct alloy_flags){.format = "static"}, &out, &err),
		  -EINVAL);
	expect(strstr(err.text, "alloy convert --source-format=static"));
}
