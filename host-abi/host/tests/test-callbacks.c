/* SPDX-License-Identifier: Apache-2.0 */
/* What a component may ask the host for: timers, watches, posts, work, children. */
#include "host/tests/test-support.h"

#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* One component that tries things out in its start, and whose last callback ends the run. */
struct trial {
	struct probe probe;
	struct host *host;
	uint64_t timer, watch;
	int fd;
	atomic_int n_calls, n_other;
	char output[64];
	int32_t status;
};

static void run_trial(struct trial *t, void (*on_start)(struct probe *p))
{
	struct plan *plan = test_plan();

	t->probe.on_start = on_start;
	t->probe.user = t;
	test_node(plan, "t", &test_producer, &t->probe);
	t->host = test_host((struct host_options){0});
	expect_eq(host_load(t->host, plan, NULL), 0);
	test_run(t->host, 0);
	host_free(t->host);
}

/* Serial: not inside start, nor inside one another. */
static void serial(struct trial *t)
{
	expect_eq(atomic_fetch_add(&t->probe.inside, 1), 0);
	t->n_calls++;
	atomic_fetch_sub(&t->probe.inside, 1);
}

static void periodic(void *arg)
{
	struct trial *t = arg;

	serial(t);
	if (t->n_calls < 5)
		return;
	/* Cancelling itself, and twice. */
	t->probe.host->timer_cancel(t->probe.instance, t->timer);
	t->probe.host->timer_cancel(t->probe.instance, t->timer);
	host_stop(t->host);
}

__attribute__((noreturn)) static void never(void *arg)
{
	test_fail(__FILE__, __LINE__, "a cancelled timer fired");
}

static void set_timers(struct probe *p)
{
	struct trial *t = p->user;
	uint64_t id[100];

	for (int i = 0; i < 100; i++)
		expect_eq(p->host->timer_set(p->instance, NS_PER_MSEC * (i % 7), i % 2, never, t,
					     &id[i]),
			  0);
	/* Before start returns none of them can have run. */
	for (int i = 0; i < 100; i++)
		p->host->timer_cancel(p->instance, id[(i * 37) % 100]);
	expect_eq(p->host->timer_set(p->instance, 0, NS_PER_MSEC, periodic, t, &t->timer), 0);
	expect_eq(p->host->timer_set(0, 0, 0, never, t, &id[0]), -EINVAL);
	expect_eq(p->host->timer_set(p->instance, 0, 0, NULL, t, &id[0]), -EINVAL);
	p->host->timer_cancel(p->instance, 0);
	p->host->timer_cancel(p->instance, UINT64_MAX);
}

/* Timers fire in their strand, repeat until cancelled, and not after. */
TEST(timers_repeat_until_cancelled)
{
	struct trial t = {0};

	run_trial(&t, set_timers);
	expect_eq(t.n_calls, 5);
}

static void merged(void *arg)
{
	struct trial *t = arg;
	int64_t until = clock_mono() + 20 * NS_PER_MSEC;

	serial(t);
	/* Longer than twenty ticks, which are then one. */
	while (t->n_calls == 1 && clock_mono() < until)
		continue;
	if (t->n_calls == 3)
		host_stop(t->host);
}

static void set_fast_timer(struct probe *p)
{
	struct trial *t = p->user;

	expect_eq(p->host->timer_set(p->instance, 0, NS_PER_MSEC, merged, t, &t->timer), 0);
}

/* Ticks that were missed are one; a timer left behind is removed at stop. */
TEST(missed_ticks_are_merged)
{
	struct trial t = {0};

	run_trial(&t, set_fast_timer);
	expect(t.n_calls >= 3 && t.n_calls < 20);
}

static void readable(void *arg, int32_t fd, uint32_t events)
{
	struct trial *t = arg;
	uint64_t n;

	serial(t);
	expect_eq(fd, t->fd);
	expect(events & ANDIRON_WATCH_IN);
	/* Level-triggered: not read the first two times, it comes again. */
	if (t->n_calls < 3)
		return;
	expect_eq(read(fd, &n, sizeof(n)), sizeof(n));
	t->probe.host->watch_remove(t->probe.instance, t->watch);
	expect_eq(t->probe.host->watch_modify(t->probe.instance, t->watch, ANDIRON_WATCH_IN),
		  -ENOENT);
	host_stop(t->host);
}

