/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, and no mapping: a file that shrinks under a mapping would end the process. Looks symbols
 * up by the hash tables, which the dynamic linker needs, so that stripped files have them, too. */
#include "runtime-kit/elf-file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DYNAMIC_ENTRIES 512u
#define STEPS           4096u        /* along a chain of symbols */
#define PIECE           (256u << 10) /* of names */
#define SYMBOLS         1024u        /* read at once */
#define SAMPLE          4096u
#define SAMPLE_EACH     (64u << 10)

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static bool read_at(int fd, uint64_t at, void *ret, size_t n)
{
	if (at > INT64_MAX - n)
		return false;
	for (size_t done = 0; done < n;) {
		ssize_t r = pread(fd, (char *)ret + done, n - done, (off_t)(at + done));

		if (r <= 0)
			return false;
		done += (size_t)r;
	}
	return true;
}

static void take_dynamic(struct elf_dynamic *d, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		d->symbols = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		d->strings = entry->d_un.d_ptr;
		break;
	case DT_STRSZ:
		d->strings_bytes = entry->d_un.d_val;
		break;
	case DT_GNU_HASH:
		d->gnu_hash = entry->d_un.d_ptr;
		break;
	case DT_HASH:
		d->hash = entry->d_un.d_ptr;
		break;
	case DT_RELA:
		d->rela = entry->d_un.d_ptr;
		break;
	case DT_RELASZ:
		d->rela_bytes = entry->d_un.d_val;
		break;
	default:
		break;
	}
}

static void read_dynamic(struct elf_file *f)
{
	Elf64_Dyn entries[DYNAMIC_ENTRIES];

	for (uint32_t i = 0; i < f->n_segments; i++) {
		size_t n;

		if (f->segments[i].p_type != PT_DYNAMIC)
			continue;
		n = elf_read(f, f->segments[i].p_vaddr, entries, sizeof(entries)) /
		    sizeof(*entries);
		for (size_t k = 0; k < n && entries[k].d_tag != DT_NULL; k++)
			take_dynamic(&f->dynamic, &entries[k]);
		return;
	}
}

