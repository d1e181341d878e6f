/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' ELF writer. Contract in test-write.h. */
#include "elf/tests/test-write.h"

#include "base/check.h"
#include "base/file.h"

#include <sys/mman.h>
#include <unistd.h>

static void pad(struct buf *b, size_t align)
{
	while (b->n % align)
		check(buf_putc(b, '\0') == 0);
}

static void put(struct buf *b, const void *p, size_t n)
{
	static const char zeros[4096];

	if (p) {
		check(buf_append(b, p, n) == 0);
		return;
	}
	for (; n; n -= n < sizeof(zeros) ? n : sizeof(zeros))
		check(buf_append(b, zeros, n < sizeof(zeros) ? n : sizeof(zeros)) == 0);
}

static uint32_t put_name(struct buf *b, const char *name)
{
	uint32_t at;

	if (b->n == 0)
		put(b, "", 1);
	at = (uint32_t)b->n;
	put(b, name, strlen(name) + 1);
	return at;
}

void elf_writer_init(struct elf_writer *w)
{
	*w = (struct elf_writer){.type = ET_DYN, .machine = EM_X86_64};
	check(vec_push(&w->sections, (Elf64_Shdr){0}));
}

void elf_writer_fini(struct elf_writer *w)
{
	buf_free(&w->body);
	buf_free(&w->names);
	buf_free(&w->strings);
	buf_free(&w->symbols);
	vec_free(&w->sections);
	vec_free(&w->segments);
}

uint16_t elf_write_section(struct elf_writer *w, const char *name, uint32_t type, uint64_t addr,
			   const void *p, size_t n)
{
	Elf64_Shdr s = {.sh_name = put_name(&w->names, name),
			.sh_type = type,
			.sh_addr = addr,
			.sh_size = n,
			.sh_addralign = 4};

	pad(&w->body, 8);
	s.sh_offset = sizeof(Elf64_Ehdr) + w->body.n;
	if (type != SHT_NOBITS)
		put(&w->body, p, n);
	check(vec_push(&w->sections, s));
	return (uint16_t)(w->sections.n - 1);
}

void elf_write_segment(struct elf_writer *w, uint32_t type, uint32_t flags, uint64_t offset,
		       uint64_t vaddr, uint64_t size)
{
	check(vec_push(&w->segments, ((Elf64_Phdr){.p_type = type,
						   .p_flags = flags,
						   .p_offset = offset,
						   .p_vaddr = vaddr,
						   .p_filesz = size,
						   .p_memsz = size,
						   .p_align = 4})));
}

void elf_write_symbol(struct elf_writer *w, const char *name, unsigned char info, uint16_t section,
		      uint64_t value, uint64_t size)
{
	Elf64_Sym s = {.st_name = put_name(&w->strings, name),
		       .st_info = info,
		       .st_shndx = section,
		       .st_value = value,
		       .st_size = size};

	if (w->symbols.n == 0)
		put(&w->symbols, NULL, sizeof(s));
	put(&w->symbols, &s, sizeof(s));
}

void elf_write_symbols(struct elf_writer *w, uint32_t type)
{
	const char *table = type == SHT_SYMTAB ? ".symtab" : ".dynsym";
	const char *strings = type == SHT_SYMTAB ? ".strtab" : ".dynstr";
	uint16_t at = elf_write_section(w, table, type, 0, w->symbols.p, w->symbols.n);

	w->sections.p[at].sh_entsize = sizeof(Elf64_Sym);
	w->sections.p[at].sh_link =
		elf_write_section(w, strings, SHT_STRTAB, 0, w->strings.p, w->strings.n);
	buf_clear(&w->symbols);
	buf_clear(&w->strings);
}

void elf_write_note(struct buf *out, const char *owner, size_t n_owner, uint32_t type,
		    const void *p, size_t n)
{
	Elf64_Nhdr note = {(uint32_t)n_owner, (uint32_t)n, type};

	put(out, &note, sizeof(note));
	put(out, owner, n_owner);
	pad(out, 4);
	put(out, p, n);
	pad(out, 4);
}

void elf_write_file(struct elf_writer *w, struct buf *out)
{
	uint16_t names;
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = w->type,
			.e_machine = w->machine,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_shentsize = sizeof(Elf64_Shdr)};

	put_name(&w->names, ".shstrtab");
	names = elf_write_section(w, "", SHT_STRTAB, 0, w->names.p, w->names.n);
	pad(&w->body, 8);
	h.e_shstrndx = names;
	h.e_shnum = (uint16_t)w->sections.n;
	h.e_phnum = (uint16_t)w->segments.n;
	h.e_shoff = sizeof(h) + w->body.n;
	h.e_phoff = h.e_shoff + w->sections.n * sizeof(Elf64_Shdr);
	put(out, &h, sizeof(h));
	put(out, w->body.p, w->body.n);
	put(out, w->sections.p, w->sections.n * sizeof(Elf64_Shdr));
	if (w->segments.n)
		put(out, w->segments.p, w->segments.n * sizeof(Elf64_Phdr));
}

int elf_memfd(const void *p, size_t n)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	check(fd >= 0);
	check(file_write_fd(fd, p, n) == 0);
	return fd;
}

int elf_write_memfd(struct elf_writer *w)
{
	struct buf out = BUF_NULL;
	int fd;

	elf_write_file(w, &out);
	fd = elf_memfd(out.p, out.n);
	buf_free(&out);
	return fd;
}
