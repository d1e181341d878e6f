/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-jvm.so: frames of HotSpot, offered as andiron.runtime.jvm/1. */
#include <andiron/bpf/walk.h>
#include <andiron/host.h>
#include <andiron/object.h>
#include <andiron/plugin.h>
#include <andiron/runtime.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jvm/session.h"

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "jvm.skel.h"
#pragma GCC diagnostic pop

struct service {
	struct andiron_extension objects;
	struct andiron_runtime table;
};

static int32_t service_recognizes(void *self, uint64_t object)
{
	struct service *s = self;

	return session_recognizes(s->objects.table, s->objects.self, object);
}

static int32_t service_open(void *self, const struct andiron_runtime_map *maps, uint64_t n,
			    void **ret)
{
	struct service *s = self;

	return session_new(s->objects.table, s->objects.self, maps, n, ret);
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret, struct andiron_error *err)
{
	struct service *s = calloc(1, sizeof(*s));
	size_t bytes = 0;
	int32_t error;

	if (!s)
		return -ENOMEM;
	s->table = (struct andiron_runtime){
		.size = sizeof(s->table),
		.walk_version = ANDIRON_WALK_VERSION,
		.object = jvm_bpf__elf_bytes(&bytes),
		.program = "jvm",
		.frame_type = "jvm",
		.recognizes = service_recognizes,
		.open = service_open,
		.close = session_close,
		.claim = session_claim,
		.gone = session_gone,
		.resolve = session_resolve,
		.describe = session_describe,
	};
	s->table.object_bytes = bytes;
	error = host->extension(instance, ANDIRON_OBJECTS_ID, &s->objects);
	if (error != 0)
		free(s);
	else
		*ret = s;
	return error;
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

static const char *const offers[] = {ANDIRON_RUNTIME_PREFIX "jvm" ANDIRON_RUNTIME_SUFFIX, NULL};

static const void *extension(void *self, const char *id)
{
	return strcmp(id, offers[0]) == 0 ? &((struct service *)self)->table : NULL;
}

static const char *const needs[] = {ANDIRON_OBJECTS_ID, NULL};
static const struct andiron_options no_options = {0, sizeof(struct andiron_option), NULL};

static const struct andiron_component jvm = {
	.size = sizeof(jvm),
	.flags = ANDIRON_COMPONENT_SERVICE | ANDIRON_COMPONENT_NO_LABEL,
	.name = "runtime.jvm",
	.summary = "Frames of Java: HotSpot's interpreter and compilers.",
	.options = &no_options,
	.needs = needs,
	.offers = offers,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.extension = extension,
};

ANDIRON_PLUGIN("jvm", ANDIRON_VERSION, "Apache-2.0", &jvm);
