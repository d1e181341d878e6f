/* SPDX-License-Identifier: Apache-2.0 */
/* What the bytes of a plugin's file say: nothing of it is loaded here. The rules are those of
 * abi.h: no code runs when a plugin is loaded, it captures no names of the program, and a program
 * in any language can open it at any time.
 *
 * Every C compiler's own start files (crti.o, crtbeginS.o) put DT_INIT and one entry of INIT_ARRAY
 * into a library. They call nothing in a library that registers nothing, so they are let pass: by
 * what they are, and not by their number alone, since a file that was linked without start files
 * has room for one constructor of its own. */
#include "cli/conformance/check.h"

#include "base/cleanup.h"
#include "elf/file.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TABLE ((size_t)64 << 20)
/* crti.o's and crtn.o's parts of _init are 23 to 27 bytes. */
#define MAX_INIT_BYTES 48u
#define MAX_CODE       12u

struct plugin_elf {
	int fd;
	struct elf_file elf;
	Elf64_Dyn dynamic[ELF_DYNAMIC_MAX];
	int n_dynamic;
	struct buf strings; /* DT_STRTAB */
	struct buf symbols; /* .dynsym */
};

static void plugin_elf_fini(struct plugin_elf *p)
{
	buf_free(&p->strings);
	buf_free(&p->symbols);
	if (p->fd >= 0)
		elf_file_close(&p->elf);
	closep(&p->fd);
}

static bool entry(const struct plugin_elf *p, int64_t tag, uint64_t *ret)
{
	for (int i = 0; i < p->n_dynamic; i++)
		if (p->dynamic[i].d_tag == tag) {
			*ret = p->dynamic[i].d_un.d_val;
			return true;
		}
	return false;
}

static uint64_t entry_or_0(const struct plugin_elf *p, int64_t tag)
{
	uint64_t value = 0;

	entry(p, tag, &value);
	return value;
}

static int read_section(struct plugin_elf *p, const char *name, struct buf *ret)
{
	const Elf64_Shdr *section = elf_file_section(&p->elf, name);

	return section ? elf_file_read_section(&p->elf, section, MAX_TABLE, ret) : -ENOENT;
}

/* False where it cannot be read, and then the trial is over: it is loading that fails. */
static bool examine(struct trial *t, struct plugin_elf *p)
{
	struct error err = ERROR_NULL;
	int r;

	trial_doing(t, "read the file");
	p->fd = open(t->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (p->fd < 0) {
		trial_skip(t, "a file that can be opened: %s", strerror(errno));
		return false;
	}
	r = elf_file_open(&p->elf, p->fd, &err);
	if (r == 0)
		r = elf_file_load_sections(&p->elf, &err);
	if (r < 0) {
		trial_skip(t, "a file that can be read: %s", *err.text ? err.text : strerror(-r));
		return false;
	}
	p->n_dynamic = elf_file_dynamic(&p->elf, p->dynamic);
	if (p->elf.type != ET_DYN || p->n_dynamic <= 0) {
		trial_skip(t, "a shared object");
		return false;
	}
	if (read_section(p, ".dynstr", &p->strings) < 0 ||
	    read_section(p, ".dynsym", &p->symbols) < 0 || buf_putc(&p->strings, '\0') < 0) {
		trial_fail(t, "it has no section headers for its dynamic symbols, so nobody can "
			      "say what it exports");
		return false;
	}
	return true;
}

static const char *text_at(const struct plugin_elf *p, uint64_t at)
{
	return at < p->strings.n ? p->strings.p + at : "";
}

/* --- Symbols and libraries --- */

static void check_symbols(struct trial *t)
{
	_cleanup_(plugin_elf_fini) struct plugin_elf p = {.fd = -1};
	bool has_entry = false;

	if (!examine(t, &p))
		return;
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= p.symbols.n; at += sizeof(Elf64_Sym)) {
		Elf64_Sym s;
		const char *name;

		memcpy(&s, p.symbols.p + at, sizeof(s));
		name = text_at(&p, s.st_name);
		if (s.st_shndx == SHN_UNDEF || ELF64_ST_BIND(s.st_info) == STB_LOCAL || !*name)
			continue;
		if (strcmp(name, ANDIRON_PLUGIN_SYMBOL) == 0)
			has_entry = true;
		else
			trial_fail(t, "it exports %.200s besides " ANDIRON_PLUGIN_SYMBOL, name);
	}
	if (!has_entry)
		trial_fail(t, "it does not export " ANDIRON_PLUGIN_SYMBOL);
}

