/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a component supplies while it runs. */
#include "host/lang/supplied.h"
#include "host/tests/test-support.h"

#include <andiron/status.h>
#include <andiron/values.h>
#include <errno.h>

struct scene {
	struct host *host;
	struct probe a, b;
	struct andiron_component component; /* a producer that has a value, too */
	struct andiron_extension values;
	atomic_int n_refreshes;
	int answer;
	const char *bad; /* a value of which no plan is made, for the reason `answer` */
};

static const struct andiron_export exports[] = {{"targets", ANDIRON_EXPORT_TARGETS, 0, ""},
						{"content", ANDIRON_EXPORT_VALUE, 0, ""}};

static int32_t send_of(const struct scene *s, const struct probe *p, const char *name,
		       const char *text)
{
	const struct andiron_values *table = s->values.table;
	const struct andiron_value value = {.kind = ANDIRON_VALUE_STRING,
					    .string = {text, strlen(text)}};

	return table->send(s->values.self, p->instance, name, &value);
}

static int32_t send(const struct scene *s, const char *name, const char *text)
{
	return send_of(s, &s->a, name, text);
}

/* As a plan that is made now would have it. */
static bool has(const struct scene *s, const char *id, const char *text)
{
	const struct andiron_value *v = supplied_get(host_supplied(s->host), id, "content");

	return v && str_is((struct str){v->string.ptr, v->string.len}, text);
}

static int refresh(void *context)
{
	struct scene *s = context;

	atomic_fetch_add(&s->n_refreshes, 1);
	if (s->bad)
		return has(s, "a", s->bad) || has(s, "b", s->bad) ? s->answer : 0;
	return s->answer;
}

static void open_scene(struct scene *s, int (*refresh_fn)(void *context),
		       void (*live)(void *context, const char *failed))
{
	struct plan *plan = test_plan();

	s->component = test_producer;
	s->component.exports = exports;
	s->component.n_exports = 2;
	test_node(plan, "a", &s->component, &s->a);
	if (s->bad)
		test_node(plan, "b", &s->component, &s->b);
	s->host =
		test_host((struct host_options){.refresh = refresh_fn, .live = live, .context = s});
	expect_eq(host_load(s->host, plan, NULL), 0);
}

/* Values that come together change the graph once; the same again, and what is no value, not at
 * all. */
static void send_some(void *context, const char *failed)
{
	struct scene *s = context;

	expect_eq(s->a.host->extension(s->a.instance, ANDIRON_VALUES_ID, &s->values), 0);
	expect_eq(send(s, "content", "x"), 0);
	expect_eq(send(s, "content", "y"), 0);
	expect_eq(send(s, "targets", "y"), -EINVAL);
	expect_eq(send(s, "none", "y"), -EINVAL);
	expect_eq(send(s, "content", "\xff"), -EINVAL);
	test_until(s->host, &s->n_refreshes, 1);
	expect_eq(send(s, "content", "y"), 0);
	expect_str(str_of(supplied_get(host_supplied(s->host), "a", "content")->string.ptr), "y");
	s->answer = -EINVAL; /* what is refused is not tried again */
	expect_eq(send(s, "content", "z"), 0);
	test_until(s->host, &s->n_refreshes, 2);
	host_stop(s->host);
}

TEST(a_value_changes_the_graph)
{
	struct scene s = {0};

	open_scene(&s, refresh, send_some);
	test_run(s.host, 0);
	expect_eq(s.n_refreshes, 2);
	host_free(s.host);
}

static const char *health_of(const struct probe *p, uint32_t *ret_state)
{
	const struct instance *i = host_instance_of(p);

	*ret_state = i->health.state;
	return i->health.text;
}

/* A value that is refused leaves the last one, is told by its component's health, and holds up no
 * other. With another configuration it is tried again. */
static void send_a_bad_one(void *context, const char *failed)
{
	struct scene *s = context;
	struct plan *plan = test_plan();
	uint32_t state;
	int n;

	expect_eq(s->a.host->extension(s->a.instance, ANDIRON_VALUES_ID, &s->values), 0);
	expect_eq(send(s, "content", "good"), 0);
	test_until(s->host, &s->n_refreshes, 1);
	expect_eq(send(s, "content", "bad"), 0);
	expect_eq(send_of(s, &s->b, "content", "other"), 0);
	test_until(s->host, &s->n_refreshes, 4); /* both, then each */
	expect(has(s, "a", "good") && has(s, "b", "other"));
	expect(strstr(health_of(&s->a, &state), "its value is refused"));
	expect_eq(state, ANDIRON_HEALTH_UNHEALTHY);
	expect(!strstr(health_of(&s->b, &state), "refused"));
	expect_eq(send(s, "content", "bad"), -EPERM);
	n = s->n_refreshes;
	s->bad = "none";
	test_node(plan, "a", &s->component, &s->a);
	test_node(plan, "b", &s->component, &s->b);
	expect(vec_push(&plan->lists, ((struct plan_list){.id = "a"})) &&
	       vec_push(&plan->lists, ((struct plan_list){.id = "b"})));
	expect_eq(host_reload(s->host, plan, NULL), 0);
	/* Until another plan is made, what is refused is; and of the other one is. */
	expect(strstr(health_of(&s->a, &state), "its value is refused"));
	expect_str(str_of(health_of(&s->b, &state)), "its targets are known");
	test_until(s->host, &s->n_refreshes, n + 1);
	expect(has(s, "a", "bad"));
	health_of(&s->a, &state);
	expect_eq(state, ANDIRON_HEALTH_HEALTHY);
	host_stop(s->host);
}

