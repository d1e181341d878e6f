/* SPDX-License-Identifier: Apache-2.0 */
/* Go's table of functions, on tables written here in each of its four forms (tests/elf/go-table.py
 * judges with programs that Go has built). */
#include "base/check.h"
#include "base/cleanup.h"
#include "testing/test.h"
#include "gosym/pclntab.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <unistd.h>

#define TEXT   0x401000u
#define TABLE  0x500000u
#define MODULE 0x600000u
#define TREES  0x700000u

/* How a file is made. */
struct shape {
	int version;
	bool no_sections, in_relocations, no_text;
};

static void put(struct buf *b, uint64_t value, size_t n)
{
	check(buf_append(b, &value, n) == 0);
}

static void put_at(struct buf *b, size_t at, uint64_t value, size_t n)
{
	check(at + n <= b->n);
	memcpy(b->p + at, &value, n);
}

static uint32_t magic_of(int version)
{
	return version == PCLNTAB_GO12    ? 0xfffffffb
	       : version == PCLNTAB_GO116 ? 0xfffffffa
	       : version == PCLNTAB_GO118 ? 0xfffffff0
					  : 0xfffffff1;
}

/* Names "first" at 1 and "second", "inner"; one file, "/src/a.go". */
static const char names[] = "\0first\0second\0inner";
static const char file_name[] = "\0/src/a.go";
/* Values: pcsp 0 then 0x20 then 0 (rows of 4, 0x1c, to the end), pcfile 0, pcln 10, 12; inlined
 * none, call 0, none. */
static const unsigned char values[] = {0xff, 2,    4, 0x40, 0x1c, 0x3f, 0x60, 0, /* 1 */
				       2,    0x80, 1, 0,                         /* 8 */
				       22,   0x10, 4, 0x70, 0,                   /* 12 */
				       0,    0x10, 2, 0x10, 1,    0x60, 0};      /* 17 */
#define AT_PCSP    1
#define AT_PCFILE  8
#define AT_PCLN    12
#define AT_INLINED 17

struct offsets {
	uint64_t names, units, files, values, functions;
};

static void put_record(struct buf *b, const struct shape *s, unsigned int i,
		       const struct offsets *base)
{
	const bool old = s->version == PCLNTAB_GO12;

	put(b, (s->version < PCLNTAB_GO118 ? TEXT : 0) + i * 0x80,
	    s->version < PCLNTAB_GO118 ? 8 : 4);
	put(b, (old ? base->names : 0) + (i ? 7 : 1), 4);
	put(b, 0, 8);
	put(b, (old ? base->values : 0) + AT_PCSP, 4);
	put(b, (old ? base->values : 0) + AT_PCFILE, 4);
	put(b, (old ? base->values : 0) + AT_PCLN, 4);
	put(b, 3, 4);
	if (!old)
		put(b, 0, 4);
	if (s->version == PCLNTAB_GO120)
		put(b, 9, 4);
	put(b, 4, 1);
	put(b, old ? 0 : PCLNTAB_TOP_FRAME, 1);
	put(b, 0x0400, 2);
	put(b, 0, 8);
	put(b, AT_INLINED, 4);
	for (int n = 0; n < 4; n++)
		put(b, n == 3 ? 8 : UINT32_MAX, s->version < PCLNTAB_GO118 ? 8 : 4);
}

/* Two functions of 0x80 bytes at TEXT. */
static void put_index(struct buf *b, const struct shape *s, struct offsets *at)
{
	const size_t word = s->version < PCLNTAB_GO118 ? 8 : 4;
	const uint64_t text = s->version < PCLNTAB_GO118 ? TEXT : 0;
	const uint64_t base = s->version == PCLNTAB_GO12 ? 0 : b->n;
	size_t start = b->n;

	at->functions = start;
	for (unsigned int i = 0; i < 3; i++) {
		put(b, text + i * 0x80, word);
		if (i < 2)
			put(b, 0, word);
	}
	if (s->version == PCLNTAB_GO12)
		put(b, at->files, 4);
	for (unsigned int i = 0; i < 2; i++) {
		while (b->n % 8)
			put(b, 0, 1);
		put_at(b, start + (i * 2 + 1) * word, b->n - base, word);
		put_record(b, s, i, at);
	}
}

