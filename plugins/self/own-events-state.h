/* SPDX-License-Identifier: Apache-2.0 */
/* The state of own events, shared by own-events.c and own-events-read.c. */
#pragma once

#include "self/own-events.h"

#include "base/vec.h"

#include <linux/perf_event.h>

/* The most that a record has. */
#define RECORD_BYTES   (64u << 10)

struct event {
	int fd;
	uint32_t cpu; /* an index of own_events.cpus */
};

struct ring {
	struct perf_event_mmap_page *head;
	uint8_t *data;
	int fd; /* of the event by which one waits for it; -1: all have ended */
};

struct own_events {
	VEC(uint32_t) cpus, threads;
	VEC(struct ring) rings; /* one for each CPU, or fewer while they are opened */
	VEC(struct event) events;
	uint64_t period_ns;
	size_t page, ring_bytes;
	int epoll, begun;
	/* What the kernel can: 5.13 leave child processes out, 6.0 say how many samples were lost
	 * since the last record of that, which only the next sample would bring. */
	bool threads_only, tells_lost;
	bool kernel;
	bool stopped;
	uint64_t n_lost, n_samples;
	uint64_t n_ahead; /* lost ones that were told before the record that says so */
	uint64_t *record; /* RECORD_BYTES: one that is not in one piece */
};

/* Has this event, of the ring of that number, make the descriptor readable. */
int own_events_wait_for(const struct own_events *e, int fd, uint64_t ring);
