/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of headers, sections, ids and the hash. */
#include "base/cleanup.h"
#include "base/error.h"
#include "testing/test.h"
#include "elf/ids.h"
#include "elf/inflate.h"
#include "base/sha256.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <fcntl.h>
#include <zlib.h>
#include <zstd.h>

static void digest_is(const char *text, size_t times, const char *expected)
{
	unsigned char digest[SHA256_BYTES];
	char out[65];
	struct sha256 s;

	sha256_init(&s);
	for (size_t i = 0; i < times; i++)
		sha256_add(&s, text, strlen(text));
	sha256_finish(&s, digest);
	for (size_t i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	expect_str(str_of(out), expected);
}

/* The hash is SHA-256: NIST's vectors, among them those that cross a block and leave no room for
 * the length. */
TEST(sha256_gives_nist_vectors)
{
	digest_is("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	digest_is("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	digest_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	digest_is("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
		  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
	digest_is("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static int open_bytes(const void *p, size_t n, struct error *err)
{
	_cleanup_(closep) int fd = elf_memfd(p, n);
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, fd, err);

	if (r == 0)
		elf_file_close(&f);
	return r;
}

/* What is not read is refused with its reason, not with a generic failure. */
TEST(other_files_are_refused_by_name)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT}};
	struct error err = ERROR_NULL;

	expect_eq(open_bytes("", 0, &err), -ENOEXEC);
	expect_str(str_of(err.text), "shorter than an ELF header");
	expect_eq(open_bytes(&h, sizeof(h), &err), -ENOTSUP);
	expect_str(str_of(err.text), "a 32-bit ELF file; only 64-bit ones are read");
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2MSB;
	expect_eq(open_bytes(&h, sizeof(h), &err), -ENOTSUP);
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	expect_eq(open_bytes(&h, sizeof(h), &err), 0);
	h.e_phnum = ELF_MAX_SEGMENTS + 1;
	h.e_phentsize = sizeof(Elf64_Phdr);
	expect_eq(open_bytes(&h, sizeof(h), &err), -E2BIG);
	h.e_phnum = 2;
	h.e_phoff = UINT64_MAX - 8;
	expect_eq(open_bytes(&h, sizeof(h), &err), -ENOEXEC);
	memset(&h, 'x', sizeof(h));
	expect_eq(open_bytes(&h, sizeof(h), &err), -ENOEXEC);
	expect_str(str_of(err.text), "not an ELF file");
}

/* A descriptor of a directory or device is no file to parse. */
TEST(only_regular_files_are_opened)
{
	_cleanup_(closep) int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct elf_file f = ELF_FILE_NULL;

	expect_eq(elf_file_open(&f, fd, NULL), -ENOEXEC);
}

/* Offsets become addresses by the segment that holds them, the executable one where a page is
 * shared, and by whole pages at its ends. */
TEST(offset_becomes_address)
{
	struct elf_writer w;
	_cleanup_(closep) int fd = -1;
	struct elf_file f = ELF_FILE_NULL;
	uint64_t a = 0;

	elf_writer_init(&w);
	elf_write_segment(&w, PT_LOAD, PF_R, 0, 0, 0x1800);
	elf_write_segment(&w, PT_LOAD, PF_R | PF_X, 0x1800, 0x401800, 0x1000);
	elf_write_segment(&w, PT_LOAD, PF_R | PF_W, 0x2800, 0x602800, 0x100);
	elf_write_segment(&w, PT_LOAD, PF_R | PF_X, UINT64_MAX - 4, 0, 0x100);
	fd = elf_write_memfd(&w);
	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(f.n_segments, 4);
	expect_eq(elf_file_vaddr(&f, 0x1900, &a), 0);
	expect_eq(a, 0x401900);
	expect_eq(elf_file_vaddr(&f, 0x100, &a), 0);
	expect_eq(a, 0x100);
	expect_eq(elf_file_vaddr(&f, 0x1000, &a), 0); /* of both; mapped as code at 0x401000 */
	expect_eq(a, 0x401000);
	expect_eq(elf_file_vaddr(&f, 0x2810, &a), 0);
	expect_eq(a, 0x402810);
	expect_eq(elf_file_vaddr(&f, 0x2fff, &a), 0);
	expect_eq(a, 0x402fff);
	expect_eq(elf_file_vaddr(&f, 0x3000, &a), -ENOENT);
	elf_file_close(&f);
	elf_writer_fini(&w);
}

static void write_ids(struct elf_writer *w, bool segment)
{
	struct buf notes = BUF_NULL;
	uint16_t at;

	elf_write_note(&notes, "X", 2, 3, "zzz", 3);
	elf_write_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, "\x01\xab\xff", 3);
	elf_write_note(&notes, "Go\0", 4, 4, "abc/def-_", 9);
	at = elf_write_section(w, ".notes", SHT_NOTE, 0, notes.p, notes.n);
	if (segment)
		elf_write_segment(w, PT_NOTE, PF_R, w->sections.p[at].sh_offset, 0, notes.n);
	buf_free(&notes);
}

