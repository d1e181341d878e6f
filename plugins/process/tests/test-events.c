/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the process events with real kernel programs. Need root. */
#include "base/clock.h"
#include "testing/test.h"
#include "proc/process.h"
#include "process/service.h"
#include "process/tests/test-loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A subscriber that keeps what it is told. */
struct watcher {
	struct process_events events;
	uint64_t id;
	uint32_t until_kind, until_pid;
	int64_t seen_ns; /* when the one waited for came */
};

static void keep(void *arg, const struct andiron_process_event *events, uint64_t n)
{
	struct watcher *w = arg;

	for (uint64_t i = 0; i < n; i++) {
		expect(vec_push(&w->events, events[i]));
		if (events[i].kind == w->until_kind && events[i].pid == w->until_pid)
			w->seen_ns = clock_mono();
	}
}

static bool seen(void *arg)
{
	return ((struct watcher *)arg)->seen_ns != 0;
}

static bool never(void *arg)
{
	return false;
}

static struct service *begin(struct loop *l)
{
	const struct andiron_host *host = loop_init(l);
	struct service *s = service_new(host, 1);

	expect(s != NULL);
	if (geteuid() != 0)
		test_skip("needs root to load BPF programs: run the suite as root");
	expect_eq(service_start(s, NULL), 0);
	if (l->health != ANDIRON_HEALTH_UNKNOWN && l->health != ANDIRON_HEALTH_HEALTHY)
		test_fail(__FILE__, __LINE__, "%s", l->health_text);
	return s;
}

static void end(struct loop *l, struct service *s)
{
	service_stop(s);
	loop_run(never, NULL, 20); /* turns that are on their way */
	service_free(s);
	loop_fini(l);
}

static void wait_for(struct watcher *w, uint32_t kind, uint32_t pid)
{
	w->until_kind = kind;
	w->until_pid = pid;
	w->seen_ns = 0;
	for (size_t i = 0; i < w->events.n; i++)
		if (w->events.p[i].kind == kind && w->events.p[i].pid == pid)
			return;
	if (!loop_run(seen, w, 90000))
		test_fail(__FILE__, __LINE__, "no event %u of %u among %zu", kind, pid,
			  w->events.n);
}

static void subscribe(struct service *s, struct watcher *w)
{
	expect_eq(service_table.subscribe(s, 2, keep, w, &w->id), 0);
	wait_for(w, ANDIRON_PROCESS_EXISTING, (uint32_t)getpid());
}

static void unsubscribe(struct service *s, struct watcher *w)
{
	service_table.unsubscribe(s, w->id);
	vec_free(&w->events);
}

static pid_t spawn_true(void)
{
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	expect(pid > 0);
	return pid;
}

static const struct andiron_process_event *find(const struct watcher *w, uint32_t kind, pid_t pid)
{
	for (size_t i = 0; i < w->events.n; i++)
		if (w->events.p[i].kind == kind && w->events.p[i].pid == (uint32_t)pid)
			return &w->events.p[i];
	return NULL;
}

/* Each process that runs is told once, and as /proc has it. */
TEST(the_list_is_that_of_proc)
{
	struct loop l;
	struct service *s = begin(&l);
	struct watcher w = {0};
	struct proc_info info = PROC_INFO_NULL;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), compared = 0;
	const struct andiron_process_event *self;

	subscribe(s, &w);
	for (size_t i = 0; i < w.events.n; i++) {
		const struct andiron_process_event *e = &w.events.p[i];

		if (e->kind != ANDIRON_PROCESS_EXISTING || proc_read(proc, e->pid, 0, &info))
			continue;
		if (!proc_same_start(e->start_ns, info.start_ns))
			continue; /* another by now */
		expect_eq(e->parent, info.parent);
		compared++;
	}
	expect(compared > 3);
	self = find(&w, ANDIRON_PROCESS_EXISTING, getpid());
	expect(self && self->cgroup != 0);
	expect_eq(proc_read(proc, (uint32_t)getpid(), 0, &info), 0);
	expect(proc_same_start(self->start_ns, info.start_ns));
	expect_str(str_of(self->comm), info.comm);
	proc_info_free(&info);
	close(proc);
	unsubscribe(s, &w);
	end(&l, s);
}

