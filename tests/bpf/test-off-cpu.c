/* SPDX-License-Identifier: Apache-2.0 */
/* Waits on this kernel, of a process that does nothing else: by turns in three functions, for 7, 2
 * and 1 ms, and for as long as no CPU is free then. */
#include "harness.h"

#include "base/clock.h"
#include "testing/test.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

struct waits {
	int64_t ns[4]; /* in each of the three functions, and elsewhere */
	uint64_t of[4], n, whole;
	uint64_t n_cpu; /* samples of work */
};

/* Which of the three functions is in a row's stack; 3: none. */
static int function_of(const struct workload *w, const struct batch_view *v,
		       struct andiron_stack stack)
{
	for (uint32_t i = 0; i < stack.length; i++) {
		struct andiron_location l = batch_location(v, batch_frame(v, stack.start + i));

		for (int k = 0; k < 3; k++)
			if (l.kind == ANDIRON_FRAME_NATIVE && l.address >= w->start[k] &&
			    l.address < w->limit[k])
				return k;
	}
	return 3;
}

/* A stack that does not end in a marker has come to the thread's entry. */
static bool is_whole(const struct batch_view *v, struct andiron_stack stack)
{
	return stack.length > 0 &&
	       batch_location(v, batch_frame(v, stack.start + stack.length - 1)).kind !=
		       ANDIRON_FRAME_MARKER;
}

static void add_batch(struct waits *sum, const struct workload *w, const struct batch_view *v)
{
	for (uint32_t i = 0; i < batch_count(v, ANDIRON_COL_ROW); i++) {
		struct andiron_row row = batch_row(v, i);
		struct andiron_stack stack = batch_stack(v, row.stack);

		if (!str_is(batch_str(v, batch_type(v, row.type).name), "off_cpu")) {
			sum->n_cpu += row.samples;
			continue;
		}
		sum->ns[function_of(w, v, stack)] += row.value;
		sum->of[function_of(w, v, stack)] += row.samples;
		sum->n += row.samples;
		sum->whole += is_whole(v, stack) ? row.samples : 0;
	}
}

static struct waits add_up(const struct harness *h, const struct workload *w)
{
	struct waits sum = {0};

	vec_each (&h->batches, b) {
		struct batch_view v;

		expect_eq(batch_view_init(&v, *b), 0);
		add_batch(&sum, w, &v);
	}
	return sum;
}

