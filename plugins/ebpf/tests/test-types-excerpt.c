/* SPDX-License-Identifier: Apache-2.0 */
/* Excerpts of types that the test has made with libbpf, which is also what reads them; and of this
 * machine's kernel, where it says its types. */
#include "ebpf/kernel/types-excerpt.h"

#include "base/check.h"
#include "proc/kernel-types.h"
#include "testing/test.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* struct inner { int a, b; }
 * struct outer { struct outer *next; const inner_t in; int; union { int x; struct inner y; };
 *                int bits:3, other:5; int list[4]; }
 * enum choice { ONE = 1, TWO }, and a second struct of the name `outer`. */
static struct btf *kernel_types(void)
{
	struct btf *b = btf__new_empty();
	int number = btf__add_int(b, "int", 4, BTF_INT_SIGNED), inner, alias, constant, pointer,
	    array, either;

	inner = btf__add_struct(b, "inner", 8);
	btf__add_field(b, "a", number, 0, 0);
	btf__add_field(b, "b", number, 32, 0);
	alias = btf__add_typedef(b, "inner_t", inner);
	constant = btf__add_const(b, alias);
	pointer = btf__add_ptr(b, inner);
	array = btf__add_array(b, number, number, 4);
	either = btf__add_union(b, "", 8);
	btf__add_field(b, "x", number, 0, 0);
	btf__add_field(b, "y", inner, 0, 0);
	btf__add_struct(b, "outer", 48);
	btf__add_field(b, "next", pointer, 0, 0);
	btf__add_field(b, "in", constant, 64, 0);
	btf__add_field(b, "", either, 128, 0);
	btf__add_field(b, "bits", number, 192, 3);
	btf__add_field(b, "other", number, 195, 5);
	btf__add_field(b, "list", array, 224, 0);
	btf__add_enum(b, "choice", 4);
	btf__add_enum_value(b, "ONE", 1);
	btf__add_enum_value(b, "TWO", 2);
	btf__add_struct(b, "stranger", 4);
	btf__add_field(b, "a", number, 0, 0);
	btf__add_struct(b, "outer", 4);
	check(btf__add_field(b, "x", number, 0, 0) == 0);
	return b;
}

/* What a program would name: outer___old.{next, in, x, bits, list}, inner.b, and the enum. */
static struct btf *needed_types(void)
{
	struct btf *b = btf__new_empty();
	int number = btf__add_int(b, "int", 4, BTF_INT_SIGNED);

	btf__add_struct(b, "outer___old", 20);
	btf__add_field(b, "next", number, 0, 0);
	btf__add_field(b, "in", number, 32, 0);
	btf__add_field(b, "x", number, 64, 0);
	btf__add_field(b, "bits", number, 96, 0);
	btf__add_field(b, "list", number, 128, 0);
	btf__add_struct(b, "inner", 4);
	btf__add_field(b, "b", number, 0, 0);
	check(btf__add_enum(b, "choice", 4) > 0);
	return b;
}

static const struct btf_member *member(const struct btf *b, const struct btf_type *t,
				       const char *name)
{
	for (uint32_t i = 0; i < btf_vlen(t); i++)
		if (strcmp(btf__name_by_offset(b, btf_members(t)[i].name_off), name) == 0)
			return &btf_members(t)[i];
	return NULL;
}

static const struct btf_type *named(const struct btf *b, const char *name, uint32_t kind)
{
	int id = btf__find_by_name_kind(b, name, kind);

	return id > 0 ? btf__type_by_id(b, (uint32_t)id) : NULL;
}

static struct btf *excerpt_of(struct btf *kernel)
{
	struct btf *needs = needed_types(), *ret = NULL;
	uint32_t n;
	const void *bytes = btf__raw_data(kernel, &n);

	expect_eq(types_excerpt_make((struct str){bytes, n}, needs, &ret), 0);
	btf__free(needs);
	return ret;
}