/* A child's life is told whole and in its order, under one identity, and soon: other work can only
 * make that later, so the soonest of some lives counts. */
TEST(a_life_in_order)
{
	struct loop l;
	struct service *s = begin(&l);
	struct watcher w = {0};
	const struct andiron_process_event *forked, *execed, *exited;
	int64_t at, took = INT64_MAX;
	pid_t pid = 0;

	subscribe(s, &w);
	for (int lives = 0; took >= 250 * NS_PER_MSEC; lives++) {
		expect(lives < 50);
		pid = spawn_true();
		expect(waitpid(pid, NULL, 0) == pid);
		at = clock_mono();
		wait_for(&w, ANDIRON_PROCESS_EXIT, (uint32_t)pid);
		took = w.seen_ns - at;
	}
	forked = find(&w, ANDIRON_PROCESS_FORK, pid);
	execed = find(&w, ANDIRON_PROCESS_EXEC, pid);
	exited = find(&w, ANDIRON_PROCESS_EXIT, pid);
	expect(forked && execed && exited && forked < execed && execed < exited);
	expect(forked->start_ns == execed->start_ns && execed->start_ns == exited->start_ns);
	expect_eq(forked->parent, getpid());
	expect_str(str_of(exited->comm), "true");
	expect(!find(&w, ANDIRON_PROCESS_LOST, 0));
	unsubscribe(s, &w);
	end(&l, s);
}

static void *thread_body(void *arg)
{
	return NULL;
}

/* Until this process has one thread. A joined one may be on its way out still, and its exit be told
 * as the process's where that ends meanwhile (bpf/process.bpf.c). */
static void wait_for_threads(void)
{
	struct stat st;

	while (stat("/proc/self/task", &st) == 0 && st.st_nlink > 3)
		sched_yield();
}

/* Threads come and go without a word: only the last one's exit ends a process. */
TEST(threads_are_no_processes)
{
	struct loop l;
	struct service *s = begin(&l);
	struct watcher w = {0};
	size_t exits = 0;
	pid_t pid;

	subscribe(s, &w);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 20; i++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, thread_body, NULL) ||
			    pthread_join(thread, NULL))
				_exit(1);
		}
		wait_for_threads();
		_exit(0);
	}
	expect(waitpid(pid, NULL, 0) == pid);
	wait_for(&w, ANDIRON_PROCESS_EXIT, (uint32_t)pid);
	for (size_t i = 0; i < w.events.n; i++)
		exits += w.events.p[i].kind == ANDIRON_PROCESS_EXIT &&
			 w.events.p[i].pid == (uint32_t)pid;
	expect_eq(exits, 1);
	unsubscribe(s, &w);
	end(&l, s);
}

/* A storm of forks arrives whole or with a word about what is missing, and wakes the reader a few
 * times in a second, not for each event. */
TEST(a_storm)
{
	enum { CHILDREN = 2000 };
	struct loop l;
	struct service *s = begin(&l);
	struct watcher w = {0};
	struct service_totals before, after;
	size_t forks = 0, exits = 0, lost = 0;
	int64_t began;
	double seconds;
	pid_t parent, last;

	subscribe(s, &w);
	service_totals(s, &before);
	began = clock_mono();
	parent = fork();
	if (!parent) {
		for (int i = 0; i < CHILDREN; i++) {
			pid_t child = fork();

			if (!child)
				_exit(0);
			if (child > 0)
				waitpid(child, NULL, 0);
		}
		_exit(0);
	}
	wait_for(&w, ANDIRON_PROCESS_EXIT, (uint32_t)parent);
	seconds = (double)(clock_mono() - began) / 1e9;
	service_totals(s, &after);
	expect(waitpid(parent, NULL, 0) == parent);
	last = spawn_true();
	expect(waitpid(last, NULL, 0) == last);
	wait_for(&w, ANDIRON_PROCESS_EXIT, (uint32_t)last);
	for (size_t i = 0; i < w.events.n; i++) {
		const struct andiron_process_event *e = &w.events.p[i];

		lost += e->kind == ANDIRON_PROCESS_LOST;
		forks += e->kind == ANDIRON_PROCESS_FORK && e->parent == (uint32_t)parent;
		exits += e->kind == ANDIRON_PROCESS_EXIT && e->parent == (uint32_t)parent;
	}
	printf("# %zu forks, %zu exits, %zu lost, %.3f s, %llu wake-ups\n", forks, exits, lost,
	       seconds, (unsigned long long)(after.wakeups - before.wakeups));
	expect(lost || (forks == CHILDREN && exits == CHILDREN));
	expect((double)(after.wakeups - before.wakeups) <= 3 + 10 * seconds || lost);
	unsubscribe(s, &w);
	end(&l, s);
}

