/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's private state, shared by engine.c and engine-load.c. */
#pragma once

#include "ebpf/engine.h"
#include "ebpf/samples/batch-rows.h"
#include "ebpf/samples/event-intake.h"

struct engine {
	struct ebpf_options options;
	struct andiron_extension objects;
	struct engine_out out;
	struct session *session;
	struct unwinder *unwinder; /* on the session's memory */
	struct mapped_files *files;
	struct processes processes;
	struct matcher *matcher;
	struct sample_table stacks[SAMPLER_BUFFERS];
	struct intake intake;
	struct rows rows;
	struct engine_stats stats;
	struct engine_counts *counts; /* of the interval being read */
	uint64_t producer, sequence;
	uint64_t run_ns, runs, missed; /* at the end of the last interval */
	uint64_t counted;              /* of the buffer being read */
	uint64_t waits;                /* … that are of waits, and in rows */
	int64_t start_ns;              /* of the interval, CLOCK_REALTIME */
	int64_t swapped_ns;            /* the last one's end, CLOCK_MONOTONIC */
	uint32_t buffer;               /* being read */
	bool unmapped;                 /* some process waits for its files to be read */
	bool finished;
};

void engine_say(struct engine *e, uint32_t level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Tells the programs what is sampled now, by the options and targets. 0, or a negative errno with
 * the cause: then some sets are as before. */
int engine_set_filter(struct engine *e, struct error *err);
