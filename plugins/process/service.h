/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.process-events/1: one tracer, many subscribers. Each subscriber has a queue of its own,
 * bounded, and gets it on its own component's turn. */
#pragma once

#include "abi/log.h"
#include "process/tracer.h"

/* Start, stop and free are verbs of a component (andiron/component.h), with the service as
 * `self`. */
struct service;

/* [loop]; NULL when memory is short. */
struct service *service_new(const struct andiron_host *host, uint64_t instance);
void service_free(void *self);

/* Begins to trace. [worker] [serial]. Without events it still answers 0: the reason is in its
 * health, subscribers get one LOST event and look for themselves, and later subscriptions are
 * refused. */
int32_t service_start(void *self, struct andiron_error *err);
void service_stop(void *self);

/* Totals since the start. [loop] [serial]. */
struct service_totals {
	uint64_t events;
	uint64_t lost; /* those that the kernel had no room for */
	uint64_t wakeups;
	uint64_t subscribers;
};

void service_totals(struct service *s, struct service_totals *ret);

/* The functions behind the extension; `self` is the service. */
extern const struct andiron_process_events service_table;
