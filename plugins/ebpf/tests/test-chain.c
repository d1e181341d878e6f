/* SPDX-License-Identifier: Apache-2.0 */
/* The whole chain over real files: this process's mappings, with the code of programs of this
 * machine mapped beside it, put into a store; at each row's first and last byte the walker's
 * look-up must find what the rows say that are read once more. */
#include "ebpf/tests/test-kernel.h"
#include "ebpf/unwind-store/unwind-store.h"

#include "base/buf.h"
#include "base/file.h"
#include "testing/test.h"
#include "elf/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 128

/* Objects by inode; id is the position plus 1. */
struct chain {
	struct test_kernel kernel;
	struct mapped_files *files;
	struct unwind *store;
	struct stat stats[FILES_MAX];
	int fds[FILES_MAX];
	uint32_t n;
	int vdso;
	uint64_t n_compared, n_files;
};

static int32_t intern(void *self, int32_t fd, const struct andiron_str *path,
		      const struct andiron_str *reopen, uint64_t *ret_object)
{
	struct chain *c = self;
	struct stat st;
	uint32_t i = 0;

	expect(fstat(fd, &st) == 0);
	while (i < c->n && (c->stats[i].st_ino != st.st_ino || c->stats[i].st_dev != st.st_dev))
		i++;
	if (i == c->n) {
		expect(c->n < FILES_MAX);
		c->stats[i] = st;
		c->fds[i] = dup(fd);
		c->n++;
	}
	*ret_object = i + 1;
	return 0;
}

static int32_t identify(void *self, uint64_t object, const struct andiron_str *gnu_build_id,
			const struct andiron_str *go_build_id, const struct andiron_str *file_id)
{
	return 0;
}

static void release(void *self, uint64_t object)
{
}

static const struct andiron_objects service = {
	.size = sizeof(service), .intern = intern, .identify = identify, .release = release};

static int read_rows(void *context, const struct mapped_file *mapped,
		     const struct elf_rows_options *options, elf_row_fn fn, void *fn_context,
		     struct error *err)
{
	struct chain *c = context;
	struct elf_rows_stats stats;
	struct elf_file file;
	int r = elf_file_open(&file, mapped ? c->fds[mapped_file_object(mapped) - 1] : c->vdso,
			      err);

	if (r != 0)
		return r;
	r = elf_rows_read(&file, options, fn, fn_context, &stats, err);
	elf_file_close(&file);
	return r;
}

