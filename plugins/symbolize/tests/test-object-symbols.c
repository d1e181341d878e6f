/* SPDX-License-Identifier: Apache-2.0 */
/* The parser over files of every kind of source, which the test writes; and its answers, over what
 * is none. */
#include "symbolize/parser/answer.h"
#include "symbolize/parser/parser.h"
#include "symbolize/parser/vdso.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "testing/test.h"
#include "unwind/tests/test-frames.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <unistd.h>

static const struct tables_limits limits = {
	.max_bytes = 1u << 20, .steps = 1u << 20, .lines = true, .inlines = true};

static void add_function(struct elf_writer *w, const char *name, uint64_t address, uint32_t table)
{
	uint16_t text = elf_write_section(w, ".text", SHT_NOBITS, 0x1000, NULL, 0x1000);

	elf_write_symbol(w, name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text, address, 16);
	elf_write_symbols(w, table);
}

static void found_is(const int fds[TABLES_FILES], uint64_t address, const char *name,
		     enum tables_source expected)
{
	struct dwarf_frames frames = {0};
	enum tables_source source;
	struct tables t;
	int own[TABLES_FILES], r;

	for (unsigned int i = 0; i < TABLES_FILES; i++)
		own[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
	expect_eq(tables_open(&t, own, &limits, NULL), 0);
	r = tables_find(&t, address, &frames, &source);
	if (name) {
		expect_eq(r, 0);
		expect_eq(source, expected);
		expect_str(dwarf_frame_text(&frames, frames.list.p[frames.list.n - 1].function),
			   name);
	} else {
		expect_eq(r, -ENOENT);
	}
	expect(tables_bytes(&t) > 0);
	tables_close(&t);
	dwarf_frames_free(&frames);
}

/* Exported names come first, what is compressed in .gnu_debugdata after them. */
TEST(compressed_symbols_come_after_exported_ones)
{
	_cleanup_(buf_free) struct buf inner = BUF_NULL, packed = BUF_NULL;
	int fds[TABLES_FILES] = {-1, -1, -1, -1};
	struct elf_writer w;
	size_t n = 0;

	elf_writer_init(&w);
	add_function(&w, "hidden", 0x1010, SHT_SYMTAB);
	elf_write_file(&w, &inner);
	elf_writer_fini(&w);
	check(buf_reserve(&packed, lzma_stream_buffer_bound(inner.n)));
	check(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, (const uint8_t *)inner.p, inner.n,
				      (uint8_t *)packed.p, &n, packed.capacity) == LZMA_OK);
	elf_writer_init(&w);
	add_function(&w, "exported", 0x1000, SHT_DYNSYM);
	elf_write_section(&w, ".gnu_debugdata", SHT_PROGBITS, 0, packed.p, n);
	fds[TABLES_FILE] = elf_write_memfd(&w);
	elf_writer_fini(&w);
	found_is(fds, 0x1000, "exported", FROM_DYNSYM);
	found_is(fds, 0x101f, "hidden", FROM_MINIDEBUG);
	found_is(fds, 0x1020, NULL, 0);
	close(fds[TABLES_FILE]);
}

/* A symbol that has no size names no function behind it that call-frame information knows of, and
 * nothing outside its section; one that has a size names that much. */
TEST(names_end_where_another_function_begins)
{
	int fds[TABLES_FILES] = {-1, -1, -1, -1};
	uint64_t start = 0;
	struct tables t;
	struct frames x;
	uint16_t text;
	size_t of;

	frames_begin(&x);
	text = elf_write_section(&x.w, ".text", SHT_NOBITS, 0x1000, NULL, 0x1000);
	x.w.sections.p[text].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	elf_write_symbol(&x.w, "open", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text, 0x1100, 0);
	elf_write_symbol(&x.w, "sized", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text, 0x1800, 0x20);
	elf_write_symbols(&x.w, SHT_SYMTAB);
	of = frames_usual_cie(&x);
	frames_fde(&x, of, 0x1100, 0x40, OPS(""));
	frames_fde(&x, of, 0x1200, 0x80, OPS(""));
	frames_fde(&x, of, 0x1810, 0x80, OPS(""));
	frames_write_sections(&x);
	fds[TABLES_FILE] = elf_write_memfd(&x.w);
	frames_end(&x);
	found_is(fds, 0x10ff, NULL, 0);
	found_is(fds, 0x113f, "open", FROM_SYMTAB);
	found_is(fds, 0x1150, "open", FROM_SYMTAB); /* of no function: nothing speaks against it */
	found_is(fds, 0x1200, NULL, 0);
	found_is(fds, 0x127f, NULL, 0);
	found_is(fds, 0x1290, NULL, 0);
	found_is(fds, 0x181f, "sized", FROM_SYMTAB);
	found_is(fds, 0x1820, NULL, 0);
	expect_eq(tables_open(&t, fds, &limits, NULL), 0);
	expect_eq(tables_function(&t, 0x127f, &start), 0);
	expect_eq(start, 0x1200);
	expect_eq(tables_function(&t, 0x1820, &start), 0);
	expect_eq(start, 0x1810);
	expect_eq(tables_function(&t, 0x1300, &start), -ENOENT);
	tables_close(&t);
}