static void put_old_table(struct buf *b, const struct shape *s)
{
	struct offsets at = {0};
	size_t files;

	put(b, 2, 8);
	files = b->n + 5 * 8 + 4 + 2 * 100;
	files += -files % 8;
	at.files = files;
	at.names = files + 8;
	at.values = at.names + sizeof(names);
	put_index(b, s, &at);
	check(b->n <= files);
	while (b->n < files)
		put(b, 0, 1);
	put(b, 2, 4);
	put(b, at.values + sizeof(values), 4);
	check(buf_append(b, names, sizeof(names)) == 0);
	check(buf_append(b, values, sizeof(values)) == 0);
	check(buf_append(b, file_name + 1, sizeof(file_name) - 1) == 0);
}

static void put_new_table(struct buf *b, const struct shape *s)
{
	const unsigned int first = s->version < PCLNTAB_GO118 ? 2 : 3;
	struct offsets at;

	put(b, 2, 8);
	put(b, 1, 8);
	if (first == 3)
		put(b, s->no_text || s->in_relocations ? 0 : TEXT, 8);
	for (int i = 0; i < 5; i++)
		put(b, 0, 8);
	at.names = b->n;
	check(buf_append(b, names, sizeof(names)) == 0);
	at.units = b->n;
	put(b, 1, 4);
	at.files = b->n;
	check(buf_append(b, file_name, sizeof(file_name)) == 0);
	at.values = b->n;
	check(buf_append(b, values, sizeof(values)) == 0);
	while (b->n % 8)
		put(b, 0, 1);
	put_index(b, s, &at);
	for (unsigned int i = 0; i < 5; i++)
		put_at(b, 8 + (first + i) * 8,
		       (const uint64_t[]){at.names, at.units, at.files, at.values, at.functions}[i],
		       8);
	put(b, at.names, 8); /* for the module; behind the table nobody looks */
}

static void put_table(struct buf *b, const struct shape *s)
{
	put(b, magic_of(s->version), 4);
	put(b, 0, 2);
	put(b, 1, 1);
	put(b, 8, 1);
	if (s->version == PCLNTAB_GO12)
		put_old_table(b, s);
	else
		put_new_table(b, s);
}

static uint16_t add(struct elf_writer *w, const char *name, uint64_t address, uint32_t flags,
		    const struct buf *b)
{
	uint16_t at = elf_write_section(w, name, SHT_PROGBITS, address, b->p, b->n);
	const Elf64_Shdr *s = &w->sections.p[at];

	elf_write_segment(w, PT_LOAD, flags, s->sh_offset, address, s->sh_size);
	return at;
}

static void put_relocation(struct buf *b, uint64_t at, uint64_t value)
{
	put(b, at, 8);
	put(b, R_X86_64_RELATIVE, 8);
	put(b, value, 8);
}

#define RELOCATIONS 0x800000u
#define DYNAMIC     0x900000u

/* The words of runtime.moduledata that count, in place or as relocations. */
static void write_module(struct elf_writer *w, const struct shape *s, uint64_t names_at)
{
	const unsigned int data = s->version == PCLNTAB_GO120 ? 40 : 38;
	const unsigned int word[] = {0, 1, 22, 23, data};
	const uint64_t value[] = {TABLE, TABLE + names_at, TEXT, TEXT + 0x100, TREES};
	_cleanup_(buf_free) struct buf module = BUF_NULL, rela = BUF_NULL, dynamic = BUF_NULL;
	uint16_t at;

	for (int i = 0; i < 64; i++)
		put(&module, i == 5 ? TABLE : 0, 8); /* a pointer that is no module */
	for (int i = 0; i < 48; i++)
		put(&module, 0, 8);
	for (int i = 0; i < 5; i++) {
		if (s->in_relocations)
			put_relocation(&rela, MODULE + 512 + word[i] * 8, value[i]);
		else
			put_at(&module, 512 + word[i] * 8, value[i], 8);
	}
	add(w, ".noptrdata", MODULE, PF_R | PF_W, &module);
	if (!s->in_relocations)
		return;
	add(w, ".rela.dyn", RELOCATIONS, PF_R, &rela);
	put(&dynamic, DT_RELA, 8);
	put(&dynamic, RELOCATIONS, 8);
	put(&dynamic, DT_RELASZ, 8);
	put(&dynamic, rela.n, 8);
	put(&dynamic, DT_NULL, 8);
	put(&dynamic, 0, 8);
	at = add(w, ".dynamic", DYNAMIC, PF_R, &dynamic);
	elf_write_segment(w, PT_DYNAMIC, PF_R, w->sections.p[at].sh_offset, DYNAMIC, dynamic.n);
}

