/* SPDX-License-Identifier: Apache-2.0 */
/* Images of files: what is in them, and that strangers' files do no harm. */
#include "base/cleanup.h"
#include "testing/test.h"
#include "elf/ids.h"
#include "debuginfo-upload/stripped-file.h"
#include "elf/symbols.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 40000

/* A program with code, notes and what `names` asks for; its bytes. */
static void write_program(uint32_t names, struct buf *out)
{
	static const char code[TEXT_BYTES], info[100] = "what .debug_info holds";
	struct buf note = BUF_NULL;
	struct elf_writer w;
	uint16_t text;

	elf_writer_init(&w);
	w.type = ET_DYN;
	elf_write_note(&note, "GNU", 4, NT_GNU_BUILD_ID, "\x12\x34\x56\x78", 4);
	elf_write_section(&w, ".note.gnu.build-id", SHT_NOTE, 0x300, note.p, note.n);
	w.sections.p[w.sections.n - 1].sh_flags = SHF_ALLOC;
	elf_write_segment(&w, PT_NOTE, PF_R, w.sections.p[w.sections.n - 1].sh_offset, 0x300,
			  note.n);
	text = elf_write_section(&w, ".text", SHT_PROGBITS, 0x1000, code, sizeof(code));
	w.sections.p[text].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	elf_write_segment(&w, PT_LOAD, PF_R | PF_X, w.sections.p[text].sh_offset, 0x1000,
			  sizeof(code));
	if (names & IMAGE_DWARF)
		elf_write_section(&w, ".debug_info", SHT_PROGBITS, 0, info, sizeof(info));
	if (names & (IMAGE_SYMTAB | IMAGE_DYNSYM)) {
		elf_write_symbol(&w, "work", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text, 0x1010, 16);
		elf_write_symbols(&w, names & IMAGE_SYMTAB ? SHT_SYMTAB : SHT_DYNSYM);
	}
	elf_write_file(&w, out);
	elf_writer_fini(&w);
	buf_free(&note);
}

/* The image's bytes, read in pieces of `step`; 0 or what failed. */
static int make_bytes(int fd, bool whole, size_t step, struct buf *out, uint32_t *holds)
{
	struct elf_image image = ELF_IMAGE_NULL;
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, fd, NULL);

	if (r == 0)
		r = elf_image_make(&image, &f, whole, NULL);
	elf_file_close(&f);
	for (uint64_t at = 0; r == 0 && at < image.size; at += step) {
		size_t n = image.size - at < step ? (size_t)(image.size - at) : step;
		char *room = buf_reserve(out, n);

		elf_image_ahead(&image, at, step);
		r = room ? elf_image_read(&image, at, room, n) : -ENOMEM;
		out->n += r == 0 ? n : 0;
	}
	if (r == 0 && holds)
		*holds = image.holds;
	elf_image_free(&image);
	return r;
}

/* Without code the image gives the same names under the same build id. */
TEST(an_image_has_names_and_no_code)
{
	_cleanup_(buf_free) struct buf program = BUF_NULL, bytes = BUF_NULL, info = BUF_NULL,
				       name = BUF_NULL;
	_cleanup_(closep) int fd = -1, image_fd = -1;
	struct elf_symbols symbols = ELF_SYMBOLS_NULL;
	struct elf_file f = ELF_FILE_NULL;
	struct elf_ids ids;
	uint32_t holds;

	write_program(IMAGE_DWARF | IMAGE_SYMTAB, &program);
	fd = elf_memfd(program.p, program.n);
	expect_eq(make_bytes(fd, false, 7, &bytes, &holds), 0);
	expect_eq(holds, IMAGE_DWARF | IMAGE_SYMTAB);
	expect(bytes.n < program.n - TEXT_BYTES + 4096);
	image_fd = elf_memfd(bytes.p, bytes.n);
	expect_eq(elf_file_open(&f, image_fd, NULL), 0);
	expect_eq(f.type, ET_DYN);
	expect_eq(elf_ids_read(&f, &ids), 0);
	expect_str(str_of(ids.gnu_build_id), "12345678");
	expect_eq(elf_file_load_sections(&f, NULL), 0);
	expect_eq(elf_file_section(&f, ".text")->sh_type, SHT_NOBITS);
	expect_eq(elf_file_section(&f, ".text")->sh_addr, 0x1000);
	expect_eq(elf_file_section(&f, ".text")->sh_size, TEXT_BYTES);
	expect_eq(elf_file_read_section(&f, elf_file_section(&f, ".debug_info"), 100, &info), 0);
	expect_eq(info.n, 100);
	expect(memcmp(info.p, "what .debug_info holds", 22) == 0);
	expect_eq(elf_symbols_load(&symbols, &f, 100, NULL), 0);
	expect_eq(elf_symbols_find(&symbols, image_fd, 0x1014, &name, NULL), 0);
	expect_str(buf_str(&name), "work");
	elf_symbols_free(&symbols);
	elf_file_close(&f);
}

