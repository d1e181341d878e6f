/* SPDX-License-Identifier: Apache-2.0 */
/* See probe-walker.h. */
#include "cli/doctor/probe-walker.h"

#include "base/cleanup.h"
#include "proc/kernel-types.h"

#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELPER_LOOP 181 /* bpf_loop, which older headers do not name */

/* A program that calls nothing else, without arguments: refused either way, but for another reason where the
 * kernel does not know the function. */
static bool knows_helper(int helper)
{
	const struct bpf_insn program[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = helper},
		{.code = BPF_JMP | BPF_EXIT},
	};
	char log[4096] = "";
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insn_cnt = 2,
		.insns = (uintptr_t)program,
		.license = (uintptr_t) "GPL",
		.log_level = 1,
		.log_size = sizeof(log),
		.log_buf = (uintptr_t)log,
	};
	_cleanup_(closep) int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	return fd >= 0 || (log[0] && !strstr(log, "invalid func ") && !strstr(log, "unknown func "));
}

struct probe_walker probe_walker(void)
{
	return (struct probe_walker){
		.loop = knows_helper(HELPER_LOOP),
		.task_work = kernel_types_name("bpf_task_work_schedule_resume") ||
			     kernel_types_name("bpf_task_work_schedule_resume_impl"),
	};
}
