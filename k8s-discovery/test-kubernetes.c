/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, lists and events as the API server writes them. */
#include "answer.h"
#include "base/hash.h"
#include "base/test.h"
#include "store.h"

#include <errno.h>
#include <stdlib.h>

#define POD                                                                                        \
	"{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u1\",\"resourceVersion\":\"7\"," \
	"\"labels\":{\"app.kubernetes.io/name\":\"web\",\"a/b\":\"1\",\"a_b\":\"2\",\"\xc3\xa9x\":\"3\"},"  \
	"\"annotations\":{\"note\":\"\"},"                                                         \
	"\"ownerReferences\":[{\"kind\":\"Node\",\"name\":\"n\"},"                                 \
	"{\"kind\":\"ReplicaSet\",\"name\":\"web\",\"controller\":true}]},"                        \
	"\"spec\":{\"nodeName\":\"n1\",\"containers\":["                                           \
	"{\"name\":\"app\",\"image\":\"app:1\",\"ports\":[{\"name\":\"http\",\"containerPort\":80},"       \
	"{\"containerPort\":53,\"protocol\":\"UDP\"}]},{\"name\":\"side\",\"image\":\"side:1\"}],"         \
	"\"initContainers\":[{\"name\":\"setup\"}]},"                                              \
	"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.7\",\"hostIP\":\"10.1.0.1\","                \
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"                               \
	"\"containerStatuses\":[{\"name\":\"app\",\"containerID\":\"containerd://abc\"}]}}"

#define LIST(items) "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" items "]}"

static struct str label(const struct pod_target *t, const char *name)
{
	struct str value = STR_NULL;

	for (size_t i = 0; i < t->n_labels; i++)
		if (str_is(t->labels[i].name, name))
			value = t->labels[i].value;
	return value;
}

#define META "__meta_kubernetes_"

TEST(a_pod_becomes_a_target_per_port_or_container)
{
	json_t *object = json_loads(POD, 0, NULL);
	const struct pod_target *t;
	struct pod pod;

	expect_eq(pod_parse(object, &pod), 0);
	expect_str(pod.key, "shop/web-1");
	expect_eq(pod.targets.n, 4);
	t = &pod.targets.p[0];
	expect_str(label(t, "__address__"), "10.0.0.7:80");
	expect_str(label(t, META "namespace"), "shop");
	expect_str(label(t, META "pod_ready"), "true");
	expect_str(label(t, META "pod_phase"), "Running");
	expect_str(label(t, META "pod_controller_kind"), "ReplicaSet");
	expect_str(label(t, META "pod_controller_name"), "web");
	expect_str(label(t, META "pod_label_app_kubernetes_io_name"), "web");
	expect_str(label(t, META "pod_labelpresent_app_kubernetes_io_name"), "true");
	expect_str(label(t, META "pod_label__x"), "3");
	expect_str(label(t, META "pod_annotationpresent_note"), "true");
	expect_str(label(t, META "pod_container_id"), "containerd://abc");
	expect_str(label(t, META "pod_container_port_name"), "http");
	expect_str(label(t, META "pod_container_port_protocol"), "TCP");
	/* "a/b" and "a_b" are one label; the one that sorts last wins. */
	expect_str(label(t, META "pod_label_a_b"), "2");
	t = &pod.targets.p[1];
	expect_str(label(t, "__address__"), "10.0.0.7:53");
	expect_str(label(t, META "pod_container_port_protocol"), "UDP");
	expect_str(label(t, META "pod_container_port_name"), "");
	t = &pod.targets.p[2];
	expect_str(label(t, "__address__"), "10.0.0.7");
	expect_str(label(t, META "pod_container_name"), "side");
	expect_str(label(t, META "pod_container_init"), "false");
	t = &pod.targets.p[3];
	expect_str(label(t, META "pod_container_name"), "setup");
	expect_str(label(t, META "pod_container_init"), "true");
	expect_str(label(t, META "pod_container_id"), "");
	pod_fini(&pod);
	json_decref(object);
}

TEST(ipv6_addresses_have_brackets_where_a_port_follows)
{
	json_t *object = json_loads("{\"metadata\":{\"name\":\"p\"},\"status\":{\"podIP\":\"fd00::1\"},"
				    "\"spec\":{\"containers\":[{\"ports\":[{\"containerPort\":1}]},{}]}}",
				    0, NULL);
	struct pod pod;

	expect_eq(pod_parse(object, &pod), 0);
	expect_str(label(&pod.targets.p[0], "__address__"), "[fd00::1]:1");
	expect_str(label(&pod.targets.p[1], "__address__"), "fd00::1");
	pod_fini(&pod);
	json_decref(object);
}

