/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of test-exchange.h. */
#include "http/tests/test-exchange.h"

#include "testing/test.h"

#include <stdlib.h>
#include <sys/socket.h>

void outcome_done(void *context, const struct http_response *r)
{
	struct outcome *o = context;

	o->done = true;
	o->calls++;
	o->result = r->result;
	o->status = r->status;
	o->sent = r->sent;
	o->retry_after_ms = r->retry_after_ms;
	o->elapsed_ns = r->elapsed_ns;
	snprintf(o->error, sizeof(o->error), "%s", r->error);
	o->n = r->body.n < sizeof(o->body) ? r->body.n : sizeof(o->body);
	if (o->n)
		memcpy(o->body, r->body.p, o->n);
}

void exchange_init(struct exchange *x, test_serve_fn serve, void *context)
{
	memset(x, 0, sizeof(*x));
	test_loop_init(&x->loop);
	exchange_serve(x, serve, context);
}

void exchange_serve(struct exchange *x, test_serve_fn serve, void *context)
{
	x->server = test_server_new(serve, context);
	snprintf(x->url, sizeof(x->url), "http://127.0.0.1:%u/", test_server_port(x->server));
	x->config.follow_redirects = true;
	x->request = (struct http_request){
		.method = "GET",
		.url = str_of(x->url),
		.timeout_ms = 10000,
		.max_response = 4096,
		.done = outcome_done,
		.context = &x->outcome,
	};
}

void exchange_run(struct exchange *x)
{
	struct error err = ERROR_NULL;

	x->outcome.done = false;
	if (http_send(x->loop.client, &x->config, &x->request, &x->id, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	expect(!x->outcome.done);
	expect(test_loop_until(&x->loop, &x->outcome.done, 60000));
	expect_eq(x->outcome.calls, 1);
	x->outcome.calls = 0;
}

void exchange_fini(struct exchange *x)
{
	test_loop_fini(&x->loop);
	test_server_free(x->server);
}

/* Serves each request with the text that it was given; closes after it. */
void serve_text(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];

	if (test_read_request(fd, request))
		test_say(fd, context);
}

void exchange_text(struct exchange *x, const char *answer)
{
	char *text = strdup(answer);

	expect(text);
	exchange_init(x, serve_text, text);
	exchange_run(x);
	exchange_fini(x);
	free(text);
}

/* Answers to the first part of the request, then waits until the peer goes. */
void serve_hang(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];

	if (test_read_request(fd, request) && (!context || test_say(fd, context)))
		recv(fd, request, 1, 0);
}
