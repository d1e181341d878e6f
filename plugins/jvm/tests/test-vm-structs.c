/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a JVM in processes of one library: a small one, of an entry or two in each table.
 * The file has the names at addresses of its own; a process has its entries, relocated. */
#include "jvm/vm-structs.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAMES   0x400 /* addresses of the file */
#define WORDS   0x20000
#define ENTRIES 0x21000
#define BYTES   0x22000

/* Of each table the offsets of its members, and the stride. */
static const uint64_t shape[VM_SYMBOLS] = {0, 0, 8, 16, 24, 32, 40, 0, 0, 8, 16, 0, 0, 8, 16};

enum { CODE_HEAP, MEMORY, SEGMAP, CODE_CACHE, HEAP, NMETHOD, KIND, N_NAMES };
static const char *const names[N_NAMES] = {
	"CodeHeap", "_memory", "_segmap", "CodeCache", "_heap", "nmethod", "CodeBlobKind::Upcall"};

struct file {
	unsigned char bytes[BYTES];
	size_t n; /* of them that can be read */
	uint32_t n_reads;
	struct vm_places places;
};

struct process {
	uint64_t bias;
	unsigned char bytes[BYTES];
};

static uint64_t name_at(int name)
{
	return NAMES + 64 * (uint64_t)name;
}

static void name_put(unsigned char *bytes, int at, int name)
{
	memcpy(bytes + name_at(at), names[name], strlen(names[name]) + 1);
}

static void names_put(unsigned char *bytes)
{
	for (int i = 0; i < N_NAMES; i++)
		name_put(bytes, i, i);
}

static bool file_read(void *context, uint64_t address, void *ret, size_t n)
{
	struct file *f = context;

	f->n_reads++;
	if (address > f->n || n > f->n - address)
		return false;
	memcpy(ret, f->bytes + address, n);
	return true;
}

static struct file *file_new(void)
{
	struct file *f = calloc(1, sizeof(*f));

	expect(f);
	names_put(f->bytes);
	f->n = BYTES;
	f->places.key = 0x123456789abcdef;
	return f;
}

static void put(struct process *p, uint64_t at, uint64_t word)
{
	memcpy(p->bytes + at, &word, sizeof(word));
}

static void put_struct(struct process *p, uint64_t i, int type, int field, bool is_static,
		       uint64_t value)
{
	uint64_t at = ENTRIES + 40 * i;

	put(p, at, p->bias + name_at(type));
	put(p, at + 8, p->bias + name_at(field));
	put(p, at + 16, is_static);
	put(p, at + (is_static ? 32 : 24), value);
}

/* Its tables, without the names. */
static struct process *process_new(uint64_t bias)
{
	struct process *p = calloc(1, sizeof(*p));

	expect(p);
	p->bias = bias;
	for (uint64_t i = 0; i < VM_SYMBOLS; i++)
		put(p, WORDS + 8 * i, shape[i]);
	put(p, WORDS, bias + ENTRIES);
	put(p, WORDS + 56, bias + ENTRIES + 0x400);
	put(p, WORDS + 88, bias + ENTRIES + 0x800);
	put_struct(p, 0, CODE_HEAP, MEMORY, false, 8);
	put_struct(p, 1, CODE_HEAP, SEGMAP, false, 16);
	put_struct(p, 2, CODE_CACHE, HEAP, true, bias + 0x77);
	put(p, ENTRIES + 0x400, bias + name_at(NMETHOD));
	put(p, ENTRIES + 0x408, 200);
	put(p, ENTRIES + 0x800, bias + name_at(KIND));
	put(p, ENTRIES + 0x808, 5);
	return p;
}

/* What the tables of the process say; it is freed. */
static struct vm_structs values_of(struct process *p, struct file *f, int expected)
{
	struct target_reader *r = target_reader_new(false);
	struct vm_library library = {f ? &f->places : NULL, p->bias, file_read, f};
	uint64_t addresses[VM_SYMBOLS];
	int fd = memfd_create("process", MFD_CLOEXEC);
	struct target_memory *m;
	struct vm_structs vm;

