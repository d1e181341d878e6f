/* SPDX-License-Identifier: Apache-2.0 */
/* Function symbols. Contract and rules in symbols.h.
 *
 * The symbol table is streamed twice, once to count and once to fill an array of the right size:
 * reading it again from the page cache is cheaper than the memory of growing. The file may change
 * between the two; then fewer or other symbols are taken, never more than there is room for. */
#include "elf/symbols.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK     ((size_t)2048) /* symbols a pread */
#define MAX_SCAN  (UINT64_C(1) << 25)
#define MAX_ALIAS 64
#define MAX_NEST  32

#define SIZE_MAX_30 ((UINT64_C(1) << 30) - 1)

struct elf_symbol {
	uint64_t address;
	uint32_t size : 30;
	uint32_t local : 1; /* other files cannot see it */
	uint32_t open : 1;  /* it has no size of its own */
	uint32_t name;
};

_Static_assert(sizeof(struct elf_symbol) == 16, "16 bytes a function is what the header says");

static bool is_function(const Elf64_Sym *s)
{
	unsigned int type = ELF64_ST_TYPE(s->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF &&
	       s->st_name != 0;
}

static struct elf_symbol pack(const Elf64_Sym *s)
{
	return (struct elf_symbol){
		.address = s->st_value,
		.size = (uint32_t)(s->st_size < SIZE_MAX_30 ? s->st_size : SIZE_MAX_30) &
			SIZE_MAX_30,
		.local = ELF64_ST_BIND(s->st_info) == STB_LOCAL,
		.open = s->st_size == 0,
		.name = s->st_name,
	};
}

struct scan {
	struct elf_symbol *list; /* NULL: count only */
	size_t n, max;
};

static void scan_chunk(struct scan *scan, const Elf64_Sym *symbols, size_t n)
{
	for (size_t i = 0; i < n && scan->n < scan->max; i++) {
		if (!is_function(&symbols[i]))
			continue;
		if (scan->list)
			scan->list[scan->n] = pack(&symbols[i]);
		scan->n++;
	}
}

/* Streams a table through scan_chunk. */
static int scan_table(const struct elf_file *f, const Elf64_Shdr *table, struct scan *scan)
{
	uint64_t n = table->sh_size / sizeof(Elf64_Sym), offset = table->sh_offset;
	_cleanup_(freep) Elf64_Sym *chunk = NULL;

	if (n > MAX_SCAN)
		return -E2BIG;
	if (!elf_file_holds(f, offset, table->sh_size))
		return -ENOEXEC;
	chunk = malloc(CHUNK * sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	while (n) {
		size_t part = n < CHUNK ? (size_t)n : CHUNK;
		int r = file_pread(f->fd, chunk, part * sizeof(*chunk), offset);

		if (r < 0)
			return r;
		scan_chunk(scan, chunk, part);
		offset += part * sizeof(*chunk);
		n -= part;
	}
	return 0;
}

static int by_address(const void *x, const void *y)
{
	const struct elf_symbol *a = x, *b = y;
	int order = compare(a->address, b->address) ?: compare(a->local, b->local);

	return order ?: compare(a->name, b->name);
}

struct span {
	uint64_t start, end;
};

static int by_start(const void *x, const void *y)
{
	const struct span *a = x, *b = y;

	return compare(a->start, b->start);
}

/* The address ranges of sections that are loaded, sorted. */
static struct span *section_spans(const struct elf_file *f, size_t *ret_n)
{
	struct span *spans = malloc((f->n_sections + 1) * sizeof(*spans));
	size_t n = 0;

	if (!spans)
		return NULL;
	for (size_t i = 0; i < f->n_sections; i++) {
		const Elf64_Shdr *s = &f->sections[i];

		if ((s->sh_flags & SHF_ALLOC) && !(s->sh_flags & SHF_TLS) && s->sh_size &&
		    s->sh_size <= UINT64_MAX - s->sh_addr)
			spans[n++] = (struct span){s->sh_addr, s->sh_addr + s->sh_size};
	}
	check(n <= f->n_sections);
	qsort(spans, n, sizeof(*spans), by_start);
	*ret_n = n;
	return spans;
}

/* The end of the section that holds an address; 0 if none does. */
static uint64_t section_end(const struct span *spans, size_t n, uint64_t address)
{
	size_t low = search_partition(n, i, spans[i].start <= address);

	return low && address < spans[low - 1].end ? spans[low - 1].end : 0;
}

/* Gives symbols without a size the extent up to what follows. */
static int close_gaps(struct elf_symbols *s, const struct elf_file *f)
{
	_cleanup_(freep) struct span *spans = NULL;
	uint64_t next = UINT64_MAX;
	size_t n;

	spans = section_spans(f, &n);
	if (!spans)
		return -ENOMEM;
	for (size_t i = s->n; i--;) {
		struct elf_symbol *symbol = &s->list[i];

		if (i + 1 < s->n && symbol->address != symbol[1].address)
			next = symbol[1].address;
		if (symbol->size == 0) {
			uint64_t end = section_end(spans, n, symbol->address);

			end = end < next ? end : next;
			if (end > symbol->address) {
				uint64_t size = end - symbol->address;

				symbol->size = (uint32_t)(size < SIZE_MAX_30 ? size : SIZE_MAX_30) &
					       SIZE_MAX_30;
			}
		}
	}
	return 0;
}

static int load_table(struct elf_symbols *s, const struct elf_file *f, const Elf64_Shdr *table,
		      size_t max)
{
	struct scan scan = {.max = max + 1};
	const Elf64_Shdr *strings;
	int r;

	if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_link >= f->n_sections)
		return -ENOEXEC;
	strings = &f->sections[table->sh_link];
	if ((table->sh_flags | strings->sh_flags) & SHF_COMPRESSED)
		return -ENOTSUP;
	r = scan_table(f, table, &scan);
	if (r < 0 || scan.n == 0)
		return r;
	if (scan.n > max)
		return -E2BIG;
	scan = (struct scan){.list = calloc(scan.n, sizeof(*scan.list)), .max = scan.n};
	if (!scan.list)
		return -ENOMEM;
	s->list = scan.list;
	r = scan_table(f, table, &scan);
	if (r < 0)
		return r;
	check(scan.n <= scan.max);
	s->n = scan.n;
	s->names = strings->sh_offset;
	s->names_size = strings->sh_size;
	qsort(s->list, s->n, sizeof(*s->list), by_address);
	return close_gaps(s, f);
}

int elf_symbols_load(struct elf_symbols *ret, struct elf_file *f, size_t max, struct error *err)
{
	static const struct {
		uint32_t type;
		int source;
		const char *name;
	} tables[] = {{SHT_SYMTAB, ELF_SYMBOLS_SYMTAB, ".symtab"},
		      {SHT_DYNSYM, ELF_SYMBOLS_DYNSYM, ".dynsym"}};
	int r;

	if (f->type != ET_EXEC && f->type != ET_DYN)
		return error_set(err, -ENOTSUP, "an ELF file of type %u has no addresses yet",
				 f->type);
	r = elf_file_load_sections(f, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < 2; i++) {
		const Elf64_Shdr *table = elf_file_section_of_type(f, tables[i].type);
		struct elf_symbols s = ELF_SYMBOLS_NULL;

		if (!table)
			continue;
		r = load_table(&s, f, table, max < UINT32_MAX ? max : UINT32_MAX);
		if (r == 0 && s.n) {
			s.source = tables[i].source;
			*ret = s;
			return 0;
		}
		elf_symbols_free(&s);
		if (r < 0)
			return error_errno(err, r, "cannot read %s", tables[i].name);
	}
	*ret = ELF_SYMBOLS_NULL;
	return 0;
}

void elf_symbols_free(struct elf_symbols *s)
{
	free(s->list);
	*s = ELF_SYMBOLS_NULL;
}

size_t elf_symbols_bytes(const struct elf_symbols *s)
{
	return sizeof(*s) + s->n * sizeof(*s->list);
}

static size_t underscores(struct str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] == '_')
		n++;
	return n;
}

