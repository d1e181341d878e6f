/* SPDX-License-Identifier: Apache-2.0 */
/* The component that offers one runtime: what each plugin of a runtime would write alike. A
 * plugin.c has its `create`, which calls runtime_service_create(), and the component's constant by
 * RUNTIME_COMPONENT(). */
#pragma once

#include <andiron/component.h>
#include <andiron/host.h>
#include <andiron/object.h>
#include <andiron/runtime.h>

/* What the sessions of a service have in sum. */
struct runtime_counts {
	uint64_t processes, name_bytes, names_evicted, stuck_reads;
};

/* `self` of the table's `open`. */
struct runtime_service {
	struct andiron_extension objects; /* first: a session may take `self` for it */
	struct andiron_runtime table;
	const char *id; /* "andiron.runtime.NAME/1" */
	struct runtime_counts counts;
};

/* Makes the service of a runtime; `table` is copied but for what it points to, and its size and
 * walk_version are set here. As `create` of andiron/component.h. */
int32_t runtime_service_create(const struct andiron_host *host, uint64_t instance, const char *id,
			       const struct andiron_runtime *table, void **ret);

int32_t runtime_service_start(void *self, struct andiron_error *err);
void runtime_service_stop(void *self);
void runtime_service_destroy(void *self);
const void *runtime_service_extension(void *self, const char *id);
void runtime_service_metrics(void *self, const struct andiron_metric_sink *sink);

/* Whether the file of an object is this: what `is` says, or a negative errno. For `recognizes`. */
int32_t runtime_service_ask(const struct runtime_service *s, uint64_t object, int (*is)(int fd));

/* The descriptor of the program's map of this name; -1: it has none. */
int runtime_map_of(const struct andiron_runtime_map *maps, uint64_t n, const char *name);

/* A session says what it has now, and keeps in *said what it said last; zeros before it closes,
 * but for what is a counter. [any], one thread at a time for a session. */
void runtime_service_count(struct runtime_service *s, struct runtime_counts *said,
			   const struct runtime_counts *now);

extern const char *const runtime_service_needs[];
extern const struct andiron_options runtime_service_options;

/* The constant of a component: `offers_` is a static array of its one id and NULL. */
#define RUNTIME_COMPONENT(name_, summary_, offers_, create_)                                       \
	{                                                                                          \
		.size = sizeof(struct andiron_component),                                          \
		.flags = ANDIRON_COMPONENT_SERVICE | ANDIRON_COMPONENT_NO_LABEL,                   \
		.name = "runtime." name_, .summary = summary_,                                     \
		.options = &runtime_service_options, .needs = runtime_service_needs,               \
		.offers = offers_, .create = create_, .start = runtime_service_start,              \
		.stop = runtime_service_stop, .destroy = runtime_service_destroy,                  \
		.metrics = runtime_service_metrics, .extension = runtime_service_extension,        \
	}
