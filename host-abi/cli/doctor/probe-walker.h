/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel has of what the sampler's walker can use: the questions that plugins/ebpf asks it, asked without
 * libbpf. Never by version: distributions add to old kernels, and leave out of new ones.
 */
#ifndef CLI_DOCTOR_PROBE_WALKER_H
#define CLI_DOCTOR_PROBE_WALKER_H

#include <stdbool.h>

struct probe_walker {
	bool loop;      /* bpf_loop: whole walks, else steps by tail calls */
	bool task_work; /* a program can ask a thread to run something on its way back to user mode */
};

/* Loads a program that is refused, and reads the kernel's types: some milliseconds. */
struct probe_walker probe_walker(void);

#endif
