/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the sampling program shares with us: what each CPU counted,
 * and the stacks it wrote down (bpf/sampler.h). Plain memory, no system calls
 * after it is mapped; slots and logs, megabytes of it, are mapped only while a half is read. The
 * functions on a half want it quiet: retired, and no program running that saw it active.
 */
#ifndef EBPF_TABLES_H
#define EBPF_TABLES_H

#include "sampler.h"

#include <stddef.h>
#include <stdint.h>

struct tables {
	struct sampler_cpu *cpus;
	char *counts;      /* tables_bytes() for each CPU and half: n_slots slots, and the log; NULL while not open */
	int counts_fd;     /* borrowed */
	uint32_t n_cpus;   /* possible ones */
	uint32_t n_tables; /* CPUs that have slots and logs */
	uint32_t n_slots;  /* a power of two */
	uint32_t n_words;  /* of a log, SAMPLER_LOG_SPARE not counted */
};

#define TABLES_MAX_BYTES (64u << 20)

/* A stack's record; `size` is the record's. Also session.h's, for the ring's records. */
typedef void (*tables_record_fn)(void *context, const void *record, size_t size);

/* The same key may come once for each CPU. */
typedef void (*tables_count_fn)(void *context, const struct sampler_key *key,
				const struct sampler_value *value);

/* Sizes for so many samples a CPU and half: room for each to be a stack of its
 * own, as long as all together stay below TABLES_MAX_BYTES. */
void tables_size(struct tables *t, uint32_t n_cpus, uint32_t n_tables, uint64_t samples);
/* Bytes of slots and log of one CPU and half. */
size_t tables_bytes(const struct tables *t);

/* Maps the first of the two maps and keeps the descriptor of the other, which is borrowed; 0 or a negative
 * errno, nothing mapped then. */
int tables_map(struct tables *t, int cpus, int counts);
void tables_unmap(struct tables *t);
/* Maps the other, for tables_stacks and tables_counts; 0 or a negative errno, nothing mapped then. Some 100 us for
 * 4 MB. Close when they are read. */
int tables_open(struct tables *t);
void tables_close(struct tables *t);

/* The half's counters, summed over CPUs, and cleared. */
struct sampler_counters tables_counters(struct tables *t, uint32_t half);
/* What they say has been taken by now, while programs still count. */
uint64_t tables_taken(const struct tables *t, uint32_t half);
/* Hands over the stacks of the half's logs, and clears them. */
void tables_stacks(struct tables *t, uint32_t half, tables_record_fn fn, void *context);
/* Visits the half's counts, and clears them. */
void tables_counts(struct tables *t, uint32_t half, tables_count_fn fn, void *context);

#endif
