/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler on this kernel, with real programs and real processes. */
#include "harness.h"

#include "abi/batch-build.h"
#include "base/clock.h"
#include "testing/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct share {
	const struct workload *workload;
	int function;
};

static bool in_function(const struct batch_view *v, const struct andiron_group *group,
			const struct andiron_row *row, void *context)
{
	const struct share *share = context;

	return workload_function(share->workload, v, row) == share->function;
}

/* A profile shows where the time goes: shares of known cost within 3 points, and all of it inside
 * the program's own functions. Chance alone moves the largest by half a point in so many samples.
 */
TEST(shares_of_known_cost_come_back)
{
	static const double wanted[] = {70, 20, 10};
	struct workload w;
	struct harness h;
	uint64_t all;

	harness_init(&h, &(struct harness_options){.rate_hz = 997});
	workload_start(&w, "");
	harness_target_pid(&h, w.pid, "load");
	harness_run_until(&h, "load", 8000);
	workload_stop(&w);
	all = harness_service(&h, "load");
	printf("# %llu samples\n", (unsigned long long)all);
	for (int i = 0; i < 3; i++) {
		struct share share = {&w, i};
		double got = 100.0 * (double)harness_samples(&h, in_function, &share) / (double)all;

		printf("# %.1f %% of %.0f\n", got, wanted[i]);
		expect(got > wanted[i] - 3 && got < wanted[i] + 3);
	}
	harness_fini(&h);
}

/* Whatever belongs to no target is not taken, and is counted as such. */
TEST(unselected_is_counted_apart)
{
	struct workload w, other;
	struct harness h;
	uint64_t all;

	harness_init(&h, &(struct harness_options){.rate_hz = 97});
	workload_start(&w, "");
	workload_start(&other, "");
	harness_target_pid(&h, w.pid, "load");
	harness_run_until(&h, "load", 20);
	for (int64_t from = workload_cpu_ns(&other); workload_cpu_ns(&other) - from < NS_PER_SEC;)
		harness_run(&h, 50 * NS_PER_MSEC);
	harness_collect(&h);
	workload_stop(&w);
	workload_stop(&other);
	all = harness_samples(&h, NULL, NULL);
	expect_eq(all, h.counts.rows);
	expect_eq(all, harness_service(&h, "load"));
	expect(h.counts.unselected > 20);
	harness_fini(&h);
}

/* A target goes when its process exits; what that has done in the interval is in its profile all
 * the same, and nothing of it in the next. */
TEST(a_target_that_goes_keeps_its_samples)
{
	struct workload w;
	struct harness h;
	uint64_t all;

	harness_init(&h, &(struct harness_options){.rate_hz = 97});
	workload_start(&w, "");
	harness_target_pid(&h, w.pid, "load");
	for (int64_t from = workload_cpu_ns(&w); workload_cpu_ns(&w) - from < NS_PER_SEC / 2;)
		harness_run(&h, 50 * NS_PER_MSEC);
	workload_stop(&w);
	harness_untarget(&h);
	harness_collect(&h);
	all = harness_service(&h, "load");
	expect(all > 10);
	harness_collect(&h);
	expect_eq(harness_service(&h, "load"), all);
	harness_fini(&h);
}

/* Over many intervals, with a swap each, nothing is lost or counted twice: taken = sent + dropped
 * in each (harness.c), and per CPU the clock's ticks are all there. */
TEST(counts_close_over_many_swaps)
{
	struct workload w, v;
	struct harness h;
	int64_t began, took;
	uint64_t seen;

	workload_start(&w, "");
	workload_start(&v, "thread");
	harness_init(&h, &(struct harness_options){.rate_hz = 997, .all = true});
	began = clock_mono();
	for (int i = 0; i < 20; i++) {
		harness_run(&h, 100 * NS_PER_MSEC);
		harness_collect(&h);
	}
	engine_finish(h.engine);
	took = clock_mono() - began;
	workload_stop(&w);
	workload_stop(&v);
	seen = h.counts.taken + h.counts.idle + h.counts.unselected;
	printf("# %llu ticks in %lld ms, %llu sent\n", (unsigned long long)seen,
	       (long long)(took / NS_PER_MSEC), (unsigned long long)h.counts.rows);
	expect_eq(h.counts.rows, harness_samples(&h, NULL, NULL));
	expect(h.counts.rows > 500);
	harness_fini(&h);
}

