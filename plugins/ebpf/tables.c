/* SPDX-License-Identifier: Apache-2.0 */
/* See tables.h. */
#include "tables.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SAMPLES_MIN 64u
#define SAMPLES_MAX 8192u
/* Never more than a quarter full, also when no two samples are alike: fuller,
 * now and then SAMPLER_PROBES slots in a row are taken. */
#define SLOTS_A_SAMPLE 4u
/* Of a record, head included; deeper stacks on average go through the ring. */
#define WORDS_A_SAMPLE 24u

/* Older kernels have no larger values in an array: KMALLOC_MAX_SIZE. */
_Static_assert(SLOTS_A_SAMPLE * SAMPLES_MAX * sizeof(struct sampler_slot) +
			       (WORDS_A_SAMPLE * SAMPLES_MAX + SAMPLER_LOG_SPARE) * sizeof(uint64_t) <= 4u << 20,
	       "of one CPU and half");

/* A slot is a cache line, in the next half, too. */
size_t tables_bytes(const struct tables *t)
{
	size_t line = sizeof(struct sampler_slot);
	size_t log = ((size_t)t->n_words + SAMPLER_LOG_SPARE) * sizeof(uint64_t);

	return (t->n_slots + (log + line - 1) / line) * line;
}

static size_t all_bytes(const struct tables *t)
{
	return (size_t)t->n_tables * SAMPLER_HALVES * tables_bytes(t);
}

static struct sampler_slot *slots_of(const struct tables *t, uint32_t cpu, uint32_t half)
{
	check(half < SAMPLER_HALVES && t->counts);
	return (struct sampler_slot *)(void *)(t->counts + (cpu * SAMPLER_HALVES + half) * tables_bytes(t));
}

void tables_size(struct tables *t, uint32_t n_cpus, uint32_t n_tables, uint64_t samples)
{
	check(n_cpus > 0 && n_tables > 0);
	*t = (struct tables){
		.n_cpus = n_cpus, .n_tables = n_tables, .n_slots = SLOTS_A_SAMPLE * SAMPLES_MIN};
	while (t->n_slots < SLOTS_A_SAMPLE * samples && t->n_slots < SLOTS_A_SAMPLE * SAMPLES_MAX)
		t->n_slots *= 2;
	t->n_words = WORDS_A_SAMPLE * (t->n_slots / SLOTS_A_SAMPLE);
	while (t->n_slots > SLOTS_A_SAMPLE * SAMPLES_MIN && all_bytes(t) > TABLES_MAX_BYTES) {
		t->n_slots /= 2;
		t->n_words /= 2;
	}
}

static int map_one(int fd, size_t bytes, void *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, (bytes + page - 1) / page * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	memcpy(ret, &p, sizeof(p));
	return 0;
}

static void unmap_one(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes); /* rounds up by itself */
}

int tables_map(struct tables *t, int cpus, int counts)
{
	t->counts_fd = counts;
	return map_one(cpus, t->n_cpus * sizeof(*t->cpus), &t->cpus);
}

int tables_open(struct tables *t)
{
	return map_one(t->counts_fd, all_bytes(t), &t->counts);
}

void tables_close(struct tables *t)
{
	unmap_one(t->counts, all_bytes(t));
	t->counts = NULL;
}

void tables_unmap(struct tables *t)
{
	tables_close(t);
	unmap_one(t->cpus, t->n_cpus * sizeof(*t->cpus));
	*t = (struct tables){0};
}

struct sampler_counters tables_counters(struct tables *t, uint32_t half)
{
	struct sampler_counters sum = {0};

	check(half < SAMPLER_HALVES);
	for (uint32_t cpu = 0; cpu < t->n_cpus; cpu++) {
		struct sampler_counters *counters = &t->cpus[cpu].books[half].counters;

		sum.taken += counters->taken;
		sum.idle += counters->idle;
		sum.unselected += counters->unselected;
		sum.map_full += counters->map_full;
		sum.new_cpu += counters->new_cpu;
		sum.unfinished += counters->unfinished;
		*counters = (struct sampler_counters){0};
	}
	return sum;
}

uint64_t tables_taken(const struct tables *t, uint32_t half)
{
	uint64_t sum = 0;

	check(half < SAMPLER_HALVES);
	for (uint32_t cpu = 0; cpu < t->n_cpus; cpu++)
		sum += __atomic_load_n(&t->cpus[cpu].books[half].counters.taken, __ATOMIC_RELAXED);
	return sum;
}

void tables_stacks(struct tables *t, uint32_t half, tables_record_fn fn, void *context)
{
	size_t words = (size_t)t->n_words + SAMPLER_LOG_SPARE;

	for (uint32_t cpu = 0; cpu < t->n_tables; cpu++) {
		const uint64_t *log = (const uint64_t *)(const void *)(slots_of(t, cpu, half) + t->n_slots);
		uint32_t *end = &t->cpus[cpu].books[half].n_words;
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

void tables_counts(struct tables *t, uint32_t half, tables_count_fn fn, void *context)
{
	for (uint32_t cpu = 0; cpu < t->n_tables; cpu++) {
		struct sampler_slot *slots = slots_of(t, cpu, half);

		for (uint32_t i = 0; i < t->n_slots; i++) {
			struct sampler_value value = {.count = slots[i].count};

			if (value.count == 0)
				continue;
			if (slots[i].stack != 0)
				value.stack = sampler_stack_id(slots[i].stack, cpu);
			fn(context, &slots[i].key, &value);
			slots[i].count = 0;
		}
	}
}
