/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-v8.so: V8 as a language runtime. */
#include <andiron/plugin.h>

#include "runtime-kit/service.h"
#include "runtime-kit/session.h"

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "v8.skel.h"
#pragma GCC diagnostic pop

static const char *const offers[] = {ANDIRON_RUNTIME_PREFIX "v8" ANDIRON_RUNTIME_SUFFIX, NULL};

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret, struct andiron_error *err)
{
	size_t n = 0;
	struct andiron_runtime table = {
		.object = v8_bpf__elf_bytes(&n),
		.program = "v8",
		.frame_type = "v8js",
		.recognizes = session_recognizes,
		.open = session_open,
		.close = session_close,
		.claim = session_claim,
		.gone = session_gone,
		.resolve = session_resolve,
		.describe = session_describe,
	};

	table.object_bytes = n;
	return runtime_service_create(host, instance, offers[0], &table, ret);
}

static const struct andiron_component v8 =
	RUNTIME_COMPONENT("v8", "JavaScript's frames: V8 in Node.js 14 to 26.", offers, create);

ANDIRON_PLUGIN("v8", ANDIRON_VERSION, "Apache-2.0", &v8);
