/* SPDX-License-Identifier: Apache-2.0 */
/* The driver against a host of the test's own: a loop of one thread on which work runs at once and
 * its `done` in the next round, with the counts kept. */
#include "ebpf/driver.h"
#include "harness.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUEUE_MAX 64
#define TIMERS    2
#define WATCHES   2

/* The host of this test. */
static struct loop {
	struct {
		andiron_call_fn fn;
		void *arg;
	} queue[QUEUE_MAX];
	size_t n_queue;
	struct {
		int32_t fd; /* -1: free */
		andiron_watch_fn fn;
		void *arg;
	} watches[WATCHES];
	struct {
		int64_t every, next; /* 0: free */
		andiron_call_fn fn;
		void *arg;
	} timers[TIMERS];
	struct objects *objects;
	uint64_t coming, taken, dropped, sent, n_batches;
	uint32_t health;
	bool drained;
	char text[1024];
} loop;

static int32_t error_add(struct andiron_error *err, int32_t code, const char *text, uint64_t len)
{
	snprintf(loop.text, sizeof(loop.text), "%.*s", (int)len, text);
	return code;
}

static void log_line(uint64_t instance, uint32_t level, const struct andiron_str *message,
		     const struct andiron_kv *kv, uint64_t n_kv)
{
	printf("# %.*s\n", (int)message->len, message->ptr);
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 1;
}

static int32_t watch_add(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			 void *arg, uint64_t *ret)
{
	size_t i = 0;

	while (i < WATCHES && loop.watches[i].fd >= 0)
		i++;
	expect(i < WATCHES);
	loop.watches[i].fd = fd;
	loop.watches[i].fn = fn;
	loop.watches[i].arg = arg;
	*ret = i + 1;
	return 0;
}

static void watch_remove(uint64_t instance, uint64_t watch)
{
	expect(watch > 0 && watch <= WATCHES && loop.watches[watch - 1].fd >= 0);
	loop.watches[watch - 1].fd = -1;
}

static int32_t timer_set(uint64_t instance, int64_t after, int64_t every, andiron_call_fn fn,
			 void *arg, uint64_t *ret)
{
	size_t i = 0;

	while (i < TIMERS && loop.timers[i].every)
		i++;
	expect(i < TIMERS);
	loop.timers[i].every = every;
	loop.timers[i].next = clock_mono() + after;
	loop.timers[i].fn = fn;
	loop.timers[i].arg = arg;
	*ret = i + 1;
	return 0;
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
	expect(timer > 0 && timer <= TIMERS);
	loop.timers[timer - 1].every = 0;
}

static int32_t work(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	run(arg);
	expect(loop.n_queue < QUEUE_MAX);
	loop.queue[loop.n_queue].fn = done;
	loop.queue[loop.n_queue++].arg = arg;
	return 0;
}

static int32_t send_batch(uint64_t instance, const struct andiron_batch *batch)
{
	loop.sent += batch->samples;
	loop.n_batches++;
	return 0;
}

static void ledger_add(uint64_t instance, uint32_t entry, const struct andiron_str *reason,
		       uint64_t samples)
{
	if (entry == ANDIRON_LEDGER_TAKEN)
		loop.taken += samples;
	if (entry == ANDIRON_LEDGER_DROPPED)
		loop.dropped += samples;
}

static void ledger_set(uint64_t instance, uint32_t entry, uint64_t samples)
{
	expect_eq(entry, ANDIRON_LEDGER_UNREAD);
	loop.coming = samples;
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	loop.health = state;
	snprintf(loop.text, sizeof(loop.text), "%.*s", (int)message->len, message->ptr);
}

static void drained(uint64_t instance)
{
	loop.drained = true;
}

static int32_t extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	expect(strcmp(id, ANDIRON_OBJECTS_ID) == 0);
	*ret = (struct andiron_extension){&objects_service, loop.objects};
	return 0;
}