static int open_by_path(void *context, const struct maps_line *line, char *reopen, size_t n)
{
	char path[4096];

	if (line->path.n == 0 || line->path.p[0] != '/' || line->path.n >= sizeof(path))
		return -1;
	memcpy(path, line->path.p, line->path.n);
	path[line->path.n] = '\0';
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* This process's vDSO as a file. */
static int copy_vdso(void)
{
	unsigned long start = getauxval(AT_SYSINFO_EHDR);
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	Elf64_Ehdr head;

	expect(start != 0 && fd >= 0);
	memcpy(&head, (const void *)start, sizeof(head)); /* NOLINT: the kernel's answer */
	expect(write(fd, (const void *)start,
		     head.e_shoff + (size_t)head.e_shnum * head.e_shentsize) > 0);
	return fd;
}

/* Maps the code of a program as a loader would. */
static void map_code(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file file;

	if (fd < 0)
		return; /* not on this machine */
	expect_eq(elf_file_open(&file, fd, NULL), 0);
	for (size_t i = 0; i < file.n_segments; i++) {
		const Elf64_Phdr *s = &file.segments[i];
		off_t offset = (off_t)(s->p_offset & ~UINT64_C(4095));

		if (s->p_type == PT_LOAD && (s->p_flags & PF_X))
			expect(mmap(NULL, s->p_filesz + (s->p_offset & 4095), PROT_READ | PROT_EXEC,
				    MAP_PRIVATE, fd, offset) != MAP_FAILED);
	}
	elf_file_close(&file);
	close(fd);
}

/* Each row of a mapping's file that lies in it, against what the walker finds. */
struct comparison {
	struct chain *c;
	const struct mapping *m;
	uint64_t from, to; /* the file's addresses */
	struct elf_row last;
	bool any;
};

static const struct sampler_process_key self_key = {.start_ns = 5, .tgid = 77};

static void compare_at(const struct comparison *x, uint64_t address)
{
	struct unwind_found found = {0};
	uint64_t pc = x->m->start + (address - x->from);

	expect_eq(test_kernel_look_up(&x->c->kernel, &self_key, pc, &found), 0);
	if (found.entry.rule != x->last.rule || (x->last.rule && found.entry.aux != x->last.aux))
		test_fail(__FILE__, __LINE__, "at %#llx of object %llu: rule %#llx, expected %#llx",
			  (unsigned long long)address,
			  (unsigned long long)(x->m->file ? mapped_file_object(x->m->file) : 0),
			  (unsigned long long)found.entry.rule, (unsigned long long)x->last.rule);
	x->c->n_compared++;
}

static int compare_row(void *context, const struct elf_row *row)
{
	struct comparison *x = context;

	if (x->any && row->address > x->from && row->address <= x->to)
		compare_at(x, row->address - 1);
	x->last = *row;
	x->any = true;
	if (row->address >= x->from && row->address < x->to)
		compare_at(x, row->address);
	return 0;
}

static void compare(struct chain *c, const struct mapping *m)
{
	struct comparison x = {.c = c, .m = m};

	x.from = mapping_address(m, m->start);
	x.to = x.from + (m->limit - m->start);
	if (read_rows(c, m->file, NULL, compare_row, &x, NULL) == 0)
		c->n_files += x.any;
}

static struct mapset *own_mappings(struct chain *c)
{
	struct buf text = BUF_NULL;
	struct mapset *set;

	expect_eq(file_read(AT_FDCWD, "/proc/self/maps", &text, 1 << 20), 0);
	set = mapset_parse(buf_str(&text), c->files, open_by_path, NULL, NULL, NULL);
	expect(set != NULL);
	buf_free(&text);
	return set;
}

/* What is looked up is what was read. */
TEST(real_files_are_found_as_they_were_read)
{
	static const char *const programs[] = {
		"/usr/bin/python3.11", "/usr/bin/perl",
		"/usr/bin/git",        "/usr/bin/bash",
		"/usr/bin/openssl",    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/bin/clang-14",   "/usr/bin/x86_64-linux-gnu-ld.bfd",
	};
	struct chain *c = calloc(1, sizeof(*c));
	struct andiron_extension objects = {.self = c, .table = &service};
	struct unwind_options options = {UINT64_C(64) << 20, read_rows, c};
	struct unwind_kernel kernel;
	struct unwind_stats s;
	struct mapset *set;

	test_kernel_init(&c->kernel);
	kernel = test_kernel_all(&c->kernel);
	c->vdso = copy_vdso();
	c->files = mapped_files_new(&objects);
	c->store = unwind_new(&kernel, &options);
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		map_code(programs[i]);
	set = own_mappings(c);
	while (unwind_map(c->store, &self_key, 1, set) == 1)
		unwind_wait(c->store);
	vec_each (&set->list, m)
		if (m->file || str_is(m->name, "[vdso]"))
			compare(c, m);
	unwind_get_stats(c->store, &s);
	printf("# %llu files, %llu rows: %.3f bytes a row in pages, %.1f million rows a second; "
	       "%llu rules; "
	       "%llu addresses compared\n",
	       (unsigned long long)s.tables, (unsigned long long)s.rows,
	       (double)s.bytes / (double)s.rows, 1e3 * (double)s.rows / (double)s.read_ns,
	       (unsigned long long)s.rules, (unsigned long long)c->n_compared);
	expect(c->n_files >= 4 && c->n_compared > 2 * s.rows / 3);
	expect_eq(s.rows_lost, 0);
	expect_eq(s.degraded, 0);
	mapset_free(set);
	unwind_free(c->store);
	mapped_files_free(c->files);
	for (uint32_t i = 0; i < c->n; i++)
		close(c->fds[i]);
	close(c->vdso);
	test_kernel_fini(&c->kernel);
	free(c);
}
