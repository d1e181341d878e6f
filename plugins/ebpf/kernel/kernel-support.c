/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel-support.h. */
#include "ebpf/kernel/kernel-support.h"

#include "base/cleanup.h"
#include "proc/privileges.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

bool kernel_support_since(unsigned int major, unsigned int minor)
{
	unsigned int has_major = 0, has_minor = 0;
	struct utsname name;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &has_major, &has_minor) == 2 &&
	       (has_major > major || (has_major == major && has_minor >= minor));
}

int kernel_support_check(struct error *err)
{
	struct utsname name = {.release = "?"};

	uname(&name);
	if (!kernel_support_since(5, 10))
		return error_set(err, -ENOTSUP,
				 "this kernel is %s, but sampling needs Linux 5.10 or "
				 "later; upgrade the kernel",
				 name.release);
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		return error_set(err, -ENOTSUP,
				 "this kernel (%s) has no type information "
				 "(/sys/kernel/btf/vmlinux), which sampling needs; use "
				 "a kernel built with CONFIG_DEBUG_INFO_BTF=y",
				 name.release);
	return 0;
}

/* CAP_SYS_ADMIN has both of the others in it. */
static int explain_refusal(struct error *err, int code, const char *release)
{
	uint64_t held = privileges_held();
	bool all = held & PRIVILEGE(CAP_SYS_ADMIN);
	bool bpf = all || held & PRIVILEGE(CAP_BPF), perfmon = all || held & PRIVILEGE(CAP_PERFMON);

	if (bpf && perfmon)
		return error_set(err, code,
				 "the kernel (%s) does not let this process load BPF programs, "
				 "though it has CAP_BPF and CAP_PERFMON: lockdown or a security "
				 "module forbids it, or the process is in a user namespace of its "
				 "own; andiron doctor says which",
				 release);
	return error_set(
		err, code,
		"the kernel (%s) does not let this process load BPF programs: it lacks "
		"%s%s%s; run as root, or give what is missing to the container or unit, or "
		"to the program (setcap %s%s%s+ep FILE), or let an agent of this machine "
		"profile it",
		release, bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ",
		perfmon ? "" : "CAP_PERFMON", bpf ? "" : "cap_bpf", bpf || perfmon ? "" : ",",
		perfmon ? "" : "cap_perfmon");
}

int kernel_support_explain(struct error *err, int code)
{
	struct utsname name = {.release = "?"};

	uname(&name);
	if (code == -EPERM || code == -EACCES)
		return explain_refusal(err, code, name.release);
	if (code == -ENOMEM)
		return error_set(err, code,
				 "no memory for the sampler's BPF maps; raise the "
				 "memory limit of the container or unit, or ulimit -l "
				 "before Linux 5.11");
	return error_errno(err, code, "the kernel (%s) refused the sampling programs",
			   name.release);
}

#define INSN(code, dst, src, imm) ((struct bpf_insn){code, dst, src, 0, imm})
#define MOVE_REG                  (BPF_ALU64 | BPF_MOV | BPF_X)
#define MOVE                      (BPF_ALU64 | BPF_MOV | BPF_K)
#define CALL                      (BPF_JMP | BPF_CALL)
#define LOG_BYTES                 4096
#define EXIT                      INSN(BPF_JMP | BPF_EXIT, 0, 0, 0)
#define FUNCTION                  6 /* from the call behind it to the function */

/* As libbpf_probe_bpf_helper asks, which takes 8 KiB of stack for this text: a call without
 * arguments is refused in any case, and the text says whether the function is known. */
bool kernel_support_loop(void)
{
	const struct bpf_insn program[] = {INSN(CALL, 0, 0, BPF_FUNC_loop), EXIT};
	_cleanup_(freep) char *log = calloc(1, LOG_BYTES);
	LIBBPF_OPTS(bpf_prog_load_opts, options, .log_level = 1, .log_buf = log,
		    .log_size = LOG_BYTES);
	int fd;

	if (!log)
		return false;
	fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "probe", "GPL", program,
			   sizeof(program) / sizeof(program[0]), &options);
	if (fd >= 0)
		close(fd);
	return !strstr(log, "invalid func ") && !strstr(log, "unknown func ");
}

bool kernel_support_tail_calls(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "probe", 4, 4, 1, NULL);
	const struct bpf_insn program[] = {
		INSN(MOVE_REG, BPF_REG_6, BPF_REG_1, 0),
		INSN(CALL, 0, BPF_PSEUDO_CALL, FUNCTION + 1),
		INSN(MOVE_REG, BPF_REG_1, BPF_REG_6, 0),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, map),
		INSN(0, 0, 0, 0), /* the upper half of the same */
		INSN(MOVE, BPF_REG_3, 0, 0),
		INSN(CALL, 0, 0, BPF_FUNC_tail_call),
		INSN(MOVE, BPF_REG_0, 0, 0),
		EXIT,
		INSN(MOVE, BPF_REG_0, 0, 0), /* the function */
		EXIT,
	};
	int fd = -1;

	if (map >= 0)
		fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "probe", "GPL", program,
				   sizeof(program) / sizeof(program[0]), NULL);
	if (fd >= 0)
		close(fd);
	if (map >= 0)
		close(map);
	return fd >= 0;
}
