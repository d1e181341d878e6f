/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of Alloy's `run`. */
#include "cli/run/alloy-flags.h"

#include "testing/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An address as Go's net.Listen takes it listens at the same place. */
TEST(an_address_becomes_a_listener)
{
	static const char *const good[][3] = {
		{"127.0.0.1:12345", "127.0.0.1", "12345"}, {"0.0.0.0:80", "0.0.0.0", "80"},
		{"[::1]:1", "::1", "1"},		   {"[::]:65535", "::", "65535"},
		{":12345", "*", "12345"},		   {"localhost:0", "127.0.0.1", "0"},
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct alloy_flags flags = {.listen = good[i][0]};
		struct error err = ERROR_NULL;
		char text[200];

		snprintf(text, sizeof(text),
			 "status.http {\n\tlisten_address = \"%s\"\n\tlisten_port    = %s\n"
			 "\treload         = true\n}\n",
			 good[i][1], good[i][2]);
		expect_eq(alloy_flags_config(&flags, &err), 0);
		expect_str(flags.sources[0].text, text);
		expect_str(str_of(flags.sources[0].name), "--server.http.listen-addr");
		expect_eq(flags.sources[1].text.n, 0);
		alloy_flags_fini(&flags);
	}
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

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct alloy_flags flags = {.listen = bad[i]};
		struct error err = ERROR_NULL;

		expect_eq(alloy_flags_config(&flags, &err), -EINVAL);
		expect(strstr(err.text, "is an IP address and a port"));
		expect_eq(flags.sources[0].text.n, 0);
		alloy_flags_fini(&flags);
	}
}

/* The directory is absolute, and a string of the language whatever its name holds. */
TEST(storage_becomes_a_block)
{
	struct alloy_flags flags = {.storage = "/var/lib/a\"b\\c\n"};
	struct error err = ERROR_NULL;

	expect_eq(alloy_flags_config(&flags, &err), 0);
	expect_str(flags.sources[1].text,
		   "storage {\n\tpath = \"/var/lib/a\\\"b\\\\c\\n\"\n}\n");
	alloy_flags_fini(&flags);
	flags = (struct alloy_flags){.storage = "data-alloy/"};
	expect_eq(alloy_flags_config(&flags, &err), 0);
	expect(str_starts(flags.sources[1].text, STR("storage {\n\tpath = \"/")));
	expect(str_ends(flags.sources[1].text, STR("/data-alloy/\"\n}\n")));
	alloy_flags_fini(&flags);
	flags = (struct alloy_flags){.storage = ""};
	expect_eq(alloy_flags_config(&flags, &err), -EINVAL);
	alloy_flags_fini(&flags);
}

TEST(another_format_is_refused)
{
	struct alloy_flags flags = {.format = "alloy"};
	struct error err = ERROR_NULL;

	expect_eq(alloy_flags_config(&flags, &err), 0);
	expect_eq(flags.sources[0].text.n, 0);
	flags.format = "static";
	expect_eq(alloy_flags_config(&flags, &err), -EINVAL);
	expect(strstr(err.text, "alloy convert --source-format=static"));
	alloy_flags_fini(&flags);
}
