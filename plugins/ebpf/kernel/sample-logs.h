/* SPDX-License-Identifier: Apache-2.0 */
/* Sample logs: memory shared with the sampling program (bpfwire/sampler.h). Each CPU has counters
 * and a log for each buffer. Access takes no system call once mapped. Logs are megabytes, so they
 * are mapped only while a buffer is read. A buffer that is read must be quiet: retired, and no
 * program running that saw it active. */
#pragma once

#include "bpfwire/sampler.h"

#include <stddef.h>
#include <stdint.h>

struct sample_logs {
	struct sampler_cpu *cpus;
	char *logs;       /* sample_logs_bytes() for each CPU and buffer; NULL while not open */
	int logs_fd;      /* borrowed */
	uint32_t n_cpus;  /* possible ones */
	uint32_t n_logs;  /* CPUs that have logs */
	uint32_t n_words; /* of a log, SAMPLER_LOG_SPARE not counted */
};

#define SAMPLE_LOGS_MAX_BYTES (16u << 20)

/* A sample's record; `size` is the record's. Also session.h's, for the ring's records. */
typedef void (*sample_logs_record_fn)(void *context, const void *record, size_t size);

/* Sizes for so many samples of common depth a CPU and buffer, as long as all together stay below
 * SAMPLE_LOGS_MAX_BYTES. */
void sample_logs_size(struct sample_logs *t, uint32_t n_cpus, uint32_t n_logs, uint64_t samples);
/* Bytes of the log of one CPU and buffer. */
size_t sample_logs_bytes(const struct sample_logs *t);

/* Maps the first of the two maps and keeps the descriptor of the other, which is borrowed; 0 or a
 * negative errno, nothing mapped then. */
int sample_logs_map(struct sample_logs *t, int cpus, int logs);
void sample_logs_unmap(struct sample_logs *t);
/* Maps the other, for sample_logs_stacks; 0 or a negative errno, nothing mapped then. Some 100 us
 * for 4 MB. Close when they are read. */
int sample_logs_open(struct sample_logs *t);
void sample_logs_close(struct sample_logs *t);

/* The buffer's counters, summed over CPUs, and cleared. */
struct sampler_counters sample_logs_counters(struct sample_logs *t, uint32_t buffer);
/* What those of both buffers say has been taken by now, while programs still count. */
uint64_t sample_logs_taken(const struct sample_logs *t);
/* Hands over the samples of the buffer's logs, and clears them. */
void sample_logs_stacks(struct sample_logs *t, uint32_t buffer, sample_logs_record_fn fn,
			void *context);
