/* SPDX-License-Identifier: Apache-2.0 */
/* A session over this process: what its threads do comes as samples, all of which are counted. */
#include "ebpf/kernel/session.h"
#include "ebpf/unwinding/native-unwind.h"

#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RATE_HZ 499

struct seen {
	uint64_t n_processes, n_stacks[SAMPLER_BUFFERS], n_snapshots, n_here;
	uint64_t last_id;
};

static volatile double sink;

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void work_here(int64_t ns)
{
	int64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		for (int i = 1; i < 1000; i++)
			sink = sink + 1.0 / i;
}

/* What this process works at: `ns` of the thread's CPU time. By its address, so that there is no
 * second version of it. */
static void (*volatile const work)(int64_t ns) = work_here;

static void *work_in_thread(void *ns)
{
	work(*(const int64_t *)ns);
	return NULL;
}

static void work_and_read(struct session *s, int64_t ns)
{
	for (int64_t step = 5 * NS_PER_MSEC; ns > 0; ns -= step) {
		work(step);
		session_drain(s, INT64_MAX);
	}
}

/* Whether execution stood in work, or in what it calls of this program or a library: the copy of
 * the stack holds an address in work then. */
static bool is_here(const struct sampler_snapshot *c)
{
	uintptr_t begin = (uintptr_t)work_here;
	uint64_t word;

	if (c->pc - begin < 512)
		return true;
	for (size_t i = 0; i + sizeof(word) <= c->n; i += sizeof(word)) {
		memcpy(&word, c->stack + i, sizeof(word));
		if (word - begin < 512)
			return true;
	}
	return false;
}

static void take(void *context, const void *record, size_t size)
{
	struct seen *seen = context;
	const struct sampler_snapshot *c = record;
	const struct sampler_stack *stack = record;
	const struct sampler_process *process = record;

	if (*(const uint32_t *)record == SAMPLER_RECORD_PROCESS) {
		expect_eq(size, sizeof(*process));
		expect_eq(process->key.tgid, getpid());
		seen->n_processes++;
	} else if (*(const uint32_t *)record == SAMPLER_RECORD_STACK) {
		expect(seen->n_processes > 0 && stack->buffer < SAMPLER_BUFFERS);
		expect_eq(stack->n_user, 0);
		seen->n_stacks[stack->buffer]++;
		seen->last_id = stack->id;
	} else {
		expect_eq(c->type, SAMPLER_RECORD_SNAPSHOT);
		expect_eq(c->id, seen->last_id);
		expect_eq(size, SAMPLER_SNAPSHOT_HEAD + c->n);
		expect_eq(c->at, sampler_snapshot_start(c->regs[WALK_STACK_POINTER]));
		seen->n_snapshots++;
		seen->n_here += is_here(c);
	}
}

static struct session *open_session(struct seen *seen)
{
	const struct session_options options = {.rate_hz = RATE_HZ, .interval_ns = NS_PER_SEC};
	struct error err = ERROR_NULL;
	struct session *s = NULL;
	int r;

	expect_eq(session_open(&options, take, seen, &s, &err), 0);
	r = session_start(s, RATE_HZ, &err);
	if (r == -EACCES || r == -EPERM || r == -ENOSYS) {
		session_close(s);
		test_skip(err.text);
	}
	expect_eq(r, 0);
	return s;
}

/* The retired buffer, whose samples must all have been handed over or counted as lost. */
static uint64_t swap(struct session *s, struct seen *seen)
{
	struct sampler_counters counters;
	int buffer = session_swap(s);

	expect(buffer == 0 || buffer == 1);
	counters = session_counters(s, (uint32_t)buffer);
	expect_eq(counters.taken, seen->n_stacks[buffer] + counters.ring_full);
	seen->n_stacks[buffer] = 0;
	return counters.taken;
}

/* Reads what comes until the threads have ended, as the engine does. */
static void read_until_ended(struct session *s, pthread_t *threads, size_t n)
{
	struct pollfd p = {.fd = session_fd(s), .events = POLLIN};

	for (size_t i = 0; i < n;) {
		if (poll(&p, 1, 10) > 0)
			session_drain(s, INT64_MAX);
		i += pthread_tryjoin_np(threads[i], NULL) == 0;
	}
}

