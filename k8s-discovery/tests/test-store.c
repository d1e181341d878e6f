/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are known, and the updates of targets that come of them. */
#include "base/hash.h"
#include "testing/test.h"
#include "k8s-discovery/publish.h"
#include "k8s-discovery/roles/selector.h"

#include <errno.h>
#include <stdlib.h>

/* A pod with this many containers, on this node. */
static int set_pod(struct store *store, uint32_t space, const char *name, int containers,
		   const char *node)
{
	json_t *list = json_array(), *json;
	struct object o = {0};
	int r;

	for (int i = 0; i < containers; i++)
		json_array_append_new(list, json_object());
	json = json_pack("{s{ss ss} s{ss so} s{ss}}", "metadata", "name", name, "namespace", "s",
			 "spec", "nodeName", node, "containers", list, "status", "podIP",
			 "10.0.0.1");
	expect(json);
	r = object_read_json(KIND_POD, json, &o);
	if (r == 0)
		r = store_set(store, space, KIND_POD, &o);
	object_fini(&o);
	json_decref(json);
	return r;
}

static void set_node(struct store *store, const char *name, const char *label)
{
	json_t *json = json_pack("{s{ss s{ss}}}", "metadata", "name", name, "labels", "l", label);
	struct object o = {0};

	expect_eq(object_read_json(KIND_NODE, json, &o), 0);
	expect_eq(store_set(store, 9, KIND_NODE, &o), 0);
	object_fini(&o);
	json_decref(json);
}

struct world {
	struct store store;
	struct publisher publisher;
	struct target_table *table;
	int changes[4];
};

static void on_change(void *context, int change, struct target_row *row)
{
	((struct world *)context)->changes[change]++;
}

static void begin(struct world *w, const struct role_options *options)
{
	*w = (struct world){.table = target_table_new()};
	w->publisher.producer = 1;
	w->publisher.store = &w->store;
	publisher_use(&w->publisher, &role_pod, options);
}

static void end(struct world *w)
{
	target_table_free(w->table);
	publisher_fini(&w->publisher);
	store_free(&w->store);
}

/* Publishes all there is; returns how many updates that took. */
static int publish(struct world *w)
{
	bool more = true;
	int n = 0;

	memset(w->changes, 0, sizeof(w->changes));
	while (more) {
		const struct andiron_targets *u = NULL;

		expect_eq(publisher_next(&w->publisher, &u, &more), 0);
		if (!u)
			continue;
		expect_eq(target_table_apply(w->table, u, on_change, w), 0);
		u->release(u->owner);
		n++;
	}
	expect_eq(w->publisher.targets, target_table_count(w->table));
	return n;
}

/* A change of one pod changes its own rows, and no others. */
TEST(pods_come_change_and_go)
{
	struct world w;

	begin(&w, &(struct role_options){0});
	expect_eq(publish(&w), 1); /* an empty snapshot */
	expect_eq(publish(&w), 0);
	expect_eq(set_pod(&w.store, 0, "a", 2, "n"), 0);
	expect_eq(set_pod(&w.store, 0, "b", 1, "n"), 0);
	expect_eq(publish(&w), 1);
	expect_eq(w.changes[TARGET_ADDED], 3);
	expect_eq(set_pod(&w.store, 0, "a", 2, "n"), 0);
	expect_eq(publish(&w), 0);
	expect_eq(set_pod(&w.store, 0, "a", 3, "m"), 0);
	publish(&w);
	expect_eq(w.changes[TARGET_ADDED], 1);
	expect_eq(w.changes[TARGET_CHANGED], 2);
	expect_eq(set_pod(&w.store, 0, "a", 1, "m"), 0);
	publish(&w);
	expect_eq(w.changes[TARGET_REMOVED], 2);
	expect_eq(store_remove(&w.store, KIND_POD, STR("s"), STR("a")), 0);
	expect(!store_find(&w.store, KIND_POD, STR("s"), STR("a")));
	expect_eq(set_pod(&w.store, 0, "a", 2, "m"), 0); /* gone and back is a change */
	publish(&w);
	expect_eq(w.changes[TARGET_ADDED], 1);
	expect_eq(w.changes[TARGET_REMOVED], 0);
	expect_eq(store_remove(&w.store, KIND_POD, STR("s"), STR("a")), 0);
	expect_eq(store_remove(&w.store, KIND_POD, STR("s"), STR("nobody")), 0);
	publish(&w);
	expect_eq(w.changes[TARGET_REMOVED], 2);
	expect_eq(w.store.n[KIND_POD], 1);
	expect_eq(w.store.unused.n, 1);
	end(&w);
}

