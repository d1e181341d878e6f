/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of function symbols and kernel symbols, and the fuzz loops of both. */
#include "base/cleanup.h"
#include "testing/test.h"
#include "elf/ids.h"
#include "elf/kallsyms.h"
#include "elf/symbols.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <fcntl.h>

struct fixture {
	struct elf_writer w;
	struct elf_file f;
	struct elf_symbols s;
	struct buf name;
	uint16_t text, other;
	int fd;
};

static void begin(struct fixture *x)
{
	*x = (struct fixture){.f = ELF_FILE_NULL, .fd = -1};
	elf_writer_init(&x->w);
	x->text = elf_write_section(&x->w, ".text", SHT_NOBITS, 0x1000, NULL, 0x1000);
	x->other = elf_write_section(&x->w, ".text.hot", SHT_NOBITS, 0x2000, NULL, 0x100);
	x->w.sections.p[x->text].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	x->w.sections.p[x->other].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
}

static int load(struct fixture *x, size_t max)
{
	x->fd = elf_write_memfd(&x->w);
	expect_eq(elf_file_open(&x->f, x->fd, NULL), 0);
	return elf_symbols_load(&x->s, &x->f, max, NULL);
}

static void end(struct fixture *x)
{
	elf_symbols_free(&x->s);
	elf_file_close(&x->f);
	elf_writer_fini(&x->w);
	buf_free(&x->name);
	if (x->fd >= 0)
		close(x->fd);
}

/* "" for no name. */
static struct str name_at(struct fixture *x, uint64_t address)
{
	int r = elf_symbols_find(&x->s, x->fd, address, &x->name, NULL);

	expect(r == 0 || r == -ENOENT);
	return r == 0 ? buf_str(&x->name) : STR("");
}

static void function(struct fixture *x, const char *name, uint64_t value, uint64_t size)
{
	elf_write_symbol(&x->w, name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), x->text, value, size);
}

/* No name is given beyond a symbol's extent: neither in a gap after a sized one, nor past its
 * section where it has no size. */
TEST(a_name_ends_where_its_extent_ends)
{
	struct fixture x;
	struct elf_extent extent;

	begin(&x);
	function(&x, "sized", 0x1100, 0x10);
	function(&x, "open", 0x1200, 0);
	function(&x, "next", 0x1280, 4);
	function(&x, "last", 0x1f00, 0);
	elf_write_symbol(&x.w, "hot", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), x.other, 0x2000, 0);
	function(&x, "nowhere", 0x9000, 0);
	elf_write_symbols(&x.w, SHT_SYMTAB);
	expect_eq(load(&x, 100), 0);
	expect_eq(x.s.source, ELF_SYMBOLS_SYMTAB);
	expect_str(name_at(&x, 0x10ff), "");
	expect_str(name_at(&x, 0x1100), "sized");
	expect_str(name_at(&x, 0x110f), "sized");
	expect_str(name_at(&x, 0x1110), "");
	expect_str(name_at(&x, 0x127f), "open");
	expect_str(name_at(&x, 0x1283), "next");
	expect_str(name_at(&x, 0x1284), "");
	expect_str(name_at(&x, 0x1fff), "last");
	expect_str(name_at(&x, 0x2000), "hot");
	expect_str(name_at(&x, 0x20ff), "hot");
	expect_str(name_at(&x, 0x2100), "");
	expect_str(name_at(&x, 0x9000), "");
	expect_str(name_at(&x, UINT64_MAX), "");
	expect_eq(elf_symbols_find(&x.s, x.fd, 0x1250, &x.name, &extent), 0);
	expect_eq(extent.address, 0x1200);
	expect_eq(extent.size, 0x80);
	expect(extent.open);
	expect_eq(elf_symbols_find(&x.s, x.fd, 0x1100, &x.name, &extent), 0);
	expect(!extent.open);
	end(&x);
}

/* Only functions defined here have names: no data, imports, typeless labels. */
TEST(only_functions_count)
{
	struct fixture x;

	begin(&x);
	elf_write_symbol(&x.w, "data", ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), x.text, 0x1000,
			 0x100);
	elf_write_symbol(&x.w, "$x", ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), x.text, 0x1100, 0x100);
	elf_write_symbol(&x.w, "import", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), SHN_UNDEF, 0x1200,
			 0x100);
	elf_write_symbol(&x.w, "ifunc", ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC), x.text, 0x1300,
			 0x10);
	elf_write_symbols(&x.w, SHT_SYMTAB);
	expect_eq(load(&x, 100), 0);
	expect_eq(x.s.n, 1);
	expect_str(name_at(&x, 0x1000), "");
	expect_str(name_at(&x, 0x1100), "");
	expect_str(name_at(&x, 0x1200), "");
	expect_str(name_at(&x, 0x1300), "ifunc");
	end(&x);
}

