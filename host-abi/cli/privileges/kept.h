/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent keeps of the privileges that it was started with: the capabilities that the
 * components of its plan declare, of those that it holds, and nothing else. All other parts of
 * root are given up before the first thread exists, so that no thread has to be trusted to do so.
 *
 * A declared capability is what a component needs for all of its life: BPF memory is written, CPUs
 * come, and files are opened as long as it samples. CAP_SYSLOG is not of that kind: it is needed to
 * open the kernel's list of symbols, and what an open descriptor shows stays. So the list is opened
 * first. */
#pragma once

#include "base/error.h"
#include "host/plan.h"

#include <stdint.h>

struct kept {
	uint64_t held;      /* before */
	uint64_t mask;      /* to be kept, and in use */
	int kernel_symbols; /* /proc/kallsyms if a component needs it, else 0; for the host */
};

/* Chooses, and puts all else out of use, which settles nothing yet: whatever is tried from here on
 * is tried with what will be left. `also`: what the command itself needs. CAP_SYS_ADMIN is kept
 * only where it stands in for a finer one: that one is not held, or the kernel opens no event to
 * CAP_PERFMON. Kernels before 5.11 keep CAP_SYS_RESOURCE to lock BPF memory. A sampler may still
 * put its own threads before others: by RLIMIT_NICE, else CAP_SYS_NICE is kept. -errno with a
 * sentence. */
int kept_choose(struct kept *ret, const struct plan *plan, uint64_t also, struct error *err);

/* For good, before there are threads. Opens the list of symbols, gives up CAP_SYSLOG with the rest,
 * and the system calls that nothing of ours makes (proc/syscall-filter.h). -errno with a sentence:
 * it must not go on. */
int kept_settle(struct kept *k, struct error *err);

/* Whether another plan can run with what is left: 0, or -EPERM with a sentence. */
int kept_check(const struct kept *k, const struct plan *plan, struct error *err);

/* The names in `mask`, as "CAP_A, CAP_B"; "none". */
struct kept_names {
	char text[512];
};
struct kept_names kept_names(uint64_t mask);
