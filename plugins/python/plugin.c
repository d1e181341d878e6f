/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-python.so: CPython as a language runtime. */
#include "python/session.h"

#include <andiron/bpf/walk.h>
#include <andiron/plugin.h>

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "python-few.skel.h"
#include "python.skel.h"
#pragma GCC diagnostic pop

struct service {
	struct andiron_extension objects; /* first: `self` of the table */
	struct andiron_runtime table;
};

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret, struct andiron_error *err)
{
	struct service *s = calloc(1, sizeof(*s));
	/* From 5.17 on. Who may not ask is told of no kernel. */
	bool loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) != 0;
	size_t n = 0;
	int32_t r;

	if (!s)
		return -ENOMEM;
	s->table = (struct andiron_runtime){
		.size = sizeof(s->table),
		.walk_version = ANDIRON_WALK_VERSION,
		.object = loop ? python_bpf__elf_bytes(&n) : python_few_bpf__elf_bytes(&n),
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
	s->table.object_bytes = n;
	r = host->extension(instance, ANDIRON_OBJECTS_ID, &s->objects);
	if (r != 0)
		free(s);
	else
		*ret = s;
	return r;
}

static int32_t start(void *self, struct andiron_error *err)
{
	return 0;
}

static void stop(void *self)
{
}

static void destroy(void *self)
{
	free(self);
}

static const char *const offers[] = {ANDIRON_RUNTIME_PREFIX "python" ANDIRON_RUNTIME_SUFFIX, NULL};

static const void *extension(void *self, const char *id)
{
	return strcmp(id, offers[0]) == 0 ? &((struct service *)self)->table : NULL;
}

static const char *const needs[] = {ANDIRON_OBJECTS_ID, NULL};
static const struct andiron_options no_options = {0, sizeof(struct andiron_option), NULL};

static const struct andiron_component python = {
	.size = sizeof(struct andiron_component),
	.flags = ANDIRON_COMPONENT_SERVICE | ANDIRON_COMPONENT_NO_LABEL,
	.name = "runtime.python",
	.summary = "Frames of CPython 3.6 to 3.14.",
	.options = &no_options,
	.needs = needs,
	.offers = offers,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.extension = extension,
};
static const struct andiron_component *const components[] = {&python};

const struct andiron_plugin andiron_plugin_v1 = {
	.size = sizeof(andiron_plugin_v1),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "python",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = sizeof(components) / sizeof(*components),
};