static uint64_t switches_of(pid_t pid)
{
	unsigned long long sum = 0, n;
	char path[32], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	expect(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %llu", &n) == 1)
			sum += n;
	fclose(f);
	return sum;
}

/* What is known at one moment, in which the process stands still: all of its waits but the last are
 * in the batches. */
struct moment {
	struct waits waits;
	uint64_t switches;
	int64_t idle_ns; /* since some time */
};

static struct moment stop_at(struct harness *h, struct workload *w)
{
	struct moment m;
	siginfo_t stopped;

	expect_eq(kill(w->pid, SIGSTOP), 0);
	expect_eq(waitid(P_PID, (id_t)w->pid, &stopped, WSTOPPED), 0);
	m.switches = switches_of(w->pid);
	m.idle_ns = clock_mono() - workload_cpu_ns(w);
	harness_collect(h);
	m.waits = add_up(h, w);
	expect_eq(kill(w->pid, SIGCONT), 0);
	return m;
}

/* What has come since a moment. */
static void moment_subtract(struct moment *m, const struct moment *before)
{
	m->switches -= before->switches;
	m->idle_ns -= before->idle_ns;
	m->waits.n -= before->waits.n;
	m->waits.whole -= before->waits.whole;
	for (int i = 0; i < 4; i++) {
		m->waits.ns[i] -= before->waits.ns[i];
		m->waits.of[i] -= before->waits.of[i];
	}
}

static void expect_in_functions(const struct waits *got)
{
	static const int64_t shortest_ns[] = {7000000, 2000000, 1000000};

	for (int i = 0; i < 3; i++) {
		double ms = (double)got->ns[i] / (double)got->of[i] / 1e6;

		printf("# %" PRIu64 " waits of %.2f ms\n", got->of[i], ms);
		expect(got->of[i] > got->n / 4 && got->of[i] < got->n * 2 / 5);
		expect(got->ns[i] >= (int64_t)got->of[i] * shortest_ns[i]);
	}
}

/* As many as the kernel has counted switches, together as long as the process has not run. */
static bool are_all(const struct moment *m)
{
	double ns = (double)(m->waits.ns[0] + m->waits.ns[1] + m->waits.ns[2] + m->waits.ns[3]);
	double idle_ns = (double)m->idle_ns;

	printf("# %" PRIu64 " waits of %" PRIu64 " switches, %.1f of %.1f ms, %" PRIu64
	       " to the thread's entry\n",
	       m->waits.n, m->switches, ns / 1e6, idle_ns / 1e6, m->waits.whole);
	return m->waits.n + 5 > m->switches && m->waits.n < m->switches + 5 && ns > 0.9 * idle_ns &&
	       ns < 1.02 * idle_ns;
}

#define ROUNDS 10

/* Every wait is there, in the right function, none shorter than it is. The first ones are left out,
 * which come before the program's files are read. A process that runs may be made to wait, too.
 *
 * The kernel runs no program of ours on a CPU where another process's bpf() is not done, and counts
 * that nowhere. So of several rounds one has to have all. */
TEST(all_waits_come_back)
{
	struct moment before, after, got;
	struct workload w;
	struct harness h;
	int round = 0;

	harness_init(&h, &(struct harness_options){.rate_hz = 97, .off_cpu = UINT32_MAX});
	workload_start(&w, "wait");
	harness_target_pid(&h, w.pid, "load");
	harness_run_until(&h, "load", 100);
	before = stop_at(&h, &w);
	for (bool all = false; !all; round++) {
		expect(round < ROUNDS);
		harness_run_until(&h, "load", before.waits.n + 300);
		after = got = stop_at(&h, &w);
		moment_subtract(&got, &before);
		before = after;
		expect_in_functions(&got.waits);
		expect(got.waits.whole > got.waits.n * 99 / 100);
		all = are_all(&got);
	}
	workload_stop(&w);
	harness_fini(&h);
}

/* Of all waits a share is drawn. */
TEST(a_share_is_drawn)
{
	struct waits got;
	struct workload w;
	struct harness h;
	uint64_t switches;

	harness_init(&h, &(struct harness_options){.rate_hz = 97, .off_cpu = UINT32_MAX / 4});
	workload_start(&w, "wait");
	harness_target_pid(&h, w.pid, "load");
	switches = switches_of(w.pid);
	harness_run_until(&h, "load", 300);
	switches = switches_of(w.pid) - switches;
	workload_stop(&w);
	got = add_up(&h, &w);
	printf("# %" PRIu64 " of %" PRIu64 " switches\n", got.n, switches);
	expect(got.n * 100 > switches * 18 && got.n * 100 < switches * 32);
	harness_fini(&h);
}

/* Work is sampled as without waits, and waits of others are not. */
TEST(work_is_sampled_beside)
{
	struct workload w, other;
	struct waits got;
	struct harness h;

	harness_init(&h, &(struct harness_options){.rate_hz = 97, .off_cpu = UINT32_MAX});
	workload_start(&w, "");
	workload_start(&other, "wait");
	harness_target_pid(&h, w.pid, "load");
	while (workload_cpu_ns(&w) < NS_PER_SEC)
		harness_run(&h, 100 * NS_PER_MSEC);
	harness_collect(&h);
	workload_stop(&other);
	workload_stop(&w);
	got = add_up(&h, &w);
	printf("# %" PRIu64 " samples of work\n", got.n_cpu);
	expect(got.n_cpu > 60);
	expect_eq(got.n_cpu + got.n, harness_service(&h, "load"));
	expect_eq(h.counts.dropped_ring_full, 0);
	harness_fini(&h);
}
