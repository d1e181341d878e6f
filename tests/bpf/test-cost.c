/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler costs on this machine: time of a sample beside a plain profiler's
 * (baseline.bpf.c) in the same seconds, memory of its maps, work of the verifier, its own CPU.
 * Ratios are tested; absolute figures are printed, since they belong to the machine. */
#include "harness.h"

#include "ebpf/kernel/perf-clock.h"

#include "base/clock.h"
#include "testing/test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "baseline.skel.h"
#pragma GCC diagnostic pop

#define RATE 97

struct baseline {
	struct baseline_bpf *skel;
	struct perf_clock events;
	int stats;
};

static void baseline_start(struct baseline *b)
{
	struct error err = ERROR_NULL;

	b->stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	expect(b->stats >= 0);
	b->skel = baseline_bpf__open_and_load();
	expect(b->skel);
	if (perf_clock_open(&b->events, bpf_program__fd(b->skel->progs.baseline), NS_PER_SEC / RATE,
			    &err) != 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* Mean ns of a run. */
static double baseline_stop(struct baseline *b)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	perf_clock_close(&b->events);
	expect_eq(bpf_obj_get_info_by_fd(bpf_program__fd(b->skel->progs.baseline), &info, &size),
		  0);
	baseline_bpf__destroy(b->skel);
	close(b->stats);
	return info.run_cnt ? (double)info.run_time_ns / (double)info.run_cnt : 0;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Bytes of BPF maps that we have mapped. */
static uint64_t mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	uint64_t sum = 0;
	char line[512];

	expect(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "anon_inode:bpf-map") &&
		    sscanf(line, "%llx-%llx", &from, &to) == 2)
			sum += to - from;
	fclose(f);
	return sum;
}

/* Time of a run of ours and of the plain profiler's in the same seconds. */
static void measure(double *ours, double *plain)
{
	struct engine_stats stats;
	struct workload w[2];
	struct harness h;
	struct baseline b;

	harness_init(&h, &(struct harness_options){.rate_hz = RATE, .all = true});
	for (int i = 0; i < 2; i++)
		workload_start(&w[i], "deep");
	baseline_start(&b);
	harness_run(&h, 4 * NS_PER_SEC);
	*plain = baseline_stop(&b);
	harness_collect(&h);
	engine_get_stats(h.engine, &stats);
	*ours = stats.ns_per_run;
	for (int i = 0; i < 2; i++)
		workload_stop(&w[i]);
	printf("# ns per sample at %d Hz: %.0f, plain profiler %.0f, ratio %.2f\n", RATE, *ours,
	       *plain, *ours / *plain);
	printf("# %llu samples, %llu rows, %llu process reports\n",
	       (unsigned long long)h.counts.taken, (unsigned long long)h.n_rows,
	       (unsigned long long)stats.n_process_records);
	harness_fini(&h);
}

/* No CPU's clock ticks right behind another's, where the reader that a sample has woken would be
 * what is sampled. A clock counts its own time, so what one is ahead of another is the distance of
 * their ticks. */
TEST(cpus_tick_one_after_the_other)
{
	struct baseline b;
	uint64_t first, other;

	baseline_start(&b);
	for (size_t i = 1; i < b.events.n; i++) {
		expect_eq(read(b.events.fds[i], &other, sizeof(other)), sizeof(other));
		expect_eq(read(b.events.fds[0], &first, sizeof(first)), sizeof(first));
		expect(first - other + NS_PER_MSEC / 10 >
		       (uint64_t)NS_PER_SEC / RATE * i / b.events.n);
	}
	baseline_stop(&b);
}

/* A child that was forked meanwhile has the descriptors, as this duplicate is one. */
TEST(a_clock_that_is_closed_stands_though_others_have_it_open)
{
	struct baseline b;
	uint64_t before, after;
	int fd;

	if (geteuid() != 0)
		test_skip("needs root");
	baseline_start(&b);
	fd = fcntl(b.events.fds[0], F_DUPFD_CLOEXEC, 0);
	expect(fd >= 0);
	baseline_stop(&b);
	expect_eq(read(fd, &before, sizeof(before)), sizeof(before));
	expect_eq(read(fd, &after, sizeof(after)), sizeof(after));
	expect(before > 0);
	expect_eq(before, after);
	close(fd);
}

/* A sample costs about what a plain profiler's does, though it also knows process, cgroup and
 * selection, and sends each new stack (two samples of three bring one in so short a time).
 * Neighbours on the machine only ever add to a run, so the least of each in some rounds counts. */
TEST(a_sample_costs_what_a_plain_profiler_pays)
{
	double plain = 0, ours = 0;

	for (int rounds = 0; rounds < 8 && (rounds == 0 || ours >= 3 * plain); rounds++) {
		double our, their;

		measure(&our, &their);
		expect(our > 0 && their > 0);
		ours = rounds == 0 || our < ours ? our : ours;
		plain = rounds == 0 || their < plain ? their : plain;
	}
	expect(ours < 3 * plain);
}

/* Kernel memory and verifier work are bounded: 12 MB of maps on small machines, and a hundredth of
 * what the verifier allows. */
TEST(maps_and_verifier_stay_small)
{
	struct engine_stats stats;
	struct workload w;
	uint64_t mapped;
	struct harness h;

	harness_init(&h, &(struct harness_options){.rate_hz = RATE, .all = true, .follow = true});
	engine_get_stats(h.engine, &stats);
	printf("# maps %llu kB, verified instructions %llu\n",
	       (unsigned long long)stats.session.map_bytes / 1024,
	       (unsigned long long)stats.session.verified_insns);
	expect(stats.session.map_bytes > 0);
	expect(stats.session.map_bytes < (12u << 20));
	expect(stats.session.verified_insns < 100000);
	/* What is counted into is mapped only while it is read: it is not to be ours as well as the
	 * kernel's. */
	mapped = mapped_bytes();
	printf("# of these mapped %llu kB, the ring twice\n", (unsigned long long)mapped / 1024);
	workload_start(&w, "deep");
	harness_run(&h, NS_PER_SEC);
	workload_stop(&w);
	harness_collect(&h);
	expect(h.counts.taken > 0);
	expect_eq(mapped_bytes(), mapped);
	expect(mapped < 6u << 20);
	harness_fini(&h);
}

/* Sampling starts within a tenth of a second of CPU time, and waiting for samples costs the agent
 * next to nothing; ten times as much is a failure. */
TEST(start_and_waiting_are_cheap)
{
	struct harness h;
	double before = cpu_seconds(), started, waited;
	int64_t began = clock_mono(), live;

	harness_init(&h, &(struct harness_options){.rate_hz = RATE});
	live = clock_mono();
	started = cpu_seconds();
	harness_run(&h, 3 * NS_PER_SEC); /* no target: nothing is taken, nobody wakes */
	waited = cpu_seconds() - started;
	printf("# live after %lld ms, %.0f ms of CPU; waiting costs %.3f %% of a core\n",
	       (long long)((live - began) / NS_PER_MSEC), 1e3 * (started - before),
	       100 * waited / 3);
	expect(started - before < 1);
	expect(waited / 3 < 0.005);
	harness_fini(&h);
}
