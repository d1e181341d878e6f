/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks that go on in task work, because their stack enters language runtimes more often than one
 * run of a program can follow: a round trip is two tail calls, of which the kernel allows 33 in a
 * run.
 *
 * In task work nothing can be tail-called. But it can make the kernel run another program at once:
 * by reading the process's memory where there is none, which is a page fault, and a perf event on
 * page faults runs a program as the clock's event does, with 33 calls of its own. So the work
 * faults, round after round, at an address that says which walk it means; the program there puts
 * the walk where a sample's would be and hands it to the runtime, and what comes after is a
 * sample's walk but for its end, where it is kept here again. The thread has run no instruction of
 * its own since it was sampled.
 *
 * The walk of a CPU is free meanwhile: the kernel runs no program of an event while it runs another
 * on the CPU. The events exclude faults in user mode, so what they cost falls on the few that the
 * kernel has itself. */
#pragma once

#include <andiron/bpf/walk.h>

#define CONTINUATION_SLOTS 16u /* walks at a time; a power of two */
/* more than a stack of ANDIRON_WALK_USER can need: 3 words a round trip */
#define CONTINUATION_ROUNDS  24u
#define CONTINUATION_ADDRESS 16u /* and the place: in the first page, where no process has memory */

_Static_assert((CONTINUATION_ROUNDS + 1) * ANDIRON_WALK_SWITCHES * 3 >= ANDIRON_WALK_USER,
	       "all that fit");

#define CONTINUATION_FREE    0
#define CONTINUATION_WAITING 1 /* for its task work, or between two rounds */
#define CONTINUATION_ROUND   2

struct continuation {
	struct bpf_task_work work;
	__u64 state; /* CONTINUATION_FREE, … */
	__u64 thread;
	__u64 id;
	__u32 buffer;
	__u32 place; /* its own */
	struct andiron_walk walk;
};
