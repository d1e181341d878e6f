/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of discovery over the real /proc, with children of the test as processes and a
 * hand-made source of events, so that no privilege is needed. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "testing/test.h"
#include "process/discovery.h"
#include "process/tests/test-loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Events by hand. */
static struct {
	andiron_process_fn fn;
	void *arg;
} subscriber;

static int32_t subscribe(void *self, uint64_t instance, andiron_process_fn fn, void *arg,
			 uint64_t *ret_subscription)
{
	subscriber.fn = fn;
	subscriber.arg = arg;
	*ret_subscription = 1;
	return 0;
}

static void unsubscribe(void *self, uint64_t subscription)
{
	subscriber.fn = NULL;
}

static const struct andiron_process_events source = {
	.size = sizeof(source), .subscribe = subscribe, .unsubscribe = unsubscribe};

static uint64_t start_of(pid_t pid)
{
	_cleanup_(closep) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct proc_info info = PROC_INFO_NULL;

	expect_eq(proc_read(proc, (uint32_t)pid, 0, &info), 0);
	proc_info_free(&info);
	return info.start_ns;
}

static void tell(uint32_t kind, pid_t pid, uint64_t start_ns)
{
	const struct andiron_process_event event = {
		.kind = kind, .pid = (uint32_t)pid, .start_ns = start_ns};

	subscriber.fn(subscriber.arg, &event, 1);
}

/* A child that does not outlive a test that fails. */
static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (!pid && prctl(PR_SET_PDEATHSIG, SIGKILL))
		_exit(126);
	return pid;
}

