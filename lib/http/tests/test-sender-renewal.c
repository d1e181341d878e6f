/* SPDX-License-Identifier: Apache-2.0 */
/* A sender whose process can no longer read what it is to read, since files were replaced. */
#include "http/tests/acted.h"
#include "testing/test.h"

#include <errno.h>
#include <string.h>

static char hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/* A process that can no longer read what it is to read is replaced before it gets another request,
 * and nobody has to wait for that. */
TEST(replaces_what_reads_old_files)
{
	static struct exchange x;
	struct acted a = {.script = NULL};

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

/* Not while it makes a request whose answer counts; a stream, which may last for ever, is ended for
 * it. */
TEST(only_streams_are_ended_for_new_files)
{
	static struct exchange x;
	struct acted a = {.script = NULL};
	struct error err = ERROR_NULL;
	uint64_t hanging, id;
	struct http_request q;
	bool flag;

	acted_begin(&x, &a, serve_hang, NULL);
	q = x.request;
	q.data = take_all;
	q.done = note_done;
	q.context = &flag;
	hanging = acted_hang(&x, &flag);
	a.stale = true;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	expect_eq(a.starts, 1);
	http_cancel(x.loop.client, hanging);
	flag = false;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), -EAGAIN);
	expect(test_loop_until(&x.loop, &flag, 60000));
	expect(strstr(a.why, "files that it reads were replaced"));
	expect(a.starts == 1 && a.ends == 1);
	exchange_fini(&x);
}

/* It keeps the old process for a while: others may fail for as long. */
TEST(an_answer_that_counts_is_not_waited_for_for_ever)
{
	static struct exchange x;
	struct acted a = {.script = NULL, .stale_ms = 1};
	struct http_request q;
	struct error err = ERROR_NULL;
	bool flag, last;
	uint64_t id;
	int r;

	acted_begin(&x, &a, serve_hang, NULL);
	acted_hang(&x, &flag);
	flag = false;
	a.stale = true;
	q = x.request;
	q.done = note_done;
	q.context = &last;
	do
		r = http_send(x.loop.client, &x.config, &q, &id, &err);
	while (r == 0);
	expect_eq(r, -EAGAIN);
	expect(test_loop_until(&x.loop, &flag, 60000));
	expect(strstr(a.why, "files that it reads were replaced"));
	expect_eq(a.after_ms, HTTP_SENDER_FIRST_MS);
	exchange_fini(&x);
}
