/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the registry. The plugins lie in the folder TEST_PLUGINS names;
 * each test copies what it wants into a folder of its own. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "testing/test.h"
#include "host/registry.h"
#include "host/registry/generation.h"
#include "host/registry/outline.h"
#include "host/registry/elf-check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct folder {
	char path[64];
};

static struct folder make_folder(void)
{
	struct folder f;

	snprintf(f.path, sizeof(f.path), "/tmp/test-registry-XXXXXX");
	expect(mkdtemp(f.path));
	return f;
}

static void remove_folder(const struct folder *f)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", f->path, (char *)NULL);
		_exit(127);
	}
	expect(waitpid(pid, &status, 0) == pid && status == 0);
}

static struct buf read_plugin(const char *variant)
{
	const char *dir = getenv("TEST_PLUGINS");
	struct buf b = BUF_NULL;
	char path[4096];

	if (!dir)
		test_skip("TEST_PLUGINS is not set: run it by `meson test`");
	snprintf(path, sizeof(path), "%s/andiron-test-%s.so", dir, variant);
	expect_eq(file_read(AT_FDCWD, path, &b, 16u << 20), 0);
	return b;
}

static void write_plugin(const struct folder *f, const char *name, struct str content)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/andiron-%s.so", f->path, name);
	expect_eq(file_replace(path, content.p, content.n, NULL), 0);
}

static void copy_plugin(const struct folder *f, const char *variant)
{
	struct buf b = read_plugin(variant);

	write_plugin(f, variant, buf_str(&b));
	buf_free(&b);
}

static struct registry *open_folder(const struct folder *f)
{
	const char *dirs[] = {f->path, NULL};
	struct registry *r = NULL;

	expect_eq(registry_new(dirs, NULL, false, &r), 0);
	expect_eq(registry_require(r, NULL, 0), 0);
	return r;
}

/* The reason for which the only plugin of the folder is refused has `words`. */
static void expect_refused(const struct folder *f, const char *words)
{
	struct registry *r = open_folder(f);
	const struct registered_plugin *p;

	expect_eq(registry_plugins(r, &p), 1);
	if (p->plugin || !p->refused || !strstr(p->refused, words))
		test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"",
			  p->refused ? p->refused : "(accepted)", words);
	registry_free(r);
}

static void expect_variant_refused(const char *variant, const char *words)
{
	struct folder f = make_folder();

	copy_plugin(&f, variant);
	expect_refused(&f, words);
	remove_folder(&f);
}

TEST(a_good_plugin_is_found_by_component)
{
	struct folder f = make_folder();
	const struct registered_component *c;
	const struct registered_plugin *p;
	struct registry *r;

	copy_plugin(&f, "good");
	r = open_folder(&f);
	expect_eq(registry_plugins(r, &p), 1);
	expect(p->plugin && !p->refused);
	expect_eq(registry_components(r, &c), 1);
	expect(registry_find(r, STR("test.thing")) == c && c->plugin == p);
	expect(!registry_find(r, STR("test.thin")));
	expect(!registry_offering(r, STR("andiron.moonlight/7")));
	registry_free(r);
	remove_folder(&f);
}

/* A plugin of a newer minor version works: its tails are not read. */
TEST(a_longer_entry_is_accepted)
{
	struct folder f = make_folder();
	struct registry *r;

	copy_plugin(&f, "grown");
	r = open_folder(&f);
	expect(registry_find(r, STR("test.grown")));
	registry_free(r);
	remove_folder(&f);
}

/* Each cause has a sentence of its own that names what is wrong. */
TEST(each_fault_is_named)
{
	expect_variant_refused("no-entry", "does not export andiron_plugin_v1");
	expect_variant_refused("other-abi", "version 2 of the plugin ABI");
	expect_variant_refused("undefined", "nobody_has_this_function");
	expect_variant_refused("needs", "andiron.moonlight/7");
	expect_variant_refused("no-size", "the size in its entry is 0");
	expect_variant_refused("undocumented", "does not document its option option");
	expect_variant_refused("no-verbs", "lacks create");
}