static int read_ids(struct elf_writer *w, struct elf_ids *ids)
{
	_cleanup_(closep) int fd = elf_write_memfd(w);
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, fd, NULL);

	if (r == 0)
		r = elf_ids_read(&f, ids);
	elf_file_close(&f);
	elf_writer_fini(w);
	return r;
}

/* Ids are found in segments as well as in sections alone (relocatable and debug files), past notes
 * of others and their padding. */
TEST(ids_from_segments_and_sections)
{
	for (int segment = 0; segment < 2; segment++) {
		struct elf_writer w;
		struct elf_ids ids;

		elf_writer_init(&w);
		write_ids(&w, segment);
		expect_eq(read_ids(&w, &ids), 0);
		expect_str(str_of(ids.gnu_build_id), "01abff");
		expect_str(str_of(ids.go_build_id), "abc/def-_");
		expect_eq(strlen(ids.file_id), 32);
	}
}

/* An id that would not print is none, and one over the limit too. */
TEST(strange_ids_are_none)
{
	struct buf notes = BUF_NULL;
	struct elf_writer w;
	struct elf_ids ids;
	char big[ELF_BUILD_ID_CHARS] = {1};

	elf_writer_init(&w);
	elf_write_note(&notes, "Go\0", 4, 4, "a\x1b[31m", 6);
	elf_write_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, big, sizeof(big));
	elf_write_section(&w, ".notes", SHT_NOTE, 0, notes.p, notes.n);
	buf_free(&notes);
	expect_eq(read_ids(&w, &ids), 0);
	expect_str(str_of(ids.gnu_build_id), "");
	expect_str(str_of(ids.go_build_id), "");
}

/* The file id is the one that OpenTelemetry's profiler computes: digests made with sha256sum over
 * head, tail and length. */
TEST(file_id_is_opentelemetrys)
{
	char text[33];
	static const char zeros[10000];
	_cleanup_(closep) int small = elf_memfd("abc", 3), large = elf_memfd(zeros, 10000);

	expect_eq(elf_file_id(small, 3, text), 0);
	expect_str(str_of(text), "a7e79e8a85da69bad5c3fea209342ac9");
	expect_eq(elf_file_id(large, 10000, text), 0);
	expect_str(str_of(text), "b23f8793a20e0effeae7327192f2b180");
}

