/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins for the loader's test: one as it should be, and by VARIANT_… those with one thing wrong
 * each. */
#include <andiron/plugin.h>

#include <stddef.h>
#include <stdlib.h>

#if !defined(VARIANT_NO_ENTRY) && !defined(VARIANT_OTHER_ABI)

int nobody_has_this_function(void);
int32_t library_function(void);
unsigned int ZSTD_isError(size_t code);
unsigned int ZSTD_getErrorCode(size_t code);
unsigned int ZSTD_toFlushNow(size_t code);

#ifndef VARIANT_NO_VERBS
static int32_t test_create(const struct andiron_host *host, uint64_t instance,
			   const struct andiron_value *args, void **ret_self,
			   struct andiron_error *err)
{
	return 0;
}
#endif

#ifdef VARIANT_DYING
static int32_t test_validate(const struct andiron_host *host, const struct andiron_value *args,
			     struct andiron_report *report)
{
	abort();
}
#endif

static int32_t test_start(void *self, struct andiron_error *err)
{
#ifdef VARIANT_UNDEFINED
	return nobody_has_this_function();
#elif defined(VARIANT_CAPTURED)
	return library_function();
#elif defined(VARIANT_CAPTURED_WHOLE)
	return (int32_t)(ZSTD_isError(0) + ZSTD_getErrorCode(0));
#elif defined(VARIANT_CAPTURED_PARTLY)
	return (int32_t)(ZSTD_isError(0) + ZSTD_toFlushNow(0));
#elif defined(VARIANT_INTERPOSED)
	return *l64a(1) ? 0 : -1;
#else
	return 0;
#endif
}

static void test_stop(void *self)
{
}

static const struct andiron_option options[] = {
	{
		.name = "option",
		.type = ANDIRON_TYPE_BOOL,
#ifndef VARIANT_UNDOCUMENTED
		.doc = "An option.",
#endif
	},
};

static const struct andiron_options table = ANDIRON_OPTIONS(options);

/* A component and an entry as newer headers may have them: a known front, a tail that this host has
 * never seen. */
struct grown_component {
	struct andiron_component known;
	uint64_t tail[4];
};
struct grown_plugin {
	struct andiron_plugin known;
	uint64_t tail[4];
};

static const struct grown_component component = {
	.known =
		{
#ifdef VARIANT_GROWN
			.size = sizeof(component),
			.name = "test.grown",
#else
			.size = sizeof(struct andiron_component),
			.name = "test.thing",
#endif
			.summary = "Does nothing.",
			.options = &table,
#ifndef VARIANT_NO_VERBS
			.create = test_create,
#endif
#ifdef VARIANT_DYING
			.validate = test_validate,
#endif
			.start = test_start,
			.stop = test_stop,
			.destroy = test_stop,
		},
	.tail = {1, 2, 3, 4},
};

static const struct andiron_component *const components[] = {&component.known};

#ifdef VARIANT_NEEDS
static const char *const needs[] = {"andiron.objects/1", "andiron.moonlight/7", NULL};
#else
static const char *const needs[] = {"andiron.objects/1", NULL};
#endif

#ifdef VARIANT_GROWN
extern ANDIRON_EXPORT const struct grown_plugin grown_entry __asm__(ANDIRON_PLUGIN_SYMBOL);
const struct grown_plugin grown_entry = {
	.known =
		{
			.size = sizeof(grown_entry),
			.abi_minor = 99,
			.name = "test-grown",
			.version = "2.0",
			.license = "Apache-2.0",
			.needs = needs,
			.components = components,
			.n_components = 1,
		},
	.tail = {1, 2, 3, 4},
};
#else
const struct andiron_plugin andiron_plugin_v1 = {
#ifndef VARIANT_NO_SIZE
	.size = sizeof(andiron_plugin_v1),
#endif
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "test",
	.version = "1.0",
	.license = "Apache-2.0",
	.needs = needs,
	.components = components,
	.n_components = 1,
};
#endif

#elif defined(VARIANT_OTHER_ABI)
extern ANDIRON_EXPORT const uint32_t andiron_plugin_v2;
const uint32_t andiron_plugin_v2 = 4;
#else
extern ANDIRON_EXPORT const uint32_t something_else;
const uint32_t something_else = 4;
#endif