static const struct andiron_host host = {
	.size = sizeof(host),
	.error_add = error_add,
	.log_enabled = log_enabled,
	.log = log_line,
	.watch_add = watch_add,
	.watch_remove = watch_remove,
	.timer_set = timer_set,
	.timer_cancel = timer_cancel,
	.work = work,
	.send_batch = send_batch,
	.ledger_add = ledger_add,
	.ledger_set = ledger_set,
	.health = health,
	.drained = drained,
	.extension = extension,
};

/* One round: what is queued, what is due, what is ready. */
static void round_of(int64_t wait_ns)
{
	struct pollfd fds[WATCHES];

	while (loop.n_queue > 0) {
		andiron_call_fn fn = loop.queue[0].fn;
		void *arg = loop.queue[0].arg;

		memmove(&loop.queue[0], &loop.queue[1], --loop.n_queue * sizeof(loop.queue[0]));
		fn(arg);
	}
	for (size_t i = 0; i < WATCHES; i++)
		fds[i] = (struct pollfd){.fd = loop.watches[i].fd, .events = POLLIN};
	poll(fds, WATCHES, (int)(wait_ns / NS_PER_MSEC));
	for (size_t i = 0; i < WATCHES; i++)
		if (fds[i].revents && fds[i].fd == loop.watches[i].fd)
			loop.watches[i].fn(loop.watches[i].arg, fds[i].fd, ANDIRON_WATCH_IN);
	for (size_t i = 0; i < TIMERS; i++)
		if (loop.timers[i].every && clock_mono() >= loop.timers[i].next) {
			loop.timers[i].next += loop.timers[i].every;
			loop.timers[i].fn(loop.timers[i].arg);
		}
}

/* For so long, and until what was begun then is done. */
static void run_for(int64_t ns)
{
	int64_t end = clock_mono() + ns;

	while (clock_mono() < end || loop.n_queue > 0)
		round_of(10 * NS_PER_MSEC);
}

static void run_until_worked(const struct workload *w, int64_t ns)
{
	for (int64_t from = workload_cpu_ns(w); workload_cpu_ns(w) - from < ns;)
		round_of(10 * NS_PER_MSEC);
}

struct fixture {
	struct objects *objects;
	struct driver *driver;
};

static struct ebpf_options options_of(uint32_t rate_hz, bool all)
{
	return (struct ebpf_options){.rate_hz = rate_hz,
				     .interval_ns = NS_PER_SEC,
				     .targets_only = !all,
				     .kernel_frames = true};
}

static void init(struct fixture *f, struct ebpf_options options)
{
	struct abi_context c = {&host, 5};
	struct error err = ERROR_NULL;
	void *driver;
	int r;

	if (geteuid() != 0)
		test_skip("sampling needs root; run this suite as root");
	loop = (struct loop){0};
	for (size_t i = 0; i < WATCHES; i++)
		loop.watches[i].fd = -1;
	expect_eq(objects_new(&f->objects, &err), 0);
	loop.objects = f->objects;
	expect_eq(driver_new(&c, &options, &driver, NULL), 0);
	f->driver = driver;
	r = driver_start(driver, NULL);
	if (r == -EPERM || r == -EACCES || r == -ENOTSUP)
		test_skip(loop.text);
	expect_eq(r, 0);
	expect_eq(loop.health, ANDIRON_HEALTH_HEALTHY);
}

static void fini(struct fixture *f)
{
	driver_drain(f->driver, 0);
	while (!loop.drained)
		round_of(0);
	/* Every sample is sent or counted as lost: nothing is left behind. */
	expect_eq(loop.taken, loop.sent + loop.dropped);
	driver_stop(f->driver);
	round_of(0);
	for (size_t i = 0; i < WATCHES; i++)
		expect_eq(loop.watches[i].fd, -1);
	expect_eq(loop.timers[0].every + loop.timers[1].every, 0);
	driver_free(f->driver);
	objects_free(f->objects);
}

