/* SPDX-License-Identifier: Apache-2.0 */
/* Headers, ids, links, symbols, compressed sections and .gnu_debugdata of an ELF file. */
#include "fuzz.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "elf/debuglink.h"
#include "elf/ids.h"
#include "elf/inflate.h"
#include "elf/symbols.h"

#define SYMBOLS_MAX 65536u
#define SECTION_MAX ((size_t)1 << 20)

static void use_symbols(struct elf_file *f, int fd)
{
	struct elf_symbols s = ELF_SYMBOLS_NULL;
	struct buf name = BUF_NULL;

	if (elf_symbols_load(&s, f, SYMBOLS_MAX, NULL) == 0)
		for (uint64_t address = 0; address < 0x4000; address += 0x97) {
			elf_symbols_find(&s, fd, address, &name, NULL);
			check(name.n <= ELF_NAME_MAX);
		}
	elf_symbols_free(&s);
	buf_free(&name);
}

static void use_within(struct elf_file *f)
{
	struct elf_file within = ELF_FILE_NULL;
	int fd;

	if (elf_minidebug_open(f, &fd) < 0)
		return;
	if (elf_file_open(&within, fd, NULL) == 0)
		use_symbols(&within, fd);
	elf_file_close(&within);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	int fd = fuzz_file(bytes, n);
	struct elf_file f = ELF_FILE_NULL;
	struct elf_debuglinks links;
	struct elf_ids ids;
	uint64_t address;

	if (elf_file_open(&f, fd, NULL) < 0)
		return 0;
	elf_ids_read(&f, &ids);
	elf_debuglinks_read(&f, &links);
	elf_file_vaddr(&f, n / 2, &address);
	use_symbols(&f, fd);
	use_within(&f);
	for (size_t i = 0; i < f.n_sections && i < 64; i++) {
		struct buf out = BUF_NULL;

		elf_file_read_section(&f, &f.sections[i], SECTION_MAX, &out);
		check(out.n <= SECTION_MAX);
		buf_free(&out);
	}
	elf_file_close(&f);
	return 0;
}