static void watch_fd(struct probe *p)
{
	struct trial *t = p->user;
	uint64_t other;

	expect_eq(p->host->watch_add(p->instance, t->fd, ANDIRON_WATCH_IN, readable, t, &t->watch),
		  0);
	expect_eq(p->host->watch_add(p->instance, t->fd, ANDIRON_WATCH_IN, readable, t, &other),
		  -EEXIST);
	expect_eq(p->host->watch_add(p->instance, -1, ANDIRON_WATCH_IN, readable, t, &other),
		  -EBADF);
}

TEST(watches_are_level_triggered)
{
	struct trial t = {.fd = eventfd(1, EFD_CLOEXEC)};

	run_trial(&t, watch_fd);
	expect_eq(t.n_calls, 3);
	close(t.fd);
}

static void stop_it(void *arg)
{
	struct trial *t = arg;

	host_stop(t->host);
}

static void hung_up(void *arg, int32_t fd, uint32_t events)
{
	struct trial *t = arg;

	serial(t);
	expect_eq(events, ANDIRON_WATCH_IN | ANDIRON_WATCH_OUT);
	/* Silenced: it must not come again, though the pipe stays as it is. */
	expect_eq(t->probe.host->watch_modify(t->probe.instance, t->watch, 0), 0);
	expect_eq(t->probe.host->timer_set(t->probe.instance, 5 * NS_PER_MSEC, 0, stop_it, t,
					   &t->timer),
		  0);
}

static void watch_pipe(struct probe *p)
{
	struct trial *t = p->user;

	expect_eq(p->host->watch_add(p->instance, t->fd, ANDIRON_WATCH_IN, hung_up, t, &t->watch),
		  0);
}

/* A hang-up is reported as both, and a silenced watch stays silent. The watch that is left behind
 * is removed at stop. */
TEST(a_silenced_watch_is_silent)
{
	struct trial t = {0};
	int fds[2];

	expect_eq(pipe(fds), 0);
	close(fds[1]);
	t.fd = fds[0];
	run_trial(&t, watch_pipe);
	expect_eq(t.n_calls, 1);
	close(fds[0]);
}

static void posted(void *arg)
{
	struct trial *t = arg;

	serial(t);
	if (t->n_calls == 1000)
		host_stop(t->host);
}

static void post_many(struct probe *p)
{
	for (int i = 0; i < 1000; i++)
		expect_eq(p->host->post(p->instance, posted, p->user), 0);
	expect_eq(p->host->post(p->instance + 1000, posted, p->user), -ESHUTDOWN);
	expect_eq(p->host->post(p->instance, NULL, p->user), -EINVAL);
}

/* Posted functions run after the call that posted them, each once. */
TEST(posts_run_once_each)
{
	struct trial t = {0};

	run_trial(&t, post_many);
	expect_eq(t.n_calls, 1000);
}

static void work_run(void *arg)
{
	struct trial *t = arg;

	t->n_other++;
}

static void work_done(void *arg)
{
	struct trial *t = arg;

	serial(t);
	if (t->n_calls == 200)
		host_stop(t->host);
}

static void work_many(struct probe *p)
{
	for (int i = 0; i < 200; i++)
		expect_eq(p->host->work(p->instance, work_run, work_done, p->user), 0);
}

/* Work runs beside the component, what follows runs serially. */
TEST(work_is_done_once_each)
{
	struct trial t = {0};

	run_trial(&t, work_many);
	expect_eq(t.n_calls, 200);
	expect_eq(t.n_other, 200);
}

static void work_late(struct probe *p)
{
	struct trial *t = p->user;

	work_many(p);
	host_stop(t->host);
}

/* Destroy waits for work that is still out. */
TEST(destroy_waits_for_work)
{
	struct trial t = {0};

	run_trial(&t, work_late);
	expect_eq(t.n_calls, 200);
	expect_eq(t.probe.n_destroy, 1);
}

static void child_done(void *arg, const struct andiron_spawn_result *result)
{
	struct trial *t = arg;

	serial(t);
	t->status = result->status;
	snprintf(t->output, sizeof(t->output), "%.*s|%.*s", (int)result->output.len,
		 result->output.ptr, (int)result->errors.len, result->errors.ptr);
	host_stop(t->host);
}