/* This program exports both, as an agent does that exports all it is made of. */
int32_t library_function(void);
__attribute__((visibility("default"))) int32_t library_function(void)
{
	return -EPROTO;
}

/* zstd's, or some of it. */
__attribute__((visibility("default"))) unsigned int ZSTD_isError, ZSTD_getErrorCode;

__attribute__((visibility("default"))) char *l64a(long value)
{
	return NULL;
}

/* A plugin whose calls this program would answer is refused, by name, before it is opened: it would
 * be called with structures of another library. Not so the C library's own names, of which a
 * program may have its version for all. */
TEST(a_captured_call_is_refused_by_name)
{
	struct folder f = make_folder();
	struct registry *r;

	expect_variant_refused("captured", " has a function library_function of its own");
	copy_plugin(&f, "interposed");
	r = open_folder(&f);
	expect(registry_find(r, STR("test.thing")));
	registry_free(r);
	remove_folder(&f);
}

/* The functions of zstd may be the program's, if it says so, but for one version only. */
TEST(a_lasting_library_is_answered_as_a_whole)
{
	struct folder f = make_folder();
	struct registry *r;

	expect_variant_refused("captured-whole", " has a function ZSTD_");
	expect_eq(registry_allow_answers(STR("zstd curl")), -EINVAL);
	expect_variant_refused("captured-whole", " has a function ZSTD_");
	expect_eq(registry_allow_answers(STR("protobuf-c zstd")), 0);
	expect_variant_refused("captured-partly", " has a function ZSTD_isError of its own");
	copy_plugin(&f, "captured-whole");
	r = open_folder(&f);
	expect(registry_find(r, STR("test.thing")));
	registry_free(r);
	remove_folder(&f);
}

TEST(what_is_no_plugin_at_all_is_named)
{
	struct folder f = make_folder();
	struct buf b = read_plugin("good");

	write_plugin(&f, "x", STR(""));
	expect_refused(&f, "not an ELF file");
	write_plugin(&f, "x", STR("#!/bin/sh\n"));
	expect_refused(&f, "not an ELF file");
	b.p[18] = 0; /* e_machine */
	b.p[19] = 1;
	write_plugin(&f, "x", buf_str(&b));
	expect_refused(&f, "another machine (ELF machine 256)");
	b.p[4] = 1; /* 32 bits */
	write_plugin(&f, "x", buf_str(&b));
	expect_refused(&f, "another machine");
	buf_free(&b);
	remove_folder(&f);
}

/* A file cut off anywhere is refused and never mapped: mapping it would be a SIGBUS, which this
 * test would die of. */
TEST(truncation_is_survived_at_every_length)
{
	struct folder f = make_folder();
	struct buf b = read_plugin("good");
	size_t step = b.n / 97 + 1;

	for (size_t n = 0; n < b.n; n += n < 1024 ? 61 : step) {
		write_plugin(&f, "x", (struct str){b.p, n});
		expect_refused(&f, n < 4 ? "not an ELF file" : "truncated");
	}
	write_plugin(&f, "x", (struct str){b.p, b.n - 1});
	expect_refused(&f, "truncated");
	buf_free(&b);
	remove_folder(&f);
}

/* A copy whose space was reserved but whose tail was never written. */
TEST(a_blank_tail_is_refused)
{
	struct folder f = make_folder();
	struct buf b = read_plugin("good");
	struct buf half = BUF_NULL;
	size_t step = b.n / 41 + 1;

	for (size_t n = 0; n < b.n - 64; n += step) {
		buf_clear(&half);
		expect_eq(buf_append(&half, b.p, b.n), 0);
		memset(half.p + n, 0, half.n - n);
		write_plugin(&f, "x", buf_str(&half));
		expect_refused(&f, n < 4 ? "not an ELF file" : n < 20 ? "machine" : "half-written");
	}
	buf_free(&half);
	buf_free(&b);
	remove_folder(&f);
}

