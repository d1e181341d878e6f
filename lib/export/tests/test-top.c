/* SPDX-License-Identifier: Apache-2.0 */
/* Self and total, recursion, inlining and code without names. */
#include "pprof/tests/read-back.h"
#include "testing/test.h"
#include "pprof/encode.h"
#include "export/top.h"

#include <errno.h>

static uint32_t function(struct pprof_encoder *e, const char *name)
{
	struct pprof_function f = {.name = pprof_add_string(e, str_of(name))};

	return pprof_add_function(e, &f);
}

static uint32_t location(struct pprof_encoder *e, uint64_t address, const char *name,
			 const char *caller)
{
	struct pprof_mapping m = {.file = pprof_add_string(e, STR("/usr/bin/shop"))};
	struct pprof_line lines[2] = {{0}};
	struct pprof_location l = {.address = address, .lines = lines};

	l.mapping = pprof_add_mapping(e, &m);
	if (name)
		lines[l.n_lines++].function = function(e, name);
	if (caller)
		lines[l.n_lines++].function = function(e, caller);
	return pprof_failed(e) ? 0 : pprof_add_location(e, &l);
}

/* An anonymous function of a script that begins at this line. */
static uint32_t script_location(struct pprof_encoder *e, uint32_t begins)
{
	struct pprof_mapping m = {.file = pprof_add_string(e, STR("[v8js]"))};
	struct pprof_function f = {
		.name = pprof_add_string(e, STR("(anonymous)")),
		.file = pprof_add_string(e, STR("/srv/shop.js")),
		.start_line = begins,
	};
	struct pprof_line line = {.function = pprof_add_function(e, &f)};
	struct pprof_location l = {.address = begins, .lines = &line, .n_lines = 1};

	l.mapping = pprof_add_mapping(e, &m);
	return pprof_failed(e) ? 0 : pprof_add_location(e, &l);
}

static void sample(struct pprof_encoder *e, const uint32_t *stack, uint32_t n, int64_t count)
{
	int64_t values[2] = {count, count * 10};
	struct pprof_sample s = {stack, NULL, values, n, 0};

	if (!pprof_failed(e))
		pprof_add_sample(e, &s);
}

/* main → recurse → recurse → (inlined in recurse) 3; main → bare 4; main → :20 → :10 2 */
static int make(struct profile **ret)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {.time_ns = 1, .duration_ns = 1};
	uint32_t l[6];

	if (!e)
		return -ENOMEM;
	pprof_add_type(e, pprof_add_string(e, STR("samples")), pprof_add_string(e, STR("count")));
	pprof_add_type(e, pprof_add_string(e, STR("cpu")), pprof_add_string(e, STR("nanoseconds")));
	l[0] = location(e, 1, "main", NULL);
	l[1] = location(e, 2, "recurse", NULL);
	l[2] = location(e, 3, "inlined", "recurse");
	l[3] = location(e, 4, NULL, NULL);
	l[4] = script_location(e, 10);
	l[5] = script_location(e, 20);
	sample(e, (uint32_t[]){l[2], l[1], l[0]}, 3, 3);
	sample(e, (uint32_t[]){l[3], l[0]}, 2, 4);
	sample(e, (uint32_t[]){l[4], l[5], l[0]}, 3, 2);
	return read_back(e, &head, ret);
}

static int build(void *context)
{
	struct profile *p = NULL;
	struct call_tree *t = NULL;
	struct top top = {0};
	int r = make(&p);

	if (r == 0)
		r = call_tree_build(p, CALL_TREE_BY_FILE, &t);
	if (r == 0)
		r = top_build(t, &top);
	if (r == 0) {
		expect_eq(top.n, 6);
		expect_eq(top.sum, 90);
		expect_eq(top.samples, 9);
		top_sort_by_self(&top);
		expect_str(top.entries[0].name, "");
		expect_str(top.entries[0].module, "/usr/bin/shop");
		expect_eq(top.entries[0].self, 40);
		expect_str(top.entries[1].name, "inlined");
		expect_eq(top.entries[1].self, 30);
		expect_str(top.entries[2].source, "/srv/shop.js:10");
		expect_eq(top.entries[2].self, 20);
		expect_eq(top.entries[2].total, 20);
		top_sort_by_total(&top);
		expect_str(top.entries[0].name, "main");
		expect_eq(top.entries[0].total, 90);
		expect_eq(top.entries[0].self, 0);
		expect_str(top.entries[3].name, "recurse");
		expect_eq(top.entries[3].total, 30);
	}
	top_fini(&top);
	call_tree_free(t);
	profile_free(p);
	return r;
}

TEST(recursion_counts_once_under_failing_allocations)
{
	test_each_failing_allocation(build, NULL);
}