static void write_trees(struct elf_writer *w, const struct shape *s)
{
	_cleanup_(buf_free) struct buf trees = BUF_NULL;

	put(&trees, 0, 8);
	put(&trees, 3, s->version == PCLNTAB_GO120 ? 4 : 2); /* id; a parent */
	if (s->version == PCLNTAB_GO118) {
		put(&trees, 3, 2);
		put(&trees, 0, 8); /* file, line */
	}
	put(&trees, 14, 4); /* "inner" */
	put(&trees, 0x10, 4);
	if (s->version == PCLNTAB_GO120)
		put(&trees, 7, 4);
	add(w, ".rodata", TREES, PF_R, &trees);
}

static void write_go(const struct shape *s, struct buf *out)
{
	_cleanup_(buf_free) struct buf table = BUF_NULL;
	struct elf_writer w;
	uint64_t names_at = 0;

	elf_writer_init(&w);
	put_table(&table, s);
	if (s->version != PCLNTAB_GO12)
		memcpy(&names_at, table.p + table.n - 8, 8);
	add(&w, ".gopclntab", TABLE, PF_R, &table);
	if (s->version >= PCLNTAB_GO118) {
		write_module(&w, s, names_at);
		write_trees(&w, s);
	}
	elf_write_file(&w, out);
	if (s->no_sections) {
		memset(out->p + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
		memset(out->p + offsetof(Elf64_Ehdr, e_shnum), 0, 4);
	}
	elf_writer_fini(&w);
}

/* Reads all that there is; 0 or what failed. */
static int read_function(struct pclntab *t, const struct pclntab_function *f, struct buf *text)
{
	const uint32_t tables[] = {f->pcsp, f->pcfile, f->pcln, f->inlined};
	struct pclntab_call call;
	int r = pclntab_name(t, f->name, text);

	for (size_t i = 0; r >= 0 && i < 4; i++) {
		struct pclntab_rows rows = pclntab_rows(f, tables[i]);
		uint64_t before = f->entry;

		while ((r = pclntab_next(t, &rows)) == 1) {
			expect(rows.row.start == before && rows.row.end > before);
			expect(rows.row.end <= f->end);
			before = rows.row.end;
			if (before - f->entry > 4096)
				return -E2BIG;
			if (i == 1)
				r = pclntab_file(t, f, rows.row.value, text);
			if (i == 3)
				r = pclntab_inlined(t, f, rows.row.value, &call);
			if (r == -ENOMEM)
				return r;
		}
	}
	return r;
}

static int read_all(int fd)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	struct elf_file f = ELF_FILE_NULL;
	struct pclntab t = PCLNTAB_NULL;
	int r = elf_file_open(&f, fd, NULL);

	if (r == 0)
		r = pclntab_open(&t, &f, NULL);
	for (size_t i = 0; r == 0 && i < t.n_functions && i < 64; i++) {
		struct pclntab_function function;

		r = pclntab_function(&t, i, &function);
		if (r == 0)
			r = read_function(&t, &function, &text);
		buf_clear(&text);
		if (r == 0)
			r = pclntab_find(&t, function.entry, &function);
	}
	pclntab_close(&t);
	elf_file_close(&f);
	return r;
}

