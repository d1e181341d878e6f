/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose profile is known beforehand: workload_70, workload_20 and workload_10 take these
 * parts of its time, since each does so many rounds of the same work. Turns differ in length, lest
 * they beat against the sampling clock.
 *
 *     workload SECONDS         works for so much CPU time, then exits with 0
 *     workload SECONDS fork    lets a grandchild work whose parent has exited
 *     workload SECONDS wait    does not work: waits for so long, in workload_wait */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__ /* which makes no clones to forbid */
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone, noipa))
#endif
#define ROUNDS 200000 /* of a turn, ± 50 % */

static volatile uint64_t sink;

/* A macro: a function that is inlined would be a frame of its own, and the three would share it. */
#define WORK(parts)                                                                                \
	do {                                                                                       \
		uint64_t x = sink | 1;                                                             \
                                                                                                   \
		for (int i = 0; i < (parts)*rounds / 10; i++)                                      \
			x = x * 6364136223846793005u + 1442695040888963407u;                       \
		sink = x;                                                                          \
	} while (0)

static NOINLINE void workload_70(int rounds)
{
	WORK(7);
}

static NOINLINE void workload_20(int rounds)
{
	WORK(2);
}

static NOINLINE void workload_10(int rounds)
{
	WORK(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* on a busy machine the profile is as long */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static NOINLINE void work_for(double seconds)
{
	double end = now() + seconds;
	uint32_t random = 1;

	while (now() < end) {
		int rounds;

		random = random * 1664525u + 1013904223u;
		rounds = (int)(ROUNDS / 2 + (random >> 8) % ROUNDS);
		workload_70(rounds);
		workload_20(rounds);
		workload_10(rounds);
	}
}

/* The middle process exits at once, so the worker belongs to init. */
static int orphan(double seconds)
{
	int done[2];
	char byte;

	if (pipe(done) < 0)
		return 1;
	if (fork() == 0) {
		if (fork() == 0) {
			work_for(seconds);
			_exit(0);
		}
		_exit(0);
	}
	wait(NULL);
	close(done[1]);
	return read(done[0], &byte, 1) != 0; /* until the worker is gone */
}

static NOINLINE void workload_wait(void)
{
	poll(NULL, 0, 10);
	sink++;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;

	if (argc > 2 && strcmp(argv[2], "fork") == 0)
		return orphan(seconds);
	if (argc > 2 && strcmp(argv[2], "wait") == 0)
		for (double left = seconds; left > 0; left -= 0.01)
			workload_wait();
	else
		work_for(seconds);
	return 0;
}
