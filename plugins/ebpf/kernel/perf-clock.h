/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling clock: one software cpu-clock event on each online CPU, all with one BPF program. It
 * needs no PMU, so it works in any machine. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct perf_clock {
	int *fds;
	size_t n;
};

#define PERF_CLOCK_NULL ((struct perf_clock){NULL, 0})

/* Opens an event of `period_ns` on every online CPU and attaches the program; they tick when this
 * returns, one after the other, evenly over a period or its first 20 ms. CPUs that go away
 * meanwhile are left out. On failure, with the cause and what to do, nothing is open. Sleeps for as
 * long, and works for ~20 us a CPU. */
int perf_clock_open(struct perf_clock *e, int program, uint64_t period_ns, struct error *err);

/* The same for page faults that the kernel has itself where it reads or writes a process's memory;
 * the program runs at once, within the fault. */
int perf_clock_open_faults(struct perf_clock *e, int program, struct error *err);

/* And for each thread that leaves its CPU: the program runs in that thread, before. */
int perf_clock_open_switches(struct perf_clock *e, int program, struct error *err);

/* After this the program is not started until the clock is resumed. Opening needs privileges that a
 * process may have dropped since, and resuming none. A clock that cannot be paused is closed. */
void perf_clock_pause(struct perf_clock *e);
int perf_clock_resume(const struct perf_clock *e, struct error *err);

/* After this the program is not started any more, though a child that was forked meanwhile has the
 * descriptors, too. */
void perf_clock_close(struct perf_clock *e);
