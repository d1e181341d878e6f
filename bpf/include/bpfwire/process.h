/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What bpf/process.bpf.c and its loader agree on. Both sides are built from one source and loaded
 * together, so there is no version in here.
 *
 * WAKE-UPS. The kernel side wakes the reader for an event when the last wake-up is more than
 * PROCESS_QUIET_NS ago, or when the ring is over a quarter full. Events in between lie silently.
 * The reader therefore looks again PROCESS_LOOK_NS after each wake-up or look that found something,
 * and stops when a look finds nothing and `produced` says that nothing is on its way. An event that
 * comes after that finds the last wake-up long ago, and wakes. So an idle host has no wake-ups, a
 * storm has ten in a second, and nothing stays unseen for longer than PROCESS_LOOK_NS. */
#pragma once

#define PROCESS_QUIET_NS 100000000ull
#define PROCESS_LOOK_NS  150000000ull

/* `kind`, as in andiron/process-events.h. */
#define PROCESS_EXISTING 1
#define PROCESS_FORK     2
#define PROCESS_EXEC     3
#define PROCESS_EXIT     4

/* One event in the ring, and one process in the list. The generation is that of struct
 * andiron_process_event. */
struct process_record {
	__u32 kind;
	__u32 pid;
	__u32 parent;
	__u32 reserved;
	__u64 start_ns;
	__u64 cgroup;
	char comm[16];
};
