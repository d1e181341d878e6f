/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of OAuth2, between a client and a server that both gives them and wants them. */
#include "base/file.h"
#include "http/tests/test-exchange.h"
#include "testing/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct place {
	const char *wants;  /* what a request for a token must hold; NULL: anything */
	const char *gives;  /* the answer to it: the body, of status 200 */
	const char *faults; /* in its place, of status 400 */
	bool refuses_first; /* the first token is none at the server */
	atomic_int asked, served;
	char seen[512]; /* what the last request for a token was authorized by */
	char got[512];  /* the same of the last request that is none */
};

static const char *header(const char *request, const char *name)
{
	const char *at = strstr(request, name);

	return at ? at + strlen(name) : "";
}

static void copy_line(char *to, size_t n, const char *from)
{
	snprintf(to, n, "%.*s", (int)strcspn(from, "\r"), from);
}

static void answer(int fd, const char *status, const char *body)
{
	char text[4096];

	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status,
		 strlen(body), body);
	test_say(fd, text);
}

static void serve_place(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	struct place *p = context;
	char body[1024];

	if (!test_read_request(fd, request))
		return;
	if (strncmp(request, "POST /token ", 12) != 0) {
		copy_line(p->got, sizeof(p->got), header(request, "Authorization: "));
		p->served++;
		if (p->refuses_first && strcmp(p->got, "Bearer t1") == 0)
			answer(fd, "401 Unauthorized", "");
		else
			answer(fd, "200 OK", "hi");
		return;
	}
	p->asked++;
	copy_line(p->seen, sizeof(p->seen), header(request, "Authorization: "));
	if (p->wants && !strstr(request, p->wants)) {
		answer(fd, "401 Unauthorized",
		       "{\"error\":\"invalid_client\",\"error_description\":\"who\\nare you?\"}");
		return;
	}
	if (p->faults) {
		answer(fd, "400 Bad Request", p->faults);
		return;
	}
	snprintf(body, sizeof(body), p->gives ? "%s" : "{\"access_token\":\"t%s%d\"}",
		 p->gives ? p->gives : "", p->asked);
	answer(fd, "200 OK", body);
}

struct trial {
	struct exchange x;
	struct place place;
	struct http_oauth2 oauth2;
	char url[96];
};

static void begin(struct trial *t)
{
	exchange_init(&t->x, serve_place, &t->place);
	snprintf(t->url, sizeof(t->url), "%stoken", t->x.url);
	t->oauth2.token_url = str_of(t->url);
	t->oauth2.client_id = STR("me:1");
	if (!t->oauth2.client_secret_file.p)
		t->oauth2.client_secret = STR("s=cret");
	t->x.config.oauth2 = &t->oauth2;
}

/* Once, and each request has it. */
TEST(a_token_is_fetched_and_kept)
{
	static struct trial t;

	t.place.wants = "grant_type=client_credentials&scope=a%20b";
	t.oauth2.form = STR("&scope=a%20b");
	begin(&t);
	for (int i = 0; i < 3; i++) {
		exchange_run(&t.x);
		expect_eq(t.x.outcome.status, 200);
		expect_str(str_of(t.place.got), "Bearer t1");
	}
	expect_eq(t.place.asked, 1);
	expect_str(str_of(t.place.seen), "Basic bWUlM0ExOnMlM0RjcmV0"); /* me%3A1:s%3Dcret */
	exchange_fini(&t.x);
}

/* All that begin meanwhile wait for the one token. */
TEST(requests_wait_for_one_token)
{
	static struct trial t;
	struct outcome outcomes[5] = {{0}};
	struct error err = ERROR_NULL;
	uint64_t id[5];

	begin(&t);
	for (int i = 0; i < 5; i++) {
		struct http_request q = t.x.request;

		q.context = &outcomes[i];
		expect_eq(http_send(t.x.loop.client, &t.x.config, &q, &id[i], &err), 0);
	}
	http_cancel(t.x.loop.client, id[0]);
	expect(!http_withdraw(t.x.loop.client, id[4]));
	for (int i = 1; i < 4; i++) {
		expect(test_loop_until(&t.x.loop, &outcomes[i].done, 60000));
		expect_eq(outcomes[i].status, 200);
	}
	expect(!outcomes[0].done && !outcomes[4].done);
	expect(t.place.asked == 1 && t.place.served == 3);
	exchange_fini(&t.x);
}

/* A server that wants the secret in the form gets it there. */
TEST(the_secret_is_put_into_the_form_where_that_is_wanted)
{
	static struct trial t;

	t.place.wants = "&client_id=me%3A1&client_secret=s%3Dcret";
	begin(&t);
	exchange_run(&t.x);
	expect_eq(t.x.outcome.status, 200);
	expect_str(str_of(t.place.got), "Bearer t2");
	expect_str(str_of(t.place.seen), "");
	expect_eq(t.place.asked, 2);
	exchange_fini(&t.x);
}

