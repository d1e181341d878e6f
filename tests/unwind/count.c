/* SPDX-License-Identifier: Apache-2.0 */
/* count HZ: counts samples of every CPU's cpu-clock by the name of the thread (count.bpf.c) until
 * its standard input ends. Says "counting" when it has begun, then a line "COUNT NAME" for each
 * name. */
#pragma GCC diagnostic push /* bpftool's text, not ours */
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "count.skel.h"
#pragma GCC diagnostic pop

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct name {
	char text[16];
};

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

static void print_counts(int map)
{
	struct name name, *previous = NULL;
	unsigned long long n;

	while (bpf_map_get_next_key(map, previous, &name) == 0) {
		if (bpf_map_lookup_elem(map, &name, &n) == 0)
			printf("%llu %.16s\n", n, name.text);
		previous = &name;
	}
}

int main(int argc, char **argv)
{
	unsigned long hz = argc > 1 ? strtoul(argv[1], NULL, 10) : 97;
	struct count_bpf *skeleton = count_bpf__open_and_load();
	char byte;
	int r = 0;

	if (!skeleton || hz == 0) {
		fprintf(stderr, "cannot load the program: %s\n", strerror(errno));
		return 1;
	}
	for (int cpu = 0; cpu < libbpf_num_possible_cpus() && r == 0; cpu++)
		r = attach(skeleton->progs.count, cpu, hz);
	if (r < 0) {
		fprintf(stderr, "cannot sample: %s\n", strerror(-r));
		return 1;
	}
	puts("counting");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	print_counts(bpf_map__fd(skeleton->maps.counts));
	return 0;
}
