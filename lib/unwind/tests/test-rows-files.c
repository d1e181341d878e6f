/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of rows over real call-frame information, which is this program's own, and over the places
 * in which it can lie. */
#include "base/cleanup.h"
#include "base/file.h"
#include "testing/test.h"
#include "base/vec.h"
#include "unwind/row-finder.h"
#include "unwind/tests/test-frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <zlib.h>

struct rows {
	VEC(struct elf_row) list;
};

static void rows_free(struct rows *rows)
{
	vec_free(&rows->list);
}

static int keep(void *context, const struct elf_row *row)
{
	struct rows *rows = context;

	expect(!rows->list.n || row->address > rows->list.p[rows->list.n - 1].address);
	return vec_push(&rows->list, *row) ? 0 : -ENOMEM;
}

static int read_rows(int fd, const struct elf_file *debug, struct rows *rows)
{
	const struct elf_rows_options options = {.debug = debug};
	struct elf_rows_stats stats;
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, fd, NULL);

	if (r == 0)
		r = elf_rows_read(&f, &options, keep, rows, &stats, NULL);
	elf_file_close(&f);
	return r;
}

static void expect_same(const struct rows *a, const struct rows *b)
{
	expect(a->list.n > 1);
	expect_eq(a->list.n, b->list.n);
	expect(memcmp(a->list.p, b->list.p, a->list.n * sizeof(a->list.p[0])) == 0);
}

static void read_self(struct buf *out)
{
	expect_eq(file_read(AT_FDCWD, "/proc/self/exe", out, (size_t)256 << 20), 0);
}

