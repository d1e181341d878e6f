/* SPDX-License-Identifier: Apache-2.0 */
/* Event intake: handles records of the kernel's ring in two steps. Preparing a record finds its
 * process, target and mappings as soon as it arrives, since the process may be gone a millisecond
 * later. Processing follows in arrival order: it maps the process in the unwinder and unwinds
 * snapshots. It stops at a record whose files are being read; preparing goes on. Two snapshots do
 * not wait: one of a process whose own files have all been read, and one that the files themselves
 * can unwind (file-unwind.h). Beside a compiler hundreds would, of some 100 KiB each, and files of
 * static programs cannot be asked.
 *
 * Where threads list their own mappings (bpf/task-work/deferred-snapshot.h), a process is asked
 * only while processing, if its list did not come. Asking all took a third of the agent's time. */
#pragma once

#include "ebpf/unwinding/stack-copies.h"
#include "ebpf/processes/target-match.h"
#include "ebpf/options.h"
#include "ebpf/processes/process.h"
#include "ebpf/kernel/session.h"
#include "ebpf/samples/sample-table.h"
#include "ebpf/unwinding/unwinder.h"

#include "base/clock.h"

struct intake_record;

/* A process that was reported by exec, or is young and has a language runtime. It maps its
 * libraries in the milliseconds after that, of which nothing reports: so it is looked at again,
 * after twice the time each time. */
struct intake_launch {
	struct sampler_process_key key;
	int64_t at_ns,
		after_ns; /* CLOCK_MONOTONIC: the next look, and how long that was waited for */
	uint32_t n_same;  /* looks, the last ones, that found nothing new */
};

#define INTAKE_LAUNCHES_MAX 256u /* at a time */
#define INTAKE_LOOK_NS      NS_PER_MSEC
#define INTAKE_LOOK_MAX_NS  (256 * NS_PER_MSEC) /* the last look comes after this, */
#define INTAKE_YOUNG_NS     (10 * NS_PER_SEC)
#define INTAKE_OPEN_NS      NS_PER_SEC /* a process's files are all opened as often as that */
#define INTAKE_SETTLED_NS   (32 * NS_PER_MSEC) /* or this, if nothing changed twice */

struct intake {
	/* Borrowed. */
	const struct ebpf_options *options;
	struct matcher *matcher;
	struct processes *processes;
	struct sample_table *stacks; /* SAMPLER_BUFFERS */
	struct session *session;     /* NULL: none sends, and nothing waits */
	struct unwinder *unwinder;
	bool defer_snapshots; /* as in session_info */
	size_t bytes_max;     /* of waiting records: above it no snapshot waits, above twice
			   * as much no record. Compilers bring snapshots by the megabyte */

	VEC(struct intake_launch) launches;
	struct stack_copies copies;
	struct intake_record *first, *last; /* prepared, not processed */
	size_t bytes;                       /* of these */
	/* Since the beginning: */
	uint64_t n_processes; /* reports of processes */
	uint64_t n_left_out;  /* snapshots */
};

#define INTAKE_BYTES_MAX ((size_t)32 << 20) /* for bytes_max, in the agent's budget */

/* A session_record_fn; `context` is the intake. Prepares a record and keeps it. */
void intake_record(void *context, const void *record, size_t size);

/* Finds the target of a process, reading its name and container if need be. */
void intake_match(struct intake *n, struct process *p);

/* Prepares what the ring has, until clock_mono's `until`. Not within intake_record. */
void intake_prepare(struct intake *n, int64_t until);
/* Processes what waits, in its order. False: the next one needs files that are being read. */
bool intake_process(struct intake *n);

/* When a launched process is to be looked at next, or a claim that was too early asked for again,
 * CLOCK_MONOTONIC; INT64_MAX: there is none. */
int64_t intake_due(const struct intake *n);
/* Does that for those whose time has come. False: files of one are being read. */
bool intake_look(struct intake *n, int64_t now_ns);

/* Forgets what waits. */
void intake_clear(struct intake *n);