static const struct shape shapes[] = {
	{PCLNTAB_GO12, false, false, false},  {PCLNTAB_GO116, false, false, false},
	{PCLNTAB_GO118, false, false, false}, {PCLNTAB_GO120, false, false, false},
	{PCLNTAB_GO12, true, false, false},   {PCLNTAB_GO116, true, false, false},
	{PCLNTAB_GO118, true, true, false},   {PCLNTAB_GO120, true, false, true},
	{PCLNTAB_GO120, false, true, false},  {PCLNTAB_GO120, true, true, false},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

struct opened {
	struct elf_file f;
	struct pclntab t;
	int fd;
};

static void open_shape(struct opened *o, const struct shape *s)
{
	_cleanup_(buf_free) struct buf file = BUF_NULL;

	write_go(s, &file);
	o->fd = elf_memfd(file.p, file.n);
	expect_eq(elf_file_open(&o->f, o->fd, NULL), 0);
	expect_eq(pclntab_open(&o->t, &o->f, NULL), 0);
}

static void close_shape(struct opened *o)
{
	pclntab_close(&o->t);
	elf_file_close(&o->f);
	close(o->fd);
}

static void value_is(struct pclntab *t, const struct pclntab_function *f, uint32_t table,
		     uint64_t address, int32_t expected)
{
	int32_t value = 12345;

	expect_eq(pclntab_value(t, f, table, address, &value), 0);
	expect_eq(value, expected);
}

static void check_function(struct opened *o, const struct shape *s)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	struct pclntab_function f;
	int32_t value;

	expect_eq(pclntab_find(&o->t, TEXT + 0xff, &f), 0);
	expect_eq(f.entry, TEXT + 0x80);
	expect_eq(f.end, TEXT + 0x100);
	expect_eq(f.start_line, s->version == PCLNTAB_GO120 ? 9 : 0);
	expect_eq(f.flags, s->version == PCLNTAB_GO12 ? 0 : PCLNTAB_TOP_FRAME);
	expect_eq(f.id, 4);
	expect_eq(pclntab_name(&o->t, f.name, &text), 0);
	expect_str(buf_str(&text), "second");
	buf_clear(&text);
	value_is(&o->t, &f, f.pcsp, TEXT + 0x80, 0);
	value_is(&o->t, &f, f.pcsp, TEXT + 0x84, 32);
	value_is(&o->t, &f, f.pcsp, TEXT + 0xff, 0);
	value_is(&o->t, &f, f.pcln, TEXT + 0x8f, 10);
	value_is(&o->t, &f, f.pcln, TEXT + 0x90, 12);
	value_is(&o->t, &f, f.pcfile, TEXT + 0x90, 0);
	expect_eq(pclntab_value(&o->t, &f, f.pcln, TEXT + 0x100, &value), -ENOENT);
	expect_eq(pclntab_value(&o->t, &f, 0, TEXT + 0x80, &value), -ENOENT);
	expect_eq(pclntab_file(&o->t, &f, s->version == PCLNTAB_GO12 ? 1 : 0, &text), 0);
	expect_str(buf_str(&text), "/src/a.go");
	expect_eq(pclntab_file(&o->t, &f, -1, &text), -ENOENT);
	expect_eq(pclntab_find(&o->t, TEXT + 0x100, &f), -ENOENT);
	expect_eq(pclntab_find(&o->t, TEXT - 1, &f), -ENOENT);
}

/* Each form of the table says the same, wherever it is found. */
TEST(every_version_names_functions_files_and_lines)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		struct opened o = {.fd = -1};

		open_shape(&o, &shapes[i]);
		expect_eq(o.t.version, shapes[i].version);
		expect_eq(o.t.n_functions, 2);
		check_function(&o, &shapes[i]);
		close_shape(&o);
	}
}

