/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's stack as bpf/unwinder/kernel-stack.h walks it, beside bpf_get_stack's of the same
 * samples, while the kernel is busy with what it does for processes. kernel-stack.bpf.c compares.
 */
#include <andiron/bpf/walk.h>

#include "ebpf/kernel/bpf-jit-ranges.h"
#include "ebpf/kernel/perf-clock.h"
#include "ebpf/kernel/orc-tables.h"

#include "base/clock.h"
#include "testing/test.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "kernel-stack.skel.h"
#pragma GCC diagnostic pop

#define RATE    997
#define SAMPLES 4000
#define SECONDS 40 /* at most; a quiet machine takes three */
#define LOADS   6

static int busy_fd; /* the program's */

/* Processes that come and go. */
static void spawn(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* Pages that are not there yet. */
static void fault(void)
{
	size_t bytes = (size_t)4 << 20;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	for (size_t i = 0; i < bytes; i += 4096)
		((volatile char *)memory)[i] = 1;
	munmap(memory, bytes);
}

/* Files, and the texts that the kernel makes. */
static void files(void)
{
	static const char *const paths[] = {"/proc/self/maps", "/proc/self/status", "/proc/stat",
					    "/proc/meminfo"};
	char text[4096], path[] = "/tmp/kernel-stack-XXXXXX";
	struct stat status;
	int fd = mkstemp(path);

	for (int i = 0; fd >= 0 && i < 16; i++)
		if (write(fd, text, sizeof(text)) < 0)
			break;
	if (fd >= 0) {
		fsync(fd);
		unlink(path);
		close(fd);
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		while (fd >= 0 && read(fd, text, sizeof(text)) > 0)
			;
		if (fd >= 0)
			close(fd);
		stat(paths[i], &status);
	}
}

/* Sockets: their softirqs run on the interrupts' own stack. */
static void network(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[1024] = {0};

	if (from < 0)
		return;
	if (bind(from, (struct sockaddr *)&address, size) == 0 &&
	    getsockname(from, (struct sockaddr *)&address, &size) == 0)
		for (int i = 0; i < 200; i++)
			if (sendto(from, text, sizeof(text), 0, (struct sockaddr *)&address, size) <
				    0 ||
			    recv(from, text, sizeof(text), MSG_DONTWAIT) < 0)
				break;
	close(from);
}

/* Two threads of control that wake each other. */
static void pipes(void)
{
	int there[2], back[2];
	char byte = 0;
	pid_t pid;

	signal(SIGPIPE, SIG_DFL);
	if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
		_exit(1);
	pid = fork();
	/* Who of them is left alone reads the end. */
	close(pid == 0 ? there[1] : there[0]);
	close(pid == 0 ? back[0] : back[1]);
	for (int i = 0; i < 500; i++) {
		if (pid == 0 && (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1))
			break;
		if (pid > 0 && (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1))
			break;
	}
	if (pid == 0)
		_exit(0);
	close(there[1]);
	close(back[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* A program of ours, in a thread. */
static void program(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	if (bpf_prog_test_run_opts(busy_fd, &options) != 0)
		_exit(1);
}

static pid_t start_load(void (*load)(void))
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		load();
}

static void print_difference(const struct kernel_stack_bpf__bss *bss)
{
	uint32_t n = bss->n_own > bss->n_theirs ? bss->n_own : bss->n_theirs;

	printf("# %llu stacks are not the same; of the last one %u frames, the kernel says %u\n",
	       (unsigned long long)bss->different, bss->n_own, bss->n_theirs);
	for (uint32_t i = 0; i < n && i < ANDIRON_WALK_KERNEL; i++)
		printf("# %3u %16llx %16llx\n", i, (unsigned long long)bss->own[i],
		       (unsigned long long)bss->theirs[i]);
}

static void run(const struct kernel_stack_bpf *skel)
{
	static void (*const loads[LOADS])(void) = {spawn, fault, files, network, pipes, program};
	struct error err = ERROR_NULL;
	struct perf_clock events;
	pid_t pids[LOADS];
	int64_t end = clock_mono() + SECONDS * NS_PER_SEC;

	for (size_t i = 0; i < LOADS; i++)
		pids[i] = start_load(loads[i]);
	if (perf_clock_open(&events, bpf_program__fd(skel->progs.compare), NS_PER_SEC / RATE,
			    &err) != 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	while (clock_mono() < end && skel->bss->equal + skel->bss->different < SAMPLES)
		files();
	perf_clock_close(&events);
	for (size_t i = 0; i < LOADS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* Whatever the kernel does: to the word what it would have said itself, and nearly never
 * "unknown". */
TEST(the_kernels_stack_is_what_the_kernel_says)
{
	struct kernel_tables tables = orc_tables();
	struct kernel_jit jit = {0};
	struct kernel_stack_bpf *skel;
	const struct kernel_stack_bpf__bss *bss;
	uint64_t n;

	if (geteuid() != 0)
		test_skip("needs root");
	if (tables.n == 0)
		test_skip(
			"this kernel keeps no tables for its stack (CONFIG_UNWINDER_ORC), or hides "
			"them");
	skel = kernel_stack_bpf__open();
	expect(skel);
	memcpy(&skel->rodata->tables, &tables, sizeof(tables));
	expect_eq(kernel_stack_bpf__load(skel), 0);
	bpf_jit_ranges_add(&jit, skel->obj);
	expect(jit.code[0].bytes != 0);
	memcpy(&skel->bss->jit, &jit, sizeof(jit));
	busy_fd = bpf_program__fd(skel->progs.busy);
	run(skel);
	bss = skel->bss;
	n = bss->equal + bss->different + bss->unknown;
	expect(n != 0);
	printf("# %llu stacks of %.1f frames, up to %llu: %llu the same, %llu not, %llu not known; "
	       "ns each: %.0f, the kernel %.0f\n",
	       (unsigned long long)n, (double)bss->frames / (double)n,
	       (unsigned long long)bss->most, (unsigned long long)bss->equal,
	       (unsigned long long)bss->different, (unsigned long long)bss->unknown,
	       (double)bss->own_ns / (double)n, (double)bss->their_ns / (double)n);
	if (bss->different != 0)
		print_difference(bss);
	expect_eq(bss->different, 0);
	expect(bss->equal >= SAMPLES);
	expect(bss->unknown <= n / 10);
	kernel_stack_bpf__destroy(skel);
}
