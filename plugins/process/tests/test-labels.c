/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of a process's labels and of users' names. */
#include "testing/test.h"
#include "process/labels.h"

#include <errno.h>
#include <stdlib.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct str value_of(const struct process_labels *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_is(l->labels[i].name, name))
			return l->labels[i].value;
	return STR_NULL;
}

static const struct label_choice all = {true, true, true, true, true, true, true};

/* Every label under Alloy's name, ours beside them. */
TEST(all_labels)
{
	struct proc_info info = {
		.pid = 42,
		.uid = 1000,
		.comm = "web",
		.exe = STR("/srv/web"),
		.cwd = STR("/srv"),
		.cmdline = STR("/srv/web -p 80"),
		.cgroup = STR("1:name=systemd:/system.slice/docker-" ID ".scope\n0::/x\n")};
	struct users users = USERS_NULL;
	struct arena arena = ARENA_NULL;
	struct process_labels l;

	expect_eq(users_parse(&users, STR("root:x:0:0::/:\nanna:x:1000:5::/:\n")), 0);
	expect_eq(process_labels(&info, &all, &users, &arena, &l), 0);
	expect_str(value_of(&l, "__process_pid__"), "42");
	expect_str(value_of(&l, "__container_id__"), ID);
	expect_str(value_of(&l, "__meta_process_exe"), "/srv/web");
	expect_str(value_of(&l, "__meta_process_cwd"), "/srv");
	expect_str(value_of(&l, "__meta_process_commandline"), "/srv/web -p 80");
	expect_str(value_of(&l, "__meta_process_uid"), "1000");
	expect_str(value_of(&l, "__meta_process_username"), "anna");
	expect_str(value_of(&l, "__meta_process_comm"), "web");
	expect_str(value_of(&l, "__meta_process_systemd_unit"), "docker-" ID ".scope");
	expect_str(value_of(&l, "__meta_process_cgroup_path"),
		   "1:name=systemd:/system.slice/docker-" ID ".scope|0::/x");
	expect_str(str_of(l.container), ID);
	users_free(&users);
	arena_free(&arena);
}

/* Nothing is there that was not asked for, and nothing empty. */
TEST(few_labels)
{
	static const struct label_choice none = {0};
	struct proc_info info = {.pid = 7, .uid = 0, .comm = "x", .cgroup = STR("0::/docker/" ID)};
	struct users users = USERS_NULL;
	struct arena arena = ARENA_NULL;
	struct process_labels l;

	expect_eq(process_labels(&info, &none, &users, &arena, &l), 0);
	expect_eq(l.n, 2);
	expect_eq(l.container[0], 0);
	expect_eq(label_choice_needs(&none), PROC_CGROUP);
	expect_eq(label_choice_needs(&all), PROC_ALL);
	arena_free(&arena);
}

/* Whatever a process calls itself, its labels are UTF-8 and as long as before. */
TEST(strange_names)
{
	struct users users = USERS_NULL;

	srand(9);
	for (int round = 0; round < 3000; round++) {
		char name[16], line[64];
		struct proc_info info = {.pid = 1, .uid = UINT32_MAX};
		struct arena arena = ARENA_NULL;
		struct process_labels l;

		for (size_t i = 0; i < sizeof(line); i++)
			line[i] = (char)(1 + rand() % 255);
		memcpy(name, line, sizeof(name));
		name[15] = 0;
		memcpy(info.comm, name, sizeof(name));
		info.cmdline = (struct str){line, (size_t)rand() % sizeof(line)};
		info.cgroup = (struct str){line, sizeof(line)};
		expect_eq(process_labels(&info, &all, &users, &arena, &l), 0);
		for (size_t i = 0; i < l.n; i++)
			expect(str_utf8(l.labels[i].value));
		expect_eq(value_of(&l, "__meta_process_commandline").n, info.cmdline.n);
		arena_free(&arena);
	}
}

/* A passwd file of any content: good lines count, of equal uids the first. */
TEST(passwd)
{
	struct users users = USERS_NULL;

	expect_eq(users_parse(&users, STR("toor:x:0:0\nroot:x:0:0\n:x:5:5\nbroken\nno:x:-1:1\n"
					  "big:x:4294967295:1\nlast:*:9")),
		  0);
	expect_str(users_name(&users, 0), "toor");
	expect_str(users_name(&users, 9), "last");
	expect_eq(users_name(&users, 5).n, 0);
	expect_eq(users_name(&users, UINT32_MAX).n, 0);
	expect_eq(users.known.n, 3);
	expect_eq(users_parse(&users, STR("")), 0);
	expect_eq(users_name(&users, 0).n, 0);
	users_free(&users);
}

static int label_once(void *context)
{
	struct proc_info info = {.pid = 42, .uid = 0, .comm = "web", .exe = STR("/x")};
	struct users users = USERS_NULL;
	struct arena arena = ARENA_NULL;
	struct process_labels l;
	int r = users_parse(&users, STR("root:x:0:0\n"));

	if (!r)
		r = process_labels(&info, &all, &users, &arena, &l);
	users_free(&users);
	arena_free(&arena);
	return r;
}

TEST(out_of_memory)
{
	test_each_failing_allocation(label_once, NULL);
}
