/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of functions by call-frame information, over sections that the test writes. */
#include "cfi/functions.h"

#include "base/cleanup.h"
#include "testing/test.h"
#include "unwind/tests/test-frames.h"

#include <errno.h>
#include <stdlib.h>

static int load(struct frames *x, size_t max, struct elf_functions *ret)
{
	struct elf_file f = ELF_FILE_NULL;
	_cleanup_(closep) int fd = -1;
	int r;

	frames_write_sections(x);
	fd = elf_write_memfd(&x->w);
	expect_eq(elf_file_open(&f, fd, NULL), 0);
	r = elf_functions_load(ret, &f, max);
	elf_file_close(&f);
	return r;
}

/* Where the function of an address begins; 0: there is none. */
static uint64_t start_of(const struct elf_functions *t, uint64_t address)
{
	const struct elf_function *f = elf_functions_find(t, address);

	return f ? f->start : 0;
}

static void some_functions(struct frames *x)
{
	size_t of = frames_usual_cie(x);

	frames_fde(x, of, 0x3000, 0x10, OPS(""));
	frames_fde(x, of, 0x1000, 0x1000, OPS(""));
	frames_fde(x, of, 0x1100, 0x10, OPS(""));
	frames_fde(x, of, 0x4000, 0, OPS(""));
	frames_terminator(x);
}

/* Each address belongs to the function whose extent covers it, the innermost, whatever order they
 * stand in; what none covers belongs to none. */
TEST(functions_are_found_by_their_extent)
{
	for (int debug = 0; debug < 2; debug++) {
		struct elf_functions t = ELF_FUNCTIONS_NULL;
		struct frames x;

		frames_begin(&x);
		x.debug = debug;
		some_functions(&x);
		expect_eq(load(&x, 3, &t), 0);
		expect_eq(t.n, 3);
		expect_eq(elf_functions_bytes(&t), 3 * sizeof(struct elf_function));
		expect_eq(start_of(&t, 0xfff), 0);
		expect_eq(start_of(&t, 0x1000), 0x1000);
		expect_eq(start_of(&t, 0x110f), 0x1100);
		expect_eq(start_of(&t, 0x1110), 0x1000);
		expect_eq(start_of(&t, 0x2000), 0);
		expect_eq(start_of(&t, 0x300f), 0x3000);
		expect_eq(start_of(&t, 0x4000), 0);
		expect(elf_functions_begins(&t, 0x1000, 0x1100));
		expect(elf_functions_begins(&t, 0x1000, 0x2fff));
		expect(!elf_functions_begins(&t, 0x1000, 0x10ff));
		expect(!elf_functions_begins(&t, 0x1100, 0x2fff));
		expect(!elf_functions_begins(&t, 0, 0xfff));
		expect_eq(start_of(&t, UINT64_MAX), 0);
		elf_functions_free(&t);
		frames_end(&x);
	}
}

/* A file without the sections has none, and one with too many is refused. */
TEST(few_and_many)
{
	struct elf_functions t = ELF_FUNCTIONS_NULL;
	struct elf_file f = ELF_FILE_NULL;
	_cleanup_(closep) int fd = -1;
	struct frames x;

	frames_begin(&x);
	fd = elf_write_memfd(&x.w);
	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(elf_functions_load(&t, &f, 10), 0);
	expect_eq(t.n, 0);
	expect(!elf_functions_find(&t, 0x1000));
	elf_file_close(&f);
	some_functions(&x);
	expect_eq(load(&x, 2, &t), -E2BIG);
	expect_eq(t.n, 0);
	frames_end(&x);
}

/* Bytes of a stranger's do no harm, and what is found covers what was asked for. */
TEST(mutated_sections_do_no_harm)
{
	const char *text = getenv("ANDIRON_FUZZ_RUNS");
	uint64_t runs = 2000, state = 88172645463325252;
	struct frames x;

	if (text)
		str_u64(str_of(text), &runs);
	for (uint64_t i = 0; i < runs; i++) {
		struct elf_functions t = ELF_FUNCTIONS_NULL;

		frames_begin(&x);
		x.debug = i % 2;
		some_functions(&x);
		for (uint64_t k = state % 6 + 1; k; k--) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			x.bytes.p[(state >> 33) % x.bytes.n] = (char)(state >> 25);
		}
		if (load(&x, 100, &t) == 0)
			for (size_t k = 0; k < t.n; k++) {
				const struct elf_function *found =
					elf_functions_find(&t, t.list[k].start);

				expect(found && t.list[k].start - found->start < found->size);
			}
		elf_functions_free(&t);
		frames_end(&x);
	}
}

static int load_once(void *context)
{
	struct elf_functions t = ELF_FUNCTIONS_NULL;
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, *(const int *)context, NULL);

	if (r == 0)
		r = elf_functions_load(&t, &f, 10);
	elf_functions_free(&t);
	elf_file_close(&f);
	return r;
}

TEST(survives_out_of_memory)
{
	_cleanup_(closep) int fd = -1;
	struct frames x;

	frames_begin(&x);
	some_functions(&x);
	frames_write_sections(&x);
	fd = elf_write_memfd(&x.w);
	test_each_failing_allocation(load_once, &fd);
	frames_end(&x);
}
