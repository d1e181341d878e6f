/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and their targets, by Alloy's rules. */
#include "ebpf/processes/target-match.h"
#include "ebpf/targets/target-report.h"

#include "base/hash.h"
#include "testing/test.h"

#include <errno.h>
#include <stdio.h>

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct fixture {
	struct matcher *matcher;
	struct target_list *list;
	uint64_t n;
};

static void init(struct fixture *f)
{
	f->matcher = matcher_new();
	f->list = target_list_new(1);
	f->n = 0;
	expect(f->matcher && f->list);
}

static void fini(struct fixture *f)
{
	matcher_free(f->matcher);
	target_list_free(f->list);
}

/* Adds a target; names and values alternate, NULL ends. */
static void add(struct fixture *f, const char *const *pairs)
{
	struct target_label labels[8];
	size_t n = 0;

	for (; pairs[2 * n]; n++)
		labels[n] = (struct target_label){str_of(pairs[2 * n]), str_of(pairs[2 * n + 1])};
	f->n++;
	expect_eq(target_list_set(f->list, f->n, f->n, labels, n), 0);
}

static void apply(struct fixture *f)
{
	const struct andiron_targets *update;

	expect_eq(target_list_flush(f->list, &update), 0);
	expect_eq(matcher_apply(f->matcher, update), 0);
	update->release(update->owner);
	expect_eq(matcher_rebuild(f->matcher), 0);
}

static struct str label(const struct match *m, const char *name)
{
	for (uint32_t i = 0; i < m->n_labels; i++)
		if (str_is(m->labels[i].name, name))
			return m->labels[i].value;
	return STR_NULL;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL, NULL})

/* A pid stands for the process alone, and a target with a pid is not found by its container; what
 * follows a process is found through its root. */
TEST(pid_comes_before_container)
{
	struct fixture f;

	init(&f);
	add(&f, PAIRS("__process_pid__", "42", "__container_id__", ID_A, "service_name", "pid"));
	add(&f, PAIRS("__container_id__", ID_A, "service_name", "container"));
	add(&f, PAIRS("service_name", "neither"));
	apply(&f);
	expect_str(label(matcher_find(f.matcher, 42, 0, STR(ID_A)), "service_name"), "pid");
	expect_str(label(matcher_find(f.matcher, 43, 0, STR(ID_A)), "service_name"), "container");
	expect_str(label(matcher_find(f.matcher, 43, 42, STR_NULL), "service_name"), "pid");
	expect(!matcher_find(f.matcher, 43, 0, STR_NULL));
	expect(!matcher_find(f.matcher, 43, 0, STR("aaaa")));
	fini(&f);
}

/* Ids come with the name of whatever runtime; of equal ids the last wins. */
TEST(container_ids_of_any_runtime)
{
	struct fixture f;

	init(&f);
	add(&f,
	    PAIRS("__meta_kubernetes_pod_container_id", "cri-o://" ID_A, "service_name", "one"));
	add(&f, PAIRS("__meta_kubernetes_pod_container_id", "any://" ID_A, "service_name", "two"));
	add(&f,
	    PAIRS("__process_pid__", "x", "__meta_docker_container_id", "bb", "service_name", "b"));
	apply(&f);
	expect_str(label(matcher_find(f.matcher, 1, 0, STR(ID_A)), "service_name"), "two");
	expect_str(label(matcher_find(f.matcher, 1, 0, STR("bb")), "service_name"), "b");
	expect(matcher_has_container(f.matcher, STR("bb")));
	expect(!matcher_has_container(f.matcher, STR("cc")));
	fini(&f);
}

static struct str service_of(const char *const *pairs)
{
	static char name[128];
	struct fixture f;
	struct str s;

	init(&f);
	add(&f, pairs);
	apply(&f);
	s = label(matcher_find(f.matcher, 7, 0, STR_NULL), "service_name");
	snprintf(name, sizeof(name), "%.*s", STR_FMT(s));
	fini(&f);
	return str_of(name);
}

