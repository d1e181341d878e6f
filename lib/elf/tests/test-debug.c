/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols compressed with xz, and links to debug files. */
#include "base/check.h"
#include "base/cleanup.h"
#include "testing/test.h"
#include "elf/debuglink.h"
#include "elf/inflate.h"
#include "elf/symbols.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <unistd.h>

/* An ELF file with one function, "hidden" at 0x1000, compressed. */
static void compress_symbols(struct buf *out)
{
	_cleanup_(buf_free) struct buf plain = BUF_NULL;
	struct elf_writer w;
	size_t n = 0;
	uint16_t text;

	elf_writer_init(&w);
	text = elf_write_section(&w, ".text", SHT_NOBITS, 0x1000, NULL, 0x1000);
	elf_write_symbol(&w, "hidden", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), text, 0x1000, 16);
	elf_write_symbols(&w, SHT_SYMTAB);
	elf_write_file(&w, &plain);
	elf_writer_fini(&w);
	check(buf_reserve(out, lzma_stream_buffer_bound(plain.n)));
	check(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, (const uint8_t *)plain.p, plain.n,
				      (uint8_t *)out->p, &n, out->capacity) == LZMA_OK);
	out->n = n;
}

static int file_with(const char *name, const void *p, size_t n)
{
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_write_section(&w, name, SHT_PROGBITS, 0, p, n);
	fd = elf_write_memfd(&w);
	elf_writer_fini(&w);
	return fd;
}

/* The name that the symbols within give to 0x1000; 0, or what failed. */
static int find_hidden(int fd, struct buf *name)
{
	struct elf_symbols s = ELF_SYMBOLS_NULL;
	struct elf_file f = ELF_FILE_NULL, within = ELF_FILE_NULL;
	_cleanup_(closep) int inner = -1;
	int r = elf_file_open(&f, fd, NULL);

	if (r == 0)
		r = elf_minidebug_open(&f, &inner);
	if (r == 0)
		r = elf_file_open(&within, inner, NULL);
	if (r == 0)
		r = elf_symbols_load(&s, &within, 1000, NULL);
	if (r == 0)
		r = elf_symbols_find(&s, inner, 0x1000, name, NULL);
	elf_symbols_free(&s);
	elf_file_close(&within);
	elf_file_close(&f);
	return r;
}

static int find_hidden_in(void *context)
{
	_cleanup_(buf_free) struct buf name = BUF_NULL;

	return find_hidden(*(int *)context, &name);
}

/* A stripped program's compressed symbols are read; one without has none. */
TEST(compressed_symbols_give_names)
{
	_cleanup_(buf_free) struct buf packed = BUF_NULL, name = BUF_NULL;
	int fd;

	compress_symbols(&packed);
	fd = file_with(".gnu_debugdata", packed.p, packed.n);
	expect_eq(find_hidden(fd, &name), 0);
	expect_str(buf_str(&name), "hidden");
	test_each_failing_allocation(find_hidden_in, &fd);
	close(fd);
	fd = file_with(".text", packed.p, packed.n);
	expect_eq(find_hidden(fd, &name), -ENOENT);
	close(fd);
}

/* A small section that becomes a large file ends at the limit. */
TEST(compressed_symbols_are_bounded)
{
	static char zeros[1 << 20];
	_cleanup_(buf_free) struct buf packed = BUF_NULL, name = BUF_NULL;
	lzma_stream z = LZMA_STREAM_INIT;
	int fd;

	check(buf_reserve(&packed, 1 << 20));
	check(lzma_easy_encoder(&z, 1, LZMA_CHECK_NONE) == LZMA_OK);
	z.next_out = (uint8_t *)packed.p;
	z.avail_out = packed.capacity;
	for (uint64_t n = 0; n <= MINIDEBUG_MAX; n += sizeof(zeros)) {
		z.next_in = (uint8_t *)zeros;
		z.avail_in = sizeof(zeros);
		check(lzma_code(&z, LZMA_RUN) == LZMA_OK);
	}
	check(lzma_code(&z, LZMA_FINISH) == LZMA_STREAM_END);
	packed.n = packed.capacity - z.avail_out;
	lzma_end(&z);
	expect(packed.n < 100000);
	fd = file_with(".gnu_debugdata", packed.p, packed.n);
	expect_eq(find_hidden(fd, &name), -E2BIG);
	close(fd);
}