/* Intervals are sent by the timer, and the last one while draining. */
TEST(intervals_and_drain)
{
	struct workload w;
	struct fixture f;
	uint64_t before;

	workload_start(&w, "");
	init(&f, options_of(97, true));
	/* How long the first takes depends on what runs on the machine, whose files are read
	 * first. */
	for (int64_t end = clock_mono() + 200 * NS_PER_SEC;
	     loop.n_batches < 2 && clock_mono() < end;)
		round_of(10 * NS_PER_MSEC);
	expect(loop.n_batches >= 2);
	before = loop.taken;
	run_until_worked(&w, NS_PER_SEC / 10);
	workload_stop(&w);
	fini(&f);
	expect(loop.taken > before);
}

/* Samples until 50 are taken, in an interval that does not end. */
static void begin_long_interval(struct fixture *f, struct workload *w)
{
	struct ebpf_options options = options_of(97, true);

	options.interval_ns = 600 * NS_PER_SEC;
	workload_start(w, "");
	init(f, options);
	for (int64_t end = clock_mono() + 200 * NS_PER_SEC; loop.coming < 50 && clock_mono() < end;)
		round_of(10 * NS_PER_MSEC);
	expect(loop.coming >= 50);
}

/* Within an interval it is said what is to come, so that a kill is known to have cost it; what
 * comes then is at least that. */
TEST(what_is_counted_is_told_before_it_is_taken)
{
	struct workload w;
	struct fixture f;
	uint64_t told;

	begin_long_interval(&f, &w);
	expect_eq(loop.taken, 0);
	workload_stop(&w);
	told = loop.coming;
	fini(&f);
	expect_eq(loop.coming, 0);
	expect(loop.taken >= told);
}

/* A stop without a drain, or before that is done, reads nothing: what was taken is lost, and said
 * to be. */
TEST(what_is_not_read_is_counted_as_lost)
{
	struct workload w;
	struct fixture f;
	uint64_t told;

	begin_long_interval(&f, &w);
	told = loop.coming;
	driver_stop(f.driver);
	workload_stop(&w);
	expect_eq(loop.coming, 0);
	expect(loop.taken >= told);
	expect_eq(loop.dropped, loop.taken);
	expect_eq(loop.n_batches, 0);
	driver_free(f.driver);
	objects_free(f.objects);
}

/* However long an interval is, and whatever is sampled in it: where its samples fill the memory for
 * them it ends, and none is lost. */
TEST(a_long_interval_loses_nothing)
{
	struct ebpf_options options = options_of(499, true);
	struct workload w[2];
	struct fixture f;

	options.interval_ns = 3600 * NS_PER_SEC;
	for (size_t i = 0; i < 2; i++)
		workload_start(&w[i], "ways");
	init(&f, options);
	for (int64_t end = clock_mono() + 200 * NS_PER_SEC;
	     driver_stats(f.driver)->n_early < 3 && clock_mono() < end;)
		round_of(10 * NS_PER_MSEC);
	expect(driver_stats(f.driver)->n_early >= 3);
	expect(loop.n_batches >= 3);
	for (size_t i = 0; i < 2; i++)
		workload_stop(&w[i]);
	fini(&f);
	printf("# %llu samples in %llu batches, %llu lost\n", (unsigned long long)loop.taken,
	       (unsigned long long)loop.n_batches, (unsigned long long)loop.dropped);
	expect_eq(loop.dropped, 0);
}

/* Each option is live, and no window is lost on the way from one rate to the
 * next: the counts close over all changes. */
