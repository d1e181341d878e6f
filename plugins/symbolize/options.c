/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of profile.symbolize. */
#include "options.h"

#include "abi/value.h"

#define CACHE_BYTES_DEFAULT INT64_C(16777216)

static const struct andiron_option options[] = {
	{.name = "forward_to",
	 .type = ANDIRON_TYPE_RECEIVERS,
	 .flags = ANDIRON_OPTION_REQUIRED,
	 .doc = "Where profiles go once their frames have names.",
	 .since = "0.1"},
	{.name = "cache_bytes",
	 .type = ANDIRON_TYPE_INT,
	 .default_text = "16777216",
	 .doc = "How much memory symbol tables and names may take between batches, in bytes. The "
		"file used least recently is forgotten first; a file whose table alone is larger "
		"gives no names. The kernel's list comes on top.",
	 .since = "0.1",
	 .min = 1 << 20,
	 .max = INT64_C(1) << 36},
};

const struct andiron_options symbolize_options = ANDIRON_OPTIONS(options);

size_t symbolize_cache_bytes(const struct andiron_value *args)
{
	return (size_t)value_int(args, "cache_bytes", CACHE_BYTES_DEFAULT);
}
