/* SPDX-License-Identifier: Apache-2.0 */
/* Values that components supply: where they may stand, and what waits for them. */
#include "host/lang/tests/test-lang.h"
#include "host/lang/supplied.h"

#include "base/arena.h"
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>

#define VALUE(name) "test.value \"" name "\" {}\n"
#define ANY(value)  "test.any \"a\" {\n  value = " value "\n}\n"

static struct andiron_value text(const char *s, uint32_t flags)
{
	return (struct andiron_value){
		.kind = ANDIRON_VALUE_STRING, .flags = flags, .string = {s, strlen(s)}};
}

/* test.value.v has {key = "k", word = a secret}. */
static struct supplied *supply(void)
{
	struct supplied *s = supplied_new();
	const struct andiron_value items[] = {text("k", 0), text("w", ANDIRON_VALUE_SECRET)};
	const struct andiron_str keys[] = {{"key", 3}, {"word", 4}};
	const struct andiron_value map = {
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = items, .n_items = 2};

	expect(s);
	expect_eq(supplied_set(s, "test.value.v", "data", &map), 1);
	expect_eq(supplied_try_all(s), 1);
	supplied_end(s, 0);
	return s;
}

static void expect_supplied(const char *source, const char *expected)
{
	struct supplied *s = supply();
	struct registry registry = {.supplied = s};
	char *got = plan_text_of(&(struct source){"f", str_of(source)}, 1, &registry);

	expect_str(str_of(got), expected);
	free(got);
	supplied_free(s);
}

/* A value stands wherever others do, whole or by a member; what is secret stays so. */
TEST(a_value_is_a_value)
{
	expect_supplied(VALUE("v") ANY("[test.value.v.data, test.value.v.data.key]"),
			"node test.value.v: {}\n"
			"node test.any.a: {value=[{key=\"k\" word=\"w\"?} \"k\"]}\n");
	expect_supplied(VALUE("v") ANY("test.value.v.data[\"word\"] + \"!\""),
			"node test.value.v: {}\nnode test.any.a: {value=\"w!\"?}\n");
	expect_supplied(VALUE("v") ANY("test.value.v.data[\"none\"]"),
			"node test.value.v: {}\nnode test.any.a: {value=false}\n");
	expect_supplied(VALUE("v") ANY("test.value.v.data.none"),
			"f:3:11: error: test.value.v.data has no member none\n"
			"    3 |   value = test.value.v.data.none\n"
			"      |           ^~~~~~~~~~~~~~~~~~~~~~\n");
	expect_supplied("declare \"d\" {\n  argument \"x\" {}\n  test.any \"a\" {\n"
			"    value = argument.x.value\n  }\n  test.any \"b\" {\n"
			"    value = argument.x.value\n  }\n}\n"
			"d \"one\" { x = test.value.v.data.key }\n" VALUE("v"),
			"node d.one/test.any.a: {value=\"k\"}\n"
			"node d.one/test.any.b: {value=\"k\"}\nnode test.value.v: {}\n");
}

/* A secret goes where one is expected, and nowhere else: it would be shown there, or quoted by what
 * is wrong with it. */
TEST(a_secret_stays_among_secrets)
{
	static const char *const blocks[] = {
		"discovery.kubernetes \"k\" { role = test.value.v.data.word }\n",
		"test.count \"c\" { text = test.value.v.data.word + \"!\" }\n",
		"test.count \"c\" { text = encoding.to_json(test.value.v.data) }\n",
		"test.count \"c\" { text = string.to_lower(test.value.v.data.word) }\n",
		"pyroscope.write \"p\" { external_labels = test.value.v.data }\n",
		"discovery.relabel \"r\" { targets = [test.value.v.data] }\n",
		("discovery.relabel \"r\" {\n  targets = []\n"
		 "  rule { source_labels = [test.value.v.data.word] }\n}\n"),
		"local.file \"f\" { filename = test.value.v.data.word }\n",
	};
	struct supplied *s = supply();
	struct registry registry = {.supplied = s};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		char *text = NULL, *got;

		expect(asprintf(&text, VALUE("v") "%s", blocks[i]) > 0);
		got = plan_text_of(&(struct source){"f", str_of(text)}, 1, &registry);
		if (!strstr(got, " takes no secret\n") || strstr(got, "\"w"))
			test_fail(__FILE__, __LINE__, "%s\nsays:\n%s", blocks[i], got);
		free(got);
		free(text);
	}
	supplied_free(s);
	expect_supplied(VALUE("v") "pyroscope.write \"p\" {\n  endpoint {\n    url = \"http://p\"\n"
				   "    headers = test.value.v.data\n  }\n}\n"
				   "discovery.kubernetes \"k\" {\n  role = \"pod\"\n"
				   "  bearer_token = test.value.v.data.word\n}\n",
			"node test.value.v: {}\n"
			"node pyroscope.write.p: {endpoint=[{url=\"http://p\" "
			"headers={key=\"k\"? word=\"w\"?}? remote_timeout=10000000000*}]}\n"
			"node discovery.kubernetes.k: {role=\"pod\" bearer_token=\"w\"?}\n");
}

