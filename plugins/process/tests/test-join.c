/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of join: processes and containers that come and go on their own. */
#include "testing/test.h"
#include "process/join.h"

#include <errno.h>
#include <stdlib.h>

#define MEMBERS 8

struct bench {
	struct target_list *in, *list;
	struct target_table *out;
	struct join *join;
	struct join_member members[MEMBERS];
	uint64_t rows[MEMBERS];
	const char *containers[MEMBERS];
	size_t n_touched;
};

/* A process as discovery would read it again. */
static void show(struct bench *b, size_t i, const char *container)
{
	char pid[24];
	int n = snprintf(pid, sizeof(pid), "%zu", i);
	const struct target_label labels[] = {
		{STR("__process_pid__"), {pid, (size_t)n}},
		{STR("app"), STR("own")},
	};

	b->containers[i] = container;
	if (!b->rows[i])
		b->rows[i] = join_row(b->join);
	expect_eq(join_enter(b->join, &b->members[i], str_of(container)), 0);
	expect_eq(join_set(b->join, &b->members[i], b->rows[i], (uint32_t)i, labels, 2), 0);
}

static void touched(void *context, struct join_member *member)
{
	struct bench *b = context;

	expect(member >= b->members && member < b->members + MEMBERS);
	b->n_touched++;
}

static void bench_init(struct bench *b)
{
	*b = (struct bench){
		.in = target_list_new(1), .list = target_list_new(2), .out = target_table_new()};
	expect(b->in && b->list && b->out);
	b->join = join_new(b->list, touched, b);
	expect(b->join != NULL);
}

static void bench_fini(struct bench *b)
{
	for (size_t i = 0; i < MEMBERS; i++)
		join_leave(b->join, &b->members[i]);
	join_free(b->join);
	target_list_free(b->in);
	target_list_free(b->list);
	target_table_free(b->out);
}

static void ignore(void *context, int change, struct target_row *row)
{
}

/* Input in, touched processes again, output out. */
static void pump(struct bench *b)
{
	const struct andiron_targets *update = NULL;

	expect_eq(target_list_flush(b->in, &update), 0);
	b->n_touched = 0;
	if (update) {
		expect_eq(join_apply(b->join, update), 0);
		update->release(update->owner);
	}
	for (size_t i = 0; i < MEMBERS; i++)
		if (b->rows[i])
			show(b, i, b->containers[i]);
	expect_eq(target_list_flush(b->list, &update), 0);
	if (!update)
		return;
	expect_eq(target_table_apply(b->out, update, ignore, NULL), 0);
	update->release(update->owner);
}

static void container(struct bench *b, uint64_t row, const char *id, const char *app)
{
	const struct target_label labels[] = {
		{STR("__meta_kubernetes_pod_container_id"), str_of(id)}, {STR("app"), str_of(app)}};

	expect_eq(target_list_set(b->in, row, row, labels, 2), 0);
}

struct text {
	char p[512];
	size_t n;
};

static void write_row(void *context, int change, struct target_row *row)
{
	struct text *t = context;
	struct str pid = target_label_value(row, "__process_pid__");
	struct str app = target_label_value(row, "app");

	t->n += (size_t)snprintf(t->p + t->n, sizeof(t->p) - t->n, "%.*s:%.*s ", STR_FMT(pid),
				 STR_FMT(app));
}

/* The output in its order, as "PID:APP …". */
static void expect_rows(struct bench *b, const char *want)
{
	struct text text = {.n = 0};

	target_table_each(b->out, write_row, &text);
	expect_str(((struct str){text.p, text.n}), want);
}

/* Alloy's output: containers without an id, processes merged or not, each container again. */
TEST(alloys_output)
{
	struct bench b;

	bench_init(&b);
	container(&b, 1, "containerd://aa", "web");
	container(&b, 2, "", "lone");
	show(&b, 3, "aa");
	show(&b, 4, "bb");
	show(&b, 5, "");
	pump(&b);
	expect_eq(b.n_touched, 1);
	expect_rows(&b, ":lone 3:web 4:own 5:own :web ");
	bench_fini(&b);
}