/* Whatever stands in the headers, checking them ends, within the file. */
TEST(mutated_headers_are_survived)
{
	struct buf b = read_plugin("good");
	uint64_t seed = 1;
	int n_refused = 0, fd = memfd_create("plugin", MFD_CLOEXEC);
	struct plugin_file image;

	expect(fd >= 0);
	for (int i = 0; i < 20000; i++) {
		char was[4];
		size_t at[4];

		for (int k = 0; k < 4; k++) { /* most of what matters stands in front */
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			at[k] = (seed >> 33) % (k ? 1024 : b.n);
			was[k] = b.p[at[k]];
			b.p[at[k]] = (char)(seed >> 25);
		}
		expect_eq(pwrite(fd, b.p, b.n, 0), b.n);
		n_refused += elf_check(fd, &image, NULL) != 0;
		for (int k = 3; k >= 0; k--)
			b.p[at[k]] = was[k];
	}
	expect(n_refused > 1000 && n_refused < 20000);
	close(fd);
	buf_free(&b);
}

/* A section of a file in memory. */
static struct str section(const struct buf *b, const char *name)
{
	const Elf64_Ehdr *h = (const void *)b->p;
	const Elf64_Shdr *all = (const void *)(b->p + h->e_shoff);

	for (int i = 0; i < h->e_shnum; i++)
		if (strcmp(b->p + all[h->e_shstrndx].sh_offset + all[i].sh_name, name) == 0)
			return (struct str){b->p + all[i].sh_offset, all[i].sh_size};
	return STR_NULL;
}

/* A damaged initializer crashes the child. The parent says so and goes on. */
TEST(a_crash_while_loading_is_reported)
{
	struct folder f = make_folder();
	const char *dirs[] = {f.path, NULL};
	struct buf b = read_plugin("good");
	struct str dynamic = section(&b, ".dynamic");
	const struct registered_plugin *p;
	struct error err = ERROR_NULL;
	struct registry *r = NULL;
	char path[128];

	expect(dynamic.n > 0);
	for (Elf64_Dyn *d = (void *)(uintptr_t)dynamic.p; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_INIT || d->d_tag == DT_FINI)
			d->d_un.d_ptr = 16; /* in the file header: no code */
	write_plugin(&f, "crash", buf_str(&b));
	copy_plugin(&f, "good");
	snprintf(path, sizeof(path), "%s/andiron-crash.so", f.path);
	expect_eq(registry_probe(path, &err), -ENOEXEC);
	expect(strstr(err.text, "crashed") && strstr(err.text, "signal 11"));
	expect(strstr(err.text, "build it again"));

	expect_eq(registry_new(dirs, NULL, true, &r), 0);
	expect_eq(registry_plugins(r, &p), 2);
	expect(p[0].refused && strstr(p[0].refused, "crashed"));
	expect(p[1].plugin && registry_find(r, STR("test.thing")));
	registry_free(r);
	buf_free(&b);
	remove_folder(&f);
}

/* Where mutation `i` of a plugin begins, and how long the range is. */
static struct str damaged_range(const struct buf *b, int i)
{
	static const char *const names[] = {".dynamic", ".rela.dyn", ".init_array", ".data.rel.ro",
					    ".dynsym"};
	size_t n = sizeof(names) / sizeof(names[0]);
	struct str range = (size_t)i % (n + 1) < n ? section(b, names[(size_t)i % (n + 1)])
						   : buf_str(b);

	return range.n ? range : buf_str(b);
}

/* Whatever is wrong with a file, trying it never ends the caller and always gives a sentence; and
 * what the child could load, the caller can. */