/* Who names what is not there waits, and who names that one; who is named by it does not. What is
 * wrong is told all the same. */
TEST(what_is_not_there_is_waited_for)
{
	expect_plan(VALUE("v") ANY("test.value.v.data"),
		    "test.any.a waits for test.value.v\nnode test.value.v: {}\n");
	expect_plan(VALUE("v")
			    VALUE("u") "test.value \"w\" {\n  value = test.value.u.data\n}\n" ANY(
				    "test.value.w.data"),
		    "test.value.w waits for test.value.u\ntest.any.a waits for test.value.w\n"
		    "node test.value.v: {}\nnode test.value.u: {}\n");
	expect_plan("pyroscope.ebpf \"e\" {\n  forward_to = [pyroscope.relabel.r.receiver]\n"
		    "  targets = []\n}\n"
		    "pyroscope.relabel \"r\" { forward_to = [raw.write.w.receiver, "
		    "pyroscope.write.p.receiver] }\n"
		    "raw.write \"w\" {}\n"
		    "pyroscope.write \"p\" { external_labels = { a = test.value.v.data } }\n" VALUE(
			    "v"),
		    "pyroscope.ebpf.e waits for test.value.v\n"
		    "pyroscope.relabel.r waits for test.value.v\n"
		    "pyroscope.write.p waits for test.value.v\n"
		    "node raw.write.w: {}\nnode test.value.v: {}\n");
	expect_plan("declare \"d\" {\n  argument \"x\" {}\n  test.any \"a\" {\n"
		    "    value = argument.x.value\n  }\n  test.any \"b\" {\n"
		    "    value = argument.x.value\n  }\n}\n"
		    "d \"one\" { x = test.value.v.data }\n" VALUE("v"),
		    "d.one/test.any.a waits for test.value.v\n"
		    "d.one/test.any.b waits for test.value.v\nnode test.value.v: {}\n");
	expect_plan(VALUE("v") "test.count \"c\" {\n  text = test.value.v.data\n  n = -1\n}\n",
		    "f:4:7: error: n must be a whole number from 0 to 18446744073709551615, not a "
		    "number\n"
		    "    4 |   n = -1\n"
		    "      |       ^~\n");
}

static struct plan *plan_of(struct arena *texts, const char *text, const struct supplied *s)
{
	struct registry registry = {0};
	struct source *source = arena_alloc(texts, sizeof(*source));
	struct diags diags = {0};
	struct plan *plan = NULL;

	*source = (struct source){"f", str_of(text)};
	expect_eq(plan_build_with(source, 1, &registry, s, &diags, &plan), 0);
	diags_free(&diags);
	return plan;
}

#define WRITER(label, value)                                                                       \
	"pyroscope.write \"" label "\" { external_labels = { a = " value " } }\n"
#define SENDER(to) "pyroscope.relabel \"r\" { forward_to = [pyroscope.write." to ".receiver] }\n"

/* What runs is not given up for what waits; where nothing is given up, or nothing waits that did
 * not before, a change is made at once. */
