/* SPDX-License-Identifier: Apache-2.0 */
/* The shared tables, as a sampling program would have filled them. */
#include "ebpf/kernel/bpf-memory.h"
#include "ebpf/kernel/sample-logs.h"

#include "testing/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void record(void *context, const void *p, size_t size)
{
	struct sampler_stack head;

	memcpy(&head, p, sizeof(head));
	expect_eq(size, sizeof(head) + 3 * sizeof(uint64_t));
	*(uint64_t *)context += head.n_user;
}

/* What one CPU counted is read once, and is gone then; the other buffer stays. */
TEST(a_buffer_is_read_and_cleared)
{
	struct sampler_stack head = {.type = SAMPLER_RECORD_STACK, .n_kernel = 1, .n_user = 2};
	struct sample_logs t;
	uint64_t frames = 0;

	sample_logs_size(&t, 2, 2, 100);
	t.cpus = calloc(2, sizeof(*t.cpus));
	t.logs = calloc(4, sample_logs_bytes(&t));
	expect(t.cpus && t.logs);
	memcpy(t.logs + 2 * sample_logs_bytes(&t), &head, sizeof(head)); /* of CPU 1 */
	t.cpus[1].counts[0].n_words = SAMPLER_STACK_WORDS + 3;
	t.cpus[0].counts[0].counters.idle = 2;
	t.cpus[1].counts[0].counters.taken = 4;
	t.cpus[1].counts[1].counters.taken = 9;
	expect_eq(sample_logs_taken(&t), 13);
	for (int i = 0; i < 2; i++) {
		struct sampler_counters c = sample_logs_counters(&t, 0);

		sample_logs_stacks(&t, 0, record, &frames);
		expect_eq(c.taken, i == 0 ? 4 : 0);
		expect_eq(c.idle, i == 0 ? 2 : 0);
		expect_eq(frames, 2);
	}
	expect_eq(sample_logs_counters(&t, 1).taken, 9);
	free(t.cpus);
	free(t.logs);
}

/* Small machines stay small, large ones below the bound. */
TEST(sizes_are_bounded)
{
	struct sample_logs t;

	sample_logs_size(&t, 2, 2, 97 * 16);
	expect(t.n_words >= 97 * 16 * SAMPLER_STACK_WORDS);
	expect(4 * sample_logs_bytes(&t) < 3u << 20);
	for (uint32_t n = 1; n <= 512; n++) {
		sample_logs_size(&t, n, n, 1000 * 61);
		expect(t.n_words > 0);
		expect(2 * n * sample_logs_bytes(&t) <= SAMPLE_LOGS_MAX_BYTES);
	}
}

/* A session that failed to load has opened nothing, and closes nothing of another. */
TEST(memory_that_was_never_had)
{
	struct bpf_memory m = {0};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	expect(null >= 0 && (null == 0 || dup2(null, 0) == 0));
	bpf_memory_fini(&m);
	expect(fcntl(0, F_GETFD) >= 0);
	if (null > 0)
		close(null);
}
