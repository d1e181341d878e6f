/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from arguments as the host hands them over. */
#include "scrape/settings.h"

#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>

#define KEY(text) {text, sizeof(text) - 1}
#define NS(ns)    {.kind = ANDIRON_VALUE_INT, .integer = (ns)}
#define BOOLEAN(b) {.kind = ANDIRON_VALUE_BOOL, .integer = (b)}
#define TEXT(t)   {.kind = ANDIRON_VALUE_STRING, .string = KEY(t)}
#define MAP_OF(k, i, n)                                                                            \
	{.kind = ANDIRON_VALUE_MAP, .keys = (k), .items = (i), .n_items = (n)}

static const struct kind *kind_of(const struct settings *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_kinds; i++)
		if (str_is(s->kinds[i].name, name))
			return &s->kinds[i];
	test_fail(__FILE__, __LINE__, "there is no kind %s", name);
}

/* Without arguments it is Alloy's default: five profiles, of which three are totals. */
TEST(defaults_are_alloys)
{
	const struct andiron_value none = {.kind = ANDIRON_VALUE_MAP};
	struct error err = ERROR_NULL;
	struct settings *s;

	expect_eq(settings_new(&none, &s, &err), 0);
	expect_eq(s->n_kinds, 5);
	expect_eq(s->interval_ns, 15 * NS_PER_SEC);
	expect_eq(s->timeout_ns, 10 * NS_PER_SEC);
	expect_eq(s->seconds, 14);
	expect_str(s->scheme, "http");
	expect(kind_of(s, "process_cpu")->timed);
	expect_eq(kind_of(s, "memory")->totals, TOTALS_ALLOC);
	expect_eq(kind_of(s, "mutex")->totals, TOTALS_DELAY);
	expect_eq(kind_of(s, "goroutine")->totals, TOTALS_NONE);
	expect_str(kind_of(s, "memory")->path, "/debug/pprof/allocs");
	settings_free(s);
}

/* godeltaprof's profiles are called what they are, and nothing is subtracted from them; a custom
 * profile has its label's name. */
TEST(profiles_are_named)
{
	const struct andiron_str enabled_key[] = {KEY("enabled")};
	const struct andiron_value yes[] = {BOOLEAN(1)}, no[] = {BOOLEAN(0)};
	const struct andiron_str custom_keys[] = {KEY(""), KEY("enabled"), KEY("path")};
	const struct andiron_value custom[] = {TEXT("wall"), BOOLEAN(1), TEXT("/wall")};
	const struct andiron_value customs[] = {MAP_OF(custom_keys, custom, 3)};
	const struct andiron_str keys[] = {KEY("profile.memory"), KEY("profile.godeltaprof_memory"),
					   KEY("profile.custom")};
	const struct andiron_value items[] = {
		MAP_OF(enabled_key, no, 1), MAP_OF(enabled_key, yes, 1),
		{.kind = ANDIRON_VALUE_LIST, .items = customs, .n_items = 1}};
	const struct andiron_str top_key[] = {KEY("profiling_config")};
	const struct andiron_value top[] = {MAP_OF(keys, items, 3)};
	const struct andiron_value args = MAP_OF(top_key, top, 1);
	struct error err = ERROR_NULL;
	struct settings *s;

	expect_eq(settings_new(&args, &s, &err), 0);
	expect_eq(s->n_kinds, 6);
	expect_eq(kind_of(s, "memory")->totals, TOTALS_NONE);
	expect_str(kind_of(s, "memory")->path, "/debug/pprof/delta_heap");
	expect_str(kind_of(s, "wall")->path, "/wall");
	settings_free(s);
}

/* A target cannot profile for longer than the interval; the default gives way, what is written is
 * refused. */
TEST(times_fit_each_other)
{
	const struct andiron_str keys[] = {KEY("scrape_interval"), KEY("delta_profiling_duration")};
	const struct andiron_value good[] = {NS(5 * NS_PER_SEC)};
	const struct andiron_value bad[] = {NS(5 * NS_PER_SEC), NS(6 * NS_PER_SEC)};
	const struct andiron_value args[] = {MAP_OF(keys, good, 1), MAP_OF(keys, bad, 2)};
	struct error err = ERROR_NULL;
	struct settings *s;

	expect_eq(settings_new(&args[0], &s, &err), 0);
	expect_eq(s->seconds, 4);
	settings_free(s);
	expect_eq(settings_new(&args[1], &s, &err), -EINVAL);
	expect(strstr(err.text, "1s less than scrape_interval") != NULL);
}

/* What is written holds, also if it is what the default says; what the host fills in gives way. */
TEST(a_written_duration_holds)
{
	const struct andiron_str keys[] = {KEY("scrape_interval"), KEY("delta_profiling_duration")};
	struct andiron_value items[] = {NS(60 * NS_PER_SEC), NS(14 * NS_PER_SEC)};
	const struct andiron_value args = MAP_OF(keys, items, 2);
	struct error err = ERROR_NULL;
	struct settings *s;

	expect_eq(settings_new(&args, &s, &err), 0);
	expect_eq(s->seconds, 14);
	settings_free(s);
	items[1].flags = ANDIRON_VALUE_DEFAULTED;
	expect_eq(settings_new(&args, &s, &err), 0);
	expect_eq(s->seconds, 59);
	settings_free(s);
}
