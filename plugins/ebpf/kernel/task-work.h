/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that do their work in the sampled thread, by task work, loaded beside the sampler: they
 * share its maps of the same name. One takes stack snapshots (bpf/snapshot.bpf.c); without it a
 * stack is copied at once, from the pages that are present. One continues unwinding through
 * language runtimes (bpf/continuation.bpf.c); without it such a stack ends in `[runtime switches]`.
 *
 * Linux 6.18 has bpf_task_work_schedule_resume_impl(), with a last parameter for the kernel. Later
 * kernels have bpf_task_work_schedule_resume() without it. They still describe the former, which
 * cannot be called. So each program is built in two forms. */
#pragma once

#include "ebpf/kernel/perf-clock.h"

#include <stdbool.h>

struct bpf_object;

struct task_work {
	struct bpf_object *snapshots, *continuation; /* NULL: not loaded */
	struct perf_clock faults; /* the rounds of a continuation begin with these */
};

/* Load the form that this kernel has: 0, also where it has none; or a negative errno. Some 20 ms.
 * Nothing calls the program of snapshots yet: its slot is the caller's to fill. */
int task_work_load_snapshots(struct task_work *t, const struct bpf_object *sampler);
int task_work_load_continuation(struct task_work *t, const struct bpf_object *sampler);
/* Opens the events that begin rounds, or closes them: while they are open each page fault of the
 * machine pays for them. Once a continuation is loaded. 0 or a negative errno. */
int task_work_take_faults(struct task_work *t, bool on);
void task_work_close(struct task_work *t);