static pid_t child(void)
{
	pid_t pid = fork_child();

	if (!pid) {
		pause();
		_exit(0);
	}
	expect(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	expect(waitpid(pid, NULL, 0) == pid);
}

static const struct discovery_config config = {
	.choice = {.exe = true, .cwd = true, .commandline = true, .container_id = true},
	.refresh_ns = 100 * NS_PER_MSEC};

static struct discovery *begin(struct loop *l, bool events)
{
	const struct andiron_host *host = loop_init(l);
	struct discovery *d;

	if (events)
		l->events = (struct andiron_extension){.table = &source};
	d = discovery_new(host, 5, &config);
	expect(d != NULL);
	expect_eq(discovery_start(d, NULL), 0);
	return d;
}

static bool never(void *context)
{
	return false;
}

static void end(struct loop *l, struct discovery *d)
{
	discovery_stop(d);
	loop_run(never, NULL, 10);
	discovery_free(d);
	loop_fini(l);
}

/* Looks for a process's row. */
struct search {
	struct loop *loop;
	char pid[16];
	bool wanted, found;
	char exe[256];
};

static void look_at(void *context, int change, struct target_row *row)
{
	struct search *s = context;
	struct str exe = target_label_value(row, "__meta_process_exe");

	if (!str_is(target_label_value(row, "__process_pid__"), s->pid))
		return;
	s->found = true;
	snprintf(s->exe, sizeof(s->exe), "%.*s", STR_FMT(exe));
}

static bool as_wanted(void *context)
{
	struct search *s = context;

	s->found = false;
	target_table_each(s->loop->targets, look_at, s);
	return s->found == s->wanted;
}

static struct search expect_target(struct loop *l, pid_t pid, bool wanted)
{
	struct search s = {.loop = l, .wanted = wanted};

	snprintf(s.pid, sizeof(s.pid), "%d", pid);
	if (!loop_run(as_wanted, &s, 60000))
		test_fail(__FILE__, __LINE__, "process %d is%s a target", pid,
			  wanted ? " not" : " still");
	return s;
}

/* Events bring a target and take it away; another start time is another process, whose end says
 * nothing of this one. */
TEST(events_make_targets)
{
	struct loop l;
	struct discovery *d = begin(&l, true);
	struct discovery_totals totals;
	pid_t pid = child();
	uint64_t start = start_of(pid);

	tell(ANDIRON_PROCESS_FORK, pid, start);
	expect_target(&l, pid, true);
	expect_eq(l.health, ANDIRON_HEALTH_HEALTHY);
	tell(ANDIRON_PROCESS_EXIT, pid, start - NS_PER_SEC);
	loop_run(never, NULL, 120);
	expect_target(&l, pid, true);
	end_child(pid);
	tell(ANDIRON_PROCESS_EXIT, pid, start);
	expect_target(&l, pid, false);
	discovery_totals(d, &totals);
	expect_eq(totals.targets + totals.processes, 0);
	end(&l, d);
}

/* What lives shorter than things gather is never read. */
TEST(short_lives_cost_nothing)
{
	struct loop l;
	struct discovery *d = begin(&l, true);
	struct discovery_totals totals;

	for (int i = 0; i < 1000; i++) {
		tell(ANDIRON_PROCESS_FORK, 100000 + i, 1);
		tell(ANDIRON_PROCESS_EXIT, 100000 + i, 1);
	}
	loop_run(never, NULL, 120);
	discovery_totals(d, &totals);
	expect_eq(totals.reads, 0);
	end(&l, d);
}

/* A thousand events within the gathering are one update. */
TEST(changes_are_gathered)
{
	enum { CHILDREN = 20 };
	struct loop l;
	struct discovery *d = begin(&l, true);
	pid_t pids[CHILDREN];

	loop_run(never, NULL, 120); /* however long nothing happened before */
	for (int i = 0; i < CHILDREN; i++) {
		pids[i] = child();
		for (int n = 0; n < 50; n++)
			tell(ANDIRON_PROCESS_EXEC, pids[i], start_of(pids[i]));
	}
	expect_target(&l, pids[CHILDREN - 1], true);
	expect_eq(l.n_rows_sent, CHILDREN);
	expect_eq(l.n_updates, 1);
	for (int i = 0; i < CHILDREN; i++)
		end_child(pids[i]);
	end(&l, d);
}

/* After an exec the target says so. */
TEST(exec_changes_the_target)
{
	struct loop l;
	struct discovery *d = begin(&l, true);
	struct search s;
	int gate[2];
	pid_t pid;
	char byte = 0;

	expect(pipe2(gate, O_CLOEXEC) == 0);
	pid = fork_child();
	if (!pid) {
		while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
			;
		execl("/bin/sleep", "sleep", "60", NULL);
		_exit(127);
	}
	tell(ANDIRON_PROCESS_FORK, pid, start_of(pid));
	s = expect_target(&l, pid, true);
	expect(!strstr(s.exe, "sleep"));
	expect(write(gate[1], &byte, 1) == 1);
	for (int i = 0; i < 100 && !strstr(s.exe, "sleep"); i++) {
		tell(ANDIRON_PROCESS_EXEC, pid, start_of(pid));
		loop_run(never, NULL, 70);
		s = expect_target(&l, pid, true);
	}
	expect(strstr(s.exe, "sleep") || strstr(s.exe, "busybox") || strstr(s.exe, "coreutils"));
	end_child(pid);
	close(gate[0]);
	close(gate[1]);
	end(&l, d);
}

/* When events were lost, /proc is listed: what is missing comes, what is gone goes. */
TEST(lost_events_are_made_up_for)
{
	struct loop l;
	struct discovery *d = begin(&l, true);
	pid_t stays = child(), goes = child();

	tell(ANDIRON_PROCESS_FORK, goes, start_of(goes));
	expect_target(&l, goes, true);
	end_child(goes);
	tell(ANDIRON_PROCESS_LOST, 0, 0);
	expect_target(&l, stays, true);
	expect_target(&l, goes, false);
	end_child(stays);
	end(&l, d);
}

/* Without events it lists /proc by its interval, and says what that means. */
TEST(without_events)
{
	struct loop l;
	struct discovery *d = begin(&l, false);
	pid_t pid;

	expect_target(&l, getpid(), true);
	expect_eq(l.health, ANDIRON_HEALTH_UNHEALTHY);
	expect(strstr(l.health_text, "100ms") != NULL);
	expect(l.n_warnings > 0);
	pid = child();
	expect_target(&l, pid, true);
	end_child(pid);
	expect_target(&l, pid, false);
	end(&l, d);
}

/* Kernel threads have no program and are no targets. */
TEST(no_kernel_threads)
{
	struct loop l;
	struct discovery *d = begin(&l, false);

	expect_target(&l, getpid(), true);
	loop_run(never, NULL, 150);
	expect_target(&l, 2, false);
	end(&l, d);
}

static void count_rows(void *context, int change, struct target_row *row)
{
	*(size_t *)context += target_label_value(row, "__meta_process_cwd").n != 0;
}

static bool no_cwd(void *context)
{
	size_t n = 0;

	target_table_each(((struct loop *)context)->targets, count_rows, &n);
	return n == 0;
}

/* New arguments hold for the processes that are there. */
TEST(update_reads_again)
{
	struct discovery_config other = config;
	struct loop l;
	struct discovery *d = begin(&l, true);
	pid_t pid = child();

	tell(ANDIRON_PROCESS_FORK, pid, start_of(pid));
	expect_target(&l, pid, true);
	expect(!no_cwd(&l));
	other.choice.cwd = false;
	discovery_update(d, &other);
	expect(loop_run(no_cwd, &l, 60000));
	end_child(pid);
	end(&l, d);
}