/* What is named is there, where it was, and nothing else. */
TEST(members_keep_their_places)
{
	struct btf *kernel = kernel_types(), *b = excerpt_of(kernel);
	const struct btf_type *outer = named(b, "outer", BTF_KIND_STRUCT), *either, *list;
	const struct btf_member *m;

	expect(outer && outer->size == 48);
	expect((m = member(b, outer, "in")) && m->offset == 64);
	expect(btf_is_struct(btf__type_by_id(b, m->type)));
	expect((m = member(b, outer, "bits")) && BTF_MEMBER_BIT_OFFSET(m->offset) == 192 &&
	       BTF_MEMBER_BITFIELD_SIZE(m->offset) == 3);
	expect(!member(b, outer, "other") && !named(b, "stranger", BTF_KIND_STRUCT));
	expect((m = member(b, outer, "")) != NULL);
	either = btf__type_by_id(b, m->type);
	expect(btf_is_union(either) && member(b, either, "x") && !member(b, either, "y"));
	expect((m = member(b, outer, "list")) != NULL);
	list = btf__type_by_id(b, m->type);
	expect(btf_is_array(list) && btf_array(list)->nelems == 4);
	expect(!member(b, named(b, "inner", BTF_KIND_STRUCT), "a"));
	btf__free(kernel);
	btf__free(b);
}

/* What a pointer leads to is not relocated with it, so the excerpt ends there. */
TEST(pointers_lead_nowhere)
{
	struct btf *kernel = kernel_types(), *b = excerpt_of(kernel);
	const struct btf_member *m = member(b, named(b, "outer", BTF_KIND_STRUCT), "next");
	const struct btf_type *t;

	expect(m != NULL);
	t = btf__type_by_id(b, m->type);
	expect(btf_is_ptr(t) && t->type == 0);
	btf__free(kernel);
	btf__free(b);
}

/* libbpf refuses an ambiguous name, so it must see all of one name. */
TEST(all_of_one_name_are_there_and_enumerations_whole)
{
	struct btf *kernel = kernel_types(), *b = excerpt_of(kernel);
	const struct btf_type *choice = named(b, "choice", BTF_KIND_ENUM);
	size_t n = 0;

	for (uint32_t id = 1; id < btf__type_cnt(b); id++)
		n += strcmp(btf__name_by_offset(b, btf__type_by_id(b, id)->name_off), "outer") == 0;
	expect_eq(n, 2);
	expect(choice && btf_vlen(choice) == 2 && btf_enum(choice)[1].val == 2);
	btf__free(kernel);
	btf__free(b);
}

static int make(const void *bytes, uint32_t n)
{
	struct btf *needs = needed_types(), *excerpt = NULL;
	int r = types_excerpt_make((struct str){bytes, n}, needs, &excerpt);

	btf__free(needs);
	btf__free(excerpt);
	return r;
}

/* Whatever the bytes are, it ends with an excerpt or an error. */
TEST(any_bytes_are_legal)
{
	struct btf *kernel = kernel_types();
	uint32_t n;
	const void *bytes = btf__raw_data(kernel, &n);
	uint8_t *copy = malloc(n);

	check(copy);
	for (uint32_t cut = 0; cut < n; cut++) {
		uint8_t *part = malloc(cut + 1); /* whose end sanitizers watch */

		check(part);
		memcpy(part, bytes, cut);
		expect(make(part, cut) < 0);
		free(part);
	}
	for (uint32_t at = 0; at < n; at++)
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, bytes, n);
			copy[at] ^= (uint8_t)(1 << bit);
			expect(make(copy, n) <= 0);
		}
	free(copy);
	btf__free(kernel);
}

/* The kernel's own: what the sampler reads of a task is where libbpf finds it in the whole. */
TEST(this_kernels_tasks_are_as_in_the_whole)
{
	struct btf *whole = btf__load_vmlinux_btf(), *needs, *b = NULL;
	const char *const members[] = {"flags", "mm", "group_leader", "start_boottime"};
	struct kernel_types kernel;
	int number;

	if (!whole || kernel_types_read(&kernel) != 0) {
		btf__free(whole);
		return;
	}
	needs = btf__new_empty();
	number = btf__add_int(needs, "int", 4, 0);
	btf__add_struct(needs, "task_struct", 16);
	for (uint32_t i = 0; i < 4; i++)
		btf__add_field(needs, members[i], number, i * 32, 0);
	expect_eq(types_excerpt_make(kernel.text, needs, &b), 0);
	for (uint32_t i = 0; i < 4; i++) {
		const struct btf_member *is =
			member(b, named(b, "task_struct", BTF_KIND_STRUCT), members[i]);
		const struct btf_member *was =
			member(whole, named(whole, "task_struct", BTF_KIND_STRUCT), members[i]);

		expect(is && was && is->offset == was->offset);
	}
	expect(btf__type_cnt(b) < 100);
	btf__free(b);
	btf__free(needs);
	btf__free(whole);
	kernel_types_fini(&kernel);
}
