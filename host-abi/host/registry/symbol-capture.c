/* SPDX-License-Identifier: Apache-2.0 */
/* See symbol-capture.h. Refused and not worked around: RTLD_DEEPBIND would give the plugin another
 * malloc than the strings it is handed come from, dlmopen a second C library. The question is put
 * to the loader itself (RTLD_DEFAULT), by name and without version: a program has its functions
 * without one, and such a function answers calls for any. */
#include "host/registry/symbol-capture.h"

#include "host/registry.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <gnu/lib-names.h>
#else
#define LIBC_SO "libc.so"
#define LIBM_SO "libm.so"
#endif

#define MAX_STRINGS ((uint64_t)16 << 20)
#define MAX_SYMBOLS ((uint64_t)1 << 20)
#define MAX_NEEDED  64

struct symbols {
	Elf64_Dyn dynamic[PLUGIN_FILE_DYNAMIC];
	int n_dynamic;
	char *strings;
	uint64_t n_strings;
	Elf64_Sym *table;
	uint64_t n;
	/* Libraries that are loaded already: the C library's, and those that the plugin needs. */
	void *c[2], *needed[MAX_NEEDED];
	int n_needed;
};

static void close_library(void *library)
{
	if (library)
		dlclose(library);
}

static void symbols_fini(struct symbols *s)
{
	for (int i = 0; i < s->n_needed; i++)
		close_library(s->needed[i]);
	close_library(s->c[0]);
	close_library(s->c[1]);
	free(s->strings);
	free(s->table);
}

static bool entry(const struct symbols *s, int64_t tag, uint64_t *ret)
{
	for (int i = 0; i < s->n_dynamic; i++)
		if (s->dynamic[i].d_tag == tag) {
			*ret = s->dynamic[i].d_un.d_val;
			return true;
		}
	return false;
}

/* Bytes at a virtual address, with a NUL behind them; to free. */
static int copy(const struct plugin_file *file, uint64_t address, uint64_t n, char **ret,
		struct error *err)
{
	uint64_t offset;
	char *bytes;
	int r;

	if (!plugin_file_offset(file, address, n, &offset))
		return plugin_file_half_written("its symbols lie outside of it", err);
	bytes = malloc(n + 1);
	if (!bytes)
		return error_set(err, -ENOMEM, "out of memory");
	r = plugin_file_read(file, bytes, n, offset, "its symbol table", err);
	if (r < 0) {
		free(bytes);
		return r;
	}
	bytes[n] = '\0';
	*ret = bytes;
	return 0;
}

/* How many symbols there are to look at. GNU's hash table holds none that is undefined: they all
 * stand before its first. The other table has all. */
static int count(const struct plugin_file *file, const struct symbols *s, uint64_t *ret,
		 struct error *err)
{
	uint64_t at, offset;
	uint32_t words[2];
	int r;

	if (!entry(s, DT_GNU_HASH, &at) && !entry(s, DT_HASH, &at))
		return plugin_file_half_written("its symbols have no hash table", err);
	if (!plugin_file_offset(file, at, sizeof(words), &offset))
		return plugin_file_half_written("its hash table lies outside of it", err);
	r = plugin_file_read(file, words, sizeof(words), offset, "its hash table", err);
	if (r == 0 && words[1] > MAX_SYMBOLS)
		r = plugin_file_half_written("its hash table makes no sense", err);
	if (r == 0)
		*ret = words[1];
	return r;
}

static int symbols_read(struct symbols *s, const struct plugin_file *file, struct error *err)
{
	uint64_t strings = 0, table = 0;
	char *bytes = NULL;
	int r = s->n_dynamic = plugin_file_dynamic(file, s->dynamic, err);

	if (r < 0)
		return r;
	if (!entry(s, DT_STRTAB, &strings) || !entry(s, DT_SYMTAB, &table) ||
	    !entry(s, DT_STRSZ, &s->n_strings) || s->n_strings > MAX_STRINGS)
		return plugin_file_half_written("its dynamic section is not whole", err);
	r = copy(file, strings, s->n_strings, &s->strings, err);
	if (r == 0)
		r = count(file, s, &s->n, err);
	if (r == 0)
		r = copy(file, table, s->n * sizeof(*s->table), &bytes, err);
	s->table = (Elf64_Sym *)(void *)bytes;
	return r;
}

static const char *text(const struct symbols *s, uint64_t at)
{
	return at < s->n_strings ? s->strings + at : "";
}