/* What a relist does not name any more is gone, in its own space only. */
TEST(a_relist_sweeps)
{
	struct world w;

	begin(&w, &(struct role_options){0});
	set_pod(&w.store, 0, "a", 1, "n");
	set_pod(&w.store, 0, "b", 1, "n");
	set_pod(&w.store, 1, "c", 1, "n");
	publish(&w);
	store_begin(&w.store, 0);
	set_pod(&w.store, 0, "b", 1, "n");
	expect_eq(store_sweep(&w.store, 0), 0);
	publish(&w);
	expect_eq(w.changes[TARGET_REMOVED], 1);
	expect_eq(w.store.n[KIND_POD], 2);
	expect_eq(store_sweep_below(&w.store, 1), 0);
	publish(&w);
	expect_eq(w.store.n[KIND_POD], 1);
	expect_eq(target_table_count(w.table), 1);
	end(&w);
}

/* A node that changes changes the targets of its pods, and no others. */
TEST(referring_objects_are_made_anew)
{
	struct world w;

	begin(&w, &(struct role_options){.attach_node = true});
	set_pod(&w.store, 0, "a", 1, "n");
	set_pod(&w.store, 0, "b", 1, "m");
	set_node(&w.store, "n", "1");
	publish(&w);
	expect_eq(w.changes[TARGET_ADDED], 1);
	set_node(&w.store, "m", "1");
	publish(&w);
	expect_eq(w.changes[TARGET_ADDED], 1);
	set_node(&w.store, "n", "2");
	publish(&w);
	expect_eq(w.changes[TARGET_CHANGED], 1);
	expect_eq(store_remove(&w.store, KIND_NODE, STR_NULL, STR("n")), 0);
	publish(&w);
	expect_eq(w.changes[TARGET_REMOVED], 1);
	publisher_use(&w.publisher, &role_pod, &(struct role_options){0});
	publish(&w);
	expect_eq(target_table_count(w.table), 2);
	/* Another role: what were targets are none any more. */
	publisher_use(&w.publisher, &role_node, &(struct role_options){0});
	publish(&w);
	expect_eq(target_table_count(w.table), 0);
	end(&w);
}

/* A large list is many short updates. */
TEST(many_targets_are_many_updates)
{
	struct world w;
	char name[16];

	begin(&w, &(struct role_options){0});
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		set_pod(&w.store, 0, name, 2, "n");
	}
	expect(publish(&w) >= 10000 / (2 * PUBLISH_ROWS));
	expect_eq(target_table_count(w.table), 10000);
	end(&w);
}

static void late(void *context, int change, struct target_row *row)
{
	expect_eq(change, TARGET_ADDED);
	++*(size_t *)context;
}

/* All again: whoever has the targets sees no change, and who begins with an empty snapshot has all
 * of them afterwards; in as many updates, and only once. */
TEST(all_targets_again)
{
	struct target_table *table = target_table_new();
	struct andiron_targets none = {.size = sizeof(none), .flags = ANDIRON_TARGETS_SNAPSHOT};
	const struct andiron_targets *update = NULL;
	size_t n_late = 0, n_updates = 0;
	bool more = true;
	struct world w;
	char name[16];

	begin(&w, &(struct role_options){0});
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		set_pod(&w.store, 0, name, 2, "n");
	}
	publish(&w);
	none.producer = w.publisher.producer;
	none.generation = w.publisher.generation;
	expect_eq(target_table_apply(table, &none, late, &n_late), 0);
	publisher_again(&w.publisher);
	for (; more; n_updates++) {
		expect_eq(publisher_next(&w.publisher, &update, &more), 0);
		expect_eq(update->n_added, 0);
		expect(update->n_rows <= PUBLISH_ROWS + 2);
		expect_eq(target_table_apply(table, update, late, &n_late), 0);
		update->release(update->owner);
	}
	expect_eq(n_late, 6000);
	expect(n_updates >= 6000 / (2 * PUBLISH_ROWS));
	expect_eq(publisher_next(&w.publisher, &update, &more), 0);
	expect(!update);
	target_table_free(table);
	end(&w);
}

