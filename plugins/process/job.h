/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of reading for a worker: it owns all it touches, but for the users' names and the
 * descriptor of /proc, which are its alone while it runs, because discovery runs one job at a time.
 */
#pragma once

#include "process/labels.h"

#define JOB_PIDS_MAX 256

/* What became of one process. */
struct job_result {
	uint32_t pid;
	bool gone;   /* there is no such process */
	bool target; /* it has a program, so it is a target */
	uint64_t start_ns;
	struct process_labels labels;
};

struct job {
	void *owner;
	int proc;
	struct users *users;
	struct label_choice choice;
	bool list;          /* list pids instead of reading them */
	uint64_t last_born; /* of the table when a list was begun */
	struct proc_pids pids;
	VEC(struct job_result) results;
	struct arena arena;
	int error;
};

struct job *job_new(void);
void job_free(struct job *job);

/* Does it; the outcome is in the job. Blocks on /proc. */
void job_run(struct job *job);