TEST(damage_is_reported_and_not_suffered)
{
	const char *runs = getenv("ANDIRON_FUZZ_RUNS");
	int n = runs ? (int)strtol(runs, NULL, 10) / 10 : 150, n_crashed = 0, n_outlines = 0;
	struct arena arena = ARENA_NULL;
	struct folder f = make_folder();
	struct buf b = read_plugin("good");
	uint64_t seed = 7;

	for (int i = 0; i < n; i++) {
		struct str range = damaged_range(&b, i);
		const struct andiron_plugin *plugin;
		struct error err = ERROR_NULL;
		char was[4], name[32], path[128];
		size_t at[4];
		int r;

		for (int k = 0; k < 4; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			at[k] = (size_t)(range.p - b.p) + (seed >> 33) % range.n;
			was[k] = b.p[at[k]];
			b.p[at[k]] = (char)(seed >> 25);
		}
		snprintf(name, sizeof(name), "x%d", i);
		snprintf(path, sizeof(path), "%s/andiron-%s.so", f.path, name);
		write_plugin(&f, name, buf_str(&b));
		r = outline_read(path, &arena, &plugin);
		expect(r == 0 || r == -ENOEXEC);
		n_outlines += r == 0;
		arena_free(&arena);
		r = registry_probe(path, &err);
		expect(r == 0 || (r == -ENOEXEC && strlen(err.text) > 20));
		n_crashed += strstr(err.text, "crashed") || strstr(err.text, "ended the process");
		if (r == 0)
			expect_eq(registry_load(path, &plugin, NULL, &err), 0);
		expect_eq(unlink(path), 0);
		for (int k = 3; k >= 0; k--)
			b.p[at[k]] = was[k];
	}
	expect(n_crashed > 0 && n_outlines > 0 && n_outlines < n);
	buf_free(&b);
	remove_folder(&f);
}

TEST(what_anybody_may_write_is_refused)
{
	struct folder f = make_folder();
	char path[256];

	copy_plugin(&f, "good");
	snprintf(path, sizeof(path), "%s/andiron-good.so", f.path);
	expect_eq(chmod(path, 0646), 0);
	expect_refused(&f, "chmod o-w");
	remove_folder(&f);
}

/* Of two with one name the first directory's counts, and the other says so. */
TEST(the_first_directory_wins)
{
	struct folder a = make_folder(), b = make_folder();
	const char *dirs[] = {"relative", "/does/not/exist", "", a.path, b.path, a.path, NULL};
	const struct registered_component *c;
	const struct registered_plugin *p;
	struct registry *r = NULL;
	struct str searched;

	copy_plugin(&a, "good");
	copy_plugin(&b, "good");
	expect_eq(registry_new(dirs, NULL, false, &r), 0);
	expect_eq(registry_require(r, NULL, 0), 0);
	expect_eq(registry_plugins(r, &p), 2);
	c = registry_find(r, STR("test.thing"));
	expect(c && strncmp(c->plugin->path, a.path, strlen(a.path)) == 0);
	for (int i = 0; i < 2; i++)
		expect((p + i == c->plugin) != (p[i].refused != NULL));

	searched = str_of(registry_searched(r));
	expect(str_search(searched, STR("relative (ignored")) < searched.n);
	expect(str_search(searched, STR("/does/not/exist (does not exist)")) < searched.n);
	expect(str_search(searched, STR("(is one of the above)")) < searched.n);
	registry_free(r);
	remove_folder(&a);
	remove_folder(&b);
}

/* A variant's content as the file of "good", by rename. */
static void put_variant(const struct folder *f, const char *variant)
{
	struct buf b = read_plugin(variant);

	write_plugin(f, "good", buf_str(&b));
	buf_free(&b);
}

static const struct registered_component *thing(const struct registry *r)
{
	const struct registered_component *c = registry_find(r, STR("test.thing"));

	expect(c && c->plugin->generation);
	return c;
}

static void renew(struct registry **r)
{
	struct registry *now = NULL;
	struct error err = ERROR_NULL;

	expect_eq(registry_renew(*r, &now, &err), 0);
	registry_free(*r);
	*r = now;
}

/* A replaced file is loaded beside the old one, whose components stay as they are; dlopen alone
 * would give the old one again. The same file, or one of the same build, changes nothing. */