/* The request ends, not sent, with what the server said; and another asks again. */
TEST(a_refusal_is_told)
{
	static const struct {
		const char *wants, *gives, *told;
	} rows[] = {
		{"nobody says this", NULL,
		 "gives no token (status 401, invalid_client: who are you?)"},
		{NULL, "{\"token\":1}", "answers without an access_token"},
		{NULL, "<html>", "answers without an access_token"},
		{NULL, "{\"access_token\":\"\"}", "answers without an access_token"},
		{NULL, "[[[[", "answers without an access_token"},
		{NULL, "{\"access_token\":\"a\\nb\"}", "that no header can hold"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		static struct trial t;

		memset(&t, 0, sizeof(t));
		t.place.wants = rows[i].wants;
		t.place.gives = rows[i].gives;
		begin(&t);
		for (int k = 0; k < 2; k++) {
			exchange_run(&t.x);
			if (t.x.outcome.result >= 0 || !strstr(t.x.outcome.error, rows[i].told))
				test_fail(__FILE__, __LINE__, "row %zu: %d, %s", i,
					  t.x.outcome.result, t.x.outcome.error);
			expect(!t.x.outcome.sent);
		}
		expect(t.place.served == 0 && t.place.asked >= 2);
		exchange_fini(&t.x);
	}
}

/* A fault that is no matter of style is told at once. */
TEST(a_wrong_scope_is_asked_for_once)
{
	static struct trial t;

	t.place.faults = "{\"error\":\"invalid_scope\"}";
	begin(&t);
	exchange_run(&t.x);
	expect(strstr(t.x.outcome.error, "(status 400, invalid_scope)"));
	expect_eq(t.place.asked, 1);
	exchange_fini(&t.x);
}

#ifndef SENDER
static int again;
static bool all_done;

/* Sends the same once more. */
static void send_again(void *context, const struct http_response *r)
{
	struct trial *t = context;
	struct error err = ERROR_NULL;

	expect(r->result < 0 && strstr(r->error, "gives no token"));
	if (again-- > 0)
		expect_eq(http_send(t->x.loop.client, &t->x.config, &t->x.request, &t->x.id, &err),
			  0);
	else
		all_done = true;
}

/* What is sent because there was no token asks for one. */
TEST(who_sends_again_asks_again)
{
	static struct trial t;
	struct error err = ERROR_NULL;

	t.place.wants = "nobody says this";
	begin(&t);
	again = 3;
	t.x.request.done = send_again;
	t.x.request.context = &t;
	expect_eq(http_send(t.x.loop.client, &t.x.config, &t.x.request, &t.x.id, &err), 0);
	expect(test_loop_until(&t.x.loop, &all_done, 60000));
	expect_eq(t.place.asked, 8); /* each in both styles */
	exchange_fini(&t.x);
}
#endif

/* One that a server no longer takes, or that is about to expire, is asked for again. */
TEST(a_token_that_serves_no_more_is_replaced)
{
	static struct trial t, brief;

	t.place.refuses_first = true;
	begin(&t);
	exchange_run(&t.x);
	expect_eq(t.x.outcome.status, 401);
	exchange_run(&t.x);
	expect_eq(t.x.outcome.status, 200);
	expect_str(str_of(t.place.got), "Bearer t2");
	exchange_fini(&t.x);

	brief.place.gives =
		"{\"access_token\":\"b\",\"token_type\":\"bearer\",\"expires_in\":\"9\"}";
	begin(&brief);
	exchange_run(&brief.x);
	exchange_run(&brief.x);
	expect_eq(brief.place.asked, 2);
	expect_str(str_of(brief.place.got), "Bearer b");
	exchange_fini(&brief.x);
}

/* A secret in a file is read for each token. */
TEST(a_secret_is_read_from_its_file)
{
	static struct trial t;
	char path[] = "/tmp/test-oauth2-XXXXXX";
	int fd = mkstemp(path);

	expect(fd >= 0 && write(fd, " new\n", 5) == 5);
	close(fd);
	t.oauth2.client_secret_file = str_of(path);
	begin(&t);
	exchange_run(&t.x);
	expect_eq(t.x.outcome.status, 200);
	expect_str(str_of(t.place.seen), "Basic bWUlM0ExOm5ldw=="); /* me%3A1:new */
	unlink(path);
	exchange_fini(&t.x);
}

/* No token server, and no more tokens than there may be. */
TEST(many_secrets_and_nobody_to_ask)
{
	static struct trial t;
	char secret[32];

	begin(&t);
	for (int i = 0; i < 100; i++) {
		t.oauth2.client_secret.p = secret;
		t.oauth2.client_secret.n =
			(size_t)snprintf(secret, sizeof(secret), "%d", i);
		exchange_run(&t.x);
		expect_eq(t.x.outcome.status, 200);
	}
	expect_eq(t.place.asked, 100);
	snprintf(t.url, sizeof(t.url), "http://127.0.0.1:%u/", test_unused_port());
	t.oauth2.token_url = str_of(t.url);
	exchange_run(&t.x);
	expect_eq(t.x.outcome.result, -ECONNREFUSED);
	expect(strstr(t.x.outcome.error, "no token: connection refused by 127.0.0.1"));
	exchange_fini(&t.x);
}

/* A client that ends while requests wait calls nobody, and leaves nothing. */
TEST(ends_while_requests_wait)
{
	static struct trial t;
	struct error err = ERROR_NULL;

	begin(&t);
	expect_eq(http_send(t.x.loop.client, &t.x.config, &t.x.request, &t.x.id, &err), 0);
	exchange_fini(&t.x);
	expect(!t.x.outcome.done);
}

#ifndef SENDER
static int send_one(void *context)
{
	struct trial *t = context;
	struct error err = ERROR_NULL;
	int r = http_send(t->x.loop.client, &t->x.config, &t->x.request, &t->x.id, &err);

	if (r == 0)
		http_cancel(t->x.loop.client, t->x.id);
	return r;
}

TEST(asking_survives_out_of_memory)
{
	static struct trial t;

	begin(&t);
	test_each_failing_allocation(send_one, &t);
	exchange_run(&t.x);
	expect_eq(t.x.outcome.status, 200);
	exchange_fini(&t.x);
}
#endif