/* A debug link counts with its CRC only. */
TEST(linked_debug_files_are_checked)
{
	int fds[TABLES_FILES] = {-1, -1, -1, -1};
	char link[16] = "x.debug";
	struct elf_writer w;
	uint32_t crc;

	elf_writer_init(&w);
	add_function(&w, "internal", 0x1000, SHT_SYMTAB);
	fds[TABLES_DEBUG] = elf_write_memfd(&w);
	elf_writer_fini(&w);
	expect_eq(elf_debuglink_crc(fds[TABLES_DEBUG], 1u << 20, &crc), 0);
	for (int wrong = 0; wrong < 2; wrong++) {
		crc += (uint32_t)wrong;
		memcpy(link + 8, &crc, 4);
		elf_writer_init(&w);
		add_function(&w, "exported", 0x1000, SHT_DYNSYM);
		elf_write_section(&w, ".gnu_debuglink", SHT_PROGBITS, 0, link, 12);
		fds[TABLES_FILE] = elf_write_memfd(&w);
		elf_writer_fini(&w);
		found_is(fds, 0x1000, wrong ? "exported" : "internal",
			 wrong ? FROM_DYNSYM : FROM_DEBUG);
		close(fds[TABLES_FILE]);
	}
	close(fds[TABLES_DEBUG]);
}

/* A perf map instead of a program: what is not told yet may be told later. */
TEST(perf_maps_name_compiled_code)
{
	int fds[TABLES_FILES] = {elf_memfd("7f00 10 *sum /a.js:3\n", 21), -1, -1, -1};
	_cleanup_(closep) int writer = dup(fds[TABLES_FILE]);
	struct dwarf_frames frames = {0};
	enum tables_source source;
	struct tables t;

	expect_eq(tables_open(&t, fds, &limits, NULL), 0);
	expect_eq(tables_find(&t, 0x7f0f, &frames, &source), 0);
	expect_eq(source, FROM_JIT);
	expect_str(dwarf_frame_text(&frames, frames.list.p[0].function), "*sum /a.js:3");
	expect_eq(tables_find(&t, 0x7f10, &frames, &source), -EAGAIN);
	expect_eq(lseek(writer, 0, SEEK_END), 21);
	expect_eq(write(writer, "7f10 8 late\n", 12), 12);
	expect_eq(tables_find(&t, 0x7f10, &frames, &source), 0);
	expect_str(dwarf_frame_text(&frames, frames.list.p[0].function), "late");
	tables_close(&t);
	dwarf_frames_free(&frames);
}

/* The kernel's own file gives the names of what it does for time. */
TEST(the_vdso_has_names)
{
	int fds[TABLES_FILES] = {-1, -1, -1, -1};
	struct dwarf_frames frames = {0};
	enum tables_source source;
	bool found = false;
	struct tables t;

	if (vdso_open(&fds[TABLES_FILE]) < 0)
		test_skip("this process has no vDSO: start the kernel without vdso=0");
	expect_eq(tables_open(&t, fds, &limits, NULL), 0);
	for (uint64_t a = 0; a < 0x4000 && !found; a += 16)
		found = tables_find(&t, a, &frames, &source) == 0 &&
			str_search(dwarf_frame_text(&frames, frames.list.p[0].function),
				   STR("clock_gettime")) <
				dwarf_frame_text(&frames, frames.list.p[0].function).n;
	expect(found);
	tables_close(&t);
	dwarf_frames_free(&frames);
}

/* Our own program, for lines: the test knows where it is. */
static int own_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	check(fd >= 0);
	return fd;
}