/* When the ring overflows, the reader is told, and what comes later arrives. */
TEST(overflow_is_told)
{
	struct tracer *t = NULL;
	struct error err = ERROR_NULL;
	struct process_events events = {0};
	bool again = false, lost = false, later = false;

	if (geteuid() != 0)
		test_skip("needs root to load BPF programs: run the suite as root");
	if (tracer_open(4096, &t, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	for (int i = 0; i < 100; i++) {
		pid_t pid = spawn_true();

		expect(waitpid(pid, NULL, 0) == pid);
	}
	expect_eq(tracer_drain(t, &events, &again), 0);
	expect(again && events.n < 300);
	for (size_t i = 0; i < events.n; i++)
		lost = lost || events.p[i].kind == ANDIRON_PROCESS_LOST;
	expect(lost);
	/* Others' events may fill so small a ring at once. */
	for (int tries = 0; !later; tries++) {
		pid_t last = spawn_true();

		expect(tries < 1000 && waitpid(last, NULL, 0) == last);
		events.n = 0;
		expect_eq(tracer_drain(t, &events, &again), 0);
		for (size_t i = 0; i < events.n; i++)
			later = later || (events.p[i].kind == ANDIRON_PROCESS_EXIT &&
					  events.p[i].pid == (uint32_t)last);
	}
	vec_free(&events);
	tracer_close(t);
}

/* Gives the next process a pid, in this pid namespace. */
static bool next_pid(pid_t pid)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", pid - 1);
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* A pid that is used again is another process: its start says so. */
TEST(a_pid_used_again)
{
	struct loop l;
	struct service *s = begin(&l);
	struct watcher w = {0};
	size_t lives = 0;
	uint64_t start = 0;
	pid_t pid = 0, again = 0;

	subscribe(s, &w);
	for (int i = 0; i < 20 && (!pid || pid != again); i++) {
		pid = spawn_true();
		expect(waitpid(pid, NULL, 0) == pid);
		if (!next_pid(pid))
			test_skip("cannot choose the next pid: needs CONFIG_CHECKPOINT_RESTORE");
		again = spawn_true();
		expect(waitpid(again, NULL, 0) == again);
	}
	expect_eq(pid, again);
	again = spawn_true();
	expect(waitpid(again, NULL, 0) == again);
	wait_for(&w, ANDIRON_PROCESS_EXIT, (uint32_t)again);
	for (size_t i = 0; i < w.events.n; i++) {
		const struct andiron_process_event *e = &w.events.p[i];

		if (e->kind != ANDIRON_PROCESS_FORK || e->pid != (uint32_t)pid)
			continue;
		expect(e->start_ns > start);
		start = e->start_ns;
		lives++;
	}
	expect(lives >= 2);
	unsubscribe(s, &w);
	end(&l, s);
}

/* Nobody is told anything after the end of a subscription, and subscribers do not disturb each
 * other. */
TEST(subscribers_are_separate)
{
	struct loop l;
	struct service *s = begin(&l);
	struct watcher a = {0}, b = {0};
	pid_t pid;

	subscribe(s, &a);
	subscribe(s, &b);
	service_table.unsubscribe(s, a.id);
	service_table.unsubscribe(s, a.id);
	a.events.n = 0;
	pid = spawn_true();
	expect(waitpid(pid, NULL, 0) == pid);
	wait_for(&b, ANDIRON_PROCESS_EXIT, (uint32_t)pid);
	expect_eq(a.events.n, 0);
	vec_free(&a.events);
	unsubscribe(s, &b);
	end(&l, s);
}
