/* SPDX-License-Identifier: Apache-2.0 */
/* Batch rows: samples of a buffer grouped by target, with frames as addresses of files. */
#pragma once

#include "ebpf/processes/process.h"
#include "ebpf/unwinding/runtimes.h"
#include "bpfwire/sampler.h"
#include "ebpf/unwind-store/unwind-store.h"

#include "abi/batch-build.h"
#include "base/vec.h"

/* Equal samples of the buffer whose process and target are known. All pointers are borrowed until
 * the batch is made. */
struct row {
	const struct process *process;
	const struct match *match;
	const struct sampler_stack *stack;
	const uint64_t *pcs;
	uint64_t samples;
};

struct rows {
	VEC(struct row) list;
};

struct rows_options {
	struct batch_head head;
	uint64_t period_ns;
	bool pid_label;  /* attributes "pid" and "process" */
	bool comm_label; /* attribute "comm" */
	bool comm_frame; /* comm as the outermost frame */
	const struct andiron_extension *objects;
	struct unwind *store;      /* learns which files the frames lie in; or NULL */
	struct runtimes *runtimes; /* names the frames of theirs; or NULL */
};

/* Makes the batch; sorts the rows. 0, -ENOMEM or -E2BIG. *ret has one reference; NULL with 0 if
 * there are no rows. O(rows · (log rows + frames)). */
int rows_to_batch(struct rows *rows, const struct rows_options *options,
		  const struct andiron_batch **ret);