/* service_name by Alloy's rule, in its order. */
TEST(service_name_by_alloys_rule)
{
	const char *const pid = "__process_pid__";
	const char *const annotation = "__meta_kubernetes_pod_annotation_pyroscope_io_service_name";
	const char *const space = "__meta_kubernetes_namespace";
	const char *const container = "__meta_kubernetes_pod_container_name";
	const char *const docker = "__meta_docker_container_name";

	expect_str(service_of(PAIRS(pid, "7", "service_name", "s", annotation, "a")), "s");
	expect_str(service_of(PAIRS(pid, "7", annotation, "a", space, "n", container, "c")), "a");
	expect_str(service_of(PAIRS(pid, "7", space, "n", container, "c", docker, "d")),
		   "ebpf/n/c");
	expect_str(service_of(PAIRS(pid, "7", space, "n", docker, "d")), "d");
	expect_str(service_of(PAIRS(pid, "7", "__meta_dockerswarm_service_name", "w")), "w");
	expect_str(service_of(PAIRS(pid, "7", "other", "x")), "unspecified");
}

/* Labels of a batch: sorted, without private ones but those for the symbolizer. */
TEST(labels_are_ready_for_a_batch)
{
	struct fixture f;
	struct match *m;

	init(&f);
	add(&f, PAIRS("__process_pid__", "7", "zone", "z", "__meta_x", "x", "app", "a",
		      "__symbolize__", "false"));
	apply(&f);
	m = matcher_find(f.matcher, 7, 0, STR_NULL);
	expect_eq(m->n_labels, 5);
	expect_str(m->labels[0].name, "__name__");
	expect_str(m->labels[0].value, "process_cpu");
	expect_str(m->labels[1].name, "__symbolize__");
	expect_str(m->labels[2].name, "app");
	expect_str(m->labels[3].name, "service_name");
	expect_str(m->labels[4].name, "zone");
	fini(&f);
}

/* Matches in use outlive the change of their targets until settled; all others go. */
TEST(used_matches_stay)
{
	const struct match *used;
	struct fixture f;

	init(&f);
	add(&f, PAIRS("__process_pid__", "7", "a", "first"));
	apply(&f);
	used = matcher_find(f.matcher, 7, 0, STR_NULL);
	for (int i = 0; i < 3; i++) {
		target_list_clear(f.list);
		add(&f, PAIRS("__process_pid__", "7", "a", "later"));
		apply(&f);
		matcher_use(f.matcher, used);
		matcher_use(f.matcher, NULL);
		matcher_prune(f.matcher);
		expect_str(label(used, "a"), "first");
	}
	matcher_settle(f.matcher);
	expect_str(label(matcher_find(f.matcher, 7, 0, STR_NULL), "a"), "later");
	fini(&f);
}

struct last {
	struct target_selector sought;
	struct str value; /* of the last target that stands for it */
	size_t n;
};

static void look(void *context, int change, struct target_row *row)
{
	struct target_selector s = target_selector_of(row->labels, row->n_labels);
	struct last *last = context;

	if (s.pid != last->sought.pid || !str_eq(s.container, last->sought.container))
		return;
	last->value = target_label_value(row, "v");
	last->n++;
}