/* A call that was inlined has its name, and the line that calls it. */
TEST(inlined_calls_have_their_caller)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		struct opened o = {.fd = -1};
		struct pclntab_function f;
		struct pclntab_call call;

		if (shapes[i].version < PCLNTAB_GO118)
			continue;
		open_shape(&o, &shapes[i]);
		expect_eq(pclntab_function(&o.t, 0, &f), 0);
		value_is(&o.t, &f, f.inlined, TEXT, -1);
		value_is(&o.t, &f, f.inlined, TEXT + 0x10, 0);
		value_is(&o.t, &f, f.inlined, TEXT + 0x20, -1);
		expect_eq(pclntab_inlined(&o.t, &f, 0, &call), 0);
		expect_eq(call.call, TEXT + 0x10);
		expect_eq(call.id, 3);
		expect_eq(call.name, 14);
		expect_eq(call.start_line, shapes[i].version == PCLNTAB_GO120 ? 7 : 0);
		expect_eq(pclntab_inlined(&o.t, &f, -1, &call), -ENOENT);
		expect(pclntab_inlined(&o.t, &f, 1, &call) < 0);
		expect_eq(pclntab_inlined(&o.t, &f, INT32_MAX, &call), -ENOEXEC);
		close_shape(&o);
	}
}

/* A program that is not Go's has no table; one whose addresses nobody tells is refused instead of
 * read as if it lay at 0. */
TEST(what_tells_no_addresses_is_refused)
{
	static const struct shape moved = {PCLNTAB_GO118, false, true, true};
	_cleanup_(buf_free) struct buf file = BUF_NULL, text = BUF_NULL;
	struct elf_file f = ELF_FILE_NULL;
	struct error err = ERROR_NULL;
	struct pclntab t;
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	put(&text, 0, 8);
	add(&w, ".text", TEXT, PF_R | PF_X, &text);
	fd = elf_write_memfd(&w);
	elf_writer_fini(&w);
	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(pclntab_open(&t, &f, &err), -ENOENT);
	elf_file_close(&f);
	close(fd);
	write_go(&moved, &file);
	for (size_t i = 0; i + 24 <= file.n; i += 8)
		if (memcmp(file.p + i, "\x08\0\0\0\0\0\0\0", 8) == 0)
			file.p[i] = R_X86_64_NONE;
	fd = elf_memfd(file.p, file.n);
	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(pclntab_open(&t, &f, &err), -ENOTSUP);
	expect(str_search(str_of(err.text), STR("Go's table")) < strlen(err.text));
	elf_file_close(&f);
	close(fd);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void mutate(char *p, size_t n, uint64_t *state)
{
	static const uint64_t nasty[] = {0,          1,         0x7f,       0xff,           0x80,
					 UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7, TABLE};

	for (uint64_t count = 1 + random_next(state) % 4; count; count--) {
		size_t width = (size_t)1 << random_next(state) % 4;
		size_t at = random_next(state) % n;
		uint64_t value = random_next(state) % 2 ? nasty[random_next(state) % 10]
							: random_next(state);

		at &= ~(width - 1);
		if (at + width <= n)
			memcpy(p + at, &value, width);
	}
}

/* No table crashes, hangs or makes the reader leave a function's bounds. */
TEST(mutated_tables_do_no_harm)
{
	uint64_t state = 0x9e3779b97f4a7c15;

	for (size_t shape = 0; shape < N_SHAPES; shape++) {
		_cleanup_(buf_free) struct buf good = BUF_NULL;
		_cleanup_(freep) char *bad = NULL;

		write_go(&shapes[shape], &good);
		bad = malloc(good.n);
		for (int i = 0; i < 1500; i++) {
			_cleanup_(closep) int fd = -1;
			size_t n = i % 4 ? good.n : random_next(&state) % good.n;

			memcpy(bad, good.p, good.n);
			mutate(bad, good.n, &state);
			fd = elf_memfd(bad, n);
			read_all(fd);
		}
	}
}

static int read_all_of(void *context)
{
	return read_all(*(int *)context);
}

TEST(survives_out_of_memory)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		_cleanup_(buf_free) struct buf good = BUF_NULL;
		_cleanup_(closep) int fd = -1;

		write_go(&shapes[i], &good);
		fd = elf_memfd(good.p, good.n);
		test_each_failing_allocation(read_all_of, &fd);
	}
}
