/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of this folder share: each takes the CPU seconds that it is to use as its first
 * argument, uses them in the shape that it exists for, and exits.
 *
 * The work is a function of its own that is never inlined, so that it is one frame more, and a leaf
 * without a frame of its own. */
#pragma once

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

/* Keeps the call before it from becoming a jump, which would take the caller off the stack. */
#define NO_TAIL __asm__ volatile("" ::: "memory")

static double burn_seconds;
static volatile unsigned long burn_result;

static inline void burn_init(int argc, char **argv)
{
	burn_seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
}

/* CPU time of the process so far, all threads. */
static inline double burn_used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* That of the children that have been waited for. */
static inline double burn_children(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static inline int burning(void)
{
	return burn_used() < burn_seconds;
}

/* `rounds` of a few nanoseconds each. */
static NOINLINE __attribute__((unused)) void burn(unsigned long rounds)
{
	unsigned long x = burn_result | 1;

	for (unsigned long i = 0; i < rounds; i++)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	burn_result = x;
}
