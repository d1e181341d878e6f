/* SPDX-License-Identifier: Apache-2.0 */
/* Frames out of debug information in all its forms, and out of what is none. tests/dwarf/judge.py
 * compares with other readers on what compilers make. */
#include "base/check.h"
#include "base/cleanup.h"
#include "testing/test.h"
#include "dwarf/dwarf.h"
#include "dwarf/tests/test-write.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static const struct dwarf_shape shapes[] = {
	{.version = 2},
	{.version = 3, .wide = true},
	{.version = 4},
	{.version = 4, .ranges = true},
	{.version = 4, .alt = true},
	{.version = 4, .split = true},
	{.version = 4, .split = true, .package = true, .ranges = true},
	{.version = 5},
	{.version = 5, .wide = true, .ranges = true},
	{.version = 5, .indexed = true},
	{.version = 5, .indexed = true, .ranges = true, .wide = true},
	{.version = 5, .alt = true, .ranges = true},
	{.version = 5, .compressed = true},
	{.version = 5, .split = true, .indexed = true, .ranges = true},
	{.version = 5, .split = true, .indexed = true, .package = true},
	/* These give lines alone. */
	{.version = 4, .lines_only = true},
	{.version = 5, .lines_only = true},
	{.version = 5, .lines_only = true, .wide = true},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define STEPS    100000u

struct fds {
	int main, alt, split;
};

static int fd_of(const struct buf *b)
{
	return b->n ? elf_memfd(b->p, b->n) : -1;
}

static void fds_open(struct fds *f, const struct dwarf_written *w)
{
	*f = (struct fds){fd_of(&w->main), fd_of(&w->alt), fd_of(&w->split)};
}

static void fds_close(struct fds *f)
{
	closep(&f->main);
	closep(&f->alt);
	closep(&f->split);
}

static int open_dwarf(struct dwarf **ret, const struct fds *fds)
{
	const struct dwarf_files files = {.fd = fds->main,
					  .alt = fds->alt,
					  .split = fds->split,
					  .max_bytes = 1u << 20,
					  .steps = STEPS};

	return dwarf_new(ret, &files, NULL);
}

static void frame_is(const struct dwarf_frames *f, size_t i, const char *function,
		     unsigned int line, unsigned int column)
{
	expect(i < f->list.n);
	expect_str(dwarf_frame_text(f, f->list.p[i].function), function);
	expect_str(dwarf_frame_text(f, f->list.p[i].file), "/src/a.c");
	expect_eq(f->list.p[i].line, line);
	expect_eq(f->list.p[i].column, column);
}

static void check_frames(struct dwarf *d)
{
	struct dwarf_frames f = {0};

	expect_eq(dwarf_find(d, OUTER, &f), 0);
	expect_eq(f.list.n, 1);
	frame_is(&f, 0, "outer", 20, 0);
	expect_eq(f.list.p[0].start_line, 20);
	expect(!f.list.p[0].linked);
	expect_eq(dwarf_find(d, OUTER + 0x3f, &f), 0);
	frame_is(&f, 0, "outer", 21, 0);
	expect_eq(dwarf_find(d, OUTER + 0x40, &f), 0);
	expect_eq(f.list.n, 2);
	frame_is(&f, 0, "_inner", 11, 3);
	expect(f.list.p[0].linked);
	expect_eq(f.list.p[0].start_line, 10);
	frame_is(&f, 1, "outer", 21, 7);
	expect_eq(dwarf_find(d, OUTER + 0x7f, &f), 0);
	expect_eq(f.list.n, 2);
	expect_eq(dwarf_find(d, OUTER + 0x80, &f), 0);
	expect_eq(f.list.n, 1);
	frame_is(&f, 0, "outer", 22, 3);
	expect_eq(dwarf_find(d, REMOTE + 0xf, &f), 0);
	frame_is(&f, 0, "far", 30, 0);
	expect_eq(dwarf_find(d, OUTER - 1, &f), -ENOENT);
	expect_eq(dwarf_find(d, OUTER + 0x100, &f), -ENOENT);
	expect_eq(dwarf_find(d, REMOTE + 0x10, &f), -ENOENT);
	dwarf_frames_free(&f);
}

/* The folder of the unit is missing before DWARF 5. */
static void line_is(struct dwarf *d, uint64_t address, unsigned int line)
{
	struct dwarf_frames f = {0};

	expect_eq(dwarf_find(d, address, &f), 0);
	expect_eq(f.list.n, 1);
	expect_eq(f.list.p[0].function.n, 0);
	expect_eq(f.list.p[0].line, line);
	expect(str_ends(dwarf_frame_text(&f, f.list.p[0].file), STR("a.c")));
	dwarf_frames_free(&f);
}

