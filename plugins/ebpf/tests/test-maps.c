/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of a process, from texts that the kernel writes and others. */
#include "ebpf/processes/maps.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

static const char text[] =
	"55a000000000-55a000001000 r--p 00000000 08:01 11 /usr/bin/a\n"
	"55a000001000-55a000005000 r-xp 00001000 08:01 11 /usr/bin/a\n"
	"7f0000000000-7f0000002000 rwxp 00000000 00:00 0 \n"
	"7f0000010000-7f0000012000 r-xp 00003000 08:01 12 "
	"                        /usr/lib/b c.so (deleted)\n"
	"7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static int no_file(void *context, const struct maps_line *line, char *reopen, size_t n)
{
	return -1;
}

static struct mapset *parse(struct str s)
{
	return mapset_parse(s, NULL, no_file, NULL, NULL, NULL);
}

/* Every executable mapping is found, with its name as the process knows it. */
TEST(executable_mappings_are_kept)
{
	static const char *const names[] = {"/usr/bin/a", "[anon]", "/usr/lib/b c.so", "[vdso]",
					    "[vsyscall]"};
	struct mapset *set = parse(str_of(text));

	expect(set);
	expect_eq(set->list.n, 5);
	for (size_t i = 0; i < 5; i++)
		expect_str(set->list.p[i].name, names[i]);
	expect_eq(set->list.p[2].offset, 0x3000);
	mapset_free(set);
}

/* An address belongs to the mapping that holds it: first and last byte, not the next. */
TEST(addresses_find_their_mapping)
{
	struct mapset *set = parse(str_of(text));

	expect(mapset_find(set, 0x55a000001000) == &set->list.p[0]);
	expect(mapset_find(set, 0x55a000004fff) == &set->list.p[0]);
	expect(!mapset_find(set, 0x55a000005000));
	expect(!mapset_find(set, 0x55a000000fff)); /* not executable */
	expect(!mapset_find(set, 0));
	expect_eq(mapping_address(mapset_find(set, 0x7ffd00000123), 0x7ffd00000123), 0x123);
	expect_eq(mapping_address(mapset_find(set, 0x7f0000000123), 0x7f0000000123),
		  0x7f0000000123);
	mapset_free(set);
}

/* Memory of the process's own is known whatever the kernel calls it, and keeps the name that the
 * process gave it; what only begins like it is a file. */
TEST(own_memory_has_no_file)
{
	static const char *const names[] = {"[anon]", "[anon:v8]", "[anon]",
					    "[anon]", "[anon]",    "/dev/zeros"};
	struct mapset *set = parse(STR("1000-2000 r-xp 0 0:0 0 \n2000-3000 r-xp 0 0:0 0 [anon:v8]\n"
				       "3000-4000 r-xs 0 0:1 9 /dev/zero (deleted)\n"
				       "4000-5000 r-xs 0 0:1 9 /memfd:doublemapper (deleted)\n"
				       "5000-6000 r-xp 0 0:0 0 //anon\n"
				       "6000-7000 r-xp 0 0:1 9 /dev/zeros\n"));

	expect_eq(set->list.n, 6);
	for (size_t i = 0; i < 6; i++) {
		uint64_t at = 0x1010 + i * 0x1000;

		expect_str(set->list.p[i].name, names[i]);
		expect_eq(mapping_address(mapset_find(set, at), at), at);
	}
	mapset_free(set);
}

/* What was unmapped meanwhile is still found behind the new mappings. */
TEST(older_sets_are_asked_last)
{
	struct mapset *old =
		parse(STR("1000-2000 r-xp 0 0:0 0 old\n3000-4000 r-xp 0 0:0 0 gone\n"));
	struct mapset *set = parse(STR("1000-2000 r-xp 0 0:0 0 new\n"));

	set->older = old;
	expect_str(mapset_find(set, 0x1800)->name, "new");
	expect_str(mapset_find(set, 0x3800)->name, "gone");
	expect(!mapset_find(set, 0x5000));
	mapset_free(set);
}

/* A process that was another program before: its old stacks are not the new program's. */
TEST(stacks_are_found_in_their_exec_generation)
{
	struct mapset *old =
		parse(STR("1000-2000 r-xp 0 0:0 0 old\n3000-4000 r-xp 0 0:0 0 gone\n"));
	struct mapset *set = parse(STR("1000-2000 r-xp 0 0:0 0 new\n"));
	uint32_t then, now;

	old->generation = UINT64_C(0x1234) << 48 | 1;
	set->generation = UINT64_C(0x5678) << 48 | 1;
	set->older = old;
	then = sampler_stack_exec(old->generation);
	now = sampler_stack_exec(set->generation);
	expect_str(mapset_find_exec(set, then, 0x1800)->name, "old");
	expect_str(mapset_find_exec(set, now, 0x1800)->name, "new");
	expect_str(mapset_find_exec(set, now, 0x3800)->name, "gone");
	expect_str(mapset_find_exec(set, 0, 0x1800)->name, "new");
	expect_str(mapset_find_exec(set, 0xfff0, 0x1800)->name, "new");
	expect(!mapset_find_exec(set, then, 0x5000));
	mapset_free(set);
}

/* Lines that are none are passed over; what would break the search, too. */
TEST(broken_lines_are_passed_over)
{
	static const char *const broken[] = {
		"",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 r-xp",
		"1000-2000 r-xp 0 0:0 x",
		"2000-1000 r-xp 0 0:0 0 a",
		"1000-1000 r-xp 0 0:0 0 a",
		"1000-2000 rx 0 0:0 0 a",
		"10000000000000000-2 r-xp 0 0:0 0 a",
	};
	struct maps_line line;
	struct mapset *set;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		expect(!maps_parse_line(str_of(broken[i]), &line));
	set = parse(STR(
		"3000-4000 r-xp 0 0:0 0 a\n1000-2000 r-xp 0 0:0 0 b\n5000-6000 r-xp 0 0:0 0 c\n"));
	expect_eq(set->list.n, 2);
	mapset_free(set);
}

/* Untrusted text: no crash, mappings ascending and not empty, whatever it says. */
TEST(any_bytes_are_legal)
{
	srand(3);
	for (int round = 0; round < 5000; round++) {
		char copy[sizeof(text)];
		struct mapset *set;
		uint64_t last = 0;

		memcpy(copy, text, sizeof(text));
		for (int i = rand() % 20; i >= 0; i--)
			copy[(size_t)rand() % sizeof(copy)] =
				(char)(rand() % 3 ? "0f- \nx/"[rand() % 7] : rand());
		set = parse((struct str){copy, (size_t)rand() % sizeof(copy)});
		expect(set);
		vec_each (&set->list, m) {
			expect(m->start >= last && m->limit > m->start);
			last = m->limit;
			expect(mapset_find(set, m->start) == m);
			expect(mapset_find(set, m->limit - 1) == m);
		}
		mapset_free(set);
	}
}

static int parse_once(void *context)
{
	struct mapset *set = parse(str_of(text));

	mapset_free(set);
	return set ? 0 : -ENOMEM;
}

TEST(parsing_survives_out_of_memory)
{
	test_each_failing_allocation(parse_once, NULL);
}
