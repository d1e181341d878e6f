/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of files, and which slots they have. */
#include "runtime-kit/object-table.h"

#include "testing/test.h"

#include <andiron/object.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int32_t open_null(void *self, uint64_t object, uint32_t what, int32_t *ret_fd)
{
	if (object == 13)
		return -ESTALE;
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

static const struct andiron_objects table = {.size = sizeof(table), .open = open_null};
static const struct andiron_extension objects = {&table, NULL};

static struct object_entry *add(struct object_table *t, uint64_t object)
{
	struct object_entry *e = malloc(sizeof(*e));

	expect(e != NULL);
	object_table_add(t, e, object);
	return e;
}

static void fini(struct object_table *t)
{
	struct object_entry *e;

	while ((e = object_table_take(t)) != NULL)
		free(e);
	object_table_fini(t);
}

/* A file that cannot be opened is not known afterwards; another is read once. */
TEST(failures_are_not_remembered)
{
	struct object_table t;
	int fd = -1;

	expect_eq(object_table_init(&t, &objects, 8, 2), 0);
	expect_eq(object_table_open(&t, 13, &fd), -ESTALE);
	expect(object_table_find(&t, 13) == NULL);
	expect_eq(object_table_open(&t, 14, &fd), 0);
	close(fd);
	add(&t, 14);
	expect(object_table_find(&t, 14)->object == 14);
	fini(&t);
}

/* Whatever comes by, what processes use stays, and so does what was looked up last. */
TEST(entries_are_bounded)
{
	struct object_entry *used, *e;
	struct object_table t;

	expect_eq(object_table_init(&t, &objects, 100, 2), 0);
	used = add(&t, 1);
	expect_eq(object_table_retain(&t, used), 1);
	add(&t, 2);
	for (uint64_t object = 3; object < 100000; object++) {
		add(&t, object);
		while ((e = object_table_excess(&t)) != NULL)
			free(e);
		expect(t.n <= 101);
		expect(object_table_find(&t, 2) != NULL);
	}
	expect(object_table_find(&t, 1) == used);
	expect(object_table_find(&t, 3) == NULL);
	object_table_release(used);
	fini(&t);
}

/* A slot is its file's while a process uses it, and as long as no other needs it. */
TEST(slots_are_shared)
{
	struct object_entry *a, *b, *c;
	struct object_table t;

	expect_eq(object_table_init(&t, &objects, 100, 2), 0);
	a = add(&t, 1);
	b = add(&t, 2);
	c = add(&t, 3);
	expect_eq(object_table_retain(&t, a), 1);
	expect_eq(object_table_retain(&t, a), 0);
	expect_eq(object_table_retain(&t, b), 1);
	expect(a->slot != b->slot);
	expect_eq(object_table_retain(&t, c), -ENOSPC);
	object_table_release(a);
	expect_eq(object_table_retain(&t, c), -ENOSPC);
	object_table_release(a);
	expect_eq(object_table_retain(&t, a), 0);
	object_table_release(a);
	expect_eq(object_table_retain(&t, c), 1);
	expect_eq(a->slot, OBJECT_NO_SLOT);
	expect_eq(object_table_retain(&t, a), -ENOSPC);
	fini(&t);
}

static int make(void *context)
{
	struct object_table t;
	int r = object_table_init(&t, &objects, 8, 8);

	if (r == 0)
		object_table_fini(&t);
	return r;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(make, NULL);
}
