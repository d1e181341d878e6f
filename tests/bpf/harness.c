/* SPDX-License-Identifier: Apache-2.0 */
/* See harness.h. */
#include "harness.h"

#include "abi/batch-build.h"
#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void keep_batch(void *context, const struct andiron_batch *batch)
{
	struct harness *h = context;
	struct batch_view v;

	expect_eq(batch_view_init(&v, batch), 0);
	batch_retain(batch);
	expect(vec_push(&h->batches, batch));
	h->n_rows += batch_count(&v, ANDIRON_COL_ROW);
}

static void keep_counts(void *context, const struct engine_counts *b)
{
	struct engine_counts *sum = &((struct harness *)context)->counts;

	/* The equation of the ledger, for every interval. */
	expect_eq(b->taken, b->rows + b->dropped_ring_full + b->dropped_memory);
	sum->taken += b->taken;
	sum->rows += b->rows;
	sum->idle += b->idle;
	sum->unselected += b->unselected;
	sum->dropped_ring_full += b->dropped_ring_full;
	sum->dropped_memory += b->dropped_memory;
}

static void print_log(void *context, uint32_t level, const char *text)
{
	struct harness *h = context;

	printf("# %s\n", text);
	if (level <= ANDIRON_LOG_WARN && h->n_complaints)
		h->n_complaints--;
	else if (level <= ANDIRON_LOG_WARN)
		test_fail(__FILE__, __LINE__, "the engine complains: %s", text);
}

