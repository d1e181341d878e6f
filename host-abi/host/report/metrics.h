/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics are pulled when somebody asks. A component whose strand is busy is not waited for: what
 * it said last counts, also after the host was stopped. Series are kept per component id, until a
 * reload removes the component. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/index.h"
#include "base/vec.h"

#include <stdint.h>

struct host;
struct instance;

/* Series of one component at most; untrusted input could make more every time. */
#define METRICS_PER_COMPONENT 10000

struct series {
	const char *name, *help;
	uint32_t kind;
	const char *labels; /* as text: {component_id="a",k="v"}, or "" */
	double value;
};

struct series_list {
	struct series *p;
	size_t n, capacity;
};

struct component_metrics {
	char *component;
	size_t n_instances; /* that have the name */
	struct arena arena;
	struct series_list series;
};

struct metrics {
	VEC(struct component_metrics) components;
	struct index by_name; /* of these */
};

void metrics_free(struct metrics *m);

/* An instance has the component's name from now on: 0 or -ENOMEM. [loop] */
int metrics_enter(struct metrics *m, const char *component);
/* It has it no more; after the last one its series are forgotten, if that is asked. [loop] */
void metrics_leave(struct metrics *m, const char *component, bool forget);

/* Asks the component again if its strand is free, or if `inside` says that the caller is in its
 * strand. What fails leaves the old values. [loop] */
void metrics_pull(struct instance *i, bool inside);

/* Adds the host's own series to a list whose texts live in `arena`; 0 or
 * -ENOMEM. */
int metrics_host(struct host *host, struct arena *arena, struct series_list *list);

/* Prometheus text: one family after the other, by name. 0 or -ENOMEM. */
int metrics_write(struct series_list *list, struct buf *out);