#if !defined(__SANITIZE_ADDRESS__) /* It maps memory for itself, and dies of having none. */
/* Where there is no address space to read the logs in, an interval waits for the next, a reload
 * that fails loses nothing, and the last interval is counted as dropped. */
TEST(what_cannot_be_read_is_in_the_counts)
{
	struct ebpf_options options = {.rate_hz = 101,
				       .interval_ns = 15 * NS_PER_SEC,
				       .targets_only = true,
				       .kernel_frames = true};
	struct rlimit no_room = {0}, former;
	struct error err = ERROR_NULL;
	struct workload w;
	struct harness h;
	uint64_t taken, coming;

	harness_init(&h, &(struct harness_options){.rate_hz = 97});
	workload_start(&w, "");
	harness_target_pid(&h, w.pid, "load");
	harness_run_until(&h, "load", 10);
	taken = h.counts.taken;
	h.n_complaints = 3;
	while (engine_coming(h.engine) < 10)
		harness_run(&h, 50 * NS_PER_MSEC);
	expect_eq(getrlimit(RLIMIT_AS, &former), 0);
	no_room.rlim_max = former.rlim_max;
	expect_eq(setrlimit(RLIMIT_AS, &no_room), 0);
	coming = engine_coming(h.engine);
	engine_collect(h.engine);
	expect(engine_coming(h.engine) >= coming);
	expect(engine_reconfigure(h.engine, &options, &err) < 0);
	expect_eq(h.counts.taken, taken);
	engine_finish(h.engine);
	engine_drop_unread(h.engine);
	expect_eq(setrlimit(RLIMIT_AS, &former), 0);
	workload_stop(&w);
	expect_eq(h.n_complaints, 0);
	expect(h.counts.dropped_memory >= coming);
	expect_eq(h.counts.dropped_memory, engine_coming(h.engine));
	expect_eq(h.counts.taken, taken + h.counts.dropped_memory);
	harness_fini(&h);
}
#endif

static bool of_pid(const struct batch_view *v, const struct andiron_group *group,
		   const struct andiron_row *row, void *context)
{
	int64_t pid;

	return batch_row_int(v, row, STR("pid"), &pid) && pid == *(pid_t *)context;
}

/* A child that is forked while we sample belongs to its parent's target; the parent itself only
 * waits. */
TEST(descendants_are_followed)
{
	struct workload w;
	struct harness h;
	uint64_t all;

	harness_init(&h,
		     &(struct harness_options){.rate_hz = 97, .follow = true, .pid_label = true});
	workload_start(&w, "fork");
	harness_target_pid(&h, w.pid, "load");
	expect_eq(write(w.to, "x", 1), 1);
	harness_run_until(&h, "load", 40);
	workload_stop(&w);
	all = harness_service(&h, "load");
	expect(all - harness_samples(&h, of_pid, &w.pid) > 20);
	harness_fini(&h);
}

/* One that was forked before we began belongs to it as well. */
TEST(descendants_that_run_already_are_found)
{
	struct workload w;
	struct harness h;

	workload_start(&w, "fork");
	expect_eq(write(w.to, "x", 1), 1);
	harness_init(&h, &(struct harness_options){.rate_hz = 97, .follow = true});
	harness_run(&h, 100 * NS_PER_MSEC);
	harness_target_pid(&h, w.pid, "load");
	harness_run_until(&h, "load", 10);
	workload_stop(&w);
	harness_fini(&h);
}

static const char *cgroup_root(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu",
					    "/sys/fs/cgroup/pids", "/sys/fs/cgroup"};

	for (size_t i = 0; i < 4; i++)
		if (access(roots[i], W_OK) == 0)
			return roots[i];
	test_skip("no cgroup hierarchy can be written to; run where /sys/fs/cgroup is writable");
}

static void enter(const char *cgroup, pid_t pid)
{
	char path[700];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	f = fopen(path, "we");
	if (!f)
		test_skip("a new cgroup cannot be written to");
	fprintf(f, "%d", (int)pid);
	expect_eq(fclose(f), 0);
}