void harness_init(struct harness *h, const struct harness_options *o)
{
	struct ebpf_options options = {
		.rate_hz = o->rate_hz,
		.interval_ns = o->interval_ns ? o->interval_ns : 15 * NS_PER_SEC,
		.targets_only = !o->all,
		.kernel_frames = true,
		.follow = o->follow,
		.pid_label = o->pid_label,
		.comm_label = o->comm_label,
		.off_cpu = o->off_cpu,
	};
	struct engine_out out = {h, keep_batch, keep_counts, print_log};
	struct andiron_extension objects;
	struct error err = ERROR_NULL;
	int r;

	if (geteuid() != 0)
		test_skip("sampling needs root; run this suite as root");
	*h = (struct harness){0};
	expect_eq(objects_new(&h->objects, &err), 0);
	objects = (struct andiron_extension){&objects_service, h->objects};
	h->targets = target_list_new(1);
	expect(h->targets);
	expect_eq(engine_new(7, &options, &objects, &out, &h->engine), 0);
	r = engine_start(h->engine, &err);
	if (r == -EPERM || r == -EACCES || r == -ENOTSUP)
		test_skip(err.text);
	if (r != 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

void harness_fini(struct harness *h)
{
	engine_free(h->engine);
	vec_each (&h->batches, b)
		batch_release(*b);
	vec_free(&h->batches);
	target_list_free(h->targets);
	expect_eq(objects_count(h->objects).n_objects, 1); /* the kernel alone */
	objects_free(h->objects);
}

/* Hands the changes of the list to the engine. */
static void retarget(struct harness *h)
{
	const struct andiron_targets *update;
	struct error err = ERROR_NULL;

	expect_eq(target_list_flush(h->targets, &update), 0);
	expect_eq(engine_apply(h->engine, update), 0);
	update->release(update->owner);
	if (engine_retarget(h->engine, &err) != 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

void harness_untarget(struct harness *h)
{
	target_list_clear(h->targets);
	retarget(h);
}

void harness_target(struct harness *h, const char *label, const char *value, const char *service)
{
	struct target_label labels[] = {
		{str_of(label), str_of(value)},
		{STR("service_name"), str_of(service)},
	};
	uint64_t row = ++h->n_targets;

	expect_eq(target_list_set(h->targets, row, row, labels, 2), 0);
	retarget(h);
}

void harness_target_pid(struct harness *h, pid_t pid, const char *service)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	harness_target(h, "__process_pid__", text, service);
}

void harness_run(struct harness *h, int64_t ns)
{
	int64_t end = clock_mono() + ns, left;

	while ((left = end - clock_mono()) > 0) {
		struct pollfd fd = {.fd = engine_fd(h->engine), .events = POLLIN};

		if (poll(&fd, 1, (int)(left / NS_PER_MSEC) + 1) > 0)
			engine_attend(h->engine);
	}
}

void harness_collect(struct harness *h)
{
	struct engine_stats stats;

	engine_attend(h->engine);
	engine_collect(h->engine);
	engine_get_stats(h->engine, &stats);
	expect_eq(stats.mismatches, 0);
}

void harness_run_until(struct harness *h, const char *service, uint64_t samples)
{
	int64_t end = clock_mono() + 200 * NS_PER_SEC;

	while (harness_service(h, service) <= samples) {
		if (clock_mono() > end)
			test_fail(__FILE__, __LINE__, "\"%s\" has no %llu samples", service,
				  (unsigned long long)samples);
		harness_run(h, 200 * NS_PER_MSEC);
		harness_collect(h);
	}
}

uint64_t harness_samples(const struct harness *h, harness_row_fn matches, void *context)
{
	uint64_t samples = 0;

	vec_each (&h->batches, b) {
		struct batch_view v;

		expect_eq(batch_view_init(&v, *b), 0);
		for (uint32_t g = 0; g < batch_count(&v, ANDIRON_COL_GROUP); g++) {
			struct andiron_group group = batch_group(&v, g);

			for (uint32_t i = 0; i < group.n_rows; i++) {
				struct andiron_row row = batch_row(&v, group.row_start + i);

				if (!matches || matches(&v, &group, &row, context))
					samples += row.samples;
			}
		}
	}
	return samples;
}

static bool of_service(const struct batch_view *v, const struct andiron_group *group,
		       const struct andiron_row *row, void *context)
{
	struct str name;

	return batch_group_label(v, group, STR("service_name"), &name) &&
	       str_eq(name, *(struct str *)context);
}

uint64_t harness_service(const struct harness *h, const char *service)
{
	struct str name = str_of(service);

	return harness_samples(h, of_service, &name);
}

void workload_start(struct workload *w, const char *mode)
{
	int in[2], out[2];
	FILE *f;

	expect_eq(pipe(in), 0);
	expect_eq(pipe(out), 0);
	fflush(stdout);
	w->pid = fork();
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execl(WORKLOAD, WORKLOAD, mode, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	w->to = in[1];
	w->from = out[0];
	f = fdopen(dup(w->from), "r");
	expect(f);
	for (int i = 0; i < 3; i++)
		expect_eq(fscanf(f, "%" SCNx64 " %" SCNx64, &w->start[i], &w->limit[i]), 2);
	fclose(f);
}

int64_t workload_cpu_ns(const struct workload *w)
{
	struct timespec t;
	clockid_t id;

	expect_eq(clock_getcpuclockid(w->pid, &id), 0);
	expect_eq(clock_gettime(id, &t), 0);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

void workload_stop(struct workload *w)
{
	int status;

	kill(-w->pid, SIGKILL);
	kill(w->pid, SIGKILL);
	expect_eq(waitpid(w->pid, &status, 0), w->pid);
	close(w->to);
	close(w->from);
}

int workload_function(const struct workload *w, const struct batch_view *v,
		      const struct andiron_row *row)
{
	struct andiron_stack stack = batch_stack(v, row->stack);
	struct andiron_location leaf;

	if (stack.length == 0)
		return -1;
	leaf = batch_location(v, batch_frame(v, stack.start));
	for (int i = 0; i < 3; i++)
		if (leaf.kind == ANDIRON_FRAME_NATIVE && leaf.address >= w->start[i] &&
		    leaf.address < w->limit[i])
			return i;
	return -1;
}