TEST(a_refused_value_is_one_value)
{
	struct scene s = {.bad = "bad", .answer = -EINVAL};

	open_scene(&s, refresh, send_a_bad_one);
	test_run(s.host, 0);
	host_free(s.host);
}

/* What fails for a reason that may pass stays new: it is not refused, and is tried again. */
static void send_a_late_one(void *context, const char *failed)
{
	struct scene *s = context;
	uint32_t state;

	expect_eq(s->a.host->extension(s->a.instance, ANDIRON_VALUES_ID, &s->values), 0);
	expect_eq(send(s, "content", "late"), 0);
	test_until(s->host, &s->n_refreshes, 1);
	expect(!has(s, "a", "late"));
	expect(!strstr(health_of(&s->a, &state), "refused"));
	expect_eq(send(s, "content", "late"), 0);
	s->answer = 0;
	expect_eq(send_of(s, &s->b, "content", "more"), 0); /* sooner than in 10 s */
	test_until(s->host, &s->n_refreshes, 2);
	expect(has(s, "a", "late") && has(s, "b", "more"));
	host_stop(s->host);
}

TEST(what_may_pass_is_no_refusal)
{
	struct scene s = {.bad = "late", .answer = -EADDRINUSE};

	open_scene(&s, refresh, send_a_late_one);
	test_run(s.host, 0);
	host_free(s.host);
}

/* A value of a component that is gone is forgotten. */
TEST(who_is_gone_has_no_value)
{
	struct scene s = {0};
	struct probe b = {0};
	struct plan *plan = test_plan();

	open_scene(&s, refresh, NULL);
	expect_eq(s.a.host->extension(s.a.instance, ANDIRON_VALUES_ID, &s.values), 0);
	expect_eq(send(&s, "content", "x"), 0);
	expect_eq(supplied_try_all(s.host->supplied), 1);
	supplied_end(s.host->supplied, 0);
	expect(has(&s, "a", "x"));
	test_node(plan, "b", &test_producer, &b);
	expect_eq(host_reload(s.host, plan, NULL), 0);
	expect(!supplied_get(host_supplied(s.host), "a", "content"));
	host_free(s.host);
}

static void put_state(void *arg, const struct andiron_component_state *state)
{
	buf_printf(arg, "%.*s %u %u %.*s\n", (int)state->id.len, state->id.ptr, state->live,
		   state->health, (int)state->message.len, state->message.ptr);
}

static bool says(const struct buf *text, const char *words)
{
	return str_search(buf_str(text), str_of(words)) < text->n;
}

/* What waits is told wherever components are, with what it waits for. */
TEST(what_waits_is_told)
{
	static const struct registered_component registered = {.component = &test_writer};
	struct scene s = {0};
	struct plan *plan = test_plan();
	struct buf told = BUF_NULL;
	struct andiron_extension status;
	const struct andiron_status *table;

	open_scene(&s, refresh, NULL);
	test_node(plan, "a", &s.component, &s.a);
	expect(vec_push(&plan->waiting, ((struct plan_waiting){"m/w", "a", &registered})));
	expect_eq(host_reload(s.host, plan, NULL), 0);
	expect_eq(host_health_json(s.host, &told), 0);
	expect(str_starts(buf_str(&told), STR("{\"healthy\": false")));
	expect(says(&told, "{\"id\": \"m/w\", \"health\": \"unhealthy\", \"message\": "
			   "\"waits for a value of a\""));
	buf_clear(&told);
	expect_eq(host_components_json(s.host, &told), 0);
	expect(says(&told, "\"localID\":\"w\",\"moduleID\":\"m\""));
	expect(says(&told, "\"state\":\"unhealthy\",\"message\":\"waits for a value of a\""));
	buf_clear(&told);
	expect_eq(host_component_json(s.host, STR("m/w"), &told), 0);
	expect(says(&told, "\"arguments\":[]"));
	expect_eq(host_component_json(s.host, STR("w"), &told), -ENOENT);
	buf_clear(&told);
	expect_eq(host_metrics(s.host, &told), 0);
	expect(says(&told, "andiron_component_healthy{component_id=\"m/w\"} 0\n"));
	buf_clear(&told);
	expect_eq(s.a.host->extension(s.a.instance, ANDIRON_STATUS_ID, &status), 0);
	table = status.table;
	expect_eq(table->components(status.self, put_state, &told), 0);
	expect(str_ends(buf_str(&told), STR("m/w 0 2 waits for a value of a\n")));
	buf_free(&told);
	host_free(s.host);
}

/* Where nobody makes a plan again nobody takes values, and a plan that waits for one is refused. */
TEST(where_nobody_waits_that_is_said)
{
	struct scene s = {0};
	struct plan *plan = test_plan();
	struct error err = ERROR_NULL;

	open_scene(&s, NULL, NULL);
	expect_eq(s.a.host->extension(s.a.instance, ANDIRON_VALUES_ID, &s.values), -ENOENT);
	expect(vec_push(&plan->waiting, ((struct plan_waiting){"w", "v", NULL})));
	expect_eq(host_reload(s.host, plan, &err), -EOPNOTSUPP);
	expect(strstr(err.text, "w needs a value that v supplies"));
	host_free(s.host);
}
