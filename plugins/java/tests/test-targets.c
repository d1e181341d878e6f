/* SPDX-License-Identifier: Apache-2.0 */
/* Which target has which process, with a host whose time stands still: no job ever takes a step. */
#include "abi/value.h"
#include "java/job.h"
#include "testing/test.h"

#include <stdio.h>

#define N 200u

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 0;
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
}

static int32_t timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
			 void *arg, uint64_t *ret_timer)
{
	*ret_timer = 1;
	return 0;
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
}

static const struct andiron_host host = {
	.size = sizeof(host),
	.log_enabled = log_enabled,
	.health = health,
	.timer_set = timer_set,
	.timer_cancel = timer_cancel,
};

struct scene {
	struct profiler *profiler;
	struct target_list *list;
};

static struct scene scene_new(void)
{
	static const struct andiron_value none = {.kind = ANDIRON_VALUE_MAP};
	const struct abi_context context = {&host, 1};
	struct error err = ERROR_NULL;
	struct settings *settings;
	struct scene s = {.list = target_list_new(1)};

	expect_eq(settings_new(&none, &settings, &err), 0);
	expect_eq(profiler_new(&context, settings, &s.profiler), 0);
	return s;
}

static void scene_free(struct scene *s)
{
	profiler_stop(s->profiler);
	profiler_free(s->profiler);
	target_list_free(s->list);
}

static void update(struct scene *s)
{
	const struct andiron_targets *targets;

	expect_eq(target_list_flush(s->list, &targets), 0);
	profiler_targets(s->profiler, targets);
	targets->release(targets->owner);
}

static void set(struct scene *s, uint64_t row, uint32_t pid)
{
	char text[16];
	struct target_label label = {STR("__process_pid__"), STR_NULL};

	snprintf(text, sizeof(text), "%u", pid);
	label.value = str_of(text);
	expect_eq(target_list_set(s->list, row, row, &label, 1), 0);
}

/* The target that has the process; 0: none. */
static uint64_t owner_of(const struct scene *s, uint32_t pid)
{
	const struct job *job = job_find(s->profiler, pid);

	if (!job)
		return 0;
	expect_eq(job->session.pid, pid);
	expect_eq(job->target->job == job, 1);
	return job->target->row->row;
}

/* Each process has its target's job, whichever others go. */
TEST(a_job_is_found_by_its_process)
{
	struct scene s = scene_new();

	for (uint32_t i = 1; i <= N; i++)
		set(&s, i, i + 1000);
	update(&s);
	expect_eq(s.profiler->jobs.n, N);
	for (uint32_t i = 1; i <= N; i++)
		expect_eq(owner_of(&s, i + 1000), i);
	for (uint32_t i = 1; i <= N; i += 3)
		target_list_remove(s.list, i);
	target_list_remove(s.list, N);
	update(&s);
	for (uint32_t i = 1; i <= N; i++)
		expect_eq(owner_of(&s, i + 1000), i % 3 == 1 || i == N ? 0 : i);
	for (uint32_t i = 1; i <= N; i++)
		set(&s, i, i + 2000);
	update(&s);
	expect_eq(s.profiler->jobs.n, N);
	for (uint32_t i = 1; i <= N; i++) {
		expect_eq(owner_of(&s, i + 1000), 0);
		expect_eq(owner_of(&s, i + 2000), i);
	}
	expect_eq(s.profiler->job_by_pid.n, N);
	scene_free(&s);
}

/* Of two targets of one process the second waits, and has it when the first goes. */
TEST(a_twin_takes_the_place)
{
	struct scene s = scene_new();

	set(&s, 1, 1000);
	set(&s, 2, 1000);
	update(&s);
	expect_eq(s.profiler->jobs.n, 1);
	expect_eq(owner_of(&s, 1000), 1);
	target_list_remove(s.list, 1);
	update(&s);
	expect_eq(owner_of(&s, 1000), 2);
	scene_free(&s);
}
