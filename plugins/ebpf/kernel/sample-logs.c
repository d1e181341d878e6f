/* SPDX-License-Identifier: Apache-2.0 */
/* See sample-logs.h. */
#include "ebpf/kernel/sample-logs.h"

#include "ebpf/kernel/bpf-memory.h"

#include "base/check.h"

#include <string.h>
#include <sys/mman.h>

#define SAMPLES_MIN 16u
#define SAMPLES_MAX 8192u
/* Of a record, head included; deeper stacks on average go through the ring. */
#define WORDS_A_SAMPLE 36u

/* Older kernels have no larger values in an array: KMALLOC_MAX_SIZE. */
_Static_assert((WORDS_A_SAMPLE * SAMPLES_MAX + SAMPLER_LOG_SPARE) * sizeof(uint64_t) <= 4u << 20,
	       "of one CPU and buffer");

size_t sample_logs_bytes(const struct sample_logs *t)
{
	return ((size_t)t->n_words + SAMPLER_LOG_SPARE) * sizeof(uint64_t);
}

static size_t all_bytes(const struct sample_logs *t)
{
	return (size_t)t->n_logs * SAMPLER_BUFFERS * sample_logs_bytes(t);
}

void sample_logs_size(struct sample_logs *t, uint32_t n_cpus, uint32_t n_logs, uint64_t samples)
{
	uint64_t affordable;

	check(n_cpus > 0 && n_logs > 0);
	affordable = SAMPLE_LOGS_MAX_BYTES / sizeof(uint64_t) / SAMPLER_BUFFERS / n_logs;
	affordable = affordable > SAMPLER_LOG_SPARE
			     ? (affordable - SAMPLER_LOG_SPARE) / WORDS_A_SAMPLE
			     : 0;
	samples = samples < affordable ? samples : affordable;
	samples = samples < SAMPLES_MAX ? samples : SAMPLES_MAX;
	samples = samples > SAMPLES_MIN ? samples : SAMPLES_MIN;
	*t = (struct sample_logs){
		.n_cpus = n_cpus, .n_logs = n_logs, .n_words = WORDS_A_SAMPLE * (uint32_t)samples};
}

static void unmap_one(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes); /* rounds up by itself */
}

int sample_logs_map(struct sample_logs *t, int cpus, int logs)
{
	t->logs_fd = logs;
	return bpf_memory_map(cpus, t->n_cpus * sizeof(*t->cpus), &t->cpus);
}

int sample_logs_open(struct sample_logs *t)
{
	return bpf_memory_map(t->logs_fd, all_bytes(t), &t->logs);
}

void sample_logs_close(struct sample_logs *t)
{
	unmap_one(t->logs, all_bytes(t));
	t->logs = NULL;
}

void sample_logs_unmap(struct sample_logs *t)
{
	sample_logs_close(t);
	unmap_one(t->cpus, t->n_cpus * sizeof(*t->cpus));
	*t = (struct sample_logs){0};
}

struct sampler_counters sample_logs_counters(struct sample_logs *t, uint32_t buffer)
{
	struct sampler_counters sum = {0};

	check(buffer < SAMPLER_BUFFERS);
	for (uint32_t cpu = 0; cpu < t->n_cpus; cpu++) {
		struct sampler_counters *counters = &t->cpus[cpu].counts[buffer].counters;

		sum.taken += counters->taken;
		sum.idle += counters->idle;
		sum.unselected += counters->unselected;
		sum.ring_full += counters->ring_full;
		sum.unfinished += counters->unfinished;
		*counters = (struct sampler_counters){0};
	}
	return sum;
}

uint64_t sample_logs_taken(const struct sample_logs *t)
{
	uint64_t sum = 0;

	for (uint32_t cpu = 0; cpu < t->n_cpus; cpu++)
		for (uint32_t buffer = 0; buffer < SAMPLER_BUFFERS; buffer++)
			sum += __atomic_load_n(&t->cpus[cpu].counts[buffer].counters.taken,
					       __ATOMIC_RELAXED);
	return sum;
}

void sample_logs_stacks(struct sample_logs *t, uint32_t buffer, sample_logs_record_fn fn,
			void *context)
{
	size_t words = (size_t)t->n_words + SAMPLER_LOG_SPARE;
	const uint64_t *logs = (const void *)t->logs;

	check(buffer < SAMPLER_BUFFERS && t->logs);
	for (uint32_t cpu = 0; cpu < t->n_logs; cpu++) {
		const uint64_t *log = logs + (cpu * SAMPLER_BUFFERS + buffer) * words;
		uint32_t *end = &t->cpus[cpu].counts[buffer].n_words;
		struct sampler_stack head;
		size_t n;

		check(*end <= words);
		for (size_t at = 0; at < *end; at += n) {
			memcpy(&head, &log[at], sizeof(head));
			n = SAMPLER_STACK_WORDS + head.n_kernel + head.n_user;
			check(at + n <= *end);
			fn(context, &log[at], n * sizeof(*log));
		}
		*end = 0;
	}
}