TEST(options_change_while_sampling)
{
	struct ebpf_options options;
	struct workload w;
	struct fixture f;

	workload_start(&w, "");
	init(&f, options_of(49, true));
	run_for(500 * NS_PER_MSEC);
	for (uint32_t i = 0; i < 6; i++) {
		options = options_of(i % 2 ? 97 : 197, i < 3);
		options.pid_label = i % 2;
		options.comm_label = i % 3;
		options.follow = i == 4;
		options.interval_ns = (1 + i % 2) * NS_PER_SEC;
		driver_update(f.driver, &options);
		run_for(200 * NS_PER_MSEC);
		expect_eq(loop.health, ANDIRON_HEALTH_HEALTHY);
		expect_eq(driver_stats(f.driver)->session.rate_hz, i % 2 ? 97 : 197);
	}
	workload_stop(&w);
	fini(&f);
	expect(loop.taken > 50);
}

/* Lets nobody open more than is open now, but what is closed again; `fillers` are to be closed. */
static size_t limit_files(int fillers[1024], struct rlimit *ret_before)
{
	struct rlimit few;
	size_t n = 0;
	int highest = 1023;

	expect(getrlimit(RLIMIT_NOFILE, ret_before) == 0);
	while (fcntl(highest, F_GETFD) < 0)
		highest--;
	do
		fillers[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fillers[n++] < highest);
	few = *ret_before;
	few.rlim_cur = (rlim_t)fillers[n - 1] + 1;
	expect(setrlimit(RLIMIT_NOFILE, &few) == 0);
	return n;
}

