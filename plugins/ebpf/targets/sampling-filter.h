/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's sampling filter: processes without a target cost no unwinding. */
#pragma once

#include "ebpf/processes/target-match.h"
#include "ebpf/options.h"
#include "ebpf/processes/process.h"
#include "ebpf/kernel/session.h"

/* With more pids than this as targets all is sampled and judged when it is read: most of the
 * machine is selected then, and a process is not missed between its start and its report. */
#define SAMPLING_FILTER_PIDS_MAX 64u

/* SAMPLER_ALL, or what the targets need. */
uint32_t sampling_filter_mode(const struct ebpf_options *options, struct matcher *matcher);

/* Brings the kernel's sets in line with the targets: pids are added and removed, with `follow`
 * together with the descendants that run by now. All judgements of cgroups are forgotten. 0, or a
 * negative errno with the cause. */
int sampling_filter_set(struct session *session, struct matcher *matcher,
			struct processes *processes, bool follow, struct error *err);

/* A process was seen: judges its cgroup for all who run there. */
void sampling_filter_judge(struct session *session, struct matcher *matcher,
			   const struct process *p);
