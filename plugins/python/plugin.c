/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-python.so: CPython as a language runtime. */
#include "runtime-kit/service.h"
#include "runtime-kit/session.h"

#include <andiron/plugin.h>

#include <bpf/libbpf.h>
#include <stdbool.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "python.skel.h"
#pragma GCC diagnostic pop

static const char *const offers[] = {ANDIRON_RUNTIME_PREFIX "python" ANDIRON_RUNTIME_SUFFIX, NULL};

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret, struct andiron_error *err)
{
	size_t n = 0;
	struct andiron_runtime table = {
		.object = python_bpf__elf_bytes(&n),
		.program = "python",
		.frame_type = "cpython",
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

static const struct andiron_component python =
	RUNTIME_COMPONENT("python", "Frames of CPython 3.6 to 3.14.", offers, create);

ANDIRON_PLUGIN("python", ANDIRON_VERSION, "Apache-2.0", &python);
