/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of passing profiles: rules and targets change labels alone, rows and bytes stay, and what
 * is dropped is counted. */
#include "profile-labels/profile-enrich.h"
#include "profile-labels/profile-relabel.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	expect_eq(state, ANDIRON_HEALTH_HEALTHY);
}

static const struct andiron_host host = {.size = sizeof(host), .health = health};
static const struct abi_context self = {&host, 1};

static const struct batch_head head = {.start_ns = 1, .end_ns = 2, .producer = 3, .sequence = 4};

/* Two sampled groups of two rows and one encoded profile. */
static const struct andiron_batch *mixed(void)
{
	static const char *const services[] = {"shop", "bank", "post"};
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type type = {.period = 1};
	struct andiron_encoded e = {.format = ANDIRON_ENCODED_PPROF};
	const struct andiron_batch *batch;

	type.name = batch_add_string(b, STR("process_cpu"));
	batch_add_type(b, &type);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t labels[2], process = batch_add_str_attribute(b, STR("process"), STR("x"));
		struct andiron_row row = {.value = 5, .samples = 5, .n_attrs = 1};

		row.attr_start = batch_add_attributes(b, &process, 1);
		labels[0] = batch_add_str_attribute(b, STR("__name__"), STR("memory"));
		labels[1] = batch_add_str_attribute(b, STR("service_name"), str_of(services[i]));
		batch_group_begin(b, i == 2 ? labels : labels + 1, i == 2 ? 2 : 1);
		if (i == 2)
			batch_add_encoded(b, &e, STR("its bytes"));
		else
			for (int k = 0; k < 2; k++)
				batch_add_row(b, &row);
	}
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}

static struct rule *rule(const char *action, const char *source, const char *regex,
			 const char *target, const char *replacement)
{
	struct str sources[] = {str_of(source)};
	struct rule_config config = {.action = str_of(action),
				     .source_labels = sources,
				     .n_source_labels = *source != 0,
				     .separator = STR(";"),
				     .regex = str_of(regex),
				     .target_label = str_of(target),
				     .replacement = str_of(replacement)};
	struct error err = ERROR_NULL;
	const char *option;
	struct rule *r;

	if (rule_compile(&config, &r, &err, &option))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return r;
}

static void add_rule(struct profile_relabel *p, struct rule *r)
{
	expect(vec_push(&p->rules, r));
}

static void expect_label(const struct batch_view *v, uint32_t group, const char *name,
			 const char *value)
{
	struct andiron_group g = batch_group(v, group);
	struct str is = STR_NULL;

	if (!batch_group_label(v, &g, str_of(name), &is))
		is = STR_NULL;
	expect_str(is, value);
}

static const struct andiron_batch *relabel(struct profile_relabel *p,
					   struct profile_labels_totals *totals)
{
	const struct andiron_batch *batch = mixed(), *changed = NULL;

	expect_eq(profile_relabel_change(p, batch, &changed, totals), 0);
	expect_eq(totals->dropped + totals->large + (changed ? changed->samples : 0),
		  batch->samples);
	batch_release(batch);
	return changed;
}

/* Rows and their attributes, and bytes, are as they were; all labels are new. */
TEST(rules_change_labels_alone)
{
	struct profile_relabel p = {.work = LABELS_NULL};
	struct profile_labels_totals totals;
	const struct andiron_batch *changed;
	struct andiron_encoded e;
	struct andiron_row row;
	struct batch_view v;
	struct str process;

	add_rule(&p, rule("replace", "service_name", "(.*)", "service_name", "the-$1"));
	add_rule(&p, rule("replace", "__name__", "(.*)", "kind", "$1"));
	changed = relabel(&p, &totals);
	expect_eq(batch_view_init(&v, changed), 0);
	expect_eq(changed->samples, 21);
	expect_eq(changed->producer, 3);
	expect_eq(batch_count(&v, ANDIRON_COL_GROUP), 3);
	expect_eq(batch_count(&v, ANDIRON_COL_ROW), 4);
	expect_label(&v, 0, "service_name", "the-shop");
	expect_label(&v, 0, "kind", "process_cpu");
	expect_label(&v, 0, "__name__", "");
	expect_label(&v, 1, "service_name", "the-bank");
	expect_label(&v, 2, "service_name", "the-post");
	expect_label(&v, 2, "kind", "memory");
	expect_label(&v, 2, "__name__", "memory");
	row = batch_row(&v, 3);
	expect(batch_row_str(&v, &row, STR("process"), &process) && str_is(process, "x"));
	e = batch_encoded(&v, 0);
	expect_eq(e.group, 2);
	expect_str(batch_encoded_bytes(&v, &e), "its bytes");
	batch_release(changed);
	profile_relabel_fini(&p);
}

