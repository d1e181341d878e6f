/* SPDX-License-Identifier: Apache-2.0 */
/* See outline.h. A note section would be simpler to read, but only plugins built with newer headers
 * would have it, and what it said could differ from what the tables say. */
#include "host/registry/outline.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "host/registry/elf-check.h"
#include "host/registry/plugin-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define RELATIVE R_X86_64_RELATIVE
#elif defined(__aarch64__)
#define RELATIVE R_AARCH64_RELATIVE
#endif

#define MAX_COMPONENTS  64u
#define MAX_LIST        64u
#define MAX_RELOCATIONS ((uint64_t)1 << 20)
#define MAX_CHAIN       4096u
#define NAME_BYTES      256u

/* No member before `subprocess` is absent from any component (describe-check.c). */
#define OLDEST_COMPONENT offsetof(struct andiron_component, subprocess)
#define OLDEST_PLUGIN    (offsetof(struct andiron_plugin, n_components) + sizeof(uint64_t))

struct reader {
	struct plugin_file file;
	struct arena *arena;
	Elf64_Dyn dynamic[PLUGIN_FILE_DYNAMIC];
	int n_dynamic;
	Elf64_Rela *relocations; /* by address */
	size_t n_relocations;
	int error; /* the first; later reads do nothing and give 0 */
};

static void reader_fini(struct reader *r)
{
	free(r->relocations);
	closep(&r->file.fd);
}

static void fail(struct reader *r, int code)
{
	if (r->error == 0)
		r->error = code;
}

/* --- Bytes, pointers, texts --- */

/* At most n bytes at an address of the loaded plugin, at least `least`; what is beyond is 0. */
static void read_at(struct reader *r, uint64_t address, void *ret, size_t n, size_t least)
{
	uint64_t offset;

	memset(ret, 0, n);
	while (n > least && !plugin_file_offset(&r->file, address, n, &offset))
		n--;
	if (r->error == 0 && (!plugin_file_offset(&r->file, address, n, &offset) ||
			      plugin_file_read(&r->file, ret, n, offset, "its data", NULL) < 0))
		fail(r, -ENOEXEC);
	if (r->error)
		memset(ret, 0, n);
}

static int compare_addresses(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;

	return x->r_offset < y->r_offset ? -1 : x->r_offset > y->r_offset;
}

/* What the pointer at `address` will hold; `bytes` is what the file has there. */
static uint64_t relocated(struct reader *r, uint64_t address, uint64_t bytes)
{
	const Elf64_Rela key = {.r_offset = address};
	const Elf64_Rela *found = r->n_relocations ? bsearch(&key, r->relocations, r->n_relocations,
							     sizeof(key), compare_addresses)
						   : NULL;

	if (!found)
		return bytes; /* NULL, or a packed relocation, whose addend is here */
	if (ELF64_R_TYPE(found->r_info) != RELATIVE)
		fail(r, -ENOEXEC);
	return (uint64_t)found->r_addend;
}

static uint64_t read_pointer(struct reader *r, uint64_t address)
{
	uint64_t bytes;

	read_at(r, address, &bytes, sizeof(bytes), sizeof(bytes));
	return relocated(r, address, bytes);
}

static const char *read_text(struct reader *r, uint64_t address)
{
	char text[NAME_BYTES];
	struct str copy = STR_NULL;

	read_at(r, address, text, sizeof(text), 1);
	if (r->error == 0 && !memchr(text, '\0', sizeof(text)))
		fail(r, -ENOEXEC);
	if (r->error == 0) {
		copy = arena_str(r->arena, str_of(text));
		if (!copy.p)
			fail(r, -ENOMEM);
	}
	return r->error ? "" : copy.p;
}

/* A list of texts that ends with NULL; address 0: none. */
static const char *const *read_list(struct reader *r, uint64_t address)
{
	const char **list = address ? arena_array(r->arena, const char *, MAX_LIST + 1)
				    : (const char **)NULL;
	uint64_t text;
	size_t n = 0;

	if (!list) {
		if (address)
			fail(r, -ENOMEM);
		return NULL;
	}
	while (r->error == 0 && (text = read_pointer(r, address + n * sizeof(text)))) {
		if (n == MAX_LIST) {
			fail(r, -ENOEXEC);
			break;
		}
		list[n++] = read_text(r, text);
	}
	return list;
}

/* --- The file's tables --- */

static uint64_t entry(const struct reader *r, int64_t tag)
{
	for (int i = 0; i < r->n_dynamic; i++)
		if (r->dynamic[i].d_tag == tag)
			return r->dynamic[i].d_un.d_val;
	return 0;
}

static void read_relocations(struct reader *r)
{
	uint64_t address = entry(r, DT_RELA), n = entry(r, DT_RELASZ) / sizeof(*r->relocations);

	if (r->error || n == 0)
		return;
	if (n > MAX_RELOCATIONS) {
		fail(r, -ENOEXEC);
		return;
	}
	r->relocations = calloc(n, sizeof(*r->relocations));
	if (!r->relocations) {
		fail(r, -ENOMEM);
		return;
	}
	r->n_relocations = n;
	read_at(r, address, r->relocations, n * sizeof(*r->relocations),
		n * sizeof(*r->relocations));
	qsort(r->relocations, n, sizeof(*r->relocations), compare_addresses);
}