static void write_compressed(struct elf_writer *w, uint32_t kind, uint64_t claim)
{
	static const char text[] =
		"the quick brown fox jumps over the lazy dog, the quick brown fox";
	Elf64_Chdr head = {.ch_type = kind, .ch_size = claim, .ch_addralign = 1};
	unsigned char packed[256];
	uLongf n = sizeof(packed) - sizeof(head);
	uint16_t at;

	memcpy(packed, &head, sizeof(head));
	if (kind == ELFCOMPRESS_ZSTD) {
		n = ZSTD_compress(packed + sizeof(head), n, text, sizeof(text), 3);
		expect(!ZSTD_isError(n));
	} else {
		expect_eq(compress(packed + sizeof(head), &n, (const unsigned char *)text,
				   sizeof(text)),
			  Z_OK);
	}
	at = elf_write_section(w, ".z", SHT_PROGBITS, 0, packed, sizeof(head) + n);
	w->sections.p[at].sh_flags = SHF_COMPRESSED;
}

static int read_z(uint32_t kind, uint64_t claim, size_t max, size_t *n)
{
	struct elf_file f = ELF_FILE_NULL;
	struct buf out = BUF_NULL;
	struct elf_writer w;
	int fd, r;

	elf_writer_init(&w);
	write_compressed(&w, kind, claim);
	fd = elf_write_memfd(&w);
	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(elf_file_load_sections(&f, NULL), 0);
	expect(elf_file_section(&f, ".z"));
	expect(!elf_file_section(&f, ".y"));
	r = elf_file_read_section(&f, elf_file_section(&f, ".z"), max, &out);
	*n = out.n;
	buf_free(&out);
	elf_file_close(&f);
	elf_writer_fini(&w);
	close(fd);
	return r;
}

/* A compressed section is bounded by the caller's limit and by its own claim, whichever way it
 * lies. */
TEST(compressed_sections_are_bounded)
{
	size_t n;

	expect_eq(read_z(ELFCOMPRESS_ZLIB, 65, 100, &n), 0);
	expect_eq(n, 65);
	expect_eq(read_z(ELFCOMPRESS_ZLIB, 65, 64, &n), -E2BIG);
	expect_eq(read_z(ELFCOMPRESS_ZLIB, 64, 100, &n), -ENOEXEC);
	expect_eq(n, 0);
	expect_eq(read_z(ELFCOMPRESS_ZLIB, 66, 100, &n), -ENOEXEC);
	expect_eq(read_z(ELFCOMPRESS_ZLIB, UINT64_MAX, 100, &n), -E2BIG);
	expect_eq(read_z(3, 65, 100, &n), -ENOTSUP);
}

TEST(zstd_is_bounded_as_zlib_is)
{
	size_t n;

	expect_eq(read_z(ELFCOMPRESS_ZSTD, 65, 100, &n), 0);
	expect_eq(n, 65);
	expect_eq(read_z(ELFCOMPRESS_ZSTD, 65, 64, &n), -E2BIG);
	expect_eq(read_z(ELFCOMPRESS_ZSTD, 64, 100, &n), -ENOEXEC);
	expect_eq(n, 0);
	expect_eq(read_z(ELFCOMPRESS_ZSTD, 66, 100, &n), -ENOEXEC);
	expect_eq(read_z(ELFCOMPRESS_ZSTD, UINT64_MAX, 100, &n), -E2BIG);
}

/* Reads n bytes of a section of that name as it stands in `bytes`. */
static int read_named(const char *name, uint64_t flags, const void *bytes, size_t size, size_t max,
		      size_t *n)
{
	struct elf_file f = ELF_FILE_NULL;
	struct buf out = BUF_NULL;
	struct elf_writer w;
	int fd, r;

	elf_writer_init(&w);
	w.sections.p[elf_write_section(&w, name, SHT_PROGBITS, 0, bytes, size)].sh_flags = flags;
	fd = elf_write_memfd(&w);
	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(elf_file_load_sections(&f, NULL), 0);
	r = elf_file_read_section(&f, elf_file_section(&f, ".debug_line"), max, &out);
	*n = out.n;
	buf_free(&out);
	elf_file_close(&f);
	elf_writer_fini(&w);
	close(fd);
	return r;
}

/* Sections from before ELF could compress are found by the name that they have now, and bounded
 * alike. */