TEST(samples_are_cpu_time_of_all_threads)
{
	const int64_t ns = 400 * NS_PER_MSEC;
	struct seen seen = {0};
	struct session *s = open_session(&seen);
	uint64_t expected = 2 * RATE_HZ * (uint64_t)ns / NS_PER_SEC, taken;
	pthread_t threads[2];

	for (size_t i = 0; i < 2; i++)
		expect_eq(pthread_create(&threads[i], NULL, work_in_thread, (void *)(uintptr_t)&ns),
			  0);
	read_until_ended(s, threads, 2);
	session_stop(s);
	taken = swap(s, &seen);
	printf("# %llu samples, %llu expected, %llu copies, %llu of them in work\n",
	       (unsigned long long)taken, (unsigned long long)expected,
	       (unsigned long long)seen.n_snapshots, (unsigned long long)seen.n_here);
	expect(taken > expected / 3 && taken < 2 * expected);
	expect(seen.n_here > seen.n_snapshots / 10 * 9);
	session_close(s);
}

/* From Linux 6.0 on an event says how many samples it has lost. */
static bool kernel_tells_lost(void)
{
	struct utsname name;

	return uname(&name) == 0 && strtol(name.release, NULL, 10) >= 6;
}

/* Nobody reads: what finds the ring full is counted all the same, once. */
TEST(samples_that_find_no_room_are_counted)
{
	const int64_t ns = 400 * NS_PER_MSEC;
	uint64_t expected = RATE_HZ * (uint64_t)ns / NS_PER_SEC, taken;
	struct error err = ERROR_NULL;
	struct seen seen = {0};
	struct session *s;
	cpu_set_t before, one;

	expect_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	s = open_session(&seen);
	expect_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	work(ns);
	if (!kernel_tells_lost()) /* but with the next sample */
		work_and_read(s, 50 * NS_PER_MSEC);
	session_stop(s);
	taken = swap(s, &seen);
	printf("# %llu samples, %llu expected, %llu copies\n", (unsigned long long)taken,
	       (unsigned long long)expected, (unsigned long long)seen.n_snapshots);
	expect(seen.n_snapshots < expected / 3);
	expect(taken > seen.n_snapshots + expected / 10);
	/* The next record says the same again. */
	expect_eq(session_start(s, RATE_HZ, &err), 0);
	work_and_read(s, 50 * NS_PER_MSEC);
	session_stop(s);
	expect(swap(s, &seen) < RATE_HZ / 10);
	expect_eq(sched_setaffinity(0, sizeof(before), &before), 0);
	session_close(s);
}

TEST(what_is_mapped_later_is_reported)
{
	struct seen seen = {0};
	struct session *s = open_session(&seen);
	void *p;

	session_drain(s, INT64_MAX);
	expect_eq(seen.n_processes, 1);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(p != MAP_FAILED);
	session_drain(s, INT64_MAX);
	expect_eq(seen.n_processes, 2);
	munmap(p, 4096);
	session_close(s);
}

TEST(nothing_is_sampled_after_the_stop)
{
	struct seen seen = {0};
	struct session *s = open_session(&seen);

	work(50 * NS_PER_MSEC);
	session_stop(s);
	expect(session_taken(s) > 0);
	swap(s, &seen);
	work(50 * NS_PER_MSEC);
	expect_eq(swap(s, &seen), 0);
	expect_eq(session_taken(s), 0);
	session_close(s);
}

TEST(another_rate_loses_nothing)
{
	struct seen seen = {0};
	struct session *s = open_session(&seen);
	struct error err = ERROR_NULL;
	uint64_t before, taken;

	work_and_read(s, 100 * NS_PER_MSEC);
	before = session_taken(s);
	expect(before > RATE_HZ / 10 / 3);
	expect_eq(session_start(s, 2 * RATE_HZ, &err), 0);
	work_and_read(s, 100 * NS_PER_MSEC);
	session_stop(s);
	taken = swap(s, &seen);
	printf("# %llu samples, %d expected\n", (unsigned long long)taken, 3 * RATE_HZ / 10);
	expect(taken > before + 2 * RATE_HZ / 10 / 3);
	session_close(s);
}

