/* SPDX-License-Identifier: Apache-2.0 */
/* What profiler.c (time, steps, what is sent) and targets.c (which processes) share. */
#pragma once

#include "base/index.h"
#include "base/vec.h"
#include "java/profiler.h"
#include "java/session.h"

#define MAX_JOBS     4096u /* processes that are looked at */
#define MAX_ATTACHED 256u

struct target;

/* A session with what the host needs for it. Without a target it is closing, and freed when its JVM
 * has been left. */
struct job {
	struct profiler *profiler;
	struct target *target;
	struct session session;
	struct arena arena; /* of the labels */
	const struct target_label *labels;
	uint32_t n_labels;
	uint32_t at; /* in profiler->jobs */
	bool busy;   /* a step is under way: `session` is the worker's */
	bool closing, ended, beginning;
	uint64_t timer, watch, exit_watch;
	/* As of the last step, for whoever asks meanwhile. */
	bool attached, foreign;
	char *why;    /* NULL: nothing is wrong */
	char *logged; /* what the log was told last */
};

struct target {
	const struct target_row *row;
	struct job *job;    /* NULL: another target has the process, or it has none */
	const char *excess; /* why it has none */
	char *fault;
	uint32_t at, pid;
};

struct profiler {
	struct abi_context context;
	struct settings *settings;
	struct target_table *table;
	VEC(struct target *) targets;
	VEC(struct job *) jobs; /* one for a pid */
	struct index job_by_pid;
	struct profiler_counts counts;
	uint32_t max_attached, beginning; /* beginning: may be attached to soon */
	uint64_t repair, sequence;
	bool draining, drained, stopped, missed;
	struct error no_library; /* code 0: it is there */
};

/* profiler.c */
/* NULL: there is none for the process. O(1) */
struct job *job_find(const struct profiler *p, uint32_t pid);
/* For a process that has none. NULL: no memory. */
struct job *job_new(struct profiler *p, struct target *t);
/* Leaves its JVM, and goes when that is done. */
void job_close(struct job *job);
void job_free(struct job *job);
void profiler_say(struct profiler *p);
/* Memory is short: targets are gone through again soon. */
void profiler_lacks(struct profiler *p);

/* targets.c */
void targets_repair(struct profiler *p);
void targets_free(struct profiler *p);