TEST(what_runs_is_not_lost_for_what_waits)
{
	static const char *const texts[] = {
		SENDER("p") WRITER("p", "\"x\""),
		SENDER("p") WRITER("p", "test.value.v.data.key")
			VALUE("v"), /* p and r would wait */
		SENDER("q") WRITER("q", "test.value.v.data.key")
			VALUE("v"), /* under another name */
		SENDER("p") WRITER("p", "\"x\"") WRITER("q", "test.value.v.data.key") VALUE("v"),
		SENDER("p") WRITER("p", "test.value.w.data") VALUE("w"),
	};
	struct arena sources = ARENA_NULL;
	struct supplied *s = supply();
	struct plan *plans[5], *there = plan_of(&sources, texts[1], s);

	for (size_t i = 0; i < 5; i++)
		plans[i] = plan_of(&sources, texts[i], NULL);
	expect_str(str_of(plan_loses(plans[0], plans[1])->id), "pyroscope.relabel.r");
	expect_str(str_of(plan_loses(plans[0], plans[1])->waits_for), "test.value.v");
	expect_str(str_of(plan_loses(plans[0], plans[2])->id), "pyroscope.relabel.r");
	expect_str(str_of(plan_loses(there, plans[4])->waits_for), "test.value.w");
	expect(!plan_loses(plans[0], plans[3])); /* it waits, and nothing stops */
	expect(!plan_loses(plans[1], plans[4])); /* it has waited before */
	expect(!plan_loses(plans[0], there) && !plan_loses(there, plans[0]));
	for (size_t i = 0; i < 5; i++)
		plan_free(plans[i]);
	plan_free(there);
	supplied_free(s);
	arena_free(&sources);
}

/* Beside what runs begin those that supply values to the next plan, and nothing else of it. One
 * that runs stays as it is, unless the next plan waits for it. */
TEST(suppliers_begin_beside_what_runs)
{
	static const char before[] = WRITER("p", "\"x\"") "test.value \"v\" { value = 1 }\n"
							  "test.value \"w\" { value = 1 }\n";
	static const char after[] = WRITER("p", "test.value.w.data")
		WRITER("q", "test.value.v.data.key") "raw.write \"new\" {}\n"
						     "test.value \"v\" { value = 2 }\n"
						     "test.value \"w\" { value = 2 }\n"
						     "test.value \"u\" { value = 2 }\n";
	struct arena sources = ARENA_NULL;
	struct supplied *s = supply();
	struct plan *plan = plan_of(&sources, before, s), *next = plan_of(&sources, after, s);
	const char *ids[] = {"pyroscope.write.p", "test.value.v", "test.value.w", "test.value.u"};
	const int64_t values[] = {0, 1, 2, 2};

	expect_eq(plan_add_suppliers(plan, next), 0);
	expect_eq(plan->nodes.n, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct plan_node *node = &plan->nodes.p[i];

		expect_str(str_of(node->id), ids[i]);
		if (values[i])
			expect_eq(node->args->items[0].integer, values[i]);
	}
	expect_eq(plan->waiting.n, 0);
	plan_free(plan);
	supplied_free(s);
	arena_free(&sources);
}

/* Nobody waits for himself, alone or in a circle. */
TEST(circles_are_refused)
{
	expect_plan("test.value \"a\" {\n  value = test.value.a.data\n}\n",
		    "f:2:11: error: test.value.a refers to itself\n"
		    "    2 |   value = test.value.a.data\n"
		    "      |           ^~~~~~~~~~~~~~~~~\n");
	expect_plan("test.value \"a\" {\n  value = test.value.b.data\n}\n"
		    "test.value \"b\" {\n  value = test.value.a.data\n}\n",
		    "f:2:11: error: these components feed each other in a circle: test.value.a → "
		    "test.value.b → test.value.a\n"
		    "    2 |   value = test.value.b.data\n"
		    "      |           ^~~~~~~~~~~~~~~~~\n"
		    "  test.value.a → test.value.b at f:5:11\n"
		    "  test.value.b → test.value.a at f:2:11\n");
}

/* A circle is seen also where it runs through an argument that another has asked for before. */
TEST(circles_through_arguments_are_refused)
{
	static const char circle[] = "declare \"d\" {\n  argument \"x\" {}\n"
				     "  test.any \"a\" {\n    value = argument.x.value\n  }\n"
				     "  test.value \"b\" {\n    value = argument.x.value\n  }\n"
				     "  export \"y\" { value = test.value.b.data }\n}\n"
				     "d \"one\" { x = test.value.w.data }\n"
				     "test.value \"w\" {\n  value = d.one.y\n}\n";
	char *got = plan_text(str_of(circle));

	expect(strstr(got, "in a circle: "));
	expect(strstr(got, "d.one/test.value.b"));
	expect(strstr(got, "test.value.w → d.one/test.value.b at f:11:"));
	free(got);
}