TEST(what_rules_drop_is_counted)
{
	struct profile_relabel p = {.work = LABELS_NULL};
	struct profile_labels_totals totals;
	const struct andiron_batch *changed;
	struct batch_view v;

	add_rule(&p, rule("drop", "service_name", "bank", "", "$1"));
	changed = relabel(&p, &totals);
	expect_eq(totals.dropped, 10);
	expect_eq(batch_view_init(&v, changed), 0);
	expect_eq(batch_count(&v, ANDIRON_COL_ROW), 2);
	expect_label(&v, 0, "service_name", "shop");
	expect_label(&v, 1, "service_name", "post");
	expect_eq(batch_encoded(&v, 0).group, 1);
	batch_release(changed);
	expect_eq(p.counts.processed, 3);
	expect_eq(p.counts.written, 2);
	expect_eq(p.counts.dropped, 1);
	add_rule(&p, rule("drop", "__name__", "process_cpu", "", "$1"));
	changed = relabel(&p, &totals);
	expect_eq(totals.dropped, 20);
	expect_eq(batch_view_init(&v, changed), 0);
	expect_eq(batch_count(&v, ANDIRON_COL_ROW), 0);
	expect_eq(batch_count(&v, ANDIRON_COL_ENCODED), 1);
	batch_release(changed);
	add_rule(&p, rule("drop", "", "(.*)", "", "$1"));
	expect(!relabel(&p, &totals));
	expect_eq(totals.dropped, 21);
	profile_relabel_fini(&p);
}

/* A batch whose labels stay goes on itself. */
TEST(a_batch_that_is_not_changed_is_not_copied)
{
	struct profile_relabel p = {.work = LABELS_NULL};
	struct profile_labels_totals totals;
	const struct andiron_batch *batch = mixed(), *changed = NULL;

	add_rule(&p, rule("replace", "service_name", "none", "service_name", "x"));
	expect_eq(profile_relabel_change(&p, batch, &changed, &totals), 0);
	expect(changed == batch);
	batch_release(changed);
	batch_release(batch);
	profile_relabel_fini(&p);
}

static int relabel_once(void *context)
{
	struct profile_relabel *p = context;
	static const struct andiron_batch *batch;
	const struct andiron_batch *changed = NULL;
	struct profile_labels_totals totals;
	int r;

	if (!batch)
		batch = mixed();
	r = profile_relabel_change(p, batch, &changed, &totals);
	if (r == 0)
		batch_release(changed);
	return r;
}

TEST(short_memory_loses_nothing_unseen)
{
	struct profile_relabel p = {.work = LABELS_NULL};

	add_rule(&p, rule("replace", "service_name", "(.*)", "a", "$1"));
	add_rule(&p, rule("drop", "service_name", "shop", "", "$1"));
	relabel_once(&p); /* makes the batch, and warms what is kept */
	test_each_failing_allocation(relabel_once, &p);
	profile_relabel_fini(&p);
}

static const struct andiron_targets *two_targets(struct target_list *list)
{
	static const struct target_label shop[] = {{STR("app"), STR("shop")},
						   {STR("team"), STR("blue")},
						   {STR("__secret"), STR("s")}};
	static const struct target_label post[] = {{STR("app"), STR("post")},
						   {STR("team"), STR("red")},
						   {STR("zone"), STR("z1")}};
	const struct andiron_targets *all;

	expect_eq(target_list_set(list, 1, 1, shop, 3), 0);
	expect_eq(target_list_set(list, 2, 2, post, 3), 0);
	expect_eq(target_list_flush(list, &all), 0);
	return all;
}

/* What is copied is what was asked for; a profile without a target goes on as it came. */
TEST(profiles_get_the_labels_of_their_target)
{
	struct target_list *list = target_list_new(9);
	const struct andiron_targets *all = two_targets(list);
	const struct andiron_batch *batch = mixed(), *changed = NULL;
	struct str zone = STR("zone");
	struct enrich_options o = {.target_label = STR("app"),
				   .profile_label = STR("service_name")};
	struct profile_labels_totals totals;
	struct batch_view v;
	struct enrich e;

	expect_eq(enrich_init(&e, &self), 0);
	expect_eq(enrich_set(&e, &o), 0);
	expect_eq(enrich_change(&e, batch, &changed, &totals), 0);
	expect(changed == batch); /* no targets yet */
	batch_release(changed);
	enrich_targets(&e, "targets", all);
	expect_eq(enrich_change(&e, batch, &changed, &totals), 0);
	expect_eq(batch_view_init(&v, changed), 0);
	expect_label(&v, 0, "team", "blue");
	expect_label(&v, 0, "app", "shop");
	expect_label(&v, 0, "__secret", "");
	expect_label(&v, 1, "team", "");
	expect_label(&v, 2, "team", "red");
	expect_eq(changed->samples, batch->samples);
	expect_eq(e.profiles, 6);
	expect_eq(e.enriched, 2);
	batch_release(changed);
	o.copied = &zone;
	o.n_copied = 1;
	expect_eq(enrich_set(&e, &o), 0);
	expect_eq(enrich_change(&e, batch, &changed, &totals), 0);
	expect_eq(batch_view_init(&v, changed), 0);
	expect_label(&v, 0, "team", "");
	expect_label(&v, 2, "team", "");
	expect_label(&v, 2, "zone", "z1");
	batch_release(changed);
	batch_release(batch);
	enrich_fini(&e);
	all->release(all->owner);
	target_list_free(list);
}
