/* SPDX-License-Identifier: Apache-2.0 */
/* The block of collectd's configuration, as collectd's parser leaves it. */
#include "agents/collectd/settings.h"
#include "base/str.h"
#include "testing/test.h"

#include <andiron/host.h>
#include <collectd/liboconfig/oconfig.h>
#include <errno.h>
#include <math.h>

static oconfig_value_t text(const char *s)
{
	return (oconfig_value_t){.type = OCONFIG_TYPE_STRING, .value.string = (char *)(uintptr_t)s};
}

static oconfig_value_t number(double n)
{
	return (oconfig_value_t){.type = OCONFIG_TYPE_NUMBER, .value.number = n};
}

/* A block of one option. */
static int read_one(struct settings *s, const char *key, oconfig_value_t *values, int n,
		    struct error *err)
{
	oconfig_item_t item = {.key = (char *)(uintptr_t)key, .values = values, .values_num = n};
	const oconfig_item_t block = {.children = &item, .children_num = 1};

	return settings_read(s, &block, err);
}

static void expect_refused(const char *key, oconfig_value_t value, const char *why)
{
	struct settings s;
	struct error err = ERROR_NULL;

	settings_init(&s);
	expect_eq(read_one(&s, key, &value, 1, &err), -EINVAL);
	expect_str(str_of(err.text), why);
	settings_free(&s);
}

/* Options are known in any case; lists grow, others are replaced. */
TEST(options_are_read)
{
	oconfig_value_t first[] = {text("/a"), text("/b")}, third = text("/c"), n = number(7),
			level = text("Debug");
	struct settings s;

	settings_init(&s);
	expect_eq(s.log_level, ANDIRON_LOG_INFO);
	expect_eq(read_one(&s, "plugindir", first, 2, NULL), 0);
	expect_eq(read_one(&s, "PluginDir", &third, 1, NULL), 0);
	expect_eq(read_one(&s, "Config", &first[0], 1, NULL), 0);
	expect_eq(read_one(&s, "Config", &third, 1, NULL), 0);
	expect_eq(read_one(&s, "MaxSeries", &n, 1, NULL), 0);
	expect_eq(read_one(&s, "LogLevel", &level, 1, NULL), 0);
	expect_eq(s.plugin_dirs.n, 3);
	expect_str(str_of(s.plugin_dirs.p[2]), "/c");
	expect_str(str_of(s.config), "/c");
	expect_eq(s.max_series, 7);
	expect_eq(s.log_level, ANDIRON_LOG_DEBUG);
	settings_free(&s);
}

/* What is wrong is refused, and the text says what would be right. */
TEST(mistakes_are_named)
{
	expect_refused("PluginDirs", text("/a"),
		       "there is no option PluginDirs; did you mean PluginDir");
	expect_refused("Colour", text("red"), "there is no option Colour");
	expect_refused("Workers", number(1.5), "Workers takes a whole number from 1 to 16");
	expect_refused("Workers", number(-1), "Workers takes a whole number from 1 to 16");
	expect_refused("Workers", number(1e300), "Workers takes a whole number from 1 to 16");
	expect_refused("Workers", number((double)NAN), "Workers takes a whole number from 1 to 16");
	expect_refused("Workers", text("2"), "Workers takes a whole number from 1 to 16");
	expect_refused("Config", number(1), "Config takes one text in quotes");
	expect_refused("Config", text(""), "Config takes one text in quotes");
	expect_refused("Metric", number(1), "Metric takes texts in quotes");
	expect_refused("LogLevel", text("loud"),
		       "LogLevel is one of \"error\", \"warn\", \"info\", \"debug\"");
}

static int read_list(void *context)
{
	oconfig_value_t values[] = {text("a"), text("b")};
	struct settings s;
	int r;

	settings_init(&s);
	r = read_one(&s, "Metric", values, 2, NULL);
	settings_free(&s);
	return r;
}

TEST(memory_runs_out)
{
	test_each_failing_allocation(read_list, NULL);
}
