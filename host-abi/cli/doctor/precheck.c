/* SPDX-License-Identifier: Apache-2.0 */
/* See precheck.h. The points stand in the order of causes, so that the first failure is the one to
 * mend: without capabilities every later point would fail, too, and say nothing new. */
#include "cli/doctor/precheck.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/doctor/probe.h"
#include "proc/haste.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEAST_MAJOR 5u
#define LEAST_MINOR 10u

/* Before 5.11 BPF memory counted against RLIMIT_MEMLOCK. */
#define LEAST_LOCKED_BYTES (64u << 20)

#define EARLIEST_SANE_TIME (INT64_C(1577836800) * NS_PER_SEC) /* 2020 */

static struct point *add(struct precheck *p, const char *name)
{
	check(p->n < sizeof(p->points) / sizeof(p->points[0]));
	p->points[p->n] = (struct point){.name = name, .state = POINT_OK};
	return &p->points[p->n++];
}

__attribute__((format(printf, 3, 4))) static void say(struct point *point, enum point_state state,
						      const char *format, ...)
{
	va_list args;

	check(state == POINT_OK || point->state != POINT_FAILED);
	point->state = state;
	va_start(args, format);
	vsnprintf(point->text, sizeof(point->text), format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void fix(struct point *point, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(point->fix, sizeof(point->fix), format, args);
	va_end(args);
}

/* --- The points --- */

struct need {
	int capability;
	const char *name;
	const char *without; /* NULL: nothing works without it */
};

static const struct need needs[] = {
	{CAP_BPF, "CAP_BPF", NULL},
	{CAP_PERFMON, "CAP_PERFMON", NULL},
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "other users' processes have no file names"},
	{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "some files cannot be read for names"},
	{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "deleted files have no names"},
	{CAP_SYSLOG, "CAP_SYSLOG", "the kernel's functions have no names"},
};

static void check_capabilities(struct precheck *p)
{
	struct point *point = add(p, "capabilities");
	bool all_powerful = probe_capability(CAP_SYS_ADMIN);

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		const struct need *n = &needs[i];
		bool by_admin = all_powerful &&
				(!n->without || n->capability == CAP_CHECKPOINT_RESTORE);

		if (by_admin || probe_capability(n->capability))
			continue;
		if (!n->without) {
			say(point, POINT_FAILED, "not root, and without %s", n->name);
			fix(point,
			    "run it with sudo, or give it CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, "
			    "CAP_SYSLOG, CAP_CHECKPOINT_RESTORE and CAP_DAC_READ_SEARCH");
			return;
		}
		if (point->state == POINT_OK) {
			say(point, POINT_NOTE, "without %s: %s", n->name, n->without);
			fix(point, "run it with sudo, or give it %s", n->name);
		}
	}
	if (point->state == POINT_OK)
		say(point, POINT_OK, "all that is needed");
}

static void check_kernel(struct precheck *p)
{
	struct point *point = add(p, "kernel");
	struct probe_kernel k = probe_kernel();

	if (!probe_kernel_below(&k, LEAST_MAJOR, LEAST_MINOR)) {
		say(point, POINT_OK, "Linux %s", k.release);
		return;
	}
	say(point, POINT_FAILED,
	    "Linux %s is older than %u.%u, the first that can do all that is needed", k.release,
	    LEAST_MAJOR, LEAST_MINOR);
	fix(point, "install a kernel of %u.%u or later and boot it", LEAST_MAJOR, LEAST_MINOR);
}

static void check_btf(struct precheck *p)
{
	struct point *point = add(p, "btf");

	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
		say(point, POINT_OK, "/sys/kernel/btf/vmlinux is there");
		return;
	}
	if (access("/sys/kernel", X_OK) == 0 && access("/sys/kernel/mm", F_OK) != 0) {
		say(point, POINT_FAILED,
		    "/sys is not mounted, so the kernel's types (BTF) are hidden");
		fix(point, "mount -t sysfs sysfs /sys");
		return;
	}
	say(point, POINT_FAILED,
	    "the kernel does not describe its types (no /sys/kernel/btf/vmlinux), so programs "
	    "cannot be fitted to it");
	fix(point,
	    "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as all current distributions' are");
}