TEST(broken_compressed_symbols_do_no_harm)
{
	_cleanup_(buf_free) struct buf packed = BUF_NULL, name = BUF_NULL;
	uint64_t state = 0x2545f4914f6cdd1d;

	compress_symbols(&packed);
	for (int i = 0; i < 400; i++) {
		_cleanup_(freep) char *bad = malloc(packed.n);
		int fd, r;

		memcpy(bad, packed.p, packed.n);
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		bad[state % packed.n] ^= (char)(state >> 32 | 1);
		fd = file_with(".gnu_debugdata", bad, state % 5 ? packed.n : state % packed.n);
		r = find_hidden(fd, &name);
		expect(r == 0 || r == -ENOEXEC || r == -E2BIG || r == -ENODATA || r == -ENOENT);
		close(fd);
	}
}

static void read_links(const char *section, const void *p, size_t n, struct elf_debuglinks *ret)
{
	_cleanup_(closep) int fd = file_with(section, p, n);
	struct elf_file f = ELF_FILE_NULL;

	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(elf_debuglinks_read(&f, ret), 0);
	elf_file_close(&f);
}

/* A link is a name in a folder and a CRC; a path is none. */
TEST(debug_links_are_names_without_a_folder)
{
	struct elf_debuglinks l;

	read_links(".gnu_debuglink", "ls.debug\0\0\0\0\x01\x02\x03\x04", 16, &l);
	expect_str(str_of(l.name), "ls.debug");
	expect_eq(l.crc, 0x04030201);
	expect_str(str_of(l.alt_build_id), "");
	read_links(".gnu_debuglink", "../ls.debug\0\x01\x02\x03\x04", 16, &l);
	expect_str(str_of(l.name), "");
	read_links(".gnu_debuglink", "ls.debug", 8, &l);
	expect_str(str_of(l.name), "");
	read_links(".gnu_debuglink", "..\0\0\x01\x02\x03\x04", 8, &l);
	expect_str(str_of(l.name), "");
	read_links(".gnu_debugaltlink", "/usr/lib/debug/.dwz/x\0\xab\x01\xff", 25, &l);
	expect_str(str_of(l.alt_build_id), "ab01ff");
	read_links(".gnu_debugaltlink", "x", 2, &l);
	expect_str(str_of(l.alt_build_id), "");
}

/* The CRC is that of the whole file, as objcopy writes it. */
TEST(crc_is_of_the_whole_file)
{
	_cleanup_(closep) int fd = elf_memfd("123456789", 9);
	uint32_t crc;

	expect_eq(elf_debuglink_crc(fd, 9, &crc), 0);
	expect_eq(crc, 0xcbf43926);
	expect_eq(elf_debuglink_crc(fd, 8, &crc), -E2BIG);
}

/* A file with this build id, or none for ""; and something else, so that no two are alike. */
static int file_of(const char *id, const char *more)
{
	_cleanup_(buf_free) struct buf note = BUF_NULL;
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_write_note(&note, "GNU", 4, NT_GNU_BUILD_ID, id, strlen(id));
	if (*id)
		elf_write_section(&w, ".note.gnu.build-id", SHT_NOTE, 0, note.p, note.n);
	elf_write_section(&w, ".more", SHT_PROGBITS, 0, more, strlen(more));
	fd = elf_write_memfd(&w);
	elf_writer_fini(&w);
	return fd;
}

static int belongs(const char *own_id, const char *id, const char *name, int crc_off, uint64_t max)
{
	_cleanup_(closep) int own = file_of(own_id, "own"), debug = file_of(id, "debug");
	struct elf_debuglinks links = {.name = ""};
	struct elf_file f = ELF_FILE_NULL;
	int r;

	memcpy(links.name, name, strlen(name) + 1);
	expect_eq(elf_debuglink_crc(debug, UINT64_MAX, &links.crc), 0);
	links.crc += (uint32_t)crc_off;
	expect_eq(elf_file_open(&f, own, NULL), 0);
	r = elf_debuglink_belongs(&f, &links, debug, max);
	elf_file_close(&f);
	return r;
}

/* A debug file is another file's unless the build id says that it is this one's, or where there is
 * none the CRC. */
TEST(debug_files_of_others_are_refused)
{
	const uint64_t all = UINT64_MAX;

	expect_eq(belongs("id", "id", "", 1, all), 1);
	expect_eq(belongs("id", "od", "x", 0, all), 0);
	expect_eq(belongs("", "id", "x", 0, all), 1);
	expect_eq(belongs("id", "", "x", 0, all), 1);
	expect_eq(belongs("id", "", "x", 1, all), 0);
	expect_eq(belongs("", "", "", 0, all), 0);
	expect_eq(belongs("", "", "x", 0, 8), 0);
}
