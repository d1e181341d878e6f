/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes say of the code that they compile. */
#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "testing/test.h"
#include "elf/jit.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_NAMES ((size_t)1 << 20)

static void name_is(const struct jit *j, uint64_t address, const char *name)
{
	struct str found = STR("");

	jit_find(j, address, &found);
	expect_str(found, name);
}

static void append(int fd, const char *text)
{
	lseek(fd, 0, SEEK_END);
	expect_eq(file_write_fd(fd, text, strlen(text)), 0);
}

/* A map grows; a line that is half-written is read once it is whole, and a later word for an
 * address counts. */
TEST(perf_maps_grow)
{
	_cleanup_(closep) int fd = elf_memfd("", 0);
	struct jit j = JIT_NULL;

	expect_eq(jit_load(&j, fd, MAX_NAMES), 0);
	append(fd, "7f0000001000 40 LazyCompile:*sum /app/a.js:3\n"
		   "0x7f0000002000 0x10 stub\n7f00000030");
	expect_eq(jit_load(&j, fd, MAX_NAMES), 1);
	name_is(&j, 0x7f0000001000, "LazyCompile:*sum /app/a.js:3");
	name_is(&j, 0x7f000000103f, "LazyCompile:*sum /app/a.js:3");
	name_is(&j, 0x7f0000001040, "");
	name_is(&j, 0x7f000000200f, "stub");
	name_is(&j, 0x7f0000000fff, "");
	expect_eq(jit_load(&j, fd, MAX_NAMES), 0);
	append(fd, "00 8 late\n7f0000001000 20 replaced\nnonsense\n\n7f0000004000 0 empty\n");
	expect_eq(jit_load(&j, fd, MAX_NAMES), 1);
	name_is(&j, 0x7f0000003007, "late");
	name_is(&j, 0x7f0000001000, "replaced");
	name_is(&j, 0x7f0000001020, "LazyCompile:*sum /app/a.js:3");
	name_is(&j, 0x7f0000004000, "");
	jit_free(&j);
}

static void put(struct buf *b, uint64_t value, size_t n)
{
	check(buf_append(b, &value, n) == 0);
}

static void put_load(struct buf *b, uint64_t address, uint64_t size, const char *name)
{
	put(b, 0, 4);
	put(b, 16 + 40 + strlen(name) + 1 + 3, 4);
	put(b, 1, 8);
	put(b, 7, 4);
	put(b, 7, 4);
	put(b, address, 8);
	put(b, address, 8);
	put(b, size, 8);
	put(b, 0, 8);
	check(buf_append(b, name, strlen(name) + 1) == 0);
	put(b, 0xcccccc, 3);
}

static void put_dump(struct buf *b)
{
	const uint32_t head[] = {0x4a695444, 1, 40, 62, 0, 7, 0, 0, 0, 0};

	check(buf_append(b, head, sizeof(head)) == 0);
	put_load(b, 0x1000, 0x100, "one");
	put(b, 2, 4); /* lines of the next function: passed over */
	put(b, 24, 4);
	put(b, 0, 8);
	put(b, 0, 8);
	put_load(b, 0x2000, 0x10, "two");
	put(b, 1, 4);
	put(b, 16 + 48, 4);
	put(b, 2, 8);
	put(b, 0, 8);
	put(b, 0x3000, 8);
	put(b, 0x1000, 8);
	put(b, 0x3000, 8);
	put(b, 0x100, 8);
	put(b, 0, 8);
}

/* A jitdump names what was compiled, also where it has moved to. */
TEST(jitdumps_name_functions)
{
	_cleanup_(buf_free) struct buf b = BUF_NULL;
	struct jit j = JIT_NULL;
	int fd;

	put_dump(&b);
	fd = elf_memfd(b.p, b.n - 1);
	expect_eq(jit_load(&j, fd, MAX_NAMES), 1);
	name_is(&j, 0x10ff, "one");
	name_is(&j, 0x2000, "two");
	name_is(&j, 0x3000, "");
	lseek(fd, 0, SEEK_END);
	expect_eq(file_write_fd(fd, b.p + b.n - 1, 1), 0);
	expect_eq(jit_load(&j, fd, MAX_NAMES), 1);
	name_is(&j, 0x30ff, "one");
	jit_free(&j);
	close(fd);
}

/* A JVM writes its map again as a whole, each time that it is asked. */
TEST(maps_that_are_written_anew_are_read_anew)
{
	_cleanup_(closep) int fd = elf_memfd("1000 10 before\n2000 10 gone\n", 28);
	struct jit j = JIT_NULL;

	expect_eq(jit_load(&j, fd, MAX_NAMES), 1);
	name_is(&j, 0x1000, "before");
	expect_eq(ftruncate(fd, 0), 0);
	expect_eq(lseek(fd, 0, SEEK_SET), 0);
	expect_eq(file_write_fd(fd, "1000 10 after\n", 14), 0);
	expect_eq(jit_load(&j, fd, MAX_NAMES), 1);
	name_is(&j, 0x1000, "after");
	name_is(&j, 0x2000, "");
	jit_free(&j);
}

/* Other files are refused, and names are bounded. */
TEST(what_is_neither_is_refused)
{
	_cleanup_(closep) int other = elf_memfd("\x7f"
						"ELF and so on\n",
						16);
	_cleanup_(closep) int map = elf_memfd("1000 10 abcdef\n2000 10 ghi\n", 27);
	struct jit j = JIT_NULL;

	expect_eq(jit_load(&j, other, MAX_NAMES), -ENOEXEC);
	expect_eq(jit_load(&j, map, 8), -E2BIG);
	name_is(&j, 0x1000, "abcdef");
	jit_free(&j);
}

static int load_all(void *context)
{
	struct jit j = JIT_NULL;
	struct str name;
	int r = jit_load(&j, *(int *)context, MAX_NAMES);

	for (uint64_t a = 0; r >= 0 && a < 0x5000; a += 0x80)
		jit_find(&j, a, &name);
	jit_free(&j);
	return r < 0 ? r : 0;
}

/* Neither allocations that fail nor files that lie do harm. */
TEST(broken_files_and_short_memory_do_no_harm)
{
	_cleanup_(buf_free) struct buf dump = BUF_NULL, map = BUF_NULL;
	struct buf *const kinds[] = {&dump, &map};
	uint64_t state = 0x2545f4914f6cdd1d;

	put_dump(&dump);
	buf_str_append(&map, STR("1000 40 one\n2000 40 two\n3000 1 three\n"));
	for (int kind = 0; kind < 2; kind++) {
		int fd = elf_memfd(kinds[kind]->p, kinds[kind]->n);

		test_each_failing_allocation(load_all, &fd);
		close(fd);
		for (int i = 0; i < 3000; i++) {
			size_t n = kinds[kind]->n;
			char *bad = malloc(n);

			memcpy(bad, kinds[kind]->p, n);
			for (int k = 0; k < 3; k++) {
				state ^= state << 13;
				state ^= state >> 7;
				state ^= state << 17;
				bad[state % n] = (char)(state >> 32);
			}
			fd = elf_memfd(bad, i % 4 ? n : state % n);
			load_all(&fd);
			close(fd);
			free(bad);
		}
	}
}
