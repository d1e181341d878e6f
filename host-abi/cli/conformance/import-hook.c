/* SPDX-License-Identifier: Apache-2.0 */
/* See import-hook.h. Source of the tables: gABI chapter 5, "Relocation"; glibc has made the
 * addresses in the dynamic section absolute when dlopen returns. The pages are read-only by then
 * (RELRO), and are so again afterwards. */
#include "cli/conformance/import-hook.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT  R_X86_64_GLOB_DAT
#define ABSOLUTE  R_X86_64_64
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT  R_AARCH64_GLOB_DAT
#define ABSOLUTE  R_AARCH64_ABS64
#endif

static atomic_long allocations_left = -1; /* -1: none fails */
static atomic_bool has_failed;

static bool allocation_fails(void)
{
	if (atomic_load(&allocations_left) < 0 || atomic_fetch_sub(&allocations_left, 1) != 0)
		return false;
	atomic_store(&has_failed, true);
	errno = ENOMEM;
	return true;
}

void import_hook_fail(long n)
{
	atomic_store(&has_failed, false);
	atomic_store(&allocations_left, n);
}

bool import_hook_failed(void)
{
	return atomic_load(&has_failed);
}

static void *failing_malloc(size_t n)
{
	return allocation_fails() ? NULL : malloc(n);
}

static void *failing_calloc(size_t count, size_t n)
{
	return allocation_fails() ? NULL : calloc(count, n);
}

static void *failing_realloc(void *p, size_t n)
{
	return allocation_fails() ? NULL : realloc(p, n);
}

static void *failing_reallocarray(void *p, size_t count, size_t n)
{
	return allocation_fails() ? NULL : reallocarray(p, count, n);
}

static void *failing_aligned_alloc(size_t alignment, size_t n)
{
	return allocation_fails() ? NULL : aligned_alloc(alignment, n);
}

static int failing_posix_memalign(void **ret, size_t alignment, size_t n)
{
	return allocation_fails() ? ENOMEM : posix_memalign(ret, alignment, n);
}

static char *failing_strdup(const char *text)
{
	return allocation_fails() ? NULL : strdup(text);
}

static char *failing_strndup(const char *text, size_t n)
{
	return allocation_fails() ? NULL : strndup(text, n);
}

static const struct {
	const char *name;
	uintptr_t function;
} hooks[] = {
	{"malloc", (uintptr_t)failing_malloc},
	{"calloc", (uintptr_t)failing_calloc},
	{"realloc", (uintptr_t)failing_realloc},
	{"reallocarray", (uintptr_t)failing_reallocarray},
	{"aligned_alloc", (uintptr_t)failing_aligned_alloc},
	{"posix_memalign", (uintptr_t)failing_posix_memalign},
	{"strdup", (uintptr_t)failing_strdup},
	{"strndup", (uintptr_t)failing_strndup},
};

static uintptr_t hook_of(const char *name)
{
	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
		if (strcmp(name, hooks[i].name) == 0)
			return hooks[i].function;
	return 0;
}

static uintptr_t entry(const struct link_map *map, int64_t tag)
{
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_ptr;
	return 0;
}

struct place {
	uintptr_t base, at;
	bool relro;
};

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct place *place = context;

	for (size_t i = 0; info->dlpi_addr == place->base && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		place->relro |= p->p_type == PT_GNU_RELRO &&
				place->at >= place->base + p->p_vaddr &&
				place->at < place->base + p->p_vaddr + p->p_memsz;
	}
	return 0;
}

/* What the loader has made read-only is so again; the rest is the plugin's to write. */
static int put(uintptr_t base, uintptr_t at, uintptr_t value)
{
	uintptr_t size = (uintptr_t)getpagesize();
	void *page = (void *)(at & ~(size - 1));
	struct place place = {.base = base, .at = at};

	dl_iterate_phdr(look, &place);
	if (mprotect(page, size, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	memcpy((void *)at, &value, sizeof(value));
	return place.relro && mprotect(page, size, PROT_READ) < 0 ? -errno : 0;
}

/* One table of relocations: how many of its imports were led elsewhere. */
static int install_table(const struct link_map *map, int64_t at_tag, int64_t size_tag)
{
	const ElfW(Rela) *table = (const ElfW(Rela) *)entry(map, at_tag);
	const ElfW(Sym) *symbols = (const ElfW(Sym) *)entry(map, DT_SYMTAB);
	const char *strings = (const char *)entry(map, DT_STRTAB);
	size_t n = entry(map, size_tag) / sizeof(*table);
	int n_hooked = 0;

	for (size_t i = 0; table && symbols && strings && i < n; i++) {
		uint32_t type = (uint32_t)ELF64_R_TYPE(table[i].r_info);
		const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(table[i].r_info)];
		uintptr_t hook;
		int r;

		if (type != JUMP_SLOT && type != GLOB_DAT && type != ABSOLUTE)
			continue;
		hook = hook_of(strings + symbol->st_name);
		r = hook ? put(map->l_addr, map->l_addr + table[i].r_offset, hook) : 0;
		if (r < 0)
			return r;
		n_hooked += hook != 0;
	}
	return n_hooked;
}

int import_hook_install(void *library)
{
	struct link_map *map;
	int n, more;

	if (dlinfo(library, RTLD_DI_LINKMAP, &map) < 0)
		return -EINVAL;
	n = install_table(map, DT_RELA, DT_RELASZ);
	more = n < 0 ? 0 : install_table(map, DT_JMPREL, DT_PLTRELSZ);
	return more < 0 ? more : n + more;
}