/* One target of few ids, orders and producers comes, changes or goes. */
static void step(struct fixture *f, struct target_list *lists[2], uint64_t random)
{
	static const char *const ids[] = {"aa", "bb", "cc"};
	struct target_list *list = lists[random & 1];
	const struct andiron_targets *update = NULL;
	char pid[8], value[24];
	struct target_label labels[] = {
		{random & 8 ? STR("__process_pid__") : STR("__container_id__"), STR_NULL},
		{STR("v"),
		 {value,
		  (size_t)snprintf(value, sizeof(value), "%llx", (unsigned long long)random)}},
	};

	snprintf(pid, sizeof(pid), "%u", 1 + (unsigned)(random >> 4) % 3);
	labels[0].value = str_of(random & 8 ? pid : ids[(random >> 4) % 3]);
	if ((random >> 8) % 3)
		expect_eq(target_list_set(list, random >> 12 & 15, random >> 16 & 7, labels, 2), 0);
	else
		target_list_remove(list, random >> 12 & 15);
	expect_eq(target_list_flush(list, &update), 0);
	if (update) {
		expect_eq(matcher_apply(f->matcher, update), 0);
		update->release(update->owner);
	}
}

/* Of what stands for the same the last in order wins, whenever it came: as if all had come now. */
TEST(changes_end_as_all_anew)
{
	const struct target_selector all[] = {{.pid = 1},
					      {.pid = 2},
					      {.pid = 3},
					      {.container = STR("aa")},
					      {.container = STR("bb")},
					      {.container = STR("cc")}};
	struct fixture f;
	struct target_list *lists[2];
	uint64_t random = 1;

	init(&f);
	lists[0] = f.list;
	lists[1] = target_list_new(2);
	for (int round = 0; round < 5000; round++) {
		size_t n, reported = 0, containers = 0;

		random = hash_u64(random);
		step(&f, lists, random);
		if (random >> 32 & 1)
			matcher_prune(f.matcher);
		matcher_all(f.matcher, &n);
		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
			struct last last = {.sought = all[i]};
			const struct match *match = matcher_of(f.matcher, all[i]);

			matcher_each(f.matcher, look, &last);
			expect(str_eq(match ? label(match, "v") : STR_NULL, last.value));
			reported += last.n;
			containers += all[i].pid ? 0 : last.n;
		}
		expect_eq(n, reported);
		expect_eq(matcher_has_containers(f.matcher), containers > 0);
	}
	target_list_free(lists[1]);
	fini(&f);
}

/* Labels that nobody reads are not kept, and those that count still do. */
TEST(other_labels_do_not_matter)
{
	struct fixture f;
	const struct match *before;

	init(&f);
	add(&f, PAIRS("__container_id__", ID_A, "__meta_kubernetes_pod_ready", "false", "a", "b"));
	apply(&f);
	before = matcher_find(f.matcher, 0, 0, STR(ID_A));
	expect(before != NULL);
	expect_str(label(before, "a"), "b");
	expect_str(label(before, "service_name"), "unspecified");
	fini(&f);
}

/* The default target takes what nobody else does, if there is one. */
TEST(default_target_takes_the_rest)
{
	struct target_label labels[] = {{STR("service_name"), STR("node")}, {STR("a"), STR("b")}};
	struct fixture f;

	init(&f);
	expect_eq(matcher_set_default(f.matcher, true, NULL, 0), 0);
	expect_eq(matcher_rebuild(f.matcher), 0);
	expect_str(label(matcher_find(f.matcher, 7, 0, STR_NULL), "service_name"),
		   "ebpf/unspecified");
	expect_eq(matcher_set_default(f.matcher, true, labels, 2), 0);
	expect_eq(matcher_rebuild(f.matcher), 0);
	expect_str(label(matcher_find(f.matcher, 7, 0, STR_NULL), "service_name"), "node");
	expect_str(label(matcher_find(f.matcher, 7, 0, STR_NULL), "a"), "b");
	expect_eq(matcher_set_default(f.matcher, false, labels, 2), 0);
	expect_eq(matcher_rebuild(f.matcher), 0);
	expect(!matcher_find(f.matcher, 7, 0, STR_NULL));
	fini(&f);
}