/* No components are made of a value, be it there or not. */
TEST(foreach_takes_no_value)
{
	static const char loops[] =
		VALUE("v") "declare \"d\" {\n  argument \"x\" {}\n"
			   "  foreach \"each\" {\n    collection = argument.x.value\n"
			   "    var = \"x\"\n    template {}\n  }\n}\n"
			   "d \"one\" { x = [test.value.v.data.key] }\n"
			   "foreach \"each\" {\n  collection = [test.value.v.data.key]\n"
			   "  var = \"x\"\n  template {}\n}\n";
	struct supplied *s = supply();
	struct source source = {"f", str_of(loops)};

	for (int there = 0; there < 2; there++) {
		struct registry registry = {.supplied = there ? s : NULL};
		char *got = plan_text_of(&source, 1, &registry);

		expect(strstr(got, "f:10:16: error: foreach goes over a list in the configuration "
				   "or over targets, not over what test.value.v supplies\n"));
		expect(strstr(got, "f:12:17: error: foreach goes over"));
		free(got);
	}
	supplied_free(s);
}

#define LADDER 40

/* Arguments that name each other twice, again and again, are no more work for it. */
TEST(uses_are_told_once)
{
	struct buf text = BUF_NULL;
	char *got;

	buf_str_append(&text, STR(VALUE("v") "declare \"d\" {\n  argument \"x\" {}\n"
					     "  export \"y\" { value = [argument.x.value, "
					     "argument.x.value] == [] }\n}\n"
					     "d \"n0\" { x = test.value.v.data }\n"));
	for (int i = 1; i <= LADDER; i++)
		buf_printf(&text, "d \"n%d\" { x = [d.n%d.y, d.n%d.y] == [] }\n", i, i - 1, i - 1);
	buf_printf(&text, ANY("d.n%d.y"), LADDER);
	got = plan_text(buf_str(&text));
	expect_str(str_of(got), "test.any.a waits for test.value.v\nnode test.value.v: {}\n");
	free(got);
	buf_free(&text);
}

static void take_all(struct supplied *s)
{
	expect(supplied_try_all(s) > 0);
	supplied_end(s, 0);
}

static void expect_kept(const struct supplied *s, const char *id, const char *text)
{
	const struct andiron_value *v = supplied_get(s, id, "data");

	expect_str(v ? ((struct str){v->string.ptr, v->string.len}) : STR("none"), text);
}

static int set(struct supplied *s, const char *id, const char *value)
{
	const struct andiron_value v = text(value, 0);

	return supplied_set(s, id, "data", &v);
}

/* What is refused leaves what was taken, and each other value; it is known again, until it may be
 * tried once more. */
TEST(what_is_refused_is_one_value)
{
	struct supplied *s = supplied_new();
	bool again;

	expect(s);
	expect_eq(set(s, "a", "a1"), 1);
	expect_eq(set(s, "b", "b1"), 1);
	take_all(s);
	expect_eq(set(s, "a", "a2"), 1);
	expect_eq(set(s, "b", "b2"), 1);
	expect_kept(s, "a", "a1");
	expect_eq(supplied_try_all(s), 2);
	expect_kept(s, "a", "a2");
	supplied_end(s, -EAGAIN);
	expect_str(str_of(supplied_try_one(s, &again)), "a");
	expect(!again);
	expect_kept(s, "a", "a2");
	expect_kept(s, "b", "b1");
	supplied_end(s, -EINVAL);
	expect_str(str_of(supplied_try_one(s, &again)), "b");
	supplied_end(s, 0);
	expect(!supplied_try_one(s, &again));
	expect_kept(s, "a", "a1");
	expect_kept(s, "b", "b2");
	expect_eq(set(s, "a", "a2"), -EPERM);
	expect_eq(supplied_try_all(s), 0);
	expect(supplied_renew(s) && !supplied_renew(s));
	expect_str(str_of(supplied_try_one(s, &again)), "a");
	expect(again);
	supplied_end(s, -EPERM);
	expect_eq(set(s, "a", "a1"), 1); /* what it was before is good again */
	expect(!supplied_renew(s));
	take_all(s);
	expect_kept(s, "a", "a1");
	supplied_free(s);
}

