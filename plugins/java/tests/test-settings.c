/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from arguments as the host hands them over. */
#include "java/settings.h"

#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>

#define KEY(text)                                                                                  \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
#define TEXT(t)                                                                                    \
	{                                                                                          \
		.kind = ANDIRON_VALUE_STRING, .string = KEY(t)                                     \
	}
#define BOOLEAN(b)                                                                                 \
	{                                                                                          \
		.kind = ANDIRON_VALUE_BOOL, .integer = (b)                                         \
	}
#define MAP_OF(k, i)                                                                               \
	{                                                                                          \
		.kind = ANDIRON_VALUE_MAP, .keys = (k), .items = (i),                              \
		.n_items = sizeof(i) / sizeof(*(i))                                                \
	}

static int make(void *context)
{
	struct error err = ERROR_NULL;
	struct settings *s = NULL;
	int r = settings_new(context, &s, &err);

	settings_release(s);
	return r;
}

/* Without arguments it is Alloy's default. */
TEST(defaults_are_alloys)
{
	struct andiron_value none = {.kind = ANDIRON_VALUE_MAP};
	struct error err = ERROR_NULL;
	struct settings *s;

	expect_eq(settings_new(&none, &s, &err), 0);
	expect_eq(s->interval_ns, 60 * NS_PER_SEC);
	expect_eq(s->sample_rate, 100);
	expect_str(s->tmp_dir, "/tmp");
	expect_str(s->dist, "");
	expect_str(s->agent, ",event=itimer,interval=10000000,alloc=512k,lock=10ms,loglevel=INFO");
	settings_release(s);
	test_each_failing_allocation(make, &none);
}

/* What is off is not told; custom arguments stand in for all of it. */
TEST(a_block_says_what_is_profiled)
{
	static const struct andiron_str keys[] = {KEY("cpu"),  KEY("alloc"), KEY("tlab"),
						  KEY("lock"), KEY("quiet"), KEY("log_level")};
	static const struct andiron_value items[] = {BOOLEAN(0), TEXT("1m"),  BOOLEAN(1),
						     TEXT(""),   BOOLEAN(1), TEXT("debug")};
	static const struct andiron_value words[] = {TEXT("-e"), TEXT("wall"), TEXT("-i"),
						     TEXT("5ms")};
	static const struct andiron_str custom_key[] = {KEY("custom_arguments")};
	static const struct andiron_value custom[] = {
		{.kind = ANDIRON_VALUE_LIST, .items = words, .n_items = 4}};
	static const struct andiron_str key[] = {KEY("profiling_config")};
	const struct andiron_value block[] = {MAP_OF(keys, items)};
	const struct andiron_value custom_block[] = {MAP_OF(custom_key, custom)};
	const struct andiron_value args = MAP_OF(key, block), own = MAP_OF(key, custom_block);
	struct error err = ERROR_NULL;
	struct settings *s;

	expect_eq(settings_new(&args, &s, &err), 0);
	expect_str(s->agent, ",alloc=1m,tlab,quiet,loglevel=debug");
	settings_release(s);
	expect_eq(settings_new(&own, &s, &err), 0);
	expect_str(s->agent, ",event=wall,interval=5ms");
	settings_release(s);
}

static const char *fault(const struct andiron_value *args)
{
	static struct error err;
	struct settings *s;

	err = ERROR_NULL;
	expect_eq(settings_new(args, &s, &err), -EINVAL);
	return err.text;
}

/* What cannot work is said before anything runs, with what to do. */
TEST(what_cannot_work_is_refused)
{
	static const struct andiron_str keys[] = {KEY("cpu"), KEY("alloc"), KEY("lock")};
	static const struct andiron_value nothing[] = {BOOLEAN(0), TEXT(""), TEXT("")};
	static const struct andiron_str tlab_keys[] = {KEY("alloc"), KEY("tlab")};
	static const struct andiron_value tlab[] = {TEXT(""), BOOLEAN(1)};
	static const struct andiron_str key[] = {KEY("profiling_config")};
	static const struct andiron_str tmp_key[] = {KEY("tmp_dir")};
	static const struct andiron_value relative[] = {TEXT("tmp")}, comma[] = {TEXT("/a,b")};
	const struct andiron_value off[] = {MAP_OF(keys, nothing)},
				   no[] = {MAP_OF(tlab_keys, tlab)};
	const struct andiron_value args[] = {MAP_OF(key, off), MAP_OF(key, no),
					     MAP_OF(tmp_key, relative), MAP_OF(tmp_key, comma)};

	expect(strstr(fault(&args[0]), "profiles nothing"));
	expect(strstr(fault(&args[1]), "tlab needs alloc"));
	expect(strstr(fault(&args[2]), "absolute"));
	expect(strstr(fault(&args[3]), "comma"));
}
