/* SPDX-License-Identifier: Apache-2.0 */
/* storm SECONDS: a process a millisecond, at irregular intervals, so that no sampler beats with
 * them. Each names itself "storm-a" or "storm-b", works for half a millisecond in the function of
 * that name, and exits. Prints how many there were, and in how many seconds. */
#include "burn.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 300000

static NOINLINE void storm_a(void)
{
	burn(ROUNDS);
	NO_TAIL;
}

static NOINLINE void storm_b(void)
{
	burn(ROUNDS);
	burn_result++;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Waits until 0.2 to 1.8 ms after the last time that was waited for. */
static int pause_for_next(int timer, struct timespec *next)
{
	static unsigned int x = 1;
	struct itimerspec at = {0};
	uint64_t due;

	x = x * 1664525u + 1013904223u;
	next->tv_nsec += 200000 + (x >> 8) % 1600000;
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	at.it_value = *next;
	return timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) == 0 &&
	       read(timer, &due, sizeof(due)) > 0;
}

static NOINLINE void child(unsigned long n)
{
	prctl(PR_SET_NAME, n & 1 ? "storm-a" : "storm-b");
	if (n & 1)
		storm_a();
	else
		storm_b();
	_exit(0);
}

int main(int argc, char **argv)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	double began = now();
	struct timespec next;
	unsigned long n = 0;

	burn_init(argc, argv);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (timer >= 0 && now() - began < burn_seconds && pause_for_next(timer, &next)) {
		pid_t pid = fork();

		if (pid == 0)
			child(n);
		n += pid > 0;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("%lu %.3f\n", n, now() - began);
	return 0;
}