static void check_pid_namespace(struct precheck *p)
{
	struct point *point = add(p, "pid-namespace");
	int first = probe_first_pid_namespace();

	if (first < 0) {
		say(point, POINT_FAILED, "/proc is not mounted");
		fix(point, "mount -t proc proc /proc");
	} else if (first) {
		say(point, POINT_OK, "the host's");
	} else {
		say(point, POINT_FAILED,
		    "not in the host's PID namespace: the kernel's process ids are unknown here");
		fix(point,
		    "docker run --pid=host …, or hostPID: true in the pod, or run it on the host");
	}
}

static void check_lockdown(struct precheck *p)
{
	struct point *point = add(p, "lockdown");
	struct probe_text t = probe_file("/sys/kernel/security/lockdown");
	struct str text = str_of(t.text);

	if (str_search(text, STR("[confidentiality]")) == text.n) {
		say(point, POINT_OK, "%s", text.n ? t.text : "off");
		return;
	}
	say(point, POINT_FAILED,
	    "the kernel is locked down for confidentiality, so BPF may not read stacks");
	fix(point, "boot with lockdown=integrity (or without lockdown=)");
}

static void check_locked_memory(struct precheck *p)
{
	struct point *point = add(p, "locked-memory");
	struct probe_kernel k = probe_kernel();
	struct rlimit limit;

	if (!probe_kernel_below(&k, 5, 11)) {
		say(point, POINT_OK, "not limited since Linux 5.11");
		return;
	}
	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur >= LEAST_LOCKED_BYTES ||
	    probe_capability(CAP_SYS_RESOURCE)) {
		say(point, POINT_OK, "enough may be locked");
		return;
	}
	say(point, POINT_FAILED, "only %llu KiB may be locked, and Linux %s counts BPF maps there",
	    (unsigned long long)limit.rlim_cur >> 10, k.release);
	fix(point, "ulimit -l unlimited");
}

/* What depends on capabilities says nothing without them. */
static bool is_known(const struct precheck *p, struct point *point)
{
	check(p->n > 1); /* the first point is the capabilities */
	if (p->points[0].state != POINT_FAILED)
		return true;
	say(point, POINT_UNKNOWN, "unknown without the capabilities");
	return false;
}

static void check_perf(struct precheck *p)
{
	struct point *point = add(p, "perf-event");
	struct probe_text paranoid = probe_file("/proc/sys/kernel/perf_event_paranoid");
	int r = probe_perf_event();

	if (!is_known(p, point))
		return;
	if (r == 0) {
		say(point, POINT_OK, "a cpu-clock event opens (perf_event_paranoid is %s)",
		    paranoid.text);
		return;
	}
	say(point, POINT_FAILED, "a cpu-clock event does not open: %s (perf_event_paranoid is %s)",
	    strerror(-r), *paranoid.text ? paranoid.text : "absent");
	if (r == -ENOENT || r == -ENOSYS || !*paranoid.text)
		fix(point, "use a kernel built with CONFIG_PERF_EVENTS=y");
	else if (str_is(str_of(paranoid.text), "3") || str_is(str_of(paranoid.text), "4"))
		fix(point, "sysctl -w kernel.perf_event_paranoid=2");
	else
		fix(point, "allow perf_event_open in the seccomp profile of the container");
}

static void check_bpf(struct precheck *p)
{
	struct point *point = add(p, "bpf");
	int r = probe_bpf_program();

	if (!is_known(p, point))
		return;
	if (r == 0) {
		say(point, POINT_OK, "a program loads");
		return;
	}
	say(point, POINT_FAILED, "a BPF program does not load: %s", strerror(-r));
	if (r == -ENOSYS || r == -EINVAL)
		fix(point, "use a kernel built with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_EVENTS=y");
	else
		fix(point, "allow bpf in the seccomp profile of the container");
}

static void check_kernel_names(struct precheck *p)
{
	struct point *point = add(p, "kernel-names");
	struct probe_text restrict_ = probe_file("/proc/sys/kernel/kptr_restrict");

	if (!is_known(p, point))
		return;
	if (probe_kallsyms()) {
		say(point, POINT_OK, "kptr_restrict is %s", restrict_.text);
		return;
	}
	say(point, POINT_NOTE, "kptr_restrict is %s: kernel functions are shown without names",
	    *restrict_.text ? restrict_.text : "absent");
	fix(point, "sysctl -w kernel.kptr_restrict=1");
}