	expect_eq(pwrite(fd, p->bytes, BYTES, (off_t)p->bias), BYTES);
	expect_eq(target_memory_of(r, fd, &m), 0);
	for (uint64_t i = 0; i < VM_SYMBOLS; i++)
		addresses[i] = p->bias + WORDS + 8 * i;
	expect_eq(vm_structs_read(m, addresses, f ? &library : NULL, &vm), expected);
	target_memory_close(m);
	target_reader_free(r);
	free(p);
	return vm;
}

static void expect_own(const struct vm_structs *vm, uint64_t bias)
{
	expect_eq(vm->values[VM_HEAP_MEMORY], 8);
	expect_eq(vm->values[VM_HEAP_SEGMAP], 16);
	expect_eq(vm->values[VM_CACHE_HEAP], bias + 0x77);
	expect_eq(vm->values[VM_SIZEOF_NMETHOD], 200);
	expect_eq(vm->values[VM_KIND_UPCALL], 5);
	expect_eq(vm->values[VM_CACHE_HEAPS], VM_ABSENT);
	expect_eq(vm->values[VM_SIZEOF_BLOB], VM_ABSENT);
}

/* The second process of a library costs no name, wherever it is loaded. */
TEST(names_are_read_once_from_the_file)
{
	struct file *f = file_new();
	struct vm_structs vm = values_of(process_new(0x10000000), f, 0);
	uint32_t n_reads = f->n_reads;

	expect_own(&vm, 0x10000000);
	expect(n_reads > 0);
	vm = values_of(process_new(0x7f0000000000), f, 0);
	expect_own(&vm, 0x7f0000000000);
	expect_eq(f->n_reads, n_reads);
	free(f);
}

/* Where there is no file, or it holds less than its process points to, the process is asked. */
TEST(names_come_from_the_process_where_the_file_has_none)
{
	struct file *f = file_new();
	struct process *p = process_new(0x10000000);
	struct vm_structs vm;

	names_put(p->bytes);
	vm = values_of(p, NULL, 0);
	expect_own(&vm, 0x10000000);
	p = process_new(0x10000000);
	names_put(p->bytes);
	f->n = NAMES + 1;
	vm = values_of(p, f, 0);
	expect_own(&vm, 0x10000000);
	expect_eq(f->places.hashes[0], 0);
	free(f);
}

/* A process that writes over its names, or hides and swaps entries, misleads nobody else. */
TEST(forged_tables_are_ones_own)
{
	struct file *f = file_new();
	struct process *p = process_new(0x10000000);
	struct vm_structs vm;

	names_put(p->bytes);
	name_put(p->bytes, MEMORY, SEGMAP);
	name_put(p->bytes, SEGMAP, MEMORY);
	values_of(p, f, 0);
	vm = values_of(process_new(0x20000000), f, 0);
	expect_own(&vm, 0x20000000);
	p = process_new(0x10000000);
	put_struct(p, 0, CODE_HEAP, SEGMAP, false, 1);
	put_struct(p, 1, CODE_HEAP, SEGMAP, false, 2);
	vm = values_of(p, f, 0);
	expect_eq(vm.values[VM_HEAP_MEMORY], VM_ABSENT);
	expect_eq(vm.values[VM_HEAP_SEGMAP], 2);
	vm = values_of(process_new(0x20000000), f, 0);
	expect_own(&vm, 0x20000000);
	free(f);
}

/* A process whose library is not relocated yet is asked again, and leaves nothing behind. */
TEST(tables_may_come_later)
{
	struct file *f = file_new();
	struct process *p = process_new(0x10000000);

	put(p, WORDS, 0);
	values_of(p, f, -EAGAIN);
	p = process_new(0x10000000);
	memset(p->bytes + ENTRIES, 0, BYTES - ENTRIES);
	values_of(p, f, -EAGAIN);
	p = process_new(0x10000000);
	put(p, WORDS + 8, 1000);
	values_of(p, f, -EPROTO);
	expect_eq(f->places.hashes[0], 0);
	free(f);
}
