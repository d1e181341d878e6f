/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: one loaded session, the processes that it saw, their targets, and each interval's
 * samples as a batch. It knows no host: output goes through `struct engine_out`.
 *
 * One thread at a time, any thread. Every call may block for some milliseconds. */
#pragma once

#include "ebpf/options.h"
#include "bpfwire/sampler.h"
#include "ebpf/kernel/session.h"
#include "ebpf/targets/target-report.h"
#include "ebpf/unwinding/unwinder.h"

#include "base/error.h"

#include <andiron/batch.h>
#include <andiron/host.h>

struct engine;

/* The counts of one interval: taken = counted in rows + every member of `dropped`. */
struct engine_counts {
	uint64_t taken;
	uint64_t rows;
	uint64_t dropped_unfinished, dropped_ring_full, dropped_memory;
	uint64_t idle, unselected, missed;
};

struct engine_stats {
	struct engine_counts total;
	struct session_info session;
	struct unwind_stats unwind;
	struct unwinder_stats unwinder;
	uint64_t ends[UNWIND_ENDS]; /* samples by how their stack ended */
	uint64_t n_targets, n_matched, n_processes, n_intervals, n_process_records;
	uint64_t n_early;       /* intervals that ended before their time */
	uint64_t n_left_out;    /* snapshots that found no room to wait */
	uint64_t n_uncompleted; /* samples that were to be completed, and were not */
	uint64_t mismatches;    /* intervals whose counts did not add up */
	uint64_t batch_failures;
	double ns_per_run, ns_per_sample; /* of the sampling program, when it was measured last */
};

struct engine_out {
	void *context;
	/* A batch; borrowed. */
	void (*batch)(void *context, const struct andiron_batch *batch);
	/* What an interval brought, whether or not there is a batch. */
	void (*counts)(void *context, const struct engine_counts *counts);
	/* level: ANDIRON_LOG_*. */
	void (*log)(void *context, uint32_t level, const char *text);
};

/* Takes ownership of `options`, also on failure; `objects` and `out` are copied. */
int engine_new(uint64_t producer, struct ebpf_options *options,
	       const struct andiron_extension *objects, const struct engine_out *out,
	       struct engine **ret);
void engine_free(struct engine *e);

/* Loads and samples, unless `lazy` and there is no target yet. */
int engine_start(struct engine *e, struct error *err);

/* Takes new options over, also on failure, after which it samples on with the old ones and `err`
 * says so. What was sampled under the old ones is sent first. */
int engine_reconfigure(struct engine *e, struct ebpf_options *options, struct error *err);

/* CPUs have come online or gone: samples those that are online now, and loses nothing of what the
 * others counted. */
int engine_follow_cpus(struct engine *e, struct error *err);

/* An update of targets; call engine_retarget after the last one. */
int engine_apply(struct engine *e, const struct andiron_targets *update);
int engine_retarget(struct engine *e, struct error *err);

/* Readable when engine_attend has something to do; -1 while not loaded. */
int engine_fd(const struct engine *e);
/* For who begins to wait for that: whether it has by now (session_must_drain). */
bool engine_must_attend(const struct engine *e);
/* Reads the ring: new processes are looked up at once. Ends the interval (engine_collect) where its
 * samples fill the memory that there is for them. */
void engine_attend(struct engine *e);

/* When engine_attend is to be called at the latest, CLOCK_MONOTONIC; INT64_MAX: the fd tells. */
int64_t engine_due(const struct engine *e);

/* Samples counted and not read yet: about what the next engine_collect takes. Cheap. */
uint64_t engine_coming(const struct engine *e);

/* Ends the interval: reads the counts and gives out the batch. */
void engine_collect(struct engine *e);

/* Stops sampling and collects what is left. Idempotent. */
void engine_finish(struct engine *e);
/* Counts as dropped what could not be collected for want of memory, once nobody will again. */
void engine_drop_unread(struct engine *e);
/* In its place where there is no time for that: stops sampling; how many samples are never read. */
uint64_t engine_give_up(struct engine *e);

int64_t engine_interval(const struct engine *e);
/* What the options changed against their text: "; …" or "". */
const char *engine_notes(const struct engine *e);
/* target_report_each of what it has. */
int engine_report_targets(struct engine *e, target_report_fn fn, void *context);
/* Counts what only a look at each file, mapping table and process tells, for engine_get_stats. */
void engine_count(struct engine *e);
/* What it counts is as of its last call. O(1). */
void engine_get_stats(const struct engine *e, struct engine_stats *ret);