/* Of several names the choice is the same whatever order they are listed in. */
TEST(aliases_are_chosen_by_rule)
{
	for (int backwards = 0; backwards < 2; backwards++) {
		static const struct {
			const char *name;
			unsigned char bind;
		} names[] = {{"__read", STB_GLOBAL}, {"r", STB_LOCAL},
			     {"read", STB_WEAK},     {"reed", STB_GLOBAL},
			     {"_re", STB_GLOBAL},    {"readahead", STB_GLOBAL}};
		struct fixture x;

		begin(&x);
		for (size_t i = 0; i < 6; i++) {
			size_t at = backwards ? 5 - i : i;

			elf_write_symbol(&x.w, names[at].name,
					 (unsigned char)ELF64_ST_INFO(names[at].bind, STT_FUNC),
					 x.text, 0x1000, 8);
		}
		elf_write_symbol(&x.w, "wider", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), x.text, 0x1000,
				 16);
		elf_write_symbols(&x.w, SHT_SYMTAB);
		expect_eq(load(&x, 100), 0);
		expect_str(name_at(&x, 0x1004), "read");
		expect_str(name_at(&x, 0x1008), "wider");
		end(&x);
	}
}

/* Inside nested extents the innermost function counts, behind it the outer. */
TEST(innermost_extent_counts)
{
	struct fixture x;

	begin(&x);
	function(&x, "outer", 0x1000, 0x100);
	function(&x, "inner", 0x1040, 0x10);
	elf_write_symbols(&x.w, SHT_SYMTAB);
	expect_eq(load(&x, 100), 0);
	expect_str(name_at(&x, 0x1045), "inner");
	expect_str(name_at(&x, 0x1050), "outer");
	expect_str(name_at(&x, 0x1100), "");
	end(&x);
}

/* A version is no part of a name; a name without its end is cut off. */
TEST(names_are_bounded)
{
	static char big[2 * ELF_NAME_MAX];
	struct fixture x;

	memset(big, 'b', sizeof(big) - 1);
	begin(&x);
	function(&x, "stat@GLIBC_2.33", 0x1000, 8);
	function(&x, big, 0x1010, 8);
	elf_write_symbols(&x.w, SHT_SYMTAB);
	expect_eq(load(&x, 100), 0);
	expect_str(name_at(&x, 0x1000), "stat");
	expect_eq(name_at(&x, 0x1010).n, ELF_NAME_MAX);
	end(&x);
}

/* .dynsym serves where .symtab is absent or names no function; more functions than the caller
 * allows are refused. */
TEST(dynsym_is_the_second_source)
{
	struct fixture x;

	begin(&x);
	elf_write_symbol(&x.w, "file.c", ELF64_ST_INFO(STB_LOCAL, STT_FILE), SHN_ABS, 0, 0);
	elf_write_symbols(&x.w, SHT_SYMTAB);
	function(&x, "exported", 0x1000, 8);
	function(&x, "another", 0x1010, 8);
	elf_write_symbols(&x.w, SHT_DYNSYM);
	expect_eq(load(&x, 2), 0);
	expect_eq(x.s.source, ELF_SYMBOLS_DYNSYM);
	expect_str(name_at(&x, 0x1007), "exported");
	elf_symbols_free(&x.s);
	expect_eq(elf_symbols_load(&x.s, &x.f, 1, NULL), -E2BIG);
	end(&x);
}

TEST(relocatable_files_have_no_addresses)
{
	struct fixture x;

	begin(&x);
	x.w.type = ET_REL;
	expect_eq(load(&x, 100), -ENOTSUP);
	end(&x);
}

/* Everything that a reader does with a file, whatever that file is. */
static int use_file(int fd)
{
	struct elf_symbols s = ELF_SYMBOLS_NULL;
	struct elf_file f = ELF_FILE_NULL;
	struct buf name = BUF_NULL;
	struct elf_ids ids;
	uint64_t address;
	int r = elf_file_open(&f, fd, NULL);

	if (r < 0)
		return r;
	r = elf_ids_read(&f, &ids);
	if (r == 0) {
		elf_file_vaddr(&f, 0x1234, &address);
		r = elf_symbols_load(&s, &f, 4096, NULL);
	}
	for (address = 0; r == 0 && address < 0x3000; address += 0x3f) {
		int found = elf_symbols_find(&s, fd, address, &name, NULL);

		expect(found != 0 || (name.n > 0 && name.n <= ELF_NAME_MAX));
		if (found == -ENOMEM)
			r = found;
	}
	for (size_t i = 0; r == 0 && i < f.n_sections; i++) {
		buf_clear(&name);
		if (elf_file_read_section(&f, &f.sections[i], 4096, &name) == -ENOMEM)
			r = -ENOMEM;
		expect(name.n <= 4096);
	}
	elf_symbols_free(&s);
	elf_file_close(&f);
	buf_free(&name);
	return r;
}