/* This program as it is, and without section headers. */
static void open_self(int *ret_whole, int *ret_stripped)
{
	_cleanup_(buf_free) struct buf file = BUF_NULL;

	read_self(&file);
	*ret_whole = elf_memfd(file.p, file.n);
	memset(file.p + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
	memset(file.p + offsetof(Elf64_Ehdr, e_shnum), 0, 2 * sizeof(Elf64_Half));
	*ret_stripped = elf_memfd(file.p, file.n);
}

/* A file whose section headers are stripped gives the rows that it gives with them. */
TEST(section_headers_are_not_needed)
{
	_cleanup_(rows_free) struct rows with = {0}, without = {0};
	_cleanup_(closep) int whole = -1, stripped = -1;

	open_self(&whole, &stripped);
	expect_eq(read_rows(whole, NULL, &with), 0);
	expect_eq(read_rows(stripped, NULL, &without), 0);
	expect(with.list.n > 500);
	expect_same(&with, &without);
}

/* At both ends of each row that comes of call-frame information the finder has the same row, or
 * none; how often it has one. */
static size_t compare_found(int fd, const struct rows *rows)
{
	struct elf_row_finder *finder;
	struct elf_row found;
	size_t n = 0;

	expect_eq(elf_row_finder_open(&finder, fcntl(fd, F_DUPFD_CLOEXEC, 0)), 0);
	for (size_t i = 0; i + 1 < rows->list.n; i++) {
		const struct elf_row *row = &rows->list.p[i];
		uint64_t ends[] = {row->address, row[1].address - 1};

		for (size_t k = 0; row->rule != 0 && k < 2; k++) {
			if (elf_row_finder_find(finder, ends[k], &found) != 1)
				continue;
			expect_eq(found.address, ends[k]);
			expect_eq(found.rule, row->rule);
			n++;
		}
	}
	expect_eq(elf_row_finder_find(finder, 0, &found), 0);
	expect_eq(elf_row_finder_find(finder, UINT64_MAX, &found), 0);
	elf_row_finder_close(finder);
	return n;
}

/* What is found one by one is what is read, with section headers or without. */
TEST(rows_are_found_one_by_one)
{
	_cleanup_(rows_free) struct rows rows = {0};
	_cleanup_(closep) int whole = -1, stripped = -1;
	size_t n;

	open_self(&whole, &stripped);
	expect_eq(read_rows(whole, NULL, &rows), 0);
	n = compare_found(whole, &rows);
	expect(n > rows.list.n);
	expect_eq(compare_found(stripped, &rows), n);
}

static void copy_section(struct elf_writer *w, const struct elf_file *f, const char *name)
{
	const Elf64_Shdr *s = elf_file_section(f, name);
	_cleanup_(buf_free) struct buf bytes = BUF_NULL;

	expect(s);
	expect_eq(elf_file_read_section(f, s, (size_t)64 << 20, &bytes), 0);
	elf_write_section(w, name, SHT_PROGBITS, s->sh_addr, bytes.p, bytes.n);
}

/* This program's call-frame information in a file of its own. */
static void write_own_frames(struct buf *out)
{
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_file f = ELF_FILE_NULL;
	struct elf_writer w;

	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(elf_file_load_sections(&f, NULL), 0);
	elf_writer_init(&w);
	w.machine = f.machine;
	copy_section(&w, &f, ".eh_frame_hdr");
	copy_section(&w, &f, ".eh_frame");
	elf_write_file(&w, out);
	elf_writer_fini(&w);
	elf_file_close(&f);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t fuzz_runs(size_t few)
{
	const char *text = getenv("ANDIRON_FUZZ_RUNS");
	uint64_t n;

	return text && str_u64(str_of(text), &n) ? (size_t)n : few;
}

/* Real sections with a few bytes changed do no harm, and rows ascend always. */
TEST(mutated_sections_do_no_harm)
{
	_cleanup_(buf_free) struct buf good = BUF_NULL;
	_cleanup_(freep) char *bad = NULL;
	uint64_t state = 0x2545f4914f6cdd1d;

	write_own_frames(&good);
	bad = malloc(good.n);
	for (size_t i = 0; i < fuzz_runs(1500); i++) {
		_cleanup_(rows_free) struct rows rows = {0};
		_cleanup_(closep) int fd = -1;
		uint64_t near = random_next(&state);

		memcpy(bad, good.p, good.n);
		for (uint64_t k = random_next(&state) % 32 + 1; k; k--) {
			uint64_t at = i % 2 ? near + k * 5 : random_next(&state);

			bad[at % good.n] = (char)random_next(&state);
		}
		fd = elf_memfd(bad, i % 4 ? good.n : near % good.n);
		read_rows(fd, NULL, &rows);
	}
}

static void write_debug(struct frames *x)
{
	size_t of;

	frames_begin(x);
	x->debug = true;
	of = frames_usual_cie(x);
	frames_fde(x, of, 0x2000, 0x20, OPS("\x41\x0e\x10"));
	frames_fde(x, of, 0x1000, 0x20, OPS("\x41\x0e\x20"));
	frames_terminator(x);
}

/* A file with the section as it is, or compressed. */
static int debug_file(bool compressed)
{
	struct frames x;
	Elf64_Chdr head = {.ch_type = ELFCOMPRESS_ZLIB, .ch_addralign = 8};
	unsigned char packed[512];
	uLongf n = sizeof(packed) - sizeof(head);
	uint16_t section;
	int fd;

	write_debug(&x);
	head.ch_size = x.bytes.n;
	memcpy(packed, &head, sizeof(head));
	expect_eq(compress(packed + sizeof(head), &n, (const unsigned char *)x.bytes.p, x.bytes.n),
		  Z_OK);
	if (compressed) {
		section = elf_write_section(&x.w, ".debug_frame", SHT_PROGBITS, 0, packed,
					    sizeof(head) + n);
		x.w.sections.p[section].sh_flags = SHF_COMPRESSED;
	} else {
		elf_write_section(&x.w, ".debug_frame", SHT_PROGBITS, 0, x.bytes.p, x.bytes.n);
	}
	fd = elf_write_memfd(&x.w);
	frames_end(&x);
	return fd;
}

/* .debug_frame gives the same rows plain, compressed, and out of a separate debug file. */
TEST(debugging_information_may_lie_elsewhere)
{
	_cleanup_(closep) int plain = debug_file(false), packed = debug_file(true), bare = -1;
	_cleanup_(rows_free) struct rows a = {0}, b = {0}, c = {0};
	struct elf_file debug = ELF_FILE_NULL;
	struct elf_writer w;

	elf_writer_init(&w);
	bare = elf_write_memfd(&w);
	elf_writer_fini(&w);
	expect_eq(elf_file_open(&debug, packed, NULL), 0);
	expect_eq(elf_file_load_sections(&debug, NULL), 0);
	expect_eq(read_rows(plain, NULL, &a), 0);
	expect_eq(read_rows(packed, NULL, &b), 0);
	expect_eq(read_rows(bare, &debug, &c), 0);
	expect_eq(a.list.n, 6);
	expect_same(&a, &b);
	expect_same(&a, &c);
	elf_file_close(&debug);
}
