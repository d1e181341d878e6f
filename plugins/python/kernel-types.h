/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's structures as far as the program reads them, relocated by libbpf (CO-RE). */
#pragma once

#include "runtime-kit/kernel-types.h"

struct bpf_perf_event_data;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_struct {
#if defined(__TARGET_ARCH_arm64)
	struct {
		unsigned long tp_value;
	} uw;
#else
	unsigned long fsbase;
#endif
};

struct task_struct {
	struct thread_struct thread;
};

#pragma clang attribute pop