/* Of the C library, and what the plugins of andiron are made with. */
static const char *const known_libraries[] = {
	"libc.so.*",
	"libm.so.*",
	"libdl.so.*",
	"libpthread.so.*",
	"librt.so.*",
	"libresolv.so.*",
	"ld-linux-*.so.*",
	"libelf.so.*",
	"liblzma.so.*",
	"libz.so.*",
	"libzstd.so.*",
	"libbpf.so.*",
	"libcurl.so.*",
	"libgnutls.so.*",
	"libjansson.so.*",
	"libmicrohttpd.so.*",
	"libnghttp2.so.*",
	"libprotobuf-c.so.*",
	"libyaml-0.so.*",
	"libgcc_s.so.*",
	NULL,
};

static bool is_allowed(const struct trial *t, const char *library)
{
	for (const char *const *known = known_libraries; *known; known++)
		if (fnmatch(*known, library, 0) == 0)
			return true;
	for (size_t i = 0; i < t->options->libraries.n; i++)
		if (fnmatch(t->options->libraries.p[i], library, 0) == 0)
			return true;
	return false;
}

static void check_libraries(struct trial *t)
{
	_cleanup_(plugin_elf_fini) struct plugin_elf p = {.fd = -1};

	if (!examine(t, &p))
		return;
	for (int i = 0; i < p.n_dynamic; i++) {
		const char *library = text_at(&p, p.dynamic[i].d_un.d_val);

		if (p.dynamic[i].d_tag == DT_NEEDED && !is_allowed(t, library))
			trial_fail(t, "it needs the library %.200s", library);
	}
}

/* --- Code that runs when it is loaded --- */

static bool is_jump(const unsigned char *code, size_t n)
{
#if defined(__x86_64__)
	static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = n > sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0
			    ? sizeof(endbr64)
			    : 0;

	return at < n && (code[at] == 0xe9 || code[at] == 0xeb);
#elif defined(__aarch64__)
	for (size_t at = 0; at + 4 <= n; at += 4) {
		uint32_t word;

		memcpy(&word, code + at, sizeof(word));
		if ((word & 0xfc000000u) == 0x14000000u)
			return true;
		if ((word & 0xfffff01fu) != 0xd503201fu) /* a hint: bti, nop */
			return false;
	}
	return false;
#endif
}

/* crtbeginS.o's frame_dummy does nothing but jump to a function beside it that registers
 * transactional memory, of which there is none. */
static bool is_start_file(const struct plugin_elf *p, uint64_t address)
{
	unsigned char code[MAX_CODE];
	int n = elf_file_read_code(&p->elf, address, code, sizeof(code));

	return n > 0 && is_jump(code, (size_t)n);
}

#if defined(__x86_64__)
#define RELATIVE  R_X86_64_RELATIVE
#define IRELATIVE R_X86_64_IRELATIVE
#define TPOFF     R_X86_64_TPOFF64
#elif defined(__aarch64__)
#define RELATIVE  R_AARCH64_RELATIVE
#define IRELATIVE R_AARCH64_IRELATIVE
#define TPOFF     R_AARCH64_TLS_TPREL
#endif

/* The first relocation of a type, at an address if that is not 0; its addend. */
static bool find_relocation(const struct plugin_elf *p, uint32_t type, uint64_t address,
			    uint64_t *ret_addend)
{
	static const int64_t tables[][2] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};

	for (size_t i = 0; i < 2; i++) {
		uint64_t at = entry_or_0(p, tables[i][0]), size = entry_or_0(p, tables[i][1]);

		for (uint64_t n = 0; n + sizeof(Elf64_Rela) <= size; n += sizeof(Elf64_Rela)) {
			Elf64_Rela r;

			if (elf_file_read_code(&p->elf, at + n, &r, sizeof(r)) != sizeof(r))
				break;
			if (ELF64_R_TYPE(r.r_info) != type || (address && r.r_offset != address))
				continue;
			*ret_addend = (uint64_t)r.r_addend;
			return true;
		}
	}
	return false;
}

static void check_init_array(struct trial *t, const struct plugin_elf *p)
{
	uint64_t at = entry_or_0(p, DT_INIT_ARRAY), n = entry_or_0(p, DT_INIT_ARRAYSZ) / 8;
	uint64_t function = 0;

	if (n > 1)
		trial_fail(t, "it has %llu initializers, one of which is the compiler's own",
			   (unsigned long long)n);
	else if (n == 1 && !find_relocation(p, RELATIVE, at, &function))
		elf_file_read_code(&p->elf, at, &function, sizeof(function));
	if (n == 1 && !is_start_file(p, function))
		trial_fail(t, "its initializer at 0x%llx is not the compiler's own",
			   (unsigned long long)function);
}

