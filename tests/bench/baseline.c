/* SPDX-License-Identifier: Apache-2.0 */
/* baseline HZ SECONDS: runs tests/bpf/baseline.bpf.c on every CPU's cpu-clock and prints its
 * nanoseconds per run and its runs. Turns the kernel's run-time counters on meanwhile. */
#pragma GCC diagnostic push /* bpftool's text, not ours */
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "baseline.skel.h"
#pragma GCC diagnostic pop

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int attach(struct bpf_program *program, int cpu, unsigned long hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000UL / hz,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == ENODEV ? 0 : -errno; /* the CPU is offline */
	return bpf_program__attach_perf_event(program, fd) ? 0 : -errno;
}

int main(int argc, char **argv)
{
	unsigned long hz = argc > 1 ? strtoul(argv[1], NULL, 10) : 99;
	int seconds = argc > 2 ? (int)strtoul(argv[2], NULL, 10) : 10;
	struct baseline_bpf *skeleton = baseline_bpf__open_and_load();
	struct bpf_prog_info info = {0};
	unsigned int size = sizeof(info);
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME), r = 0;

	if (!skeleton || stats < 0 || hz == 0) {
		fprintf(stderr, "cannot load the program: %s\n", strerror(errno));
		return 1;
	}
	for (int cpu = 0; cpu < libbpf_num_possible_cpus() && r == 0; cpu++)
		r = attach(skeleton->progs.baseline, cpu, hz);
	if (r < 0) {
		fprintf(stderr, "cannot sample: %s\n", strerror(-r));
		return 1;
	}
	poll(NULL, 0, seconds * 1000); /* the measuring window */
	if (bpf_obj_get_info_by_fd(bpf_program__fd(skeleton->progs.baseline), &info, &size) < 0 ||
	    info.run_cnt == 0)
		return 1;
	printf("%.0f %llu\n", (double)info.run_time_ns / (double)info.run_cnt,
	       (unsigned long long)info.run_cnt);
	return 0;
}
