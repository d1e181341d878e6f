/* SPDX-License-Identifier: Apache-2.0 */
/* See probe.h. The two system calls are made bare: libbpf would print to standard error. */
#include "cli/doctor/probe.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "proc/kernel-types.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

struct probe_text probe_file(const char *path)
{
	struct probe_text t = {""};
	struct buf b = BUF_NULL;
	int r = file_read(AT_FDCWD, path, &b, sizeof(t.text) - 1);

	if (r == 0 || r == -E2BIG)
		snprintf(t.text, sizeof(t.text), "%.*s", STR_FMT(str_trim(buf_str(&b))));
	buf_free(&b);
	return t;
}

bool probe_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[capability / 32].effective >> (capability % 32) & 1;
}

struct probe_kernel probe_kernel(void)
{
	struct probe_kernel k = {0, 0, ""};
	struct utsname name;

	if (uname(&name) < 0)
		return k;
	snprintf(k.release, sizeof(k.release), "%s", name.release);
	if (sscanf(name.release, "%u.%u", &k.major, &k.minor) != 2)
		k.major = k.minor = 0;
	return k;
}

bool probe_kernel_below(const struct probe_kernel *k, unsigned int major, unsigned int minor)
{
	return k->major < major || (k->major == major && k->minor < minor);
}

/* Inode of the initial PID namespace, include/linux/proc_ns.h of the kernel. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

int probe_first_pid_namespace(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0)
		return -errno;
	return st.st_ino == FIRST_PID_NAMESPACE;
}

int probe_perf_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 1,
		.freq = 1,
		.disabled = 1,
	};
	_cleanup_(closep) int fd = -1;

	for (int cpu = 0; cpu < 4096; cpu++) { /* the first that is online */
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			return 0;
		if (errno != ENODEV)
			return -errno;
	}
	return -ENODEV;
}

/* Loads a program; 0, or a negative errno. `log` gets what the verifier says. */
static int load_program(const struct bpf_insn *program, uint32_t n, char *log, uint32_t log_bytes)
{
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insn_cnt = n,
		.insns = (uintptr_t)program,
		.license = (uintptr_t) "GPL",
		.log_level = log_bytes > 0,
		.log_size = log_bytes,
		.log_buf = (uintptr_t)log,
	};
	_cleanup_(closep) int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	return fd < 0 ? -errno : 0;
}

int probe_bpf_program(void)
{
	static const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return load_program(program, 2, NULL, 0);
}

#define HELPER_LOOP 181 /* bpf_loop, which older headers do not name */

/* A program that only calls the helper, without arguments, is refused either way, but for another
 * reason where the kernel does not know the helper. */
static bool knows_helper(int helper)
{
	const struct bpf_insn program[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = helper},
		{.code = BPF_JMP | BPF_EXIT},
	};
	char log[4096] = "";

	if (load_program(program, 2, log, sizeof(log)) == 0)
		return true;
	return log[0] && !strstr(log, "invalid func ") && !strstr(log, "unknown func ");
}

struct probe_walker probe_walker(void)
{
	return (struct probe_walker){
		.loop = knows_helper(HELPER_LOOP),
		.task_work = kernel_types_name("bpf_task_work_schedule_resume") ||
			     kernel_types_name("bpf_task_work_schedule_resume_impl"),
	};
}

/* On some machines the first symbols of a CPU's own area are at 0 for everybody, so one line is not
 * enough. */
bool probe_kallsyms(void)
{
	struct buf b = BUF_NULL;
	struct str rest;
	bool shown = false;
	int r = file_read(AT_FDCWD, "/proc/kallsyms", &b, 64u << 10);

	rest = r == 0 || r == -E2BIG ? buf_str(&b) : STR_NULL;
	while (rest.n > 0 && !shown) {
		struct str line = str_cut(&rest, '\n');
		uint64_t address = 0;

		shown = str_hex(str_first(line, str_find(line, ' ')), &address) && address != 0;
	}
	buf_free(&b);
	return shown;
}