static void spawn_shell(struct probe *p, const char *script, int64_t deadline_ns)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	const char *const envp[] = {"WORD=hello", NULL};
	struct andiron_spawn spawn = {.size = sizeof(spawn),
				      .argv = argv,
				      .envp = envp,
				      .input = {"typed", 5},
				      .deadline_ns = deadline_ns,
				      .max_output = 12};

	expect_eq(p->host->spawn(p->instance, &spawn, child_done, p->user), 0);
}

static void spawn_echo(struct probe *p)
{
	spawn_shell(p, "cat; echo \" $WORD, and more than fits\"; echo oops >&2; exit 3",
		    20 * NS_PER_SEC);
}

/* Input, environment, both outputs and the status pass; output is bounded. */
TEST(a_child_is_fed_and_heard)
{
	struct trial t = {0};

	run_trial(&t, spawn_echo);
	expect_eq(WEXITSTATUS(t.status), 3);
	expect_str(str_of(t.output), "typed hello,|oops\n");
}

static void spawn_slow(struct probe *p)
{
	spawn_shell(p, "exec sleep 1000", 5 * NS_PER_MSEC);
}

TEST(a_late_child_is_killed)
{
	struct trial t = {0};

	run_trial(&t, spawn_slow);
	expect_eq(t.status, -ETIMEDOUT);
}

static void spawn_and_stop(struct probe *p)
{
	struct trial *t = p->user;

	spawn_shell(p, "exec sleep 1000", 1000 * NS_PER_SEC);
	host_stop(t->host);
}

/* A child does not outlive its component, and its callback still comes. */
TEST(stopping_kills_children)
{
	struct trial t = {0};

	run_trial(&t, spawn_and_stop);
	expect(WIFSIGNALED(t.status));
	expect_eq(t.n_calls, 1);
}

static void spawn_missing(struct probe *p)
{
	const char *const argv[] = {"/nonexistent/program", NULL};
	const char *const relative[] = {"sh", NULL};
	struct andiron_spawn spawn = {.size = sizeof(spawn), .argv = argv, .max_output = 1};
	struct trial *t = p->user;

	expect_eq(p->host->spawn(p->instance, &spawn, child_done, t), -ENOENT);
	spawn.argv = relative;
	expect_eq(p->host->spawn(p->instance, &spawn, child_done, t), -EINVAL);
	spawn.size = 4;
	expect_eq(p->host->spawn(p->instance, &spawn, child_done, t), -EINVAL);
	host_stop(t->host);
}

TEST(a_missing_program_is_an_error)
{
	struct trial t = {0};

	run_trial(&t, spawn_missing);
	expect_eq(t.n_calls, 0);
}

/* A thread that is done with components and gets no CPU is waited for: the host leaves nothing. */
struct slow_task {
	struct worker_task task;
	struct workers *workers;
	struct host *host;
	bool ended;
};

/* Whether the first thread sleeps until it is woken, and not until a time. */
static bool is_waited_for(void)
{
	unsigned long until = 0;
	long number = -1;
	char path[64];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)getpid());
	f = fopen(path, "re");
	expect(f);
	n = fscanf(f, "%ld 0x%*x 0x%*x 0x%*x 0x%lx", &number, &until);
	fclose(f);
	return n == 2 && number == SYS_futex && until == 0;
}

static void end_late(struct worker_task *task)
{
	struct slow_task *t = container_of(task, struct slow_task, task);
	bool stopping = false;

	while (!stopping) {
		pthread_mutex_lock(&t->workers->lock);
		stopping = t->workers->stopping;
		pthread_mutex_unlock(&t->workers->lock);
		sched_yield();
	}
	while (!is_waited_for())
		sched_yield();
	t->ended = true;
}

static void submit_and_stop(void *context, const char *failed)
{
	struct slow_task *t = context;

	t->workers = &t->host->workers;
	workers_submit(t->workers, &t->task);
	host_stop(t->host);
}

TEST(a_worker_without_cpu_is_waited_for)
{
	static struct slow_task slow = {.task.run = end_late}; /* outlives a test that fails */
	struct probe w = {0};
	struct plan *plan = test_plan();

	test_node(plan, "w", &test_writer, &w);
	slow.host = test_host((struct host_options){.live = submit_and_stop, .context = &slow});
	expect_eq(host_load(slow.host, plan, NULL), 0);
	test_run(slow.host, 0);
	host_free(slow.host);
	expect(slow.ended);
}
