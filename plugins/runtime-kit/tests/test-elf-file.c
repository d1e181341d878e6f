/* SPDX-License-Identifier: Apache-2.0 */
/* This program's own file and its C library, whole and damaged. */
#include "runtime-kit/elf-file.h"

#include "testing/test.h"

#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_BYTES (8u << 20)

/* How names of this test begin. */
static const char *const own[] = {"no_such_symbol", "kit_test_", NULL};

__attribute__((used, noinline)) static int kit_test_function(int x)
{
	return x * 3;
}

/* The C library's path, as the dynamic linker has it. */
static int take_libc(struct dl_phdr_info *info, size_t size, void *context)
{
	if (!strstr(info->dlpi_name, "/" LIBC_SO))
		return 0;
	snprintf(context, 256, "%s", info->dlpi_name);
	return 1;
}

static int open_libc(void)
{
	char path[256] = "";

	dl_iterate_phdr(take_libc, path);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* A stripped library has its dynamic symbols. */
TEST(dynamic_symbols_are_found)
{
	struct elf_file *f = malloc(sizeof(*f));
	int fd = open_libc();
	struct elf_symbol s;

	if (fd < 0)
		test_skip("the C library is linked statically");
	expect(elf_open(f, fd));
	expect(elf_dynamic_symbol(f, "qsort", &s));
	expect(s.address != 0 && s.size > 0);
	expect(!elf_dynamic_symbol(f, "qsort_that_is_not_there", &s));
	expect(elf_section(f, ".dynsym") != NULL);
	expect(!elf_section(f, ".not_there"));
	close(fd);
	free(f);
}

/* The table of all symbols has what the dynamic one has not, and bytes are those in memory. */
TEST(all_symbols_are_listed)
{
	struct elf_file *f = malloc(sizeof(*f));
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_symbols list;
	struct elf_symbol s, found = {0};
	unsigned char code[8];
	const char *name;

	expect(elf_open(f, fd));
	if (!elf_symbols_open(&list, f, own))
		test_skip("this program was stripped");
	while (elf_symbols_next(&list, &name, &s))
		if (strcmp(name, "kit_test_function") == 0)
			found = s;
	elf_symbols_close(&list);
	expect(elf_names_have(f, "_"));
	expect(found.address != 0);
	expect(elf_read_all(f, found.address, code, sizeof(code)));
	expect(memcmp(code, (const void *)(uintptr_t)kit_test_function, sizeof(code)) == 0);
	expect(!elf_symbols_open(&list, f, own + 2));
	expect_eq(elf_read(f, UINT64_MAX - 4, code, 8), 0);
	close(fd);
	free(f);
}

/* A file with a table of two symbols and many other names. */
static int make_file(uint64_t n_names, const uint64_t *places, const char *name)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	char *names = malloc(n_names);
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr segment;
		Elf64_Shdr sections[2];
		Elf64_Sym symbols[2];
	} f = {
		.head = {.e_ident = ELFMAG "\2\1",
#if defined(__aarch64__)
			 .e_machine = EM_AARCH64,
#else
			 .e_machine = EM_X86_64,
#endif
			 .e_phoff = sizeof(f.head),
			 .e_phentsize = sizeof(f.segment),
			 .e_phnum = 1,
			 .e_shoff = sizeof(f.head) + sizeof(f.segment),
			 .e_shentsize = sizeof(*f.sections),
			 .e_shnum = 2},
		.sections = {{.sh_type = SHT_SYMTAB,
			      .sh_entsize = sizeof(*f.symbols),
			      .sh_size = sizeof(f.symbols),
			      .sh_offset = sizeof(f) - sizeof(f.symbols),
			      .sh_link = 1},
			     {.sh_type = SHT_STRTAB, .sh_size = n_names, .sh_offset = sizeof(f)}},
		.symbols = {{.st_name = (Elf64_Word)places[0], .st_value = 1, .st_shndx = 1},
			    {.st_name = (Elf64_Word)places[1], .st_value = 2, .st_shndx = 1}},
	};

	for (uint64_t i = 0; i < n_names; i++)
		names[i] = i % 8 ? 'n' : '\0';
	for (int i = 0; i < 2; i++)
		memcpy(names + places[i], name, strlen(name) + 1);
	expect_eq(write(fd, &f, sizeof(f)), sizeof(f));
	expect_eq(write(fd, names, n_names), n_names);
	free(names);
	return fd;
}