/* Which walker of native stacks this kernel gets. */
static void check_walker(struct precheck *p)
{
	struct point *point = add(p, "walker");
	struct probe_walker w;

	if (!is_known(p, point))
		return;
	w = probe_walker();
	say(point, w.loop ? POINT_OK : POINT_NOTE, "stacks of up to %s; %s",
	    w.loop ? "1,024 frames in one loop" : "396 frames",
	    w.loop && w.task_work
		    ? "memory that is not present is read in the thread itself (task work)"
		    : "memory that is not present is requested, and a later sample finds it");
}

static void check_cgroups(struct precheck *p)
{
	struct point *point = add(p, "cgroups");
	bool v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
	bool hybrid = access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK) == 0;
	bool v1 = access("/sys/fs/cgroup/cpu", F_OK) == 0 ||
		  access("/sys/fs/cgroup/memory", F_OK) == 0 ||
		  access("/sys/fs/cgroup/pids", F_OK) == 0;

	if (v2 || hybrid || v1) {
		say(point, POINT_OK, "%s", v2 ? "version 2" : hybrid ? "hybrid" : "version 1");
		return;
	}
	say(point, POINT_NOTE,
	    "no hierarchy is mounted at /sys/fs/cgroup: containers are not recognised");
	fix(point, "mount -t cgroup2 cgroup2 /sys/fs/cgroup");
}

static void check_clocks(struct precheck *p)
{
	struct point *point = add(p, "clocks");

	if (clock_real() >= EARLIEST_SANE_TIME) {
		say(point, POINT_OK, "the time of day is set");
		return;
	}
	say(point, POINT_NOTE, "the time of day is before 2020: servers will refuse profiles");
	fix(point, "set it, for example by timedatectl set-ntp true");
}

void precheck_run(struct precheck *p)
{
	*p = (struct precheck){.n = 0};
	check_capabilities(p); /* first: see is_known */
	check_kernel(p);
	check_btf(p);
	check_pid_namespace(p);
	check_lockdown(p);
	check_locked_memory(p);
	check_perf(p);
	check_bpf(p);
	check_kernel_names(p);
	check_walker(p);
	check_cgroups(p);
	check_clocks(p);
	check(p->n == PRECHECK_POINTS);
}

void precheck_add_runtimes(struct precheck *p, const char *names)
{
	struct point *point = add(p, "runtimes");

	if (*names)
		say(point, POINT_OK,
		    "functions of %s are shown by name; a running agent (--status) says which "
		    "version each process has",
		    names);
	else
		say(point, POINT_OK,
		    "no plugin is installed: Python, Java and JavaScript are shown as native code");
}

const struct point *precheck_failure(const struct precheck *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->points[i].state == POINT_FAILED)
			return &p->points[i];
	return NULL;
}

/* A word as a shell takes it. */
static void print_quoted(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_./,:=+@%";

	if (*word && strspn(word, plain) == strlen(word)) {
		fprintf(stderr, " %s", word);
		return;
	}
	fputs(" '", stderr);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", stderr);
		else
			fputc(*word, stderr);
	}
	fputc('\'', stderr);
}

static void print_again(char **again)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	fprintf(stderr, "  to fix: sudo");
	print_quoted(n > 0 ? self : "andiron");
	for (; *again; again++)
		print_quoted(*again);
	fputc('\n', stderr);
}

bool precheck_announce(const char *verb, bool notes, char **again)
{
	const struct point *failure;
	struct precheck p;
	int nice = haste_begin(HASTE_GAIN_START);

	precheck_run(&p);
	haste_end(nice);
	failure = precheck_failure(&p);
	for (size_t i = 0; i < p.n && notes && !failure; i++)
		if (p.points[i].state == POINT_NOTE)
			fprintf(stderr, "andiron %s: note: %s\n  to fix: %s\n", verb,
				p.points[i].text, p.points[i].fix);
	if (!failure)
		return true;
	fprintf(stderr, "andiron %s: cannot sample: %s\n", verb, failure->text);
	if (failure == &p.points[0] && geteuid() != 0)
		print_again(again);
	else
		fprintf(stderr, "  to fix: %s\n", failure->fix);
	return false;
}