TEST(children_are_not_sampled)
{
	struct seen seen = {0};
	struct session *s = open_session(&seen);
	struct pollfd p = {.fd = session_fd(s), .events = POLLIN};
	int64_t before = cpu_ns();
	uint64_t expected;
	pid_t child = fork();

	if (child == 0) {
		work(200 * NS_PER_MSEC);
		_exit(0);
	}
	expect(child > 0);
	/* Before Linux 5.13 its samples take room, and reading them takes time. */
	while (waitpid(child, NULL, WNOHANG) == 0) {
		poll(&p, 1, 10);
		session_drain(s, INT64_MAX);
	}
	expected = RATE_HZ * (uint64_t)(cpu_ns() - before) / NS_PER_SEC;
	expect(seen.n_stacks[0] + seen.n_stacks[1] < expected + RATE_HZ / 20);
	swap(s, &seen);
	session_close(s);
}

TEST(a_stopped_session_goes_on)
{
	struct seen seen = {0};
	struct session *s = open_session(&seen);
	struct error err = ERROR_NULL;

	session_stop(s);
	work(50 * NS_PER_MSEC);
	swap(s, &seen);
	expect_eq(session_start(s, RATE_HZ, &err), 0);
	work_and_read(s, 100 * NS_PER_MSEC);
	session_stop(s);
	expect(swap(s, &seen) > RATE_HZ / 10 / 10);
	session_close(s);
}

/* A thread that ends within a period has no sample, but its time is not forgotten. */
TEST(time_of_short_threads_is_missed)
{
	const int64_t ns = NS_PER_MSEC;
	struct seen seen = {0};
	struct session *s = open_session(&seen);
	struct session_info info;
	pthread_t thread;
	uint64_t taken;

	for (int i = 0; i < 100; i++) {
		expect_eq(pthread_create(&thread, NULL, work_in_thread, (void *)(uintptr_t)&ns), 0);
		pthread_join(thread, NULL);
	}
	session_stop(s);
	taken = swap(s, &seen);
	session_info(s, &info);
	printf("# %llu samples and %llu missed, %d expected\n", (unsigned long long)taken,
	       (unsigned long long)info.missed, RATE_HZ / 10);
	expect(taken + info.missed > RATE_HZ / 10 / 2);
	expect(info.missed > 0);
	session_close(s);
}

static char state_of_leader(void)
{
	char text[64] = {0};
	FILE *f = fopen("/proc/self/stat", "re");
	char state = '?';

	if (f && fgets(text, sizeof(text), f) && strrchr(text, ')'))
		state = strrchr(text, ')')[2];
	if (f)
		fclose(f);
	return state;
}

/* For a process of which the first thread ends. */
struct orphan {
	struct session *session;
	sem_t opened;
};

static void *read_without_leader(void *arg)
{
	struct orphan *o = arg;
	struct pollfd p = {.events = POLLIN};
	int ready;

	while (sem_wait(&o->opened) != 0)
		continue;
	while (state_of_leader() != 'Z')
		sched_yield();
	p.fd = session_fd(o->session);
	ready = poll(&p, 1, 0);
	session_drain(o->session, INT64_MAX);
	if (ready != 1)
		_exit(3);
	/* This thread's own samples may fill half a ring meanwhile, of which one is told once. */
	for (int i = 0; i < 3 && ready == 1; i++)
		ready = poll(&p, 1, 0);
	_exit(ready);
}

/* One waits for rings by events of the first thread, ready for ever once it has ended. */
TEST(the_end_of_the_first_thread_wakes_nobody_for_ever)
{
	struct seen seen = {0};
	int status;
	pid_t child;

	session_close(open_session(&seen)); /* or is skipped */
	child = fork();
	if (child == 0) {
		struct orphan o = {0};
		pthread_t thread;

		if (sem_init(&o.opened, 0, 0) != 0 ||
		    pthread_create(&thread, NULL, read_without_leader, &o) != 0)
			_exit(2);
		o.session = open_session(&seen);
		session_drain(o.session, INT64_MAX);
		sem_post(&o.opened);
		syscall(SYS_exit, 0); /* pthread_exit loads a library */
	}
	expect(child > 0);
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
}