TEST(gnu_compressed_sections_are_read)
{
	static const unsigned char text[1000];
	unsigned char packed[256] = "ZLIB";
	uLongf size = sizeof(packed) - 12;
	size_t n;

	packed[10] = sizeof(text) >> 8;
	packed[11] = sizeof(text) & 0xff;
	expect_eq(compress(packed + 12, &size, text, sizeof(text)), Z_OK);
	expect_eq(read_named(".zdebug_line", 0, packed, 12 + size, sizeof(text), &n), 0);
	expect_eq(n, sizeof(text));
	expect_eq(read_named(".zdebug_line", 0, packed, 12 + size, sizeof(text) - 1, &n), -E2BIG);
	expect_eq(read_named(".zdebug_line", 0, packed, 12 + size - 5, sizeof(text), &n), -ENOEXEC);
	expect_eq(n, 0);
	packed[11]++;
	expect_eq(read_named(".zdebug_line", 0, packed, 12 + size, 2000, &n), -ENOEXEC);
	packed[3] = 'X';
	expect_eq(read_named(".zdebug_line", 0, packed, 12 + size, 2000, &n), -ENOEXEC);
	expect_eq(read_named(".zdebug_line", 0, packed, 11, 2000, &n), -ENOEXEC);
}

/* A zstd frame says how large a window it wants; more than 8 MiB it does not get. Several frames
 * are one section. */
TEST(zstd_frames_are_bounded_and_joined)
{
	static unsigned char text[1u << 17], packed[1024];
	Elf64_Chdr head = {
		.ch_type = ELFCOMPRESS_ZSTD, .ch_size = 2 * sizeof(text), .ch_addralign = 1};
	/* A frame header with a window of 2^27 bytes, and an empty last block. */
	static const unsigned char wide[] = {0x28,           0xb5, 0x2f, 0xfd, 0x00,
					     (27 - 10) << 3, 0x01, 0x00, 0x00};
	size_t at = sizeof(head), n;

	memcpy(packed, &head, sizeof(head));
	for (int i = 0; i < 2; i++) {
		n = ZSTD_compress(packed + at, sizeof(packed) - at, text, sizeof(text), 1);
		expect(!ZSTD_isError(n));
		at += n;
	}
	expect_eq(read_named(".debug_line", SHF_COMPRESSED, packed, at, 2 * sizeof(text), &n), 0);
	expect_eq(n, 2 * sizeof(text));
	expect_eq(read_named(".debug_line", SHF_COMPRESSED, packed, at - 1, 2 * sizeof(text), &n),
		  -ENOEXEC);
	head.ch_size = 0;
	memcpy(packed, &head, sizeof(head));
	memcpy(packed + sizeof(head), wide, sizeof(wide));
	expect_eq(read_named(".debug_line", SHF_COMPRESSED, packed, sizeof(head) + sizeof(wide),
			     100, &n),
		  -E2BIG);
}

static int open_and_read(void *context)
{
	struct elf_file f = ELF_FILE_NULL;
	struct buf out = BUF_NULL;
	struct elf_ids ids;
	int r = elf_file_open(&f, *(int *)context, NULL);

	if (r == 0)
		r = elf_file_load_sections(&f, NULL);
	if (r == 0)
		r = elf_file_read_section(&f, elf_file_section(&f, ".z"), 4096, &out);
	if (r == 0)
		r = elf_ids_read(&f, &ids);
	buf_free(&out);
	elf_file_close(&f);
	return r;
}

/* No allocation that fails leaks or leaves a half-made file behind. */
TEST(survives_out_of_memory)
{
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	write_ids(&w, true);
	write_compressed(&w, ELFCOMPRESS_ZLIB, 65);
	fd = elf_write_memfd(&w);
	elf_writer_fini(&w);
	test_each_failing_allocation(open_and_read, &fd);
	close(fd);
}