bool elf_name_better(struct str a, struct str b)
{
	size_t x = underscores(a), y = underscores(b);

	if (x != y)
		return x < y;
	return a.n != b.n ? a.n < b.n : str_cmp(a, b) < 0;
}

/* The name at an offset of the string table, appended to `out`. Most are short, so a long one costs
 * a second read. */
static int read_name(const struct elf_symbols *s, int fd, uint32_t at, struct buf *out)
{
	struct str name;

	for (size_t want = 256;; want = ELF_NAME_MAX) {
		uint64_t left = at < s->names_size ? s->names_size - at : 0;
		size_t n = left < want ? (size_t)left : want;
		char *room = buf_reserve(out, n);
		int r;

		if (!room)
			return -ENOMEM;
		if (n == 0 || s->names > UINT64_MAX - at)
			return -ENOEXEC;
		r = file_pread(fd, room, n, s->names + at);
		if (r < 0)
			return r;
		name = (struct str){room, strnlen(room, n)};
		if (name.n < n || n < want || want == ELF_NAME_MAX)
			break;
	}
	if (str_find(name, '@'))
		name = str_first(name, str_find(name, '@'));
	out->n += name.n;
	return name.n ? 0 : -ENOENT;
}

/* The first of the symbols at the same address as entry i. */
static size_t first_alias(const struct elf_symbols *s, size_t i)
{
	check(i < s->n);
	while (i && s->list[i - 1].address == s->list[i].address)
		i--;
	return i;
}

static bool covers(const struct elf_symbol *symbol, uint64_t address)
{
	return address - symbol->address < symbol->size;
}

/* The best name among the aliases from `first` on that cover the address. */
static int best_name(const struct elf_symbols *s, int fd, size_t first, uint64_t address,
		     struct buf *name, const struct elf_symbol **ret)
{
	_cleanup_(buf_free) struct buf other = BUF_NULL;
	const struct elf_symbol *best = NULL;
	int r = -ENOENT;

	check(first < s->n);
	for (size_t i = first; i < s->n && i < first + MAX_ALIAS; i++) {
		const struct elf_symbol *symbol = &s->list[i];
		int got;

		if (symbol->address != s->list[first].address)
			break;
		if (!covers(symbol, address) || (best && symbol->local > best->local))
			continue;
		buf_clear(&other);
		got = read_name(s, fd, symbol->name, &other);
		if (got < 0) {
			r = best ? 0 : got;
			continue;
		}
		r = 0;
		if (best && !elf_name_better(buf_str(&other), buf_str(name)))
			continue;
		best = symbol;
		buf_clear(name);
		if (buf_append(name, other.p, other.n) < 0)
			return -ENOMEM;
	}
	if (r == 0)
		*ret = best;
	return r;
}

int elf_symbols_find(const struct elf_symbols *s, int fd, uint64_t address, struct buf *name,
		     struct elf_extent *ret)
{
	size_t end = search_partition(s->n, i, s->list[i].address <= address);

	buf_clear(name);
	for (size_t tries = 0; end && tries < MAX_NEST; tries++, end--) {
		const struct elf_symbol *symbol = &s->list[end - 1];
		int r;

		if (!covers(symbol, address))
			continue;
		r = best_name(s, fd, first_alias(s, end - 1), address, name, &symbol);
		if (r == 0 && ret)
			*ret = (struct elf_extent){symbol->address, symbol->size, symbol->open};
		return r;
	}
	return -ENOENT;
}