static void write_small(struct buf *out)
{
	struct buf notes = BUF_NULL;
	struct fixture x;
	uint16_t at;

	begin(&x);
	elf_write_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, "0123456789", 10);
	at = elf_write_section(&x.w, ".note", SHT_NOTE, 0, notes.p, notes.n);
	elf_write_segment(&x.w, PT_NOTE, PF_R, x.w.sections.p[at].sh_offset, 0, notes.n);
	elf_write_segment(&x.w, PT_LOAD, PF_R | PF_X, 0, 0x1000, 0x1000);
	function(&x, "one", 0x1000, 0);
	function(&x, "two", 0x1080, 0x80);
	function(&x, "due", 0x1080, 0x80);
	elf_write_symbols(&x.w, SHT_SYMTAB);
	function(&x, "three", 0x1200, 16);
	elf_write_symbols(&x.w, SHT_DYNSYM);
	elf_write_file(&x.w, out);
	buf_free(&notes);
	end(&x);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Half the changes hit headers; half are numbers that tend to break things. */
static void mutate(char *p, size_t n, uint64_t *state)
{
	static const uint64_t nasty[] = {
		0,          1,         7,          0xff,           0xffff,
		UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7, 0x8000000000000000};

	for (uint64_t count = 1 + random_next(state) % 4; count; count--) {
		size_t at = random_next(state) % (random_next(state) % 2 ? n : 64);
		uint64_t value = random_next(state) % 2 ? nasty[random_next(state) % 10]
							: random_next(state);
		size_t width = (size_t)1 << random_next(state) % 4;

		at &= ~(width - 1);
		if (at + width <= n)
			memcpy(p + at, &value, width);
	}
}

/* No file crashes, hangs or makes the reader take what it should not. */
TEST(mutated_files_do_no_harm)
{
	uint64_t state = 0x9e3779b97f4a7c15;
	struct buf good = BUF_NULL;
	char *bad;

	write_small(&good);
	bad = malloc(good.n);
	for (int i = 0; i < 6000; i++) {
		_cleanup_(closep) int fd = -1;
		size_t n = i % 3 ? good.n : random_next(&state) % good.n;

		memcpy(bad, good.p, good.n);
		mutate(bad, good.n, &state);
		fd = elf_memfd(bad, n);
		use_file(fd);
	}
	free(bad);
	buf_free(&good);
}

static int use_file_of(void *context)
{
	return use_file(*(int *)context);
}

TEST(survives_out_of_memory)
{
	struct buf good = BUF_NULL;
	int fd;

	write_small(&good);
	fd = elf_memfd(good.p, good.n);
	buf_free(&good);
	test_each_failing_allocation(use_file_of, &fd);
	close(fd);
}

static const char kernel_list[] = "ffffffff81000000 T _stext\n"
				  "ffffffff81000000 T _text\n"
				  "ffffffff810000f0 t __pfx_local_one\n"
				  "ffffffff81000100 t local_one\n"
				  "ffffffff81000200 W weak_two\n"
				  "ffffffff81001000 R __start_rodata\n"
				  "ffffffff81001100 D jiffies\n"
				  "ffffffffc0002000 t nf_late\t[nf_tables]\n"
				  "ffffffffc0001000 t nf_first\t[nf_tables]\n"
				  "ffffffffc0005000 d nf_data\t[nf_tables]\n"
				  "ffffffffc0003000 t ext4_read\t[ext4]\n"
				  "ffffffffc0900000 t bpf_prog_1_x\t[bpf]\n";

static int load_list(struct kallsyms *k, const char *text, size_t n, struct error *err)
{
	_cleanup_(closep) int fd = elf_memfd(text, n);

	lseek(fd, 0, SEEK_SET);
	return kallsyms_load(k, fd, err);
}

static void kernel_is(const struct kallsyms *k, uint64_t address, const char *name,
		      const char *module)
{
	struct str found = STR(""), in = STR("");

	kallsyms_find(k, address, &found, &in);
	expect_str(found, name);
	expect_str(in, module);
}

