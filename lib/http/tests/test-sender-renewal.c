/* SPDX-License-Identifier: Apache-2.0 */
/* A sender whose process can no longer read what it is to read, since files were replaced. */
#include "http/tests/acted.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/* A process that can no longer read what it is to read is replaced before it gets another request,
 * and nobody has to wait for that. */
TEST(replaces_what_reads_old_files)
{
	static struct exchange x;
	struct acted a = {.further = 1};

	acted_begin(&x, &a, serve_text, hello);
	exchange_run(&x);
	a.stale = true;
	exchange_run(&x);
	expect_eq(x.outcome.status, 200);
	expect(a.starts == 2 && a.ends == 0);
	exchange_run(&x);
	expect_eq(a.starts, 2);
	exchange_fini(&x);
}

static bool take_all(void *context, struct str piece)
{
	return true;
}

struct gate {
	int fds[2]; /* a pipe: what is answered first waits for a byte */
	int served;
};

/* To the first connection when it may, to any further one at once. */
static void serve_late(int fd, void *context)
{
	struct gate *gate = context;
	char byte;

	if (gate->served++ == 0 && read(gate->fds[0], &byte, 1) != 1)
		return;
	serve_text(fd, hello);
}

static void open_gate(struct gate *gate)
{
	expect(write(gate->fds[1], "", 1) == 1);
}

static bool runs(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid;
}

/* It may end later than it is no longer needed; whether it has been reaped by then is all one. */
static void await_end(pid_t pid)
{
	siginfo_t info;

	expect(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 || errno == ECHILD);
}

/* What is under way stays with the old process, which answers it and then goes; all that is asked
 * after it is made by the next one. A stream is no exception. */
TEST(requests_under_way_are_not_cut_for_new_files)
{
	static struct exchange x;
	struct acted a = {.further = 1};
	struct outcome late = {.done = false}, next = {.done = false};
	struct error err = ERROR_NULL;
	struct gate gate = {.served = 0};
	struct http_request q;
	uint64_t id;
	pid_t old;

	expect(pipe2(gate.fds, O_CLOEXEC) == 0);
	acted_begin(&x, &a, serve_late, &gate);
	old = a.pid;
	q = x.request;
	q.data = take_all;
	q.context = &late;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	a.stale = true;
	q = x.request;
	q.context = &next;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	expect(a.starts == 2 && a.pid != old && runs(old));
	open_gate(&gate);
	expect(test_loop_until(&x.loop, &late.done, 60000));
	expect_eq(late.status, 200);
	expect(test_loop_until(&x.loop, &next.done, 60000));
	expect_eq(next.status, 200);
	exchange_run(&x);
	await_end(old);
	expect(a.ends == 0 && a.starts == 2);
	exchange_fini(&x);
	close(gate.fds[0]);
	close(gate.fds[1]);
}

/* One that nobody wants any more keeps nothing, whether it is cancelled or withdrawn. */
TEST(an_old_process_without_requests_goes)
{
	static struct exchange x;
	struct acted a = {.further = 1};
	struct error err = ERROR_NULL;
	struct http_request q;
	bool first, second, last;
	uint64_t ids[2], id;
	pid_t old;

	acted_begin(&x, &a, serve_hang, NULL);
	old = a.pid;
	ids[0] = acted_hang(&x, &first);
	ids[1] = 0;
	q = x.request;
	q.done = note_done;
	q.context = &second;
	expect_eq(http_send(x.loop.client, &x.config, &q, &ids[1], &err), 0);
	a.stale = true;
	last = false;
	q.context = &last;
	q.timeout_ms = 1;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	expect_eq(a.starts, 2);
	http_withdraw(x.loop.client, ids[1]);
	http_cancel(x.loop.client, ids[0]);
	expect(test_loop_until(&x.loop, &last, 60000));
	await_end(old);
	expect_eq(a.ends, 0);
	exchange_fini(&x);
}

/* Not for ever: what has not ended by then fails, and says why. */
TEST(an_old_process_is_not_kept_for_ever)
{
	static struct exchange x;
	struct acted a = {.further = 1, .stale_ms = 1};
	struct outcome hanging = {.done = false};
	struct http_request q;
	struct error err = ERROR_NULL;
	bool flag;
	uint64_t id;
	pid_t old;

	acted_begin(&x, &a, serve_hang, NULL);
	old = a.pid;
	q = x.request;
	q.context = &hanging;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	a.stale = true;
	flag = false;
	q.done = note_done;
	q.context = &flag;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	expect(test_loop_until(&x.loop, &hanging.done, 60000));
	expect_eq(hanging.result, -ECONNRESET);
	expect(strstr(hanging.error, "files that it reads were replaced"));
	await_end(old);
	expect(!flag && a.starts == 2 && a.ends == 0);
	exchange_fini(&x);
}

/* Files may be replaced again meanwhile: then a third one waits for the first to end. */
TEST(there_are_two_processes_at_most)
{
	static struct exchange x;
	struct acted a = {.further = 2};
	struct error err = ERROR_NULL;
	struct http_request q;
	bool first, last = false;
	uint64_t hanging, id;

	acted_begin(&x, &a, serve_hang, NULL);
	hanging = acted_hang(&x, &first);
	q = x.request;
	q.done = note_done;
	q.context = &last;
	a.stale = true;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	a.stale = true;
	q.timeout_ms = 1;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	expect_eq(a.starts, 2);
	http_cancel(x.loop.client, hanging);
	expect(test_loop_until(&x.loop, &last, 60000));
	last = false;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	expect_eq(a.starts, 3);
	expect(test_loop_until(&x.loop, &last, 60000));
	exchange_fini(&x);
}