bool elf_open(struct elf_file *f, int fd)
{
	memset(f, 0, offsetof(struct elf_file, segments));
	f->fd = fd;
	if (!read_at(fd, 0, &f->head, sizeof(f->head)) ||
	    memcmp(f->head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    f->head.e_ident[EI_CLASS] != ELFCLASS64 || f->head.e_ident[EI_DATA] != ELFDATA2LSB ||
	    f->head.e_machine != MACHINE || f->head.e_phentsize != sizeof(Elf64_Phdr) ||
	    f->head.e_phnum == 0 || f->head.e_phnum > ELF_FILE_SEGMENTS ||
	    !read_at(fd, f->head.e_phoff, f->segments, f->head.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	f->n_segments = f->head.e_phnum;
	if (f->head.e_shentsize == sizeof(Elf64_Shdr) && f->head.e_shnum > 0 &&
	    f->head.e_shnum <= ELF_FILE_SECTIONS && f->head.e_shoff > 0 &&
	    read_at(fd, f->head.e_shoff, f->sections, f->head.e_shnum * sizeof(Elf64_Shdr)))
		f->n_sections = f->head.e_shnum;
	read_dynamic(f);
	return true;
}

size_t elf_read(const struct elf_file *f, uint64_t address, void *ret, size_t n)
{
	for (uint32_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		uint64_t into = address - p->p_vaddr;

		if (p->p_type != PT_LOAD || address < p->p_vaddr || into >= p->p_filesz)
			continue;
		if (n > p->p_filesz - into)
			n = (size_t)(p->p_filesz - into);
		return p->p_offset <= INT64_MAX - into && read_at(f->fd, p->p_offset + into, ret, n)
			       ? n
			       : 0;
	}
	return 0;
}

bool elf_read_all(const struct elf_file *f, uint64_t address, void *ret, size_t n)
{
	return elf_read(f, address, ret, n) == n;
}

/* Whether the dynamic symbol of this index is the one of the name, and defined. */
static bool is_symbol(const struct elf_file *f, uint32_t index, const char *name,
		      struct elf_symbol *ret)
{
	const struct elf_dynamic *d = &f->dynamic;
	size_t n = strlen(name) + 1;
	char text[ELF_FILE_NAME];
	Elf64_Sym symbol;

	if (n > sizeof(text) ||
	    !elf_read_all(f, d->symbols + (uint64_t)index * sizeof(symbol), &symbol,
			  sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF || symbol.st_name >= d->strings_bytes ||
	    !elf_read_all(f, d->strings + symbol.st_name, text, n) || memcmp(text, name, n) != 0)
		return false;
	*ret = (struct elf_symbol){symbol.st_value, symbol.st_size};
	return true;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static bool find_gnu(const struct elf_file *f, const char *name, struct elf_symbol *ret)
{
	uint32_t head[4], h = gnu_hash(name), index, value;
	uint64_t at = f->dynamic.gnu_hash, bloom, buckets, chains;

	if (!elf_read_all(f, at, head, sizeof(head)) || head[0] == 0 || head[2] == 0)
		return false;
	if (elf_read_all(f, at + 16 + (h / 64 % head[2]) * 8ull, &bloom, sizeof(bloom)) &&
	    (!(bloom >> h % 64 & 1) || !(bloom >> (h >> (head[3] & 31)) % 64 & 1)))
		return false;
	buckets = at + 16 + head[2] * 8ull;
	chains = buckets + head[0] * 4ull;
	if (!elf_read_all(f, buckets + h % head[0] * 4ull, &index, sizeof(index)) ||
	    index < head[1])
		return false;
	for (uint32_t steps = 0; steps < STEPS; steps++, index++) {
		if (!elf_read_all(f, chains + (uint64_t)(index - head[1]) * 4, &value,
				  sizeof(value)))
			return false;
		if ((value | 1) == (h | 1) && is_symbol(f, index, name, ret))
			return true;
		if (value & 1)
			return false;
	}
	return false;
}

static bool find_sysv(const struct elf_file *f, const char *name, struct elf_symbol *ret)
{
	uint64_t at = f->dynamic.hash;
	uint32_t head[2], h = 0, index;

	for (const char *c = name; *c; c++) {
		h = (h << 4) + (unsigned char)*c;
		h ^= h >> 24 & 0xf0;
	}
	h &= 0xfffffff;
	if (!elf_read_all(f, at, head, sizeof(head)) || head[0] == 0 ||
	    !elf_read_all(f, at + 8 + h % head[0] * 4ull, &index, sizeof(index)))
		return false;
	for (uint32_t steps = 0; index != 0 && index < head[1] && steps < STEPS; steps++) {
		if (is_symbol(f, index, name, ret))
			return true;
		if (!elf_read_all(f, at + 8 + (head[0] + (uint64_t)index) * 4, &index,
				  sizeof(index)))
			return false;
	}
	return false;
}

bool elf_dynamic_symbol(const struct elf_file *f, const char *name, struct elf_symbol *ret)
{
	const struct elf_dynamic *d = &f->dynamic;

	if (d->symbols == 0 || d->strings == 0)
		return false;
	if (d->gnu_hash != 0)
		return find_gnu(f, name, ret);
	return d->hash != 0 && find_sysv(f, name, ret);
}

bool elf_relocated(const struct elf_file *f, uint64_t address, uint64_t *ret)
{
	const struct elf_dynamic *d = &f->dynamic;
	Elf64_Sym symbol = {0};
	uint64_t found = 0;
	Elf64_Rela *list;
	size_t n;

	list = d->rela_bytes > 0 && d->rela_bytes <= ELF_FILE_TABLE ? malloc(d->rela_bytes) : NULL;
	n = list ? elf_read(f, d->rela, list, d->rela_bytes) / sizeof(*list) : 0;
	while (found < n && list[found].r_offset != address)
		found++;
	if (found < n && ELF64_R_SYM(list[found].r_info) != 0 &&
	    !elf_read_all(f, d->symbols + ELF64_R_SYM(list[found].r_info) * sizeof(symbol), &symbol,
			  sizeof(symbol)))
		n = 0;
	if (found < n)
		*ret = symbol.st_value + (uint64_t)list[found].r_addend;
	free(list);
	return found < n;
}

const Elf64_Shdr *elf_section(const struct elf_file *f, const char *name)
{
	size_t n = strlen(name) + 1;
	char text[ELF_FILE_NAME];

	if (f->head.e_shstrndx >= f->n_sections || n > sizeof(text))
		return NULL;
	for (uint32_t i = 0; i < f->n_sections; i++) {
		const Elf64_Shdr *names = &f->sections[f->head.e_shstrndx];

		if (f->sections[i].sh_name < names->sh_size &&
		    names->sh_offset <= INT64_MAX - names->sh_size &&
		    read_at(f->fd, names->sh_offset + f->sections[i].sh_name, text, n) &&
		    memcmp(text, name, n) == 0)
			return &f->sections[i];
	}
	return NULL;
}

/* Where the names and the symbols of .symtab are. */
struct tables {
	const Elf64_Shdr *names, *symbols;
};

static bool find_tables(const struct elf_file *f, struct tables *ret)
{
	for (uint32_t i = 0; i < f->n_sections; i++) {
		const Elf64_Shdr *s = &f->sections[i];

		if (s->sh_type != SHT_SYMTAB || s->sh_entsize != sizeof(Elf64_Sym))
			continue;
		if (s->sh_link >= f->n_sections || s->sh_size > ELF_FILE_TABLE ||
		    f->sections[s->sh_link].sh_size > ELF_FILE_TABLE)
			return false;
		*ret = (struct tables){&f->sections[s->sh_link], s};
		return true;
	}
	return false;
}

/* As many bytes of a section as there are from `at`. */
static size_t read_section(const struct elf_file *f, const Elf64_Shdr *s, uint64_t at, void *ret,
			   size_t n)
{
	if (at >= s->sh_size || s->sh_offset > INT64_MAX - s->sh_size)
		return 0;
	if (n > s->sh_size - at)
		n = (size_t)(s->sh_size - at);
	return read_at(f->fd, s->sh_offset + at, ret, n) ? n : 0;
}

bool elf_names_have(const struct elf_file *f, const char *text)
{
	char bytes[SAMPLE];
	struct tables t;

	if (!find_tables(f, &t))
		return false;
	for (uint64_t at = 0; at < t.names->sh_size; at += SAMPLE_EACH)
		if (memmem(bytes, read_section(f, t.names, at, bytes, SAMPLE), text, strlen(text)))
			return true;
	return false;
}

/* Keeps a name that begins as it should; false: there is no room. */
static bool add_match(struct elf_symbols *s, uint64_t at, const char *name, size_t n)
{
	struct elf_match *m;

	if ((s->n_matches & (s->n_matches - 1)) == 0) {
		m = s->n_matches < ELF_FILE_MATCHES
			    ? realloc(s->matches,
				      (s->n_matches ? s->n_matches * 2 : 1) * sizeof(*m))
			    : NULL;
		if (!m)
			return false;
		s->matches = m;
	}
	m = &s->matches[s->n_matches++];
	n = strnlen(name, n < sizeof(m->name) - 1 ? n : sizeof(m->name) - 1);
	m->at = at;
	memcpy(m->name, name, n);
	m->name[n] = '\0';
	return true;
}

/* Keeps the names of a piece, of which the first begin within PIECE. A name may be the end of
 * another one. */
static void find_matches(struct elf_symbols *s, uint64_t at, const char *bytes, size_t n,
			 const char *begin)
{
	size_t n_begin = strlen(begin);
	const char *from = bytes;

	while ((from = memmem(from, n - (size_t)(from - bytes), begin, n_begin)) &&
	       from < bytes + PIECE &&
	       add_match(s, at + (uint64_t)(from - bytes), from, n - (size_t)(from - bytes)))
		from++;
}

static int compare(const void *a, const void *b)
{
	const struct elf_match *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

bool elf_symbols_open(struct elf_symbols *s, const struct elf_file *f, const char *const *begins)
{
	char *bytes = malloc(PIECE + ELF_FILE_NAME);
	struct tables t;

	*s = (struct elf_symbols){.file = f, .piece = malloc(SYMBOLS * sizeof(*s->piece))};
	if (bytes && s->piece && find_tables(f, &t)) {
		s->table = t.symbols;
		for (uint64_t at = 0; at < t.names->sh_size; at += PIECE) {
			size_t n = read_section(f, t.names, at, bytes, PIECE + ELF_FILE_NAME);

			for (uint32_t i = 0; begins[i]; i++)
				find_matches(s, at, bytes, n, begins[i]);
		}
	}
	free(bytes);
	if (s->n_matches == 0) {
		elf_symbols_close(s);
		return false;
	}
	qsort(s->matches, s->n_matches, sizeof(*s->matches), compare);
	return true;
}

/* The match that a symbol's name is; NULL: none. */
static const struct elf_match *match_of(const struct elf_symbols *s, uint64_t at)
{
	uint32_t from = 0, to = s->n_matches;

	while (from < to) {
		uint32_t mid = (from + to) / 2;

		if (s->matches[mid].at == at)
			return &s->matches[mid];
		if (s->matches[mid].at < at)
			from = mid + 1;
		else
			to = mid;
	}
	return NULL;
}

bool elf_symbols_next(struct elf_symbols *s, const char **ret_name, struct elf_symbol *ret)
{
	for (;;) {
		const struct elf_match *m;
		const Elf64_Sym *symbol;

		if (s->at == s->n) {
			size_t n = read_section(s->file, s->table, s->done, s->piece,
						SYMBOLS * sizeof(*s->piece));

			s->done += n;
			s->at = 0;
			s->n = (uint32_t)(n / sizeof(*s->piece));
			if (s->n == 0)
				return false;
		}
		symbol = &s->piece[s->at++];
		m = symbol->st_shndx != SHN_UNDEF ? match_of(s, symbol->st_name) : NULL;
		if (!m)
			continue;
		*ret_name = m->name;
		*ret = (struct elf_symbol){symbol->st_value, symbol->st_size};
		return true;
	}
}

void elf_symbols_close(struct elf_symbols *s)
{
	free(s->matches);
	free(s->piece);
	*s = (struct elf_symbols){0};
}
