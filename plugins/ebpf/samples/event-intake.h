/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event intake: handles records of the kernel's ring in two steps. Step 1 runs as soon as a record
 * arrives: find the process, match it to a target, list its mappings. That takes microseconds, and
 * the process may be gone a millisecond later. Step 2 runs in arrival order: map the process in the
 * unwinder, walk stack snapshots. It needs the rows of ELF files, which the unwinder's thread reads;
 * so step 2 stops at a record whose files are being read, and step 1 goes on meanwhile. Snapshots
 * that arrive then and can be unwound by the files themselves (file-unwind.h) do not wait: where a
 * compiler begins hundreds would, of some 100 KiB each.
 *
 * Where threads list their own mappings (bpf/task-work/deferred-snapshot.h), the list of a new
 * process follows its report. So processes are asked in step 2 there, if at all: asking all of them
 * took a third of the agent's time.
 */
#ifndef EBPF_SAMPLES_EVENT_INTAKE_H
#define EBPF_SAMPLES_EVENT_INTAKE_H

#include "ebpf/unwinding/stack-copies.h"
#include "ebpf/processes/target-match.h"
#include "ebpf/options.h"
#include "ebpf/processes/process.h"
#include "ebpf/kernel/session.h"
#include "ebpf/kernel/sample-table.h"
#include "ebpf/unwinding/unwinder.h"

struct intake_record;

struct intake {
	/* Borrowed. */
	const struct ebpf_options *options;
	struct matcher *matcher;
	struct processes *processes;
	struct sample_table *stacks;   /* SAMPLER_BUFFERS */
	struct session *session; /* NULL: none sends, and nothing waits */
	struct unwinder *unwinder;
	bool defer_snapshots; /* as in session_info */
	size_t bytes_max; /* behind so much no snapshot waits: its stack ends where the kernel's own walk did, and says so.
			   * Where a compiler begins they come by the megabyte, and who comes after is looked at all the same.
			   * Behind twice as much nothing does */

	struct stack_copies copies;
	struct intake_record *first, *last; /* looked at, and not dealt with */
	size_t bytes;                     /* of these */
	/* Since the beginning: */
	uint64_t n_processes; /* reports of processes */
	uint64_t n_left_out;  /* snapshots */
};

#define INTAKE_BYTES_MAX ((size_t)32 << 20) /* for bytes_max, in the agent's budget */

/* A session_record_fn, of which `context` is the news: looks at a record and keeps it. */
void intake_record(void *context, const void *record, size_t size);

/* Finds the target of a process; in the way, what is needed to know it. */
void intake_match(struct intake *n, struct process *p);

/* Step 1 for what the ring has; none begins behind clock_mono's `until`. Not within intake_record. */
void intake_prepare(struct intake *n, int64_t until);
/* Step 2 for what waits, in its order. False: files are being read that the next one needs. */
bool intake_process(struct intake *n);

/* Ends an interval: gives memory back. */
void intake_rest(struct intake *n);

/* Forgets what waits. */
void intake_clear(struct intake *n);

#endif