static void check_lines(struct dwarf *d)
{
	struct dwarf_frames f = {0};

	line_is(d, OUTER + 0x40, 11);
	line_is(d, OUTER + 0x3f, 21);
	line_is(d, REMOTE + 0xf, 30);
	expect_eq(dwarf_find(d, OUTER - 1, &f), -ENOENT);
	expect_eq(dwarf_find(d, OUTER + 0x100, &f), -ENOENT);
	dwarf_frames_free(&f);
}

/* Every form of debug information says the same. */
TEST(every_form_gives_functions_lines_and_inlined_calls)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		struct dwarf_written w;
		struct dwarf *d;
		struct fds fds;

		dwarf_write(&shapes[i], &w);
		fds_open(&fds, &w);
		expect_eq(open_dwarf(&d, &fds), 0);
		shapes[i].lines_only ? check_lines(d) : check_frames(d);
		expect(dwarf_bytes(d) > sizeof(void *));
		dwarf_free(d);
		fds_close(&fds);
		dwarf_written_free(&w);
	}
}

/* Without the other files there are still lines, and the names that are in the program's own. */
TEST(what_is_in_missing_files_is_missing_alone)
{
	static const struct dwarf_shape split = {.version = 5, .split = true, .indexed = true};
	static const struct dwarf_shape alt = {.version = 5, .alt = true};
	struct dwarf_frames f = {0};
	struct dwarf_written w;
	struct dwarf *d;
	struct fds fds;

	dwarf_write(&split, &w);
	fds_open(&fds, &w);
	closep(&fds.split);
	fds.split = -1;
	expect_eq(open_dwarf(&d, &fds), 0);
	expect_eq(dwarf_find(d, OUTER + 0x40, &f), 0);
	expect_eq(f.list.n, 1);
	frame_is(&f, 0, "", 11, 3);
	dwarf_free(d);
	fds_close(&fds);
	dwarf_written_free(&w);

	dwarf_write(&alt, &w);
	fds_open(&fds, &w);
	closep(&fds.alt);
	fds.alt = -1;
	expect_eq(open_dwarf(&d, &fds), 0);
	expect_eq(dwarf_find(d, OUTER + 0x40, &f), 0);
	expect_eq(f.list.n, 2);
	frame_is(&f, 0, "", 11, 3);
	frame_is(&f, 1, "outer", 21, 7);
	dwarf_free(d);
	fds_close(&fds);
	dwarf_written_free(&w);
	dwarf_frames_free(&f);
}

/* A split unit's file that comes later is used from then on, and is asked for once. */
TEST(split_units_come_one_by_one)
{
	static const struct dwarf_shape split[] = {{.version = 5, .split = true, .indexed = true},
						   {.version = 4, .split = true}};

	for (size_t i = 0; i < 2; i++) {
		struct dwarf_frames f = {0};
		struct dwarf_written w;
		struct dwarf *d;
		struct fds fds;
		int late;

		dwarf_write(&split[i], &w);
		fds_open(&fds, &w);
		late = fds.split;
		fds.split = -1;
		expect_eq(open_dwarf(&d, &fds), 0);
		expect_eq(dwarf_wants(d), NULL);
		expect_eq(dwarf_find(d, OUTER + 0x40, &f), 0);
		expect_eq(f.list.n, 1);
		expect_str(str_of(dwarf_wants(d)), "/src/a.dwo");
		expect_eq(dwarf_wants(d), NULL);
		expect_eq(dwarf_find(d, OUTER + 0x41, &f), 0);
		expect_eq(dwarf_wants(d), NULL);
		expect_eq(dwarf_add_split(d, fds.main), -ENOENT);
		expect_eq(dwarf_add_split(d, late), 0);
		check_frames(d);
		dwarf_free(d);
		closep(&late);
		fds_close(&fds);
		dwarf_written_free(&w);
		dwarf_frames_free(&f);
	}
}

/* A budget that runs out is told apart from an address that nobody knows, and granting more goes
 * on. */
TEST(steps_are_bounded)
{
	static const struct dwarf_shape shape = {.version = 5};
	struct dwarf_frames f = {0};
	struct dwarf_written w;
	struct dwarf *d;
	struct fds fds;

	dwarf_write(&shape, &w);
	fds_open(&fds, &w);
	expect_eq(open_dwarf(&d, &fds), 0);
	for (uint64_t steps = 0; steps < 12; steps++) {
		dwarf_grant(d, steps);
		expect_eq(dwarf_find(d, OUTER, &f), -ETIME);
	}
	dwarf_grant(d, STEPS);
	expect_eq(dwarf_find(d, OUTER, &f), 0);
	dwarf_free(d);
	fds_close(&fds);
	dwarf_written_free(&w);
	dwarf_frames_free(&f);
}