/* Names are found wherever they stand, also across the pieces that are read at once. */
TEST(names_are_found_everywhere)
{
	struct elf_file *f = malloc(sizeof(*f));
	struct elf_symbols list;
	struct elf_symbol s;
	const char *name;

	for (uint64_t i = 0; i <= 12; i++) {
		uint64_t places[2] = {(1 << 18) - i, (1 << 20) - 10}, sum = 0;
		int fd = make_file(1 << 20, places, "kit_test_");

		expect(elf_open(f, fd));
		expect(elf_symbols_open(&list, f, own));
		while (elf_symbols_next(&list, &name, &s)) {
			expect_str(str_of(name), "kit_test_");
			sum += s.address;
		}
		expect_eq(sum, 3);
		elf_symbols_close(&list);
		expect(elf_names_have(f, "nnnnnn"));
		expect(!elf_names_have(f, "nnnnnnnn"));
		close(fd);
	}
	free(f);
}

/* Everything that there is, for whatever file. */
static void look(struct elf_file *f, int fd)
{
	struct elf_symbols list;
	struct elf_symbol s;
	const char *name;
	uint64_t at;

	if (!elf_open(f, fd))
		return;
	elf_dynamic_symbol(f, "kit_test_function", &s);
	elf_dynamic_symbol(f, "qsort", &s);
	elf_section(f, ".symtab");
	elf_relocated(f, 0x4000, &at);
	if (!elf_symbols_open(&list, f, own))
		return;
	while (elf_symbols_next(&list, &name, &s))
		expect(strlen(name) < ELF_FILE_NAME);
	elf_symbols_close(&list);
}

/* Headers, the dynamic section and the tables that it leads to, damaged. */
TEST(damaged_files_do_no_harm)
{
	const char *text = getenv("ANDIRON_FUZZ_RUNS");
	unsigned char *file = malloc(FILE_BYTES);
	struct elf_file *f = malloc(sizeof(*f));
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = memfd_create("damaged", 0);
	uint64_t runs = 300, state = 88172645463325252, places[6], n_places = 0;
	ssize_t n = read(from, file, FILE_BYTES);

	if (text)
		str_u64(str_of(text), &runs);
	expect(n > 4096 && pwrite(fd, file, (size_t)n, 0) == n);
	expect(elf_open(f, fd));
	places[n_places++] = 0;
	places[n_places++] = f->head.e_shoff;
	for (uint32_t i = 0; i < f->n_sections && n_places < 6; i++)
		if (f->sections[i].sh_type == SHT_DYNAMIC ||
		    f->sections[i].sh_type == SHT_GNU_HASH ||
		    f->sections[i].sh_type == SHT_DYNSYM || f->sections[i].sh_type == SHT_SYMTAB)
			places[n_places++] = f->sections[i].sh_offset;
	for (uint64_t i = 0; i < runs; i++) {
		uint64_t at[4];

		for (int k = 0; k < 4; k++) {
			unsigned char byte;

			state = state * 6364136223846793005u + 1442695040888963407u;
			at[k] = places[(state >> 8) % n_places] + (state >> 33) % 512;
			byte = (unsigned char)(state >> 25);
			if (at[k] < (uint64_t)n)
				expect_eq(pwrite(fd, &byte, 1, (off_t)at[k]), 1);
		}
		look(f, fd);
		for (int k = 0; k < 4; k++)
			if (at[k] < (uint64_t)n)
				expect_eq(pwrite(fd, file + at[k], 1, (off_t)at[k]), 1);
		/* And one that ends early. */
		if (i % 8 == 0) {
			expect_eq(ftruncate(fd, (off_t)((state >> 20) % (uint64_t)n)), 0);
			look(f, fd);
			expect_eq(pwrite(fd, file, (size_t)n, 0), n);
		}
	}
	close(fd);
	close(from);
	free(file);
	free(f);
}
