/* SPDX-License-Identifier: Apache-2.0 */
/* A program of known cost: 70, 20 and 10 % of its time in three functions that do the same work for
 * a different number of rounds. Prints where each of them lies in its own file, then works until it
 * is killed. A turn of the three is never as long as the one before: equal ones would beat against
 * the sampling clock, and then samples see the same part of a turn for seconds.
 *
 *     workload [MODE]
 *       (none)  works itself
 *       fork    a child works, which its parent forks before it waits
 *       thread  a second thread works
 *       deep    works 30 calls deep, a fifth of the time in the kernel
 *       ways    works 900 calls deep, and comes there by another way each time
 *       wait    does not work: waits 7, 2 and 1 ms in functions beside the three */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern const char __executable_start[];

#define HOT(percent)                                                                               \
	extern const char __start_hot_##percent[], __stop_hot_##percent[];                         \
	static volatile uint64_t result_##percent;                                                 \
	__attribute__((noinline, section("hot_" #percent))) static void run_##percent(int length)  \
	{                                                                                          \
		uint64_t x = percent;                                                              \
                                                                                                   \
		for (int i = 0; i < percent * length; i++)                                         \
			x = x * 6364136223846793005u + 1442695040888963407u;                       \
		result_##percent = x;                                                              \
	}                                                                                          \
	__attribute__((noinline, section("hot_" #percent))) static void wait_##percent(void)       \
	{                                                                                          \
		poll(NULL, 0, percent / 10);                                                       \
		result_##percent = 0;                                                              \
	}

HOT(70)
HOT(20)
HOT(10)

#define SAY(percent)                                                                               \
	printf("%" PRIxPTR " %" PRIxPTR "\n",                                                      \
	       (uintptr_t)__start_hot_##percent - (uintptr_t)__executable_start,                   \
	       (uintptr_t)__stop_hot_##percent - (uintptr_t)__executable_start)

/* Rounds of a hundredth of a turn: 1,000 ± 50 %. */
static int next_length(void)
{
	static _Thread_local uint32_t state = 1;

	state = state * 1664525u + 1013904223u;
	return 500 + (int)(state >> 22);
}

/* Volatile, so that the call is none that the compiler could make a loop of. */
static volatile int depth_left;

__attribute__((noinline)) static void deep(int zero)
{
	char page[4096];

	if (depth_left > 0) {
		depth_left--;
		deep(zero);
		depth_left++;
		return;
	}
	run_20(next_length());
	for (int i = 0; i < 12; i++)
		if (pread(zero, page, sizeof(page), 0) < 0)
			return;
}

static void by_one(void);
static void by_other(void);

static void go_deeper(void)
{
	static uint64_t way;

	if (depth_left == 0) {
		run_20(next_length() / 100);
		return;
	}
	depth_left--;
	way = way * 6364136223846793005u + 1442695040888963407u;
	if (way >> 63)
		by_one();
	else
		by_other();
	depth_left++;
}

__attribute__((noinline)) static void by_one(void)
{
	go_deeper();
	depth_left += 0;
}

__attribute__((noinline)) static void by_other(void)
{
	go_deeper();
	depth_left -= 0;
}

static void *work(void *arg)
{
	for (;;) {
		int length = next_length();

		run_70(length);
		run_20(length);
		run_10(length);
	}
	return arg;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing works on for a test that has failed */
	SAY(70);
	SAY(20);
	SAY(10);
	fflush(stdout);
	if (strcmp(mode, "fork") == 0) {
		/* Waits for a byte, so that the test can begin before the fork. */
		char byte;

		if (read(0, &byte, 1) != 1)
			return 1;
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(NULL);
		}
		wait(NULL);
	} else if (strcmp(mode, "thread") == 0) {
		pthread_create(&thread, NULL, work, NULL);
		pthread_join(thread, NULL);
	} else if (strcmp(mode, "deep") == 0) {
		int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

		for (;;) {
			depth_left = 30;
			deep(zero);
		}
	} else if (strcmp(mode, "ways") == 0) {
		for (;;) {
			depth_left = 900;
			go_deeper();
		}
	} else if (strcmp(mode, "wait") == 0) {
		for (;;) {
			wait_70();
			wait_20();
			wait_10();
		}
	} else {
		work(NULL);
	}
	return 0;
}