/* Each side may come first, change and go; the rows follow. */
TEST(either_comes_first)
{
	struct bench b;

	bench_init(&b);
	show(&b, 1, "aa");
	pump(&b);
	expect_rows(&b, "1:own ");
	container(&b, 1, "docker://aa", "web");
	pump(&b);
	expect_rows(&b, "1:web :web ");
	container(&b, 1, "docker://aa", "new");
	pump(&b);
	expect_rows(&b, "1:new :new ");
	container(&b, 1, "docker://bb", "new");
	pump(&b);
	expect_rows(&b, "1:own :new ");
	show(&b, 1, "bb");
	pump(&b);
	expect_rows(&b, "1:new :new ");
	target_list_remove(b.in, 1);
	pump(&b);
	expect_rows(&b, "1:own ");
	bench_fini(&b);
}

/* Of a container's several targets the last one's labels count; when it goes, the next one's do. */
TEST(the_last_target_wins)
{
	struct bench b;

	bench_init(&b);
	show(&b, 1, "aa");
	container(&b, 1, "docker://aa", "first");
	container(&b, 2, "docker://aa", "second");
	pump(&b);
	expect_rows(&b, "1:second :first :second ");
	target_list_remove(b.in, 2);
	pump(&b);
	expect_rows(&b, "1:first :first ");
	bench_fini(&b);
}

/* Ids are taken from the labels that Alloy looks at, and by its prefixes. */
TEST(container_ids)
{
	static const struct {
		const char *name, *value, *id;
	} table[] = {
		{"__container_id__", "x", "x"},
		{"__meta_kubernetes_pod_container_id", "docker://x", "x"},
		{"__meta_kubernetes_pod_container_id", "containerd://x", "x"},
		{"__meta_kubernetes_pod_container_id", "cri-o://x", "x"},
		{"__meta_kubernetes_pod_container_id", "podman://x", ""},
		{"__meta_kubernetes_pod_container_id", "docker://", ""},
		{"__meta_docker_container_id", "x", "x"},
		{"other", "x", ""},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct target_label label = {str_of(table[i].name), str_of(table[i].value)};
		struct target_row row = {.labels = &label, .n_labels = 1};

		expect_str(join_container_of(&row), table[i].id);
	}
}

/* Random comings and goings end in what a fresh join of the same sides gives. */
TEST(any_order)
{
	static const char *const ids[] = {"", "docker://a", "docker://b", "docker://c"};
	static const char *const places[] = {"", "a", "b", "c"};
	struct bench b, fresh;

	srand(21);
	bench_init(&b);
	for (int round = 0; round < 400; round++) {
		struct text got = {.n = 0}, want = {.n = 0};
		struct {
			int id;
			char app[8];
		} rows[4] = {0};

		for (int i = 0; i < 4; i++) {
			rows[i].id = rand() % 5 - 1;
			snprintf(rows[i].app, sizeof(rows[i].app), "a%d", rand() % 10);
			if (rows[i].id < 0)
				target_list_remove(b.in, (uint64_t)i);
			else
				container(&b, (uint64_t)i, ids[rows[i].id], rows[i].app);
		}
		for (size_t i = 0; i < MEMBERS; i++)
			show(&b, i, places[rand() % 4]);
		pump(&b);
		bench_init(&fresh);
		for (int i = 0; i < 4; i++)
			if (rows[i].id >= 0)
				container(&fresh, (uint64_t)i, ids[rows[i].id], rows[i].app);
		for (size_t i = 0; i < MEMBERS; i++)
			show(&fresh, i, b.containers[i]);
		pump(&fresh);
		target_table_each(b.out, write_row, &got);
		target_table_each(fresh.out, write_row, &want);
		expect_str(((struct str){got.p, got.n}), want.p);
		bench_fini(&fresh);
	}
	bench_fini(&b);
}