/* Targets that go are not found any more. */
TEST(removed_targets_are_gone)
{
	struct fixture f;

	init(&f);
	add(&f, PAIRS("__process_pid__", "7"));
	add(&f, PAIRS("__process_pid__", "8"));
	apply(&f);
	expect(matcher_has_pid(f.matcher, 7));
	target_list_remove(f.list, 1);
	apply(&f);
	expect(!matcher_has_pid(f.matcher, 7));
	expect(matcher_has_pid(f.matcher, 8));
	expect(!matcher_has_containers(f.matcher));
	fini(&f);
}

static int rebuild(void *context)
{
	struct matcher *m = matcher_new();
	struct target_label labels[] = {{STR("service_name"), STR("node")}};
	int r = m ? matcher_apply(m, context) : -ENOMEM;

	if (r == 0)
		r = matcher_set_default(m, true, labels, 1);
	if (r == 0)
		r = matcher_rebuild(m);
	/* What there was no memory for at first is there after all. */
	expect(r != 0 || (matcher_has_pid(m, 7) && matcher_has_container(m, STR(ID_A)) &&
			  matcher_find(m, 9, 0, STR_NULL)));
	matcher_free(m);
	return r;
}

TEST(rebuilding_survives_out_of_memory)
{
	const struct andiron_targets *update;
	struct fixture f;

	init(&f);
	add(&f, PAIRS("__process_pid__", "7", "__meta_kubernetes_namespace", "n",
		      "__meta_kubernetes_pod_container_name", "c"));
	add(&f, PAIRS("__container_id__", ID_A));
	expect_eq(target_list_flush(f.list, &update), 0);
	test_each_failing_allocation(rebuild, (void *)(uintptr_t)update);
	update->release(update->owner);
	fini(&f);
}

/* What target_report_each said, as text. */
static void note(void *context, const struct target_report *t)
{
	struct buf *out = context;

	for (size_t i = 0; i < t->n_processes; i++)
		buf_printf(out, "%u ", t->processes[i]->key.tgid);
	buf_printf(out, "%s|", t->why ? "why" : "");
}

struct telling {
	struct fixture *f;
	const char *expected;
};

static int tell(void *context)
{
	const struct telling *t = context;
	struct fixture *f = t->f;
	struct process all[] = {{.key.tgid = 9},
				{.key.tgid = 5},
				{.key.tgid = 42},
				{.key.tgid = 3},
				{.key.tgid = 4}};
	struct processes processes = {0};
	struct buf out = BUF_NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < 5; i++) {
		bool inside = all[i].key.tgid != 3;

		all[i].match =
			matcher_find(f->matcher, all[i].key.tgid, 0, inside ? STR(ID_A) : STR_NULL);
		/* 4 was matched before the targets changed. */
		all[i].match_generation = matcher_generation(f->matcher) - (all[i].key.tgid == 4);
		r = vec_push(&processes.all, &all[i]) ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = target_report_each(f->matcher, &processes, NULL, note, &out);
	if (r == 0 && out.failed)
		r = -ENOMEM;
	if (r == 0)
		expect_str(buf_str(&out), t->expected);
	vec_free(&processes.all);
	buf_free(&out);
	return r;
}

/* Each target is reported with its processes, by pid; those without have a reason. The default
 * target, which has the other processes, is the last one. */
TEST(reports_the_processes_of_each_target)
{
	struct fixture f;

	init(&f);
	add(&f, PAIRS("__process_pid__", "42"));
	add(&f, PAIRS("__container_id__", ID_A, "port", "1"));
	add(&f, PAIRS("__process_pid__", "43"));
	add(&f, PAIRS("a", "b"));
	add(&f, PAIRS("__container_id__", ID_A, "port", "2"));
	apply(&f);
	test_each_failing_allocation(tell, &(struct telling){&f, "42 |5 9 |why|why|5 9 |"});
	expect_eq(matcher_set_default(f.matcher, true, NULL, 0), 0);
	expect_eq(matcher_rebuild(f.matcher), 0);
	test_each_failing_allocation(tell, &(struct telling){&f, "42 |5 9 |why|why|5 9 |3 |"});
	fini(&f);
}
