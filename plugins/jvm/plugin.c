/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-jvm.so: frames of HotSpot, offered as andiron.runtime.jvm/1. */
#include "runtime-kit/service.h"
#include "runtime-kit/session.h"

#include <andiron/plugin.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "jvm.skel.h"
#pragma GCC diagnostic pop

static const char *const offers[] = {ANDIRON_RUNTIME_PREFIX "jvm" ANDIRON_RUNTIME_SUFFIX, NULL};

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret, struct andiron_error *err)
{
	size_t n = 0;
	struct andiron_runtime table = {
		.object = jvm_bpf__elf_bytes(&n),
		.program = "jvm",
		.frame_type = "jvm",
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

static const struct andiron_component jvm =
	RUNTIME_COMPONENT("jvm", "Frames of Java: HotSpot's interpreter and compilers.", offers,
			  create);

ANDIRON_PLUGIN("jvm", ANDIRON_VERSION, "Apache-2.0", &jvm);
