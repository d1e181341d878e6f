/* SPDX-License-Identifier: Apache-2.0 */
/* Own events: perf events on every thread of this process, and the rings that they write to. No
 * privilege is needed where kernel.perf_event_paranoid is at most 2.
 *
 * A thread has one event for each CPU, since only such are inherited by the threads that it starts,
 * and all events of a CPU write to one ring. An event ticks when its thread has run for a period on
 * its CPU; so a thread that lives for less is hardly ever sampled (own_events_missed). A thread
 * that begins while they are opened may be sampled on some CPUs only, or on none.
 *
 * Format of the records: linux/perf_event.h. One thread at a time. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct own_events;

/* So much of a stack is copied; a multiple of 8, below 64 KiB. */
#define OWN_STACK_BYTES 15872u

struct own_sample {
	uint32_t pid, tid;
	const uint64_t *regs; /* OWN_REGS, in the order of PERF_SAMPLE_REGS_USER; NULL: none */
	const uint8_t *stack; /* from the stack pointer upwards */
	uint64_t n_stack;
};

/* What own_events_read finds; borrowed. */
struct own_events_out {
	void *context;
	void (*sample)(void *context, const struct own_sample *sample);
	/* So many samples found the ring full; what the process has mapped may be among them. */
	void (*lost)(void *context, uint64_t n);
	/* A process has mapped code: this one, or before Linux 5.13 a child. */
	void (*mapped)(void *context, uint32_t pid);
};

/* The registers that a sample has, as bits and how many. */
#if defined(__aarch64__)
#define OWN_REGS_MASK ((UINT64_C(1) << 33) - 1)
#define OWN_REGS      33u
#else
#define OWN_REGS_MASK UINT64_C(0xff01ff)
#define OWN_REGS      17u
#endif

/* What a sample takes of a ring. */
#define OWN_SAMPLE_BYTES (8u * (5 + OWN_REGS) + OWN_STACK_BYTES)

/* Opens them: a sample for each `period_ns` of CPU time of a thread. What fails says what to do:
 * -EACCES and -EPERM where the kernel allows no events or locks no memory for them, -EMFILE where
 * they would take more than a quarter of the descriptors that the process may have. Some 10 us an
 * event. */
int own_events_open(uint64_t period_ns, struct own_events **ret, struct error *err);
/* Has them sample; again after own_events_stop. 0 or a negative errno. */
int own_events_start(struct own_events *e);
/* Nothing is sampled after this; what is in the rings can still be read. Idempotent. */
void own_events_stop(struct own_events *e);
void own_events_close(struct own_events *e);

/* Readable once after opening, and when half a ring was written since the last time. The first who
 * asks is told, and nobody after: so who begins to wait for it asks own_events_half_full, too. */
int own_events_fd(const struct own_events *e);
bool own_events_half_full(const struct own_events *e);
/* Hands over all that is in the rings, and at most what they hold. */
void own_events_read(struct own_events *e, const struct own_events_out *out);
/* Bytes that wait to be read. */
uint64_t own_events_waiting(const struct own_events *e);

/* Samples that were due by the CPU time of the threads, and were neither taken nor lost, since the
 * opening. One read an event. */
uint64_t own_events_missed(const struct own_events *e);

/* Whether time in the kernel is sampled, too: it counts for the function that made the system
 * call. */
bool own_events_kernel(const struct own_events *e);
uint32_t own_events_cpus(const struct own_events *e);

/* Of a ring, at most. Of what a user may lock where kernel.perf_event_mlock_kb is the kernel's own
 * that is half, so rings of a reload, or of another program of that user, have half as much. */
#define OWN_RING_BYTES (256u << 10)
/* Memory of the rings. */
uint64_t own_events_bytes(const struct own_events *e);