static void *loaded(const char *library)
{
	return *library ? dlopen(library, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

static void find_libraries(struct symbols *s)
{
	s->c[0] = loaded(LIBC_SO);
	s->c[1] = loaded(LIBM_SO);
	for (int i = 0; i < s->n_dynamic && s->n_needed < MAX_NEEDED; i++) {
		void *library = s->dynamic[i].d_tag == DT_NEEDED
					? loaded(text(s, s->dynamic[i].d_un.d_val))
					: NULL;

		if (library)
			s->needed[s->n_needed++] = library;
	}
}

static bool is_reserved(const char *name)
{
	return name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
}

static bool is_of_c_library(const struct symbols *s, const char *name)
{
	return (s->c[0] && dlsym(s->c[0], name)) || (s->c[1] && dlsym(s->c[1], name));
}

static bool is_needed(const struct symbols *s, const char *name, const void *address)
{
	for (int i = 0; i < s->n_needed; i++)
		if (dlsym(s->needed[i], name) == address)
			return true;
	return false;
}

/* Who in this process would answer a call of `name`; NULL: nobody but who should. A program that
 * has the address of a library's function may have a stub of that name, which is not defined. What
 * is behind an address is asked last: the loader looks through all symbols of a library for it. */
static const char *captor(const struct symbols *s, const char *name)
{
	void *address = is_of_c_library(s, name) ? NULL : dlsym(RTLD_DEFAULT, name);
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (!address || is_needed(s, name, address) ||
	    !dladdr1(address, &info, (void **)(uintptr_t)&symbol, RTLD_DL_SYMENT) ||
	    (symbol && symbol->st_shndx == SHN_UNDEF))
		return NULL;
	return info.dli_fname && *info.dli_fname ? info.dli_fname : "the program";
}

static int captured(const char *name, const char *who, struct error *err)
{
	return error_set(err, -ENOEXEC,
			 "%s has a function %s of its own, which would be called in place of the "
			 "library's that the plugin needs; link it so that it does not export that "
			 "name",
			 who, name);
}

/* zstd and protobuf-c only add to their interfaces, and what they hand out is opaque or tells its
 * own layout. So a program that says so may answer, if it has all the functions, but not one that
 * has some: two versions would share a structure. */
static const struct {
	const char *library, *prefix;
} lasting[] = {{"zstd", "ZSTD_"}, {"protobuf-c", "protobuf_c_"}};

#define N_LASTING (sizeof(lasting) / sizeof(lasting[0]))

/* A bit for each: the loader's names are the process's, and so is this. */
static atomic_uint allowed;

int registry_allow_answers(struct str libraries)
{
	unsigned int bits = 0;

	while (libraries.n) {
		struct str library = str_cut(&libraries, ' ');
		unsigned int bit = 0;

		for (size_t i = 0; i < N_LASTING; i++)
			bit |= str_is(library, lasting[i].library) ? 1u << i : 0;
		if (!bit)
			return -EINVAL;
		bits |= bit;
	}
	atomic_fetch_or(&allowed, bits);
	return 0;
}

/* Names of one lasting library: the first that somebody else would answer, and who. */
struct answers {
	const char *name, *who;
	bool own; /* there is one that nobody else would answer */
};

static struct answers *find_lasting(struct answers all[N_LASTING], const char *name)
{
	for (size_t i = 0; i < N_LASTING; i++)
		if (atomic_load(&allowed) & 1u << i &&
		    strncmp(name, lasting[i].prefix, strlen(lasting[i].prefix)) == 0)
			return &all[i];
	return NULL;
}

static int check_names(const struct symbols *s, struct error *err)
{
	struct answers all[N_LASTING] = {0};

	for (uint64_t i = 0; i < s->n; i++) {
		const char *name = text(s, s->table[i].st_name), *who;
		struct answers *of;

		if (s->table[i].st_shndx != SHN_UNDEF || !*name || is_reserved(name))
			continue;
		who = captor(s, name);
		of = find_lasting(all, name);
		if (who && !of)
			return captured(name, who, err);
		if (of && who && !of->who)
			*of = (struct answers){name, who, of->own};
		else if (of)
			of->own |= !who || strcmp(who, of->who) != 0;
	}
	for (size_t i = 0; i < N_LASTING; i++)
		if (all[i].who && all[i].own)
			return captured(all[i].name, all[i].who, err);
	return 0;
}

int symbol_capture_check(const struct plugin_file *file, struct error *err)
{
	_cleanup_(symbols_fini) struct symbols s = {.n = 0};
	int r = symbols_read(&s, file, err);

	if (r < 0)
		return r;
	find_libraries(&s);
	return check_names(&s, err);
}
