/* SPDX-License-Identifier: Apache-2.0 */
/* Labels as servers take them: what wins, what is cut, what goes first. */
#include "abi/batch-build.h"
#include "testing/test.h"
#include "export/pprof.h"
#include "pyroscope-push/labels.h"

#include <stdlib.h>

struct made {
	const struct andiron_batch *batch;
	struct batch_view view;
	struct label out[128];
	size_t n;
	char spelled[EXPORT_SPELLED_MAX];
	struct label_repairs repairs;
};

/* The labels of a group that has these, for profiles "process_cpu". */
static void make(struct made *m, const struct label *own, size_t n, const struct label_rules *rules)
{
	struct batch_builder *b = batch_builder_new();
	struct andiron_group group;
	struct label_source source;
	uint32_t indices[100];

	expect(n <= 100);
	for (size_t i = 0; i < n; i++)
		indices[i] = batch_add_str_attribute(b, own[i].name, own[i].value);
	batch_group_begin(b, indices, (uint32_t)n);
	expect_eq(batch_finish(b, &(struct batch_head){0}, &m->batch), 0);
	expect_eq(batch_view_init(&m->view, m->batch), 0);
	group = batch_group(&m->view, 0);
	m->repairs = (struct label_repairs){0};
	source = (struct label_source){&m->view, &group, STR("process_cpu"), m->spelled};
	expect(labels_room(rules, &group) <= 128);
	m->n = labels_make(rules, &source, m->out, &m->repairs);
	for (size_t i = 1; i < m->n; i++)
		expect(str_cmp(m->out[i - 1].name, m->out[i].name) < 0);
}

static struct str value(const struct made *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (str_is(m->out[i].name, name))
			return m->out[i].value;
	return STR_NULL;
}

/* External labels win over the group's own, and these over defaults; names of two underscores stay
 * behind, but for the profile's name. */
TEST(who_wins)
{
	static const struct label own[] = {{STR("__meta_x"), STR("1")},
					   {STR("__name__"), STR("wall")},
					   {STR("a"), STR("1")},
					   {STR("b"), STR("theirs")},
					   {STR("empty"), STR("")}};
	static const struct label external[] = {{STR("b"), STR("mine")}};
	static const struct label defaults[] = {{STR("a"), STR("0")}, {STR("node"), STR("n1")}};
	struct label_rules rules = {NULL, defaults, 2, external, 1};
	struct made m;

	make(&m, own, 5, &rules);
	expect_eq(m.n, 5);
	expect_str(value(&m, "__name__"), "wall");
	expect_str(value(&m, "a"), "1");
	expect_str(value(&m, "b"), "mine");
	expect_str(value(&m, "node"), "n1");
	expect_str(value(&m, "service_name"), "unspecified");
	expect_eq(m.repairs.dropped + m.repairs.cut + m.repairs.spelled, 0);
	batch_release(m.batch);
}

/* Of too many names the least telling ones go. */
TEST(too_many_names_go_by_priority)
{
	static const struct label external[] = {{STR("zz_external"), STR("x")}};
	struct label_rules rules = {.external = external, .n_external = 1};
	struct label own[60];
	char names[57][16];
	struct made m;

	for (size_t i = 0; i < 57; i++) {
		snprintf(names[i], sizeof(names[i]), "label_%02zu", i);
		own[i] = (struct label){str_of(names[i]), STR("v")};
	}
	own[57] = (struct label){STR("service_name"), STR("shop")};
	own[58] = (struct label){STR("pod"), STR("shop-1")};
	own[59] = (struct label){STR("node"), STR("n1")};
	make(&m, own, 60, &rules);
	expect_eq(m.n, LABELS_MAX);
	expect_str(value(&m, "__name__"), "process_cpu");
	expect_str(value(&m, "service_name"), "shop");
	expect_str(value(&m, "zz_external"), "x");
	expect_str(value(&m, "pod"), "shop-1");
	expect_str(value(&m, "node"), "n1");
	expect_str(value(&m, "label_00"), "v");
	expect_eq(value(&m, "label_56").n, 0);
	expect_eq(m.repairs.dropped, 62 - LABELS_MAX);
	batch_release(m.batch);
}

/* Names that servers refuse go, values are cut between characters. */
TEST(what_servers_refuse_is_cut_or_left_out)
{
	static char long_name[LABELS_MAX_NAME + 2], long_value[LABELS_MAX_VALUE + 8];
	static const struct label_rules none;
	struct label own[] = {{STR(""), STR("x")}, {STR_NULL, STR("y")}, {STR("cut"), STR_NULL}};
	struct made m;

	memset(long_name, 'n', LABELS_MAX_NAME + 1);
	own[1].name = str_of(long_name);
	/* A character of two bytes lies across the limit. */
	memset(long_value, 'v', LABELS_MAX_VALUE + 1);
	memcpy(long_value + LABELS_MAX_VALUE - 1, "\xc3\xbc", 2);
	own[2].value = str_of(long_value);
	make(&m, own, 3, &none);
	expect_eq(m.n, 3);
	expect_eq(m.repairs.dropped, 2);
	expect_eq(m.repairs.cut, 1);
	expect_eq(value(&m, "cut").n, LABELS_MAX_VALUE - 1);
	expect(str_utf8(value(&m, "cut")));
	batch_release(m.batch);
}

/* Bytes that are no text never reach a server. */
TEST(what_is_no_text_goes)
{
	static const struct label external[] = {{STR("bad"), STR("\xff\xfe")},
						{STR("\xff"), STR("x")}};
	struct label_rules rules = {.external = external, .n_external = 2};
	struct made m;

	make(&m, NULL, 0, &rules);
	expect_eq(m.n, 2);
	expect_eq(m.repairs.dropped, 2);
	batch_release(m.batch);
}

/* The profile's name is part of a type that servers parse. */
TEST(a_profile_name_is_spelled)
{
	static const struct label external[] = {{STR("__name__"), STR("2my-wall:x")}};
	struct label_rules rules = {.external = external, .n_external = 1};
	struct made m;

	make(&m, NULL, 0, &rules);
	expect_str(value(&m, "__name__"), "_2my_wall_x");
	expect_eq(m.repairs.spelled, 1);
	batch_release(m.batch);
}
