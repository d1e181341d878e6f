/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-v8.so: V8 as a language runtime. */
#include "session.h"

#include <andiron/bpf/walk.h>
#include <andiron/host.h>
#include <andiron/object.h>
#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "v8.skel.h"
#pragma GCC diagnostic pop

struct service {
	struct andiron_extension objects; /* first: `self` of the table */
	struct andiron_runtime table;
};

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret, struct andiron_error *err)
{
	struct service *s = calloc(1, sizeof(*s));
	size_t n = 0;
	int32_t r;

	if (!s)
		return -ENOMEM;
	s->table = (struct andiron_runtime){
		.size = sizeof(s->table),
		.walk_version = ANDIRON_WALK_VERSION,
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

static const char *const offers[] = {ANDIRON_RUNTIME_PREFIX "v8" ANDIRON_RUNTIME_SUFFIX, NULL};

static const void *extension(void *self, const char *id)
{
	return strcmp(id, offers[0]) == 0 ? &((struct service *)self)->table : NULL;
}

static const char *const needs[] = {ANDIRON_OBJECTS_ID, NULL};
static const struct andiron_options no_options = {0, sizeof(struct andiron_option), NULL};

static const struct andiron_component v8 = {
	.size = sizeof(struct andiron_component),
	.flags = ANDIRON_COMPONENT_SERVICE | ANDIRON_COMPONENT_NO_LABEL,
	.name = "runtime.v8",
	.summary = "JavaScript's frames: V8 in Node.js 14 to 26.",
	.options = &no_options,
	.needs = needs,
	.offers = offers,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.extension = extension,
};

ANDIRON_PLUGIN("v8", ANDIRON_VERSION, "Apache-2.0", &v8);
