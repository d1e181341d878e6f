/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What bpf/launch.bpf.c and its loader agree on: programs of which a process has had code that a
 * language runtime claimed, and what is to be reported. */
#pragma once

#ifndef KERNEL_TYPES_H
#include <linux/types.h>
#endif

#define LAUNCH_FILES 1024

/* The file of a program, by its inode as the kernel has it: stat may say otherwise. */
struct launch_file {
	__u64 inode;
	__u32 device; /* major << 20 | minor */
	__u32 zero;
};

/* What a process has executed last, and the generation (unwind_generation) that it has since. */
struct launch_exec {
	struct launch_file file;
	__u64 generation;
};

/* Written by user space at any time. */
struct launch_config {
	__u32 mode; /* SAMPLER_ALL, … */
};
