/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's process events: loads bpf/process.bpf.c, reads its ring, lists what runs. Knows
 * nothing of subscribers. One thread at a time, except tracer_list_read, which needs no tracer. */
#pragma once

#include "base/error.h"
#include "base/vec.h"

#include <andiron/process-events.h>

#include <stdbool.h>

struct process_events {
	struct andiron_process_event *p;
	size_t n;
	size_t capacity;
};

struct tracer;

/* Loads and attaches; events flow when it returns. `ring_bytes` 0 takes what fits the machine.
 * Fails with a text for people: no privilege, no BTF, an old kernel. About 10 ms. */
int tracer_open(uint32_t ring_bytes, struct tracer **ret, struct error *err);
void tracer_close(struct tracer *t);

/* A descriptor that is readable once per wake-up, until the next drain. */
int tracer_fd(const struct tracer *t);

/* Appends what is in the ring to `events`, in order; where some were lost, a LOST event at the end.
 * 0 or -ENOMEM (what did not fit is counted as lost by the next call). *ret_again: look again in
 * PROCESS_LOOK_NS, as bpf/include/bpfwire/process.h says. */
int tracer_drain(struct tracer *t, struct process_events *events, bool *ret_again);

/* How many events were read and how many were lost, since the start. */
void tracer_totals(const struct tracer *t, uint64_t *ret_events, uint64_t *ret_lost);

/* Begins a list of the processes: a descriptor for tracer_list_read, to be closed by the caller; or
 * a negative errno. Cheap. */
int tracer_list(struct tracer *t);

/* Appends one EXISTING event per process. Any thread. O(threads of the host). 0 or a negative
 * errno. */
int tracer_list_read(int fd, struct process_events *events);