static uint32_t read_word(struct reader *r, uint64_t address)
{
	uint32_t word;

	read_at(r, address, &word, sizeof(word), sizeof(word));
	return word;
}

static bool is_entry(struct reader *r, uint32_t index, uint64_t *ret_address)
{
	char name[sizeof(ANDIRON_PLUGIN_SYMBOL)];
	Elf64_Sym symbol;

	read_at(r, entry(r, DT_SYMTAB) + index * sizeof(symbol), &symbol, sizeof(symbol),
		sizeof(symbol));
	read_at(r, entry(r, DT_STRTAB) + symbol.st_name, name, sizeof(name), 1);
	*ret_address = symbol.st_value;
	return r->error == 0 && memcmp(name, ANDIRON_PLUGIN_SYMBOL, sizeof(name)) == 0;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* By GNU's hash table: words {buckets, first symbol, words of 64 bits, shift}, these words, the
 * buckets, and a hash for each symbol from the first on, whose lowest bit ends a chain. */
static uint64_t find_plugin(struct reader *r)
{
	uint64_t table = entry(r, DT_GNU_HASH), buckets, address = 0;
	uint32_t n = table ? read_word(r, table) : 0, first = read_word(r, table + 4);
	uint32_t at, i;

	if (n == 0 || r->error) {
		fail(r, -ENOEXEC);
		return 0;
	}
	buckets = table + 16 + (uint64_t)read_word(r, table + 8) * 8;
	at = read_word(r, buckets + gnu_hash(ANDIRON_PLUGIN_SYMBOL) % n * 4ull);
	for (i = 0; at >= first && i < MAX_CHAIN && r->error == 0; i++, at++) {
		if (is_entry(r, at, &address))
			return address;
		if (read_word(r, buckets + ((uint64_t)n + (at - first)) * 4) & 1)
			break;
	}
	fail(r, -ENOEXEC);
	return 0;
}

/* --- The plugin's tables --- */

#define AT(type, member) (address + offsetof(struct type, member))

static void read_component(struct reader *r, uint64_t address, struct andiron_component *ret)
{
	uint32_t size = read_word(r, address);

	*ret = (struct andiron_component){.size = sizeof(*ret)};
	if (size < OLDEST_COMPONENT)
		fail(r, -ENOEXEC);
	ret->flags = read_word(r, AT(andiron_component, flags));
	ret->name = read_text(r, read_pointer(r, AT(andiron_component, name)));
	ret->needs = read_list(r, read_pointer(r, AT(andiron_component, needs)));
	ret->offers = read_list(r, read_pointer(r, AT(andiron_component, offers)));
	if (size >= offsetof(struct andiron_component, wants) + sizeof(ret->wants))
		ret->wants = read_list(r, read_pointer(r, AT(andiron_component, wants)));
}

static const struct andiron_component *const *read_components(struct reader *r, uint64_t address,
							      uint64_t n)
{
	const struct andiron_component **list =
		arena_array(r->arena, const struct andiron_component *, MAX_COMPONENTS);

	if (!list)
		fail(r, -ENOMEM);
	for (uint64_t i = 0; list && i < n && r->error == 0; i++) {
		struct andiron_component *c = arena_alloc(r->arena, sizeof(*c));

		if (!c) {
			fail(r, -ENOMEM);
			break;
		}
		read_component(r, read_pointer(r, address + i * sizeof(uint64_t)), c);
		list[i] = c;
	}
	return list;
}

static void read_plugin(struct reader *r, struct andiron_plugin *ret)
{
	uint64_t address = find_plugin(r), n;

	*ret = (struct andiron_plugin){.size = sizeof(*ret)};
	if (read_word(r, address) < OLDEST_PLUGIN)
		fail(r, -ENOEXEC);
	read_at(r, AT(andiron_plugin, n_components), &n, sizeof(n), sizeof(n));
	if (n == 0 || n > MAX_COMPONENTS)
		fail(r, -ENOEXEC);
	ret->name = read_text(r, read_pointer(r, AT(andiron_plugin, name)));
	ret->needs = read_list(r, read_pointer(r, AT(andiron_plugin, needs)));
	ret->n_components = n;
	ret->components = read_components(r, read_pointer(r, AT(andiron_plugin, components)), n);
}

int outline_read(const char *path, struct arena *arena, const struct andiron_plugin **ret)
{
	_cleanup_(reader_fini) struct reader r = {.arena = arena};
	struct andiron_plugin *plugin = arena_alloc(arena, sizeof(*plugin));
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	r.file.fd = fd;
	if (!plugin)
		return -ENOMEM;
	if (fd < 0 || elf_check(fd, &r.file, NULL) < 0)
		return -ENOEXEC;
	r.n_dynamic = plugin_file_dynamic(&r.file, r.dynamic, NULL);
	if (r.n_dynamic < 0)
		return -ENOEXEC;
	read_relocations(&r);
	read_plugin(&r, plugin);
	if (r.error)
		return r.error;
	*ret = plugin;
	return 0;
}