/* The store against a plain array of what must be in it. */
TEST(store_agrees_with_a_model)
{
	bool model[50] = {false};
	size_t n = 0;
	uint64_t state = 7;
	struct world w;
	char name[16];

	begin(&w, &(struct role_options){0});
	for (int round = 0; round < 5000; round++) {
		uint32_t i;

		state = hash_u64(state);
		i = (uint32_t)(state % 50);
		snprintf(name, sizeof(name), "p%u", i);
		if (state >> 40 & 1) {
			expect_eq(set_pod(&w.store, 0, name, 1 + (int)(state >> 44 & 3), "n"), 0);
			n += !model[i];
			model[i] = true;
		} else {
			expect_eq(store_remove(&w.store, KIND_POD, STR("s"), str_of(name)), 0);
			n -= model[i];
			model[i] = false;
		}
		if ((state >> 50) % 4 == 0)
			publish(&w);
	}
	publish(&w);
	expect_eq(w.store.n[KIND_POD], n);
	for (uint32_t i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		expect_eq(store_find(&w.store, KIND_POD, STR("s"), str_of(name)) != NULL, model[i]);
	}
	expect(w.store.slots.n <= 50 + 50);
	end(&w);
}

static int set_and_publish(void *context)
{
	struct object *o = context;
	struct store store = {0};
	struct publisher p = {.producer = 1, .store = &store};
	const struct andiron_targets *u = NULL;
	bool more;
	int r = store_set(&store, 0, KIND_POD, o);

	publisher_use(&p, &role_pod, &(struct role_options){.without_ip = true});
	if (r == 0)
		r = publisher_next(&p, &u, &more);
	if (r == 0) {
		u->release(u->owner);
		r = store_remove(&store, KIND_POD, o->namespace_, o->name);
	}
	u = NULL;
	if (r == 0)
		r = publisher_next(&p, &u, &more);
	if (u)
		u->release(u->owner);
	publisher_fini(&p);
	store_free(&store);
	return r;
}

TEST(publishing_survives_failing_allocations)
{
	json_t *json = json_loads("{\"metadata\":{\"name\":\"p\",\"labels\":{\"a\":\"b\"}},"
				  "\"spec\":{\"containers\":[{},{}]}}",
				  0, NULL);
	struct object o = {0};

	expect_eq(object_read_json(KIND_POD, json, &o), 0);
	test_each_failing_allocation(set_and_publish, &o);
	object_fini(&o);
	json_decref(json);
}

/* What the API server's own parser takes is taken, and nothing else. */
TEST(selectors_are_checked)
{
	static const struct {
		const char *text;
		bool good;
	} labels[] = {
		{"", true},
		{"app=web,tier!=db", true},
		{" app in (a, b,), !gone, x.y/z , n > 3", true},
		{"app notin ()", true},
		{"a==b", true},
		{"a b", false},
		{"app in a", false},
		{"app in (a", false},
		{"a=b c=d", false},
		{"n > x", false},
		{"-a=b", false},
		{"a=b,", false},
		{"a/b/c=d", false},
	};
	static const struct {
		const char *text;
		bool good;
	} fields[] = {
		{"", true},        {"spec.nodeName=n1,status.phase!=Failed", true},
		{"a==b", true},    {"a=b\\,c", true},
		{"a", false},      {"a=b\\", false},
		{"a=b\\c", false},
	};

	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
		struct error err = ERROR_NULL;

		if ((selector_check_labels(str_of(labels[i].text), &err) == 0) != labels[i].good)
			test_fail(__FILE__, __LINE__, "\"%s\": %s", labels[i].text, err.text);
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		struct error err = ERROR_NULL;

		if ((selector_check_fields(str_of(fields[i].text), &err) == 0) != fields[i].good)
			test_fail(__FILE__, __LINE__, "\"%s\": %s", fields[i].text, err.text);
	}
}
