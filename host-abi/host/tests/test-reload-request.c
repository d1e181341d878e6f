/* SPDX-License-Identifier: Apache-2.0 */
/* A component that asks for the configuration to be read again. */
#include "host/tests/test-support.h"

#include <andiron/status.h>

#include <errno.h>

struct scene {
	struct host *host;
	struct probe a;
	struct andiron_extension status;
	atomic_int n_reloads, n_answers;
	int answer; /* of whoever reads */
	int32_t got, again, first;
};

static void on_answer(void *arg, int32_t result)
{
	struct scene *s = arg;

	s->got = result;
	atomic_fetch_add(&s->n_answers, 1);
}

static int32_t ask(struct scene *s)
{
	const struct andiron_status *table = s->status.table;

	return table->reload(s->status.self, s->a.instance, on_answer, s);
}

static int read_again(void *context, struct error *err)
{
	struct scene *s = context;

	atomic_fetch_add(&s->n_reloads, 1);
	s->again = ask(s);
	return s->answer;
}

static void open_scene(struct scene *s, int (*reload)(void *context, struct error *err),
		       void (*live)(void *context, const char *failed))
{
	struct plan *plan = test_plan();

	test_node(plan, "a", &test_producer, &s->a);
	s->host = test_host((struct host_options){.reload = reload, .live = live, .context = s});
	expect_eq(host_load(s->host, plan, NULL), 0);
	expect_eq(s->a.host->extension(s->a.instance, ANDIRON_STATUS_ID, &s->status), 0);
}

/* The answer comes once, on the strand, after the configuration was read; meanwhile nobody else may
 * ask, and afterwards anybody. */
static void ask_twice(void *context, const char *failed)
{
	struct scene *s = context;

	s->answer = -EINVAL;
	s->first = ask(s);
	expect_eq(ask(s), -EBUSY);
	expect_eq(s->n_reloads, 0);
	test_until(s->host, &s->n_answers, 1);
	expect_eq(s->got, -EINVAL);
	s->answer = 0;
	expect_eq(ask(s), 0);
	test_until(s->host, &s->n_answers, 2);
	expect_eq(s->got, 0);
	host_stop(s->host);
}

TEST(one_request_at_a_time_is_answered)
{
	struct scene s = {0};

	open_scene(&s, read_again, ask_twice);
	test_run(s.host, 0);
	expect_eq(s.first, 0);
	expect_eq(s.again, -EBUSY);
	expect_eq(s.n_reloads, 2);
	expect_eq(s.n_answers, 2);
	host_free(s.host);
}

static void ask_and_stop(void *context, const char *failed)
{
	struct scene *s = context;

	expect_eq(ask(s), 0);
	host_stop(s->host);
}

/* A host that stops reads no configuration any more, and leaks no request. */
TEST(a_stopping_host_reads_nothing)
{
	struct scene s = {0};

	open_scene(&s, read_again, ask_and_stop);
	test_run(s.host, 0);
	expect_eq(s.n_reloads, 0);
	if (s.n_answers)
		expect_eq(s.got, -ECANCELED);
	host_free(s.host);
}

TEST(a_host_that_never_runs_reads_nothing)
{
	struct scene s = {0};

	open_scene(&s, read_again, NULL);
	expect_eq(ask(&s), 0);
	host_free(s.host);
	expect_eq(s.n_reloads, 0);
}

TEST(where_nobody_reads_that_is_said)
{
	struct scene s = {0};
	const struct andiron_status *table;

	open_scene(&s, NULL, NULL);
	table = s.status.table;
	expect_eq(ask(&s), -EOPNOTSUPP);
	expect_eq(table->reload(s.status.self, 12345, on_answer, &s), -EINVAL);
	host_free(s.host);
}

static struct str listed(struct host *host, struct buf *out)
{
	buf_clear(out);
	expect_eq(host_components_json(host, out), 0);
	return buf_str(out);
}

static void has(struct str text, const char *part)
{
	if (str_search(text, str_of(part)) >= text.n)
		test_fail(__FILE__, __LINE__, "no %s in %.*s", part, STR_FMT(text));
}

/* The list has Alloy's fields; who names whom follows from the edges, of both kinds. */
TEST(components_are_listed_as_alloy_does)
{
	struct probe a = {0}, b = {0}, w = {0};
	struct plan *plan = test_plan();
	struct host *host = test_host((struct host_options){0});
	struct buf out = BUF_NULL;
	uint32_t na, nb, nw;

	expect_str(listed(host, &out), "[]\n");
	na = test_node(plan, "mod.x/test.producer.a", &test_producer, &a);
	nb = test_node(plan, "test.forward.b", &test_forward, &b);
	nw = test_node(plan, "test.writer", &test_writer, &w);
	test_batches(plan, na, nb);
	test_batches(plan, nb, nw);
	expect_eq(host_load(host, plan, NULL), 0);
	listed(host, &out);
	has(buf_str(&out), "\"localID\":\"test.producer.a\",\"moduleID\":\"mod.x\"");
	has(buf_str(&out), "\"referencesTo\":[\"test.forward.b\"],\"referencedBy\":[]");
	has(buf_str(&out),
	    "\"referencesTo\":[\"test.writer\"],\"referencedBy\":[\"test.producer.a\"]");
	has(buf_str(&out), "\"referencesTo\":[],\"referencedBy\":[\"test.forward.b\"]");
	has(buf_str(&out), "\"dataFlowEdgesTo\":[\"test.forward.b\"],\"health\"");
	has(buf_str(&out), "\"dataFlowEdgesTo\":[],\"health\"");
	has(buf_str(&out), "\"health\":{\"state\":\"unknown\",\"message\":");
	buf_free(&out);
	host_free(host);
}