/* A rate that cannot be had is said, and the one before goes on. */
TEST(a_rate_that_fails_goes_back)
{
	struct ebpf_options options;
	struct rlimit limit;
	struct workload w;
	struct fixture f;
	uint64_t before;
	int fillers[1024];
	size_t n;

	workload_start(&w, "");
	init(&f, options_of(97, true));
	run_for(300 * NS_PER_MSEC);
	n = limit_files(fillers, &limit);
	options = options_of(197, true);
	driver_update(f.driver, &options);
	for (int i = 0; i < 50 && loop.health == ANDIRON_HEALTH_HEALTHY; i++)
		run_for(100 * NS_PER_MSEC);
	expect(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	while (n > 0)
		close(fillers[--n]);
	expect_eq(loop.health, ANDIRON_HEALTH_UNHEALTHY);
	expect(strstr(loop.text, "sample_rate 197") && strstr(loop.text, "sample_rate 97"));
	expect_eq(driver_stats(f.driver)->session.rate_hz, 97);
	before = loop.taken;
	run_for(1500 * NS_PER_MSEC);
	expect(loop.taken > before + 50);
	/* And can be had once the cause is gone. */
	options = options_of(197, true);
	driver_update(f.driver, &options);
	run_for(300 * NS_PER_MSEC);
	expect_eq(loop.health, ANDIRON_HEALTH_HEALTHY);
	expect_eq(driver_stats(f.driver)->session.rate_hz, 197);
	workload_stop(&w);
	fini(&f);
	expect_eq(loop.dropped, 0);
}

static bool set_online(const char *state)
{
	int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, state, 1) == 1;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* CPU 1 is put back however the test ends: a child sees to that which no kill of the test's group
 * reaches. */
struct guard {
	pid_t child;
	int fd;
};

static void unguard_cpu(struct guard *guard)
{
	if (guard->child <= 0)
		return;
	close(guard->fd);
	waitpid(guard->child, NULL, 0);
}

static struct guard guard_cpu(void)
{
	struct guard guard;
	int ends[2];
	char byte;

	expect_eq(pipe2(ends, O_CLOEXEC), 0);
	guard.child = fork();
	if (guard.child == 0) {
		setsid();
		close(ends[1]);
		while (read(ends[0], &byte, 1) > 0)
			;
		_exit(!set_online("1"));
	}
	close(ends[0]);
	guard.fd = ends[1];
	return guard;
}

static bool run_until_cpus(const struct fixture *f, uint32_t n)
{
	for (int i = 0; i < 100 && driver_stats(f->driver)->session.n_cpus != n; i++)
		run_for(100 * NS_PER_MSEC);
	return driver_stats(f->driver)->session.n_cpus == n;
}

/* A CPU that comes online is sampled, whether it was online before or there was no log for it; what
 * was counted on one that goes is sent. */
TEST(cpus_come_and_go)
{
	cpu_set_t second;
	struct workload w;
	struct fixture f;
	uint64_t before;
	bool followed;
	uint32_t n;
	_cleanup_(unguard_cpu) struct guard guard = {0};

	CPU_ZERO(&second);
	CPU_SET(1, &second);
	if (!set_online("1"))
		test_skip("CPU 1 cannot be taken offline and back here; run as root on two CPUs");
	guard = guard_cpu();
	for (int i = 0; i < 2; i++) {
		if (i == 1)
			expect(set_online("0"));
		init(&f, options_of(97, true));
		n = driver_stats(f.driver)->session.n_cpus + (i == 1);
		workload_start(&w, "");
		run_for(300 * NS_PER_MSEC);
		followed = i == 1 || (set_online("0") && run_until_cpus(&f, n - 1));
		expect(set_online("1")); /* whatever has failed */
		expect(followed && run_until_cpus(&f, n));
		expect(sched_setaffinity(w.pid, sizeof(second), &second) == 0);
		run_for(1100 * NS_PER_MSEC);
		before = loop.taken;
		run_for(2200 * NS_PER_MSEC);
		expect(loop.taken > before + 90); /* the workload's, on CPU 1 */
		workload_stop(&w);
		fini(&f);
		expect_eq(loop.dropped, 0);
	}
}

/* A CPU that goes and is back before anybody looks is sampled: its event has ended with it. */
TEST(cpu_comes_back_at_once)
{
	cpu_set_t second;
	struct workload w;
	struct fixture f;
	uint64_t before;
	bool back;
	_cleanup_(unguard_cpu) struct guard guard = {0};

	CPU_ZERO(&second);
	CPU_SET(1, &second);
	if (!set_online("1"))
		test_skip("CPU 1 cannot be taken offline and back here; run as root on two CPUs");
	guard = guard_cpu();
	init(&f, options_of(97, true));
	back = set_online("0");
	expect(set_online("1") && back);
	run_for(300 * NS_PER_MSEC);
	workload_start(&w, "");
	expect(sched_setaffinity(w.pid, sizeof(second), &second) == 0);
	run_for(1100 * NS_PER_MSEC);
	before = loop.taken;
	run_for(2200 * NS_PER_MSEC);
	expect(loop.taken > before + 90);
	workload_stop(&w);
	fini(&f);
}

/* lazy_mode: nothing is loaded until there is somebody to sample. */
TEST(lazy_mode_waits_for_a_target)
{
	struct target_label labels[2] = {{STR("__process_pid__"), STR_NULL},
					 {STR("service_name"), STR("w")}};
	struct target_list *list = target_list_new(1);
	struct ebpf_options options = options_of(97, false);
	const struct andiron_targets *update;
	struct workload w;
	struct fixture f;
	char pid[16];

	options.lazy = true;
	workload_start(&w, "");
	init(&f, options);
	expect_eq(loop.watches[1].fd, -1);
	run_for(200 * NS_PER_MSEC);
	snprintf(pid, sizeof(pid), "%d", (int)w.pid);
	labels[0].value = str_of(pid);
	expect_eq(target_list_set(list, 1, 1, labels, 2), 0);
	expect_eq(target_list_flush(list, &update), 0);
	driver_targets(f.driver, "targets", update);
	update->release(update->owner);
	run_for(1200 * NS_PER_MSEC);
	expect(loop.watches[1].fd >= 0);
	run_until_worked(&w, NS_PER_SEC / 2);
	expect_eq(driver_stats(f.driver)->n_targets, 1);
	expect_eq(driver_stats(f.driver)->n_matched, 1);
	workload_stop(&w);
	fini(&f);
	expect(loop.taken > 5);
	target_list_free(list);
}