TEST(a_replaced_file_is_the_next_generation)
{
	struct folder f = make_folder();
	const struct andiron_component *first, *second;
	struct registry *r;

	put_variant(&f, "good");
	r = open_folder(&f);
	first = thing(r)->component;
	expect(!first->validate && thing(r)->plugin->generation->number == 1);
	renew(&r);
	expect(thing(r)->component == first);
	put_variant(&f, "good");
	renew(&r);
	expect(thing(r)->component == first);

	put_variant(&f, "dying");
	renew(&r);
	second = thing(r)->component;
	expect(second != first && second->validate && !first->validate);
	expect(thing(r)->plugin->generation->number == 2);
	expect_eq(strlen(thing(r)->plugin->generation->build_id), 40);

	put_variant(&f, "good");
	renew(&r);
	expect(thing(r)->component == first);
	registry_free(r);
	remove_folder(&f);
}

static void expect_not_renewed(struct registry **r, const char *words)
{
	const struct andiron_component *before = thing(*r)->component;
	struct registry *now = NULL;
	struct error err = ERROR_NULL;

	expect_eq(registry_renew(*r, &now, &err), -ENOEXEC);
	if (!strstr(err.text, words) || !strstr(err.text, "andiron-good.so"))
		test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", err.text, words);
	expect(thing(*r)->component == before);
}

/* A file that fails the checks, before or after it is loaded, changes nothing; what is put in its
 * place next is taken, although the loader has seen that name before. */
TEST(a_bad_replacement_changes_nothing)
{
	struct folder f = make_folder();
	const struct andiron_component *first;
	struct registry *r;

	put_variant(&f, "good");
	r = open_folder(&f);
	first = thing(r)->component;
	write_plugin(&f, "good", STR("#!/bin/sh\n"));
	expect_not_renewed(&r, "not an ELF file");
	put_variant(&f, "no-verbs");
	expect_not_renewed(&r, "lacks create");
	put_variant(&f, "undefined");
	expect_not_renewed(&r, "nobody_has_this_function");
	put_variant(&f, "no-entry");
	expect_not_renewed(&r, "does not export andiron_plugin_v1");
	put_variant(&f, "dying");
	renew(&r);
	expect(thing(r)->component != first && thing(r)->component->validate);
	registry_free(r);
	remove_folder(&f);
}

/* A mapped file that is written over changes under those that run it: said, and not loaded. */
TEST(a_file_that_is_written_over_is_named)
{
	struct folder f = make_folder();
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	char path[128], zero = 0;
	struct registry *r;
	int fd;

	put_variant(&f, "good");
	r = open_folder(&f);
	snprintf(path, sizeof(path), "%s/andiron-good.so", f.path);
	expect_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	renew(&r); /* touched, and the same build */
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	expect(fd >= 0 && write(fd, &zero, 1) == 1);
	close(fd);
	expect_not_renewed(&r, "it was written over while this process runs it");
	registry_free(r);
	remove_folder(&f);
}

static int renew_and_close(void *context)
{
	const struct folder *f = context;
	const char *dirs[] = {f->path, NULL};
	struct registry *r = NULL, *now = NULL;
	struct error err = ERROR_NULL;
	int code = registry_new(dirs, NULL, false, &r);

	if (code == 0)
		code = registry_require(r, NULL, 0);
	if (code == 0)
		code = registry_renew(r, &now, &err);
	registry_free(now);
	registry_free(r);
	return code == -ENOEXEC ? -ENOMEM : code; /* a refusal for want of memory */
}

static int open_and_close(void *context)
{
	const struct folder *f = context;
	const char *dirs[] = {f->path, "/does/not/exist", NULL};
	struct registry *r = NULL;
	int code = registry_new(dirs, NULL, false, &r);

	if (code == 0)
		code = registry_require(r, NULL, 0);
	registry_free(r);
	return code;
}

TEST(running_out_of_memory_leaks_nothing)
{
	struct folder f = make_folder();

	copy_plugin(&f, "good");
	copy_plugin(&f, "needs");
	write_plugin(&f, "x", STR("text"));
	test_each_failing_allocation(open_and_close, &f);
	remove_folder(&f);
}

TEST(running_out_of_memory_while_renewing_leaks_nothing)
{
	struct folder f = make_folder();

	copy_plugin(&f, "good");
	write_plugin(&f, "x", STR("text"));
	test_each_failing_allocation(renew_and_close, &f);
	remove_folder(&f);
}
