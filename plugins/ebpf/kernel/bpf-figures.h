/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of BPF programs and maps. */
#pragma once

#include <stdint.h>

struct bpf_program;

struct program_figures {
	uint64_t verified_insns; /* 0 before 5.16 */
	uint64_t run_ns, runs;   /* while statistics were on */
	uint64_t missed;         /* runs that the kernel refused as recursive */
};

/* Adds those of a program; nothing for one that is not loaded. One system call. */
void program_figures_add(struct program_figures *sum, const struct bpf_program *program);

/* As the kernel accounts a map; 0 if it does not say. Three system calls. */
uint64_t map_memory_bytes(int fd);