/* Memory is bounded: units that do not fit are refused, lines that do not fit are left out, and
 * both are told; with enough of it nothing is. */
TEST(what_takes_too_much_memory_is_told)
{
	for (int lines_only = 0; lines_only < 2; lines_only++) {
		const struct dwarf_shape shape = {.version = 5, .lines_only = lines_only};
		struct dwarf_frames f = {0};
		struct dwarf_written w;
		struct dwarf *d = NULL;
		struct fds fds;

		dwarf_write(&shape, &w);
		fds_open(&fds, &w);
		for (size_t max_bytes = 0; max_bytes <= 4096; max_bytes += 4096) {
			const struct dwarf_files files = {fds.main, -1, -1, max_bytes, STEPS};

			if (!max_bytes && !lines_only) {
				expect_eq(dwarf_new(&d, &files, NULL), -E2BIG);
				continue;
			}
			expect_eq(dwarf_new(&d, &files, NULL), 0);
			expect_eq(dwarf_find(d, OUTER, &f), max_bytes ? 0 : -ENOENT);
			expect_eq(dwarf_is_cut(d), !max_bytes);
			dwarf_free(d);
		}
		dwarf_frames_free(&f);
		fds_close(&fds);
		dwarf_written_free(&w);
	}
}

/* A program without debug information is not a broken one. */
TEST(no_debug_information_is_said)
{
	struct elf_writer w;
	struct dwarf *d;
	struct fds fds = {-1, -1, -1};

	elf_writer_init(&w);
	elf_write_section(&w, ".text", SHT_PROGBITS, OUTER, NULL, 64);
	fds.main = elf_write_memfd(&w);
	elf_writer_fini(&w);
	expect_eq(open_dwarf(&d, &fds), -ENOENT);
	fds_close(&fds);
	fds.main = elf_memfd("nonsense", 8);
	expect_eq(open_dwarf(&d, &fds), -ENOEXEC);
	fds_close(&fds);
}

/* Whatever comes out is within what was promised. */
static int use(const struct fds *fds)
{
	static const uint64_t addresses[] = {
		0, OUTER, OUTER + 0x40, OUTER + 0x41, OUTER + 0x90, REMOTE + 1, UINT64_MAX};
	struct dwarf_frames f = {0};
	struct dwarf *d = NULL;
	int r = open_dwarf(&d, fds);

	for (size_t i = 0; r >= 0 && i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		dwarf_grant(d, STEPS);
		r = dwarf_find(d, addresses[i], &f);
		while (r != -ENOMEM && dwarf_wants(d))
			r = fds->split < 0 ? 0 : dwarf_add_split(d, fds->split);
		expect(f.list.n <= 1000 && f.text.n <= 1000u * 20000);
		r = r == -ENOMEM ? r : 0;
	}
	dwarf_frames_free(&f);
	dwarf_free(d);
	return r;
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void mutate(struct buf *b, uint64_t *state)
{
	static const uint64_t nasty[] = {0,          1,         0x7f,       0x80,           0xff,
					 UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7, OUTER};

	for (uint64_t count = 1 + random_next(state) % 5; b->n && count; count--) {
		size_t width = (size_t)1 << random_next(state) % 4;
		size_t at = random_next(state) % b->n;
		uint64_t value = random_next(state) % 2 ? nasty[random_next(state) % 10]
							: random_next(state);

		if (at + width <= b->n)
			memcpy(b->p + at, &value, width);
	}
}

static unsigned long fuzz_runs(void)
{
	const char *runs = getenv("ANDIRON_FUZZ_RUNS");
	uint64_t n;

	return runs && str_u64(str_of(runs), &n) ? n / N_SHAPES : 800;
}

/* No debug information crashes, hangs or takes more than it may. */
TEST(mutated_debug_information_does_no_harm)
{
	uint64_t state = 0x9e3779b97f4a7c15;
	unsigned long runs = fuzz_runs();

	for (size_t i = 0; i < N_SHAPES; i++)
		for (unsigned long k = 0; k < runs; k++) {
			struct dwarf_written w;
			struct fds fds;

			dwarf_write(&shapes[i], &w);
			mutate(random_next(&state) % 3 ? &w.main
			       : w.split.n             ? &w.split
						       : &w.alt,
			       &state);
			if (k % 7 == 0)
				w.main.n = random_next(&state) % w.main.n;
			fds_open(&fds, &w);
			use(&fds);
			fds_close(&fds);
			dwarf_written_free(&w);
		}
}

static int use_files(void *context)
{
	return use(context);
}

TEST(survives_out_of_memory)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		struct dwarf_written w;
		struct fds fds;

		dwarf_write(&shapes[i], &w);
		fds_open(&fds, &w);
		test_each_failing_allocation(use_files, &fds);
		fds_close(&fds);
		dwarf_written_free(&w);
	}
}
