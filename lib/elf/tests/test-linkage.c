/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of names for linkage tables. */
#include "base/cleanup.h"
#include "elf/linkage.h"
#include "elf/tests/test-write.h"
#include "testing/test.h"

#include <errno.h>
#include <unistd.h>

#define PLT 0x1000u
#define SEC 0x2000u
#define GOT 0x4000u

struct fixture {
	struct elf_writer w;
	struct elf_file f;
	struct buf name;
	int fd;
};

static void put_table(struct fixture *x, const char *name, uint64_t at, const void *code, size_t n,
		      uint64_t entry)
{
	uint16_t s = elf_write_section(&x->w, name, SHT_PROGBITS, at, code, n);

	x->w.sections.p[s].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	x->w.sections.p[s].sh_entsize = entry;
	elf_write_segment(&x->w, PT_LOAD, PF_R | PF_X, x->w.sections.p[s].sh_offset, at, n);
}

/* jmp *target(%rip), where the jump stands at `at`. */
static void put_jump(uint8_t *code, uint64_t at, uint64_t target)
{
	int32_t offset = (int32_t)(target - at - 6);

	memcpy(code, "\xff\x25", 2);
	memcpy(code + 2, &offset, 4);
}

/* A table for lazy binding with a head and two slots, one of slots that begin with endbr64, and
 * one of 8 bytes a slot. */
static void begin(struct fixture *x)
{
	uint8_t plt[48] = {0}, sec[32] = {0}, got[16] = {0};
	const Elf64_Rela relas[] = {
		{GOT + 24, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0},
		{GOT + 32, ELF64_R_INFO(2, R_X86_64_JUMP_SLOT), 0},
	};
	const Elf64_Rela others[] = {
		{GOT + 64, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0x1234},
		{GOT + 40, ELF64_R_INFO(2, R_X86_64_GLOB_DAT), 0},
		{GOT + 48, ELF64_R_INFO(99, R_X86_64_GLOB_DAT), 0},
	};

	*x = (struct fixture){.f = ELF_FILE_NULL, .fd = -1};
	elf_writer_init(&x->w);
	memcpy(plt, "\xff\x35\x02\0\0\0", 6);
	put_jump(plt + 6, PLT + 6, GOT + 16);
	put_jump(plt + 16, PLT + 16, GOT + 24);
	put_jump(plt + 32, PLT + 32, GOT + 32);
	memcpy(sec, "\xf3\x0f\x1e\xfa", 4);
	put_jump(sec + 4, SEC + 4, GOT + 32);
	memcpy(sec + 16, "\xf3\x0f\x1e\xfa\xf2", 5);
	put_jump(sec + 21, SEC + 21, GOT + 24);
	put_jump(got, 0x3000, GOT + 40);
	put_jump(got + 8, 0x3008, GOT + 48);
	put_table(x, ".plt", PLT, plt, sizeof(plt), 16);
	put_table(x, ".plt.sec", SEC, sec, sizeof(sec), 16);
	put_table(x, ".plt.got", 0x3000, got, sizeof(got), 8);
	elf_write_section(&x->w, ".rela.plt", SHT_RELA, 0, relas, sizeof(relas));
	elf_write_section(&x->w, ".rela.dyn", SHT_RELA, 0, others, sizeof(others));
	elf_write_symbol(&x->w, "malloc", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 0, 0);
	elf_write_symbol(&x->w, "own", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1, 0x1500, 4);
	elf_write_symbols(&x->w, SHT_DYNSYM);
}

static void end(struct fixture *x)
{
	elf_file_close(&x->f);
	elf_writer_fini(&x->w);
	buf_free(&x->name);
	close(x->fd);
}

static void load(struct fixture *x)
{
	x->fd = elf_write_memfd(&x->w);
	expect_eq(elf_file_open(&x->f, x->fd, NULL), 0);
	expect_eq(elf_file_load_sections(&x->f, NULL), 0);
}

/* "" for no name. */
static struct str name_at(struct fixture *x, uint64_t address)
{
	int r = elf_linkage_name(&x->f, address, &x->name);

	expect(r == 0 || r == -ENOENT);
	return r == 0 ? buf_str(&x->name) : STR("");
}

/* A slot is named by what it jumps to, all of it, in whatever table; its head has no name, and what
 * refers to no symbol has none. */
TEST(slots_are_named_by_what_they_jump_to)
{
	struct fixture x;

	begin(&x);
	load(&x);
	expect_str(name_at(&x, PLT), "");
	expect_str(name_at(&x, PLT + 6), "");
	expect_str(name_at(&x, PLT + 16), "malloc@plt");
	expect_str(name_at(&x, PLT + 31), "malloc@plt");
	expect_str(name_at(&x, PLT + 32), "own@plt");
	expect_str(name_at(&x, PLT + 48), "");
	expect_str(name_at(&x, SEC + 4), "own@plt");
	expect_str(name_at(&x, SEC + 16), "malloc@plt");
	expect_str(name_at(&x, 0x3000), "own@plt");
	expect_str(name_at(&x, 0x3008), "");
	expect_str(name_at(&x, GOT), "");
	end(&x);
}

/* Whatever stands in the file, a name is read inside it or not at all. */
TEST(broken_files_are_survived)
{
	uint64_t seed = 1;

	for (int i = 0; i < 2000; i++) {
		struct fixture x;
		struct buf out = BUF_NULL;

		begin(&x);
		elf_write_file(&x.w, &out);
		for (int n = 0; n < 4; n++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			out.p[(seed >> 33) % out.n] ^= (char)(1 + (seed >> 25) % 255);
		}
		x.fd = elf_memfd(out.p, out.n);
		if (elf_file_open(&x.f, x.fd, NULL) == 0 && elf_file_load_sections(&x.f, NULL) == 0)
			for (uint64_t at = PLT; at < PLT + 48; at += 8)
				elf_linkage_name(&x.f, at, &x.name);
		buf_free(&out);
		end(&x);
	}
}
