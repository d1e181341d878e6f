/* SPDX-License-Identifier: Apache-2.0 */
/* What of this process a plugin could change or leave behind. */
#pragma once

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define N_SIGNALS 65

struct process_state {
	sigset_t mask;
	void (*handlers[N_SIGNALS])(int);
	char directory[4096];
	char locale[256];
	uint64_t environment; /* a hash of its texts */
	mode_t umask;
	uint64_t streams; /* a hash of which files the standard ones are */
	struct rlimit limits[RLIM_NLIMITS];
	int nice;
	cpu_set_t cpus; /* that the calling thread may run on */
	int arithmetic; /* bits: how its floating point rounds */
};

void process_state_read(struct process_state *ret);

/* What differs, in words; NULL: nothing. */
const char *process_state_difference(const struct process_state *a, const struct process_state *b);

/* Descriptors and threads that there are now, and bytes that are allocated, and mapped. */
struct process_usage {
	long n_descriptors, n_threads, n_bytes, n_mapped;
};

void process_usage_read(struct process_usage *ret);

/* Whether it has a child process that has ended and nobody has waited for. */
bool process_has_zombie(void);

/* Whether each thread but the first has all signals blocked that can be. */
bool process_threads_block_signals(void);

/* Threads but the first that are called as it is. */
long process_nameless_threads(void);

/* The first descriptor behind `fd` that a program would inherit that is started now, and what it
 * is; -1: none. None behind the standard streams is left by the first function. */
void process_keep_descriptors(void);
int process_passed_descriptor(int fd, char *ret_what, size_t size);
