/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of linkage tables by name. Contract in linkage.h. */
#include "elf/linkage.h"

#include "base/file.h"
#include "elf/symbols.h"

#include <errno.h>
#include <string.h>

#define PIECE           512u       /* relocations that are read at once */
#define MAX_RELOCATIONS (1u << 22) /* a file that is made to take long may have any number */

static bool holds(const Elf64_Shdr *s, uint64_t address)
{
	return address >= s->sh_addr && address - s->sh_addr < s->sh_size;
}

/* The slot's place in the global offset table, by `jmp *offset(%rip)`; in front of it may stand
 * `endbr64` and `bnd`. The head of a table for lazy binding pushes first, and is none. */
static int slot_target(const struct elf_file *f, uint64_t address, uint64_t *ret)
{
	static const char *const tables[] = {".plt", ".plt.sec", ".plt.got"};
	uint8_t code[16];

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const Elf64_Shdr *s = elf_file_section(f, tables[i]);
		uint64_t at, size = 16;
		int n;

		if (!s || !holds(s, address))
			continue;
		if (s->sh_entsize == 8)
			size = 8;
		at = address - (address - s->sh_addr) % size;
		n = elf_file_read_code(f, at, code, size);
		if (n < (int)size)
			return n < 0 ? n : -ENOENT;
		for (uint64_t j = 0; j + 6 <= size && j <= 5; j++) {
			int32_t offset;

			if (code[j] != 0xff || code[j + 1] != 0x25)
				continue;
			memcpy(&offset, code + j + 2, sizeof(offset));
			*ret = at + j + 6 + (uint64_t)(int64_t)offset;
			return 0;
		}
	}
	return -ENOENT;
}

/* The symbol that the relocation of this place names. */
static int target_symbol(const struct elf_file *f, const char *section, uint64_t place,
			 uint32_t *ret)
{
	const Elf64_Shdr *s = elf_file_section(f, section);
	Elf64_Rela relas[PIECE];
	uint64_t n = s && s->sh_type == SHT_RELA ? s->sh_size / sizeof(relas[0]) : 0;

	if (n > MAX_RELOCATIONS || (s && !elf_file_holds(f, s->sh_offset, s->sh_size)))
		return -ENOENT;
	for (uint64_t at = 0; at < n; at += PIECE) {
		uint64_t m = n - at < PIECE ? n - at : PIECE;
		int r = file_pread(f->fd, relas, m * sizeof(relas[0]),
				   s->sh_offset + at * sizeof(relas[0]));

		if (r < 0)
			return r;
		for (uint64_t i = 0; i < m; i++) {
			if (relas[i].r_offset != place || ELF64_R_SYM(relas[i].r_info) == 0)
				continue;
			*ret = (uint32_t)ELF64_R_SYM(relas[i].r_info);
			return 0;
		}
	}
	return -ENOENT;
}

static int symbol_name(const struct elf_file *f, uint32_t index, struct buf *ret)
{
	const Elf64_Shdr *symbols = elf_file_section(f, ".dynsym");
	const Elf64_Shdr *texts = elf_file_section(f, ".dynstr");
	char name[ELF_NAME_MAX];
	Elf64_Sym symbol;
	uint64_t room;
	size_t n;
	int r;

	if (!symbols || !texts || index >= symbols->sh_size / sizeof(symbol) ||
	    !elf_file_holds(f, symbols->sh_offset, symbols->sh_size) ||
	    !elf_file_holds(f, texts->sh_offset, texts->sh_size))
		return -ENOENT;
	r = file_pread(f->fd, &symbol, sizeof(symbol), symbols->sh_offset + index * sizeof(symbol));
	if (r < 0 || symbol.st_name >= texts->sh_size)
		return r < 0 ? r : -ENOENT;
	room = texts->sh_size - symbol.st_name;
	room = room < sizeof(name) ? room : sizeof(name);
	r = file_pread(f->fd, name, room, texts->sh_offset + symbol.st_name);
	if (r < 0)
		return r;
	n = strnlen(name, room);
	if (n == 0 || n == room)
		return -ENOENT;
	buf_clear(ret);
	r = buf_append(ret, name, n);
	return r < 0 ? r : buf_append(ret, "@plt", 4);
}

int elf_linkage_name(const struct elf_file *f, uint64_t address, struct buf *ret)
{
	uint32_t symbol = 0;
	uint64_t place = 0;
	int r = f->machine == EM_X86_64 ? slot_target(f, address, &place) : -ENOENT;

	if (r < 0)
		return r;
	r = target_symbol(f, ".rela.plt", place, &symbol);
	if (r == -ENOENT)
		r = target_symbol(f, ".rela.dyn", place, &symbol);
	return r < 0 ? r : symbol_name(f, symbol, ret);
}