TEST(a_pod_without_an_address_has_no_targets)
{
	json_t *object = json_loads("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{}]}}", 0, NULL);
	json_t *nobody = json_loads("{\"metadata\":{}}", 0, NULL);
	struct pod pod;

	expect_eq(pod_parse(object, &pod), 0);
	expect_eq(pod.targets.n, 0);
	pod_fini(&pod);
	expect_eq(pod_parse(nobody, &pod), -EINVAL);
	json_decref(object);
	json_decref(nobody);
}

static int take_list(void *context)
{
	struct store *store = store_new(1);
	struct page page;
	int r = -ENOMEM;

	(void)context;
	if (store)
		r = page_parse(STR(LIST(POD)), &page, NULL);
	/* jansson's own allocations fail as "not JSON". */
	if (r == -EPROTO)
		r = -ENOMEM;
	if (r == 0) {
		r = store_set(store, 0, &page.pods.p[0]);
		if (r == 0)
			expect_eq(store_pods(store), 1);
		page_fini(&page);
	}
	store_free(store);
	return r;
}

TEST(lists_survive_failing_allocations)
{
	test_each_failing_allocation(take_list, NULL);
}

static void count(void *context, int change, struct target_row *row)
{
	(void)row;
	*(int *)context += change != TARGET_REMOVED;
}

/* What a relist does not name any more is gone, in its own space only. */
TEST(a_relist_sweeps)
{
	struct store *store = store_new(1);
	struct target_table *table = target_table_new();
	const struct andiron_targets *u = NULL;
	struct pod a = {.key = STR("x/a")}, b = {.key = STR("y/b")};
	struct pod_target t = {0};
	int changes = 0;

	vec_push(&a.targets, t);
	vec_push(&b.targets, t);
	expect_eq(store_set(store, 0, &a), 0);
	expect_eq(store_set(store, 1, &b), 0);
	store_begin(store, 0);
	store_sweep(store, 0);
	expect_eq(store_pods(store), 1);
	expect_eq(target_list_flush(store_list(store), &u), 0);
	expect_eq(target_table_apply(table, u, count, &changes), 0);
	expect_eq(target_table_count(table), 1);
	u->release(u->owner);
	store_sweep_below(store, 2);
	expect_eq(store_pods(store), 0);
	target_table_free(table);
	store_free(store);
	pod_fini(&a);
	pod_fini(&b);
}

TEST(events_are_told_apart)
{
	static const struct {
		const char *line;
		int r, kind;
	} cases[] = {
		{"{\"type\":\"ADDED\",\"object\":" POD "}", 0, EVENT_SET},
		{"{\"type\":\"DELETED\",\"object\":" POD "}", 0, EVENT_DELETED},
		{"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\"}}}", 0,
		 EVENT_BOOKMARK},
		{"{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}", 0, EVENT_ERROR},
		{"{\"type\":\"ADDED\"}", -EPROTO, 0},
		{"<html>", -EPROTO, 0},
		{"", -EPROTO, 0},
	};
	struct error err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct event e;

		expect_eq(event_parse(str_of(cases[i].line), &e, &err), cases[i].r);
		if (cases[i].r < 0)
			continue;
		expect_eq(e.kind, cases[i].kind);
		event_fini(&e);
	}
}

/* Whatever a server sends, it is taken or refused, within bounds. */
TEST(mutated_answers_are_taken_or_refused)
{
	const struct str good = STR(LIST(POD "," POD));
	char *text = malloc(good.n);
	uint64_t state = 1;

	for (int round = 0; round < 5000; round++) {
		struct page page;
		struct event e;
		size_t n = good.n;

		memcpy(text, good.p, n);
		for (int i = 0; i < 3; i++) {
			state = hash_u64(state);
			text[state % n] = (char)(state >> 32);
		}
		if (round % 5 == 0)
			n = state % n;
		if (page_parse((struct str){text, n}, &page, NULL) == 0)
			page_fini(&page);
		if (event_parse((struct str){text, n}, &e, NULL) == 0)
			event_fini(&e);
	}
	free(text);
}
