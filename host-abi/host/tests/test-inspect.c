/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the targets of a graph that runs. */
#include "host/tests/test-support.h"

#include "abi/value.h"
#include "host/report/inspect.h"

#include <errno.h>

struct scene {
	struct host *host;
	struct probe early, late, user, filter;
	struct andiron_component dropping, needy;
	unsigned int n_looks, n_dropped;
	bool seen_waiting, over;
};

static struct scene scene;

static void publish(struct probe *p, const char *name)
{
	const struct target_label label = {STR("name"), str_of(name)};
	const struct andiron_targets *update = NULL;
	struct target_list *list = target_list_new(p->instance);

	expect(list != NULL);
	expect_eq(target_list_set(list, 1, 1, &label, 1), 0);
	expect_eq(target_list_flush(list, &update), 0);
	expect_eq(p->host->send_targets(p->instance, "targets", update), 0);
	update->release(update->owner);
	target_list_free(list);
}

static void publish_early(struct probe *p)
{
	publish(p, "early");
}

/* Drops all it is given. */
static int32_t each(void *self, const struct andiron_targets *targets,
		    const struct andiron_dropped_targets_sink *sink)
{
	expect_eq(targets->flags & ANDIRON_TARGETS_SNAPSHOT, ANDIRON_TARGETS_SNAPSHOT);
	for (uint64_t i = 0; i < targets->n_rows; i++) {
		const struct andiron_label *l = &targets->labels[targets->rows[i].label_start];
		const struct andiron_kv label = {targets->strings[l->name],
						 targets->strings[l->value]};
		const struct andiron_dropped_target target = {
			.labels = &label, .n_labels = 1, .file = "c.alloy", .line = 7, .rule = 2};

		sink->add(sink->self, &target);
	}
	return 0;
}

static int32_t each_matched(void *self, const struct andiron_target_processes_sink *sink)
{
	const struct andiron_kv label = {{"name", 4}, {"a\"b", 3}};
	const struct andiron_target_process process = {
		.pid = 7, .name = {"web", 3}, .runtime = {"Toy 1", 5}};
	struct andiron_target_processes_row target = {
		.labels = &label, .n_labels = 1, .processes = &process, .n_processes = 1};

	sink->add(sink->self, &target);
	target.n_processes = 0;
	target.why = (struct andiron_str){"gone", 4};
	sink->add(sink->self, &target);
	return 0;
}

static const char *const offers[] = {ANDIRON_DROPPED_TARGETS_ID, ANDIRON_TARGET_PROCESSES_ID, NULL};

static int32_t no_each(void *self, const struct andiron_target_processes_sink *sink)
{
	expect(false);
	return 0;
}

/* Of a component that has one table, and does not look at the id. */
static const void *any_extension(void *self, const char *id)
{
	static const struct andiron_target_processes other = {.size = sizeof(other),
							      .each = no_each};

	return &other;
}

static const void *extension(void *self, const char *id)
{
	static const struct andiron_dropped_targets dropped = {.size = sizeof(dropped),
							       .each = each};
	static const struct andiron_target_processes matched = {.size = sizeof(matched),
								.each = each_matched};

	if (strcmp(id, ANDIRON_DROPPED_TARGETS_ID) == 0)
		return &dropped;
	return strcmp(id, ANDIRON_TARGET_PROCESSES_ID) == 0 ? &matched : NULL;
}

static void see_dropped(void *self, const struct andiron_dropped_target *target)
{
	struct scene *s = self;

	s->n_dropped++;
	expect_eq(target->rule, 2);
	expect_eq(target->line, 7);
	expect_str(str_of(target->file), "c.alloy");
	expect_eq(target->n_labels, 1);
	expect_str(abi_str(target->labels->value), s->n_dropped == 1 ? "early" : "written");
}

static void see_row(void *context, int change, struct target_row *row)
{
	struct scene *s = context;

	s->n_looks++;
	expect_str(target_label_value(row, "name"), s->n_looks == 1 ? "early" : "late");
}

/* Once with everything started: one component has said nothing yet. */
static void look(void *context)
{
	struct scene *s = context;
	const struct andiron_dropped_targets_sink sink = {
		.size = sizeof(sink), .self = s, .add = see_dropped};
	struct buf text = BUF_NULL;
	const char *waiting = NULL;
	uint32_t state = 99;

	if (s->over) /* while the host stops, its timers go on */
		return;
	if (look_quiet_ns(s->host, &waiting) < 0) {
		if (!s->host->live || !str_is(str_of(waiting), "late") || s->seen_waiting)
			return;
		s->seen_waiting = true;
		publish(&s->late, "late");
		return;
	}
	expect(s->seen_waiting && !waiting);
	if (host_targets_json(s->host, &text) == -EBUSY) {
		buf_free(&text);
		return;
	}
	expect_str(buf_str(&text),
		   "{\n \"filter\": [\n  {\"target\": {\"name\": \"a\\\"b\"}, \"processes\": "
		   "[{\"pid\": 7, "
		   "\"name\": \"web\", \"runtime\": \"Toy 1\"}]},\n  "
		   "{\"target\": {\"name\": \"a\\\"b\"}, \"processes\": [], "
		   "\"why\": \"gone\"}]}\n");
	buf_free(&text);
	if (inspect_dropped_targets(s->host, "filter", &sink) == -EBUSY)
		return;
	expect_eq(inspect_dropped_targets(s->host, "user", &sink), 0);
	expect_eq(inspect_dropped_targets(s->host, "nobody", &sink), -ENOENT);
	expect_eq(look_targets(s->host, "early", see_row, s), 0);
	expect_eq(look_targets(s->host, "late", see_row, s), 0);
	expect_eq(look_targets(s->host, "nobody", see_row, s), -ENOENT);
	expect_eq(look_health(s->host, "late", &state, &text), 0);
	expect_eq(state, ANDIRON_HEALTH_HEALTHY);
	expect_str(buf_str(&text), "running");
	buf_free(&text);
	s->over = true;
	host_stop(s->host);
}

/* Nothing is quiet before everybody has said which targets it has; then rows and drops are there to
 * be seen, of those who can tell. Nobody is asked for what it does not offer. And who needs a
 * service that is not there runs all the same, if the host was told so. */
TEST(a_graph_that_settles)
{
	struct scene *s = &scene;
	struct plan *plan = test_plan();
	uint32_t early, filter;

	s->dropping = test_forward;
	s->dropping.extension = extension;
	s->dropping.offers = offers;
	s->needy = test_user;
	s->needy.extension = any_extension;
	s->early.on_start = publish_early;
	early = test_node(plan, "early", &test_producer, &s->early);
	test_node(plan, "late", &test_producer, &s->late);
	test_node(plan, "user", &s->needy, &s->user);
	filter = test_node(plan, "filter", &s->dropping, &s->filter);
	test_targets(plan, early, filter);
	test_literal(plan, filter, "name", "written");
	s->host = test_host((struct host_options){.keep_targets = true, .without_services = true});
	expect_eq(host_load(s->host, plan, NULL), 0);
	expect_eq(host_timer(s->host, 0, 1000000, look, s), 0);
	test_run(s->host, 0);
	expect_eq(s->n_looks, 2);
	expect_eq(s->n_dropped, 2);
	expect_eq(s->user.n_start, 1);
	host_free(s->host);
	probe_fini(&s->early);
	probe_fini(&s->late);
	probe_fini(&s->user);
	probe_fini(&s->filter);
}