/* What comes while another is tried is new; what fails for a reason that may pass is, too. */
TEST(what_comes_meanwhile_is_new)
{
	struct supplied *s = supplied_new();
	bool again;

	expect(s);
	expect_eq(set(s, "a", "a1"), 1);
	for (int i = 0; i < 2; i++) {
		expect_eq(supplied_try_all(s), 1);
		supplied_end(s, -EADDRINUSE);
	}
	expect(!supplied_get(s, "a", "data"));
	expect_eq(supplied_try_all(s), 1);
	expect_eq(set(s, "a", "a1"), 0);
	expect_eq(set(s, "a", "a2"), 1);
	expect_kept(s, "a", "a1");
	supplied_end(s, -EINVAL);
	expect_eq(supplied_try_all(s), 1);
	expect_eq(set(s, "a", "a3"), 1);
	supplied_end(s, 0);
	expect_kept(s, "a", "a2");
	expect_eq(supplied_try_all(s), 1);
	supplied_end(s, 0);
	expect_kept(s, "a", "a3");
	expect(!supplied_try_one(s, &again));
	supplied_free(s);
}

/* What is sent again changes nothing; what is no text, or too much, is refused and changes nothing;
 * who is gone is forgotten. */
TEST(the_store)
{
	static char big[SUPPLIED_MAX_BYTES + 2];
	struct supplied *s = supply();
	struct andiron_value v = text("x", 0), secret = text("x", ANDIRON_VALUE_SECRET);
	struct andiron_value bad = text("\xff", 0), number = {.kind = ANDIRON_VALUE_INT}, long_one;
	struct plan plan = {0};
	struct plan_node node = {.id = "b"};

	memset(big, 'x', sizeof(big) - 1);
	long_one = text(big, 0);
	expect_eq(supplied_set(s, "b", "data", &v), 1);
	expect_eq(supplied_set(s, "b", "data", &v), 0);
	expect_eq(supplied_set(s, "b", "data", &secret), 1);
	expect_eq(supplied_set(s, "b", "data", &bad), -EINVAL);
	expect_eq(supplied_set(s, "b", "data", &number), -EINVAL);
	expect_eq(supplied_set(s, "b", "data", &long_one), -EINVAL);
	expect(!supplied_get(s, "b", "data"));
	take_all(s);
	expect_eq(supplied_get(s, "b", "data")->flags, ANDIRON_VALUE_SECRET);
	expect(!supplied_get(s, "b", "other") && !supplied_get(NULL, "b", "data"));
	expect(vec_push(&plan.nodes, node));
	supplied_prune(s, &plan);
	expect(supplied_get(s, "b", "data") && !supplied_get(s, "test.value.v", "data"));
	vec_free(&plan.nodes);
	supplied_free(s);
}

static const char sparse[] = VALUE("v") VALUE("u")
	ANY("[test.value.v.data, test.value.v.data]")
	"test.any \"b\" {\n  value = test.value.u.data\n}\n";

static int build(void *context)
{
	const struct andiron_value v = text("x", 0);
	struct supplied *s = supplied_new();
	struct registry registry = {.supplied = s};
	struct source source = {"f", str_of(sparse)};
	struct diags diags = {0};
	struct plan *plan = NULL, *next = NULL;
	int r = s ? supplied_set(s, "test.value.v", "data", &v) : -ENOMEM;

	if (r == 1) {
		r = plan_build_with(&source, 1, &registry, s, &diags, &next);
		expect_eq(supplied_try_all(s), 1);
		supplied_end(s, 0);
	}
	if (r == 0)
		r = plan_build_with(&source, 1, &registry, s, &diags, &plan);
	if (r == 0) {
		r = plan_add_suppliers(plan, next);
		next = NULL;
	}
	plan_free(next);
	plan_free(plan);
	diags_free(&diags);
	supplied_free(s);
	return r;
}

/* Every allocation may fail. */
TEST(values_survive_out_of_memory)
{
	test_each_failing_allocation(build, NULL);
}