static uint64_t own_address(int fd, const void *p)
{
	struct elf_file f = ELF_FILE_NULL;
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset;
	uint64_t address = 0;
	char line[512];

	check(maps && elf_file_open(&f, fd, NULL) == 0);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    (uintptr_t)p >= start && (uintptr_t)p < end)
			check(elf_file_vaddr(&f, (uintptr_t)p - start + offset, &address) == 0);
	fclose(maps);
	elf_file_close(&f);
	return address;
}

static struct answer_frame first_frame(const struct buf *answer, struct answer_address *address)
{
	struct str rest = buf_str(answer);
	struct answer_head head;
	struct answer_frame f = {0};

	expect(answer_head(&rest, &head));
	expect_eq(head.error, 0);
	expect_eq(head.n, 1);
	expect(answer_address(&rest, address));
	if (address->n_frames)
		expect(answer_frame(&rest, &f));
	return f;
}

/* A compiled program's lines come out, and not where nobody asked. */
TEST(lines_are_told_where_wanted)
{
	struct parser p = PARSER_NULL;
	_cleanup_(closep) int fd = own_file();
	const uint64_t address = own_address(fd, (const void *)own_address);

	for (uint32_t flags = 0; flags < 2; flags++) {
		_cleanup_(buf_free) struct buf answer = BUF_NULL;
		const struct parser_request q = {.object = 2,
						 .flags = flags ? PARSER_LINES | PARSER_REOPEN : 0,
						 .max_bytes = 1u << 24,
						 .file_bytes = 1u << 24,
						 .steps = 1u << 24,
						 .fds = {dup(fd), -1, -1, -1},
						 .addresses = &address,
						 .n = 1};
		struct answer_address a;
		struct answer_frame f;

		expect_eq(parser_run(&p, &q, &answer), 0);
		f = first_frame(&answer, &a);
		expect_eq(a.n_frames, 1);
		expect_eq(a.source, FROM_SYMTAB);
		expect_str(f.name, "own_address");
		expect((f.line > 0) == !!flags);
		expect(str_ends(f.file, flags ? STR("test-object-symbols.c") : STR("")));
		expect((f.start_line > 0) == !!flags);
	}
	parser_fini(&p);
}

/* A file that is none is said, with the reason, and the parser goes on. */
TEST(broken_files_are_answered)
{
	struct parser p = PARSER_NULL;
	_cleanup_(buf_free) struct buf answer = BUF_NULL;
	const struct parser_request q = {.object = 2,
					 .max_bytes = 1u << 20,
					 .file_bytes = 1u << 20,
					 .fds = {elf_memfd("no ELF", 6), -1, -1, -1}};
	struct answer_head head;
	struct answer_tail tail;
	struct str rest;

	expect_eq(parser_run(&p, &q, &answer), 0);
	rest = buf_str(&answer);
	expect(answer_tail(&rest, &tail) && tail.wanted.n == 0);
	expect(answer_head(&rest, &head));
	expect_eq(head.error, -ENOEXEC);
	expect_str(head.why, "shorter than an ELF header");
	expect_eq(rest.n, 0);
	parser_fini(&p);
}

/* No bytes make the reader of answers read beyond them. */
TEST(answers_that_lie_are_refused)
{
	const struct answer_head head = {
		.n = 1, .why = STR("x"), .link = STR("l"), .alt = STR("a")};
	const struct answer_address address = {.source = 1, .n_frames = 1};
	const struct answer_frame frame = {
		.line = 1, .name = STR("name"), .linked = STR("linked"), .file = STR("f")};
	_cleanup_(buf_free) struct buf b = BUF_NULL;

	expect_eq(answer_put_head(&b, &head), 0);
	expect_eq(answer_put_address(&b, &address), 0);
	expect_eq(answer_put_frame(&b, &frame), 0);
	for (size_t n = 0; n <= b.n; n++) {
		_cleanup_(freep) char *exact = malloc(n ? n : 1);
		struct str rest = {exact, n};
		struct answer_address a;
		struct answer_head h;
		struct answer_frame f;
		bool whole;

		memcpy(exact, b.p, n);
		whole = answer_head(&rest, &h) && answer_address(&rest, &a) &&
			answer_frame(&rest, &f);
		expect_eq(whole, n == b.n);
	}
	memset(b.p + 12, 0xff, 4);
	{
		struct str rest = buf_str(&b);
		struct answer_head h;

		expect(!answer_head(&rest, &h));
	}
}
