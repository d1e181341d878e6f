/* SPDX-License-Identifier: Apache-2.0 */
/* The unwinder: keeps the store of unwind tables up to date with processes, and completes stacks
 * from snapshots. A snapshot is unwound when it arrives, while its process may still exist. The
 * result joins its stack's record when the buffer is read. */
#pragma once

#include "ebpf/processes/process.h"
#include "ebpf/unwinding/runtimes.h"
#include "ebpf/kernel/session.h"
#include "ebpf/samples/sample-table.h"
#include "ebpf/unwind-store/unwind-store.h"
#include "ebpf/unwinding/native-unwind.h"

struct unwinder;

/* A store on this memory, which is borrowed, of so many bytes. NULL when memory is short. */
struct unwinder *unwinder_new(const struct unwind_kernel *kernel,
			      const struct andiron_extension *objects, uint64_t budget_bytes);
/* The session is stopped by then. Releases all mapped files. */
void unwinder_free(struct unwinder *w);

/* The runtimes that claim code; takes ownership. Before the first unwinder_process. */
void unwinder_add_runtimes(struct unwinder *w, struct runtimes *runtimes);
struct runtimes *unwinder_runtimes(const struct unwinder *w);

/* Hands the process's mappings to the store, if they are known and new. False: files of it are
 * being read (unwind_map), or a runtime of it loaded; call it again. */
bool unwinder_process(struct unwinder *w, struct process *p);
/* When the next claim that was too early is to be asked for again (runtimes_due). */
int64_t unwinder_due(const struct unwinder *w);
/* Then: this, and unwinder_retry for all processes, which asks those that are due. */
void unwinder_begin_retries(struct unwinder *w);
bool unwinder_retry(struct unwinder *w, struct process *p, int64_t now_ns);
/* As unwinder_process for one that has just begun: a runtime for which a claim was too early is
 * asked again, although nothing may be mapped anew. */
bool unwinder_look(struct unwinder *w, struct process *p);
void unwinder_gone(struct unwinder *w, const struct process *p);

/* Whether a record of `size` bytes is a whole snapshot, or part of one. */
bool unwinder_is_snapshot(const void *record, size_t size);
/* A snapshot of `p`, which unwinder_process was called for, and all that there is of its stacks
 * (stack-copies.h): its own is not looked at. */
void unwinder_snapshot(struct unwinder *w, struct process *p, const struct sampler_snapshot *c,
		       const struct walk_stack stacks[SAMPLER_COPIES]);
/* The same while files are read, which may be of this process: true where they themselves were
 * enough (file-unwind.h). */
bool unwinder_file_unwind(struct unwinder *w, struct process *p, const struct sampler_snapshot *c,
			  const struct walk_stack stacks[SAMPLER_COPIES]);

/* Whether files are being read, or programs of runtimes loaded. */
bool unwinder_reading(const struct unwinder *w);
/* Waits for files to be read or `fd` to be readable, 10 ms at most; takes what was read and
 * loaded. */
void unwinder_wait(struct unwinder *w, int fd);

/* Adds to the stacks of a buffer what snapshots made of them; unwinder_find finds it. */
void unwinder_settle(struct unwinder *w, uint32_t buffer, struct sample_table *stacks);
/* The completed stack of an id, its frames in *pcs; else the same stack, *pcs unchanged. */
const struct sampler_stack *unwinder_find(const struct sample_table *stacks,
					  const struct sampler_stack *stack, const uint64_t **pcs);

/* Ends an interval; ages tables and address spaces. */
void unwinder_tick(struct unwinder *w);

/* For unwind_used and statistics. */
struct unwind *unwinder_store(struct unwinder *w);

struct unwinder_stats {
	uint64_t snapshots; /* that arrived */
	uint64_t completed; /* walked to the thread's entry */
	uint64_t by_file;   /* of these, by the files themselves */
	uint64_t deep;      /* that came in parts */
	uint64_t other;     /* that another stack came with */
	uint64_t unknown;   /* whose process was gone before its mappings were read */
	uint64_t touched;   /* pages that were asked for because a stack needed them */
	struct runtimes_counts runtimes;
};

void unwinder_get_stats(const struct unwinder *w, struct unwinder_stats *ret);