/* Two containers are told apart by their cgroups, and what is in neither is not taken once that is
 * known. */
TEST(containers_are_told_apart)
{
	static const char ids[2][65] = {
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
	};
	struct workload w[3];
	struct harness h;
	char dirs[2][300];
	uint64_t a, b;

	harness_init(&h, &(struct harness_options){.rate_hz = 97});
	for (int i = 0; i < 3; i++)
		workload_start(&w[i], "");
	for (int i = 0; i < 2; i++) {
		snprintf(dirs[i], sizeof(dirs[i]), "%s/%s", cgroup_root(), ids[i]);
		mkdir(dirs[i], 0755);
		enter(dirs[i], w[i].pid);
	}
	harness_target(&h, "__container_id__", ids[0], "a");
	harness_target(
		&h, "__meta_kubernetes_pod_container_id",
		"containerd://bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
		"b");
	harness_run_until(&h, "a", 20);
	harness_run_until(&h, "b", 20);
	for (int64_t from = workload_cpu_ns(&w[2]); workload_cpu_ns(&w[2]) - from < NS_PER_SEC;)
		harness_run(&h, 50 * NS_PER_MSEC);
	harness_collect(&h);
	for (int i = 0; i < 3; i++)
		workload_stop(&w[i]);
	for (int i = 0; i < 2; i++)
		rmdir(dirs[i]);
	a = harness_service(&h, "a");
	b = harness_service(&h, "b");
	printf("# a %llu, b %llu, unselected %llu\n", (unsigned long long)a, (unsigned long long)b,
	       (unsigned long long)h.counts.unselected);
	expect_eq(a + b, h.counts.rows);
	expect(h.counts.unselected > 20);
	harness_fini(&h);
}

static bool of_workload(const struct batch_view *v, const struct andiron_group *group,
			const struct andiron_row *row, void *context)
{
	struct str name;

	return batch_row_str(v, row, STR("comm"), &name) && str_is(name, "workload");
}

static bool has_mapping(const struct batch_view *v, const struct andiron_group *group,
			const struct andiron_row *row, void *context)
{
	struct andiron_stack stack = batch_stack(v, row->stack);
	struct andiron_mapping m;

	if (!of_workload(v, group, row, context))
		return false;
	for (uint32_t i = 0; i < stack.length; i++) {
		struct andiron_location l = batch_location(v, batch_frame(v, stack.start + i));

		m = batch_mapping(v, l.mapping);
		if (l.kind == ANDIRON_FRAME_NATIVE && m.object != 0 &&
		    batch_str(v, m.file_id).n == 32)
			return true;
	}
	return false;
}

/* Processes that work for 50 ms are known by the time their counts are read, though they are gone
 * then. */
TEST(short_processes_have_mappings)
{
	struct engine_stats stats;
	struct harness h;
	uint64_t all, mapped;
	int64_t until;

	harness_init(&h, &(struct harness_options){.rate_hz = 997,
						   .all = true,
						   .comm_label = true,
						   .interval_ns = NS_PER_SEC});
	for (int i = 0; i < 20; i++) {
		struct workload w;

		workload_start(&w, "");
		/* On an emulated processor its start alone may take as long, and nobody attends
		 * meanwhile. */
		until = workload_cpu_ns(&w) + 50 * NS_PER_MSEC;
		while (workload_cpu_ns(&w) < until)
			harness_run(&h, 10 * NS_PER_MSEC);
		workload_stop(&w);
	}
	harness_collect(&h);
	all = harness_samples(&h, of_workload, NULL);
	mapped = harness_samples(&h, has_mapping, NULL);
	engine_get_stats(h.engine, &stats);
	printf("# %llu of %llu samples mapped; stacks copied %llu, not completed %llu\n",
	       (unsigned long long)mapped, (unsigned long long)all,
	       (unsigned long long)stats.unwinder.snapshots,
	       (unsigned long long)stats.n_uncompleted);
	expect(mapped > all / 2);
	/* Each that says that its process was new is one that nothing has completed. */
	expect(stats.unwinder.snapshots + stats.n_uncompleted > 0 &&
	       stats.n_uncompleted >= stats.ends[UNWIND_END_NEW]);
	harness_fini(&h);
}