static void check_constructors(struct trial *t)
{
	_cleanup_(plugin_elf_fini) struct plugin_elf p = {.fd = -1};
	const Elf64_Shdr *init;
	uint64_t function;

	if (!examine(t, &p))
		return;
	init = elf_file_section(&p.elf, ".init");
	if (entry(&p, DT_INIT, &function) &&
	    (!init || init->sh_addr != function || init->sh_size > MAX_INIT_BYTES))
		trial_fail(t, "its DT_INIT (0x%llx) is not the compiler's own _init",
			   (unsigned long long)function);
	check_init_array(t, &p);
	if (find_relocation(&p, IRELATIVE, 0, &function))
		trial_fail(t,
			   "it has a function that is chosen when it is loaded (an indirect "
			   "function, at 0x%llx)",
			   (unsigned long long)function);
}

/* --- Memory --- */

static void check_tls(struct trial *t)
{
	_cleanup_(plugin_elf_fini) struct plugin_elf p = {.fd = -1};
	uint64_t addend;

	if (!examine(t, &p))
		return;
	if (entry_or_0(&p, DT_FLAGS) & DF_STATIC_TLS || find_relocation(&p, TPOFF, 0, &addend))
		trial_fail(t, "it wants thread-local memory of the static kind (DF_STATIC_TLS)");
}

static void check_text(struct trial *t)
{
	_cleanup_(plugin_elf_fini) struct plugin_elf p = {.fd = -1};
	uint64_t value;

	if (!examine(t, &p))
		return;
	if (entry(&p, DT_TEXTREL, &value) || entry_or_0(&p, DT_FLAGS) & DF_TEXTREL)
		trial_fail(t, "its code is changed when it is loaded (DT_TEXTREL)");
}

static void check_relro(struct trial *t)
{
	_cleanup_(plugin_elf_fini) struct plugin_elf p = {.fd = -1};
	uint64_t value;

	if (!examine(t, &p))
		return;
	if (!elf_file_segment(&p.elf, PT_GNU_RELRO))
		trial_fail(t, "its tables stay writable after it is loaded (no PT_GNU_RELRO)");
	if (!entry(&p, DT_BIND_NOW, &value) && !(entry_or_0(&p, DT_FLAGS) & DF_BIND_NOW) &&
	    !(entry_or_0(&p, DT_FLAGS_1) & DF_1_NOW))
		trial_fail(t, "it looks functions up when they are first called (no BIND_NOW)");
}

static void check_stack_segment(struct trial *t)
{
	_cleanup_(plugin_elf_fini) struct plugin_elf p = {.fd = -1};
	const Elf64_Phdr *stack;

	if (!examine(t, &p))
		return;
	stack = elf_file_segment(&p.elf, PT_GNU_STACK);
	if (!stack || stack->p_flags & PF_X)
		trial_fail(t, "it asks for stacks that can be executed (PT_GNU_STACK)");
}

const struct check file_checks[] = {
	{"one-symbol", "it exports " ANDIRON_PLUGIN_SYMBOL " and nothing else",
	 "another exported name may answer the calls of the program or of another plugin",
	 "compile with -fvisibility=hidden and link with -Wl,--exclude-libs,ALL, C++ with a "
	 "-Wl,--version-script as well; andiron/plugin.h exports the entry",
	 SUBJECT_FILE, check_symbols},
	{"libraries", "it needs no libraries but those that a host may have",
	 "a program that opens it gets every library that it needs, and whatever these start",
	 "leave the library out or link it statically; one that has to be is allowed with "
	 "--allow-library NAME",
	 SUBJECT_FILE, check_libraries},
	{"no-constructors", "no code of it runs when it is loaded",
	 "programs load plugins to look at them, in any thread and before they are set up",
	 "move what the constructor does into `create`", SUBJECT_FILE, check_constructors},
	{"no-static-tls", "it wants no static thread-local memory",
	 "a program that runs has little left of it, so loading fails by chance",
	 "have no thread-local variables, or compile with -fPIC and without -ftls-model",
	 SUBJECT_FILE, check_tls},
	{"no-text-relocations", "its code is not changed when it is loaded",
	 "such pages are not shared, and hardened systems refuse them",
	 "compile everything in it with -fPIC", SUBJECT_FILE, check_text},
	{"relro-now", "all names are bound when it is loaded, and its tables are constant then",
	 "a name that is missing would end the program later, in the middle of a call",
	 "link with -Wl,-z,relro,-z,now", SUBJECT_FILE, check_relro},
	{"stack-not-executable", "it asks for no executable stack",
	 "the loader would make all stacks of the program executable",
	 "link with -Wl,-z,noexecstack; an assembler file wants .section .note.GNU-stack",
	 SUBJECT_FILE, check_stack_segment},
	{0},
};