/* A kernel name ends at the next symbol of its module; code ends at data, and nothing reaches into
 * another module. */
TEST(kernel_names_end_with_their_module)
{
	struct kallsyms k = KALLSYMS_NULL;

	expect_eq(load_list(&k, kernel_list, sizeof(kernel_list) - 1, NULL), 0);
	kernel_is(&k, 0xffffffff80ffffff, "", "");
	kernel_is(&k, 0xffffffff81000080, "_text", "");
	kernel_is(&k, 0xffffffff810000ef, "_text", "");
	kernel_is(&k, 0xffffffff810000f0, "", "");
	kernel_is(&k, 0xffffffff810001ff, "local_one", "");
	kernel_is(&k, 0xffffffff81000fff, "weak_two", "");
	kernel_is(&k, 0xffffffff81001000, "", "");
	kernel_is(&k, 0xffffffff81001100, "", "");
	kernel_is(&k, 0xffffffffc0001fff, "nf_first", "nf_tables");
	kernel_is(&k, 0xffffffffc0002fff, "nf_late", "nf_tables");
	kernel_is(&k, 0xffffffffc0003000, "ext4_read", "ext4");
	kernel_is(&k, 0xffffffffc0004fff, "ext4_read", "ext4");
	kernel_is(&k, 0xffffffffc0005000, "", "");
	kernel_is(&k, 0xffffffffc090ffff, "bpf_prog_1_x", "bpf");
	kernel_is(&k, 0xffffffffc0910000, "", "");
	kallsyms_free(&k);
}

/* Hidden addresses are told apart from a list that is no list. */
TEST(hidden_kernel_addresses_are_said)
{
	static const char hidden[] = "0000000000000000 T _stext\n0000000000000000 t one\n";
	struct kallsyms k = KALLSYMS_NULL;
	struct error err = ERROR_NULL;

	expect_eq(load_list(&k, hidden, sizeof(hidden) - 1, &err), -EACCES);
	expect(str_search(str_of(err.text), STR("kptr_restrict")) < strlen(err.text));
	expect_eq(load_list(&k, "", 0, &err), -EINVAL);
	expect_eq(load_list(&k, "nonsense\n", 9, &err), -EINVAL);
	expect_eq(load_list(&k, kernel_list, 30, &err), -EINVAL);
}

static int load_kernel_list(void *context)
{
	struct kallsyms k = KALLSYMS_NULL;
	int r = load_list(&k, kernel_list, sizeof(kernel_list) - 1, NULL);

	kallsyms_free(&k);
	return r;
}

TEST(kernel_list_survives_out_of_memory)
{
	test_each_failing_allocation(load_kernel_list, NULL);
}

TEST(mutated_kernel_lists_do_no_harm)
{
	static char bad[sizeof(kernel_list) - 1];
	uint64_t state = 0x2545f4914f6cdd1d;

	for (int i = 0; i < 4000; i++) {
		struct kallsyms k = KALLSYMS_NULL;
		struct str name, module;

		memcpy(bad, kernel_list, sizeof(bad));
		mutate(bad, sizeof(bad), &state);
		if (load_list(&k, bad, sizeof(bad), NULL) < 0)
			continue;
		for (uint64_t a = 0; a < 64; a++)
			kallsyms_find(&k, 0xffffffff81000000 + a * 0x80, &name, &module);
		kallsyms_free(&k);
	}
}

static void add_lines(struct buf *out, size_t n, uint64_t from, const char *name)
{
	for (size_t i = 0; i < n; i++)
		expect_eq(buf_printf(out, "%016llx t %s_%zu\n", (unsigned long long)(from + i * 64),
				     name, i),
			  0);
}

/* Pieces of the list end anywhere in a line; the table of a usual kernel stays within 4 MB. */
TEST(sixty_thousand_kernel_symbols_in_4_mb)
{
	struct kallsyms k = KALLSYMS_NULL;
	struct buf text = BUF_NULL;
	struct str name, module;

	add_lines(&text, 60000, 0xffffffff81000000, "some_kernel_function_nm");
	expect_eq(load_list(&k, text.p, text.n, NULL), 0);
	expect_eq(k.symbols.n, 60000);
	expect(kallsyms_bytes(&k) < 4000000);
	for (uint64_t i = 0; i < 60000; i++) {
		expect(kallsyms_find(&k, 0xffffffff81000000 + i * 64 + 63, &name, &module));
		expect(str_starts(name, STR("some_kernel_function_nm_")));
	}
	kallsyms_free(&k);
	buf_free(&text);
}
