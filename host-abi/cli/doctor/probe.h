/* SPDX-License-Identifier: Apache-2.0 */
/* Single facts about kernel and process, for precheck. Pure questions. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

/* The whole small file without its last newline; "" if it cannot be read. */
struct probe_text {
	char text[256];
};
struct probe_text probe_file(const char *path);

/* Whether this thread has the capability in effect. */
bool probe_capability(int capability);

/* The running kernel; 0.0 if its name cannot be understood. */
struct probe_kernel {
	unsigned int major, minor;
	char release[65];
};
struct probe_kernel probe_kernel(void);
bool probe_kernel_below(const struct probe_kernel *k, unsigned int major, unsigned int minor);

/* Whether this PID namespace is the machine's first, in which the kernel's ids are those of
 * /proc: 1 or 0, or a negative errno where /proc does not tell. */
int probe_first_pid_namespace(void);

/* Opens a system-wide cpu-clock event: 0 or a negative errno. */
int probe_perf_event(void);

/* Loads a program that returns 0, of the type that sampling uses: 0 or a negative errno. */
int probe_bpf_program(void);

/* Whether kallsyms shows addresses to us. */
bool probe_kallsyms(void);

/* What the kernel offers the sampler's stack walker: the questions that plugins/ebpf asks, asked
 * without libbpf. Never by version: distributions add to old kernels and leave out of new ones. */
struct probe_walker {
	bool loop;      /* bpf_loop: a whole walk in one program, else steps by tail calls */
	bool task_work; /* a program can run in a thread on its return to user mode */
};

/* Loads a program that is refused, and reads the kernel's types: some milliseconds. */
struct probe_walker probe_walker(void);