/* The whole file is the whole file; without names there is nothing to send. */
TEST(a_whole_file_is_as_it_was)
{
	static const uint32_t kinds[] = {IMAGE_DWARF, IMAGE_SYMTAB, IMAGE_DYNSYM, 0};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		_cleanup_(buf_free) struct buf program = BUF_NULL, bytes = BUF_NULL;
		_cleanup_(closep) int fd = -1;
		uint32_t holds = 0;

		write_program(kinds[i], &program);
		fd = elf_memfd(program.p, program.n);
		expect_eq(make_bytes(fd, true, 1000, &bytes, &holds), kinds[i] ? 0 : -ENODATA);
		expect_eq(holds, kinds[i]);
		expect(!kinds[i] || str_eq(buf_str(&bytes), buf_str(&program)));
	}
}

/* Sections that all lie in the same bytes do not make a file grow on its way. */
TEST(overlapping_sections_are_sent_once)
{
	_cleanup_(buf_free) struct buf bytes = BUF_NULL;
	_cleanup_(closep) int fd = -1;
	static const char much[50000];
	struct buf file = BUF_NULL;
	struct elf_writer w;
	uint16_t first;

	elf_writer_init(&w);
	first = elf_write_section(&w, ".debug_info", SHT_PROGBITS, 0, much, sizeof(much));
	for (int i = 0; i < 50; i++) {
		uint16_t next = elf_write_section(&w, ".debug_str", SHT_PROGBITS, 0, "x", 1);

		w.sections.p[next].sh_offset = w.sections.p[first].sh_offset;
		w.sections.p[next].sh_size = sizeof(much);
	}
	elf_write_file(&w, &file);
	elf_writer_fini(&w);
	fd = elf_memfd(file.p, file.n);
	expect_eq(make_bytes(fd, false, 4096, &bytes, NULL), 0);
	expect(str_eq(buf_str(&bytes), buf_str(&file)));
	buf_free(&file);
}

static int make_once(void *context)
{
	_cleanup_(buf_free) struct buf bytes = BUF_NULL;

	return make_bytes(*(int *)context, false, 4096, &bytes, NULL);
}

/* Neither allocations that fail nor files that lie do harm, and no image is larger than its file.
 */
TEST(damaged_files_do_no_harm)
{
	_cleanup_(buf_free) struct buf program = BUF_NULL;
	const char *runs = getenv("ANDIRON_FUZZ_RUNS");
	_cleanup_(closep) int good = -1;
	unsigned int seed = 7;

	write_program(IMAGE_DWARF | IMAGE_SYMTAB, &program);
	good = elf_memfd(program.p, program.n);
	test_each_failing_allocation(make_once, &good);
	for (long i = runs ? strtol(runs, NULL, 10) : 3000; i > 0; i--) {
		struct buf bad = BUF_NULL, bytes = BUF_NULL;
		size_t tables = program.n > 3000 ? program.n - 3000 : 0;
		int fd, r;

		buf_append(&bad, program.p, program.n);
		/* Headers stand at the front and at the end. */
		for (unsigned int k = 1 + (unsigned int)rand_r(&seed) % 6; k > 0; k--) {
			size_t at = (size_t)rand_r(&seed) % 3000;

			at = rand_r(&seed) % 2 ? tables + at : at % 300;
			if (at < bad.n)
				bad.p[at] = (char)rand_r(&seed);
		}
		if (rand_r(&seed) % 8 == 0)
			bad.n -= (size_t)rand_r(&seed) % 3000;
		fd = elf_memfd(bad.p, bad.n);
		r = make_bytes(fd, false, 4096, &bytes, NULL);
		expect(r <= 0);
		expect(r < 0 || bytes.n <= bad.n);
		close(fd);
		buf_free(&bad);
		buf_free(&bytes);
	}
}
