/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of kept files, of sections put together, and of what servers may do. */
#include "debuginfod/assemble.h"
#include "debuginfod/debuginfod.h"
#include "debuginfod/store.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "testing/test.h"
#include "elf/ids.h"
#include "elf/symbols.h"
#include "elf/tests/test-write.h"
#include "http/tests/test-loop.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ID "00112233445566778899aabbccddeeff00112233"

static const struct str id = {ID, sizeof(ID) - 1};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

struct folder {
	char path[64];
	struct store store;
};

static void folder_init(struct folder *f, uint64_t n_bytes)
{
	snprintf(f->path, sizeof(f->path), "/tmp/andiron-store-XXXXXX");
	expect(mkdtemp(f->path));
	expect_eq(store_open(&f->store, f->path, n_bytes, NULL), 0);
}

static void folder_fini(struct folder *f)
{
	store_close(&f->store);
	expect_eq(nftw(f->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void keep(struct folder *f, struct str of, const char *name, size_t n)
{
	struct store_draft d;
	_cleanup_(freep) char *bytes = calloc(1, n);

	expect_eq(store_begin(&f->store, of, name, &d), 0);
	expect_eq(file_write_fd(d.fd, bytes, n), 0);
	expect_eq(store_keep(&d, name), 0);
}

static bool kept(struct folder *f, struct str of, const char *name)
{
	_cleanup_(closep) int fd = store_find(&f->store, of, name);

	return fd >= 0;
}

/* What is kept lies where elfutils' client looks for it, and as it does: read-only, no temporary
 * left. */
TEST(kept_as_elfutils_does)
{
	struct folder f;
	struct stat st;
	char path[256];

	folder_init(&f, 0);
	expect_eq(store_find(&f.store, id, "debuginfo"), -ENOENT);
	keep(&f, id, "debuginfo", 100);
	snprintf(path, sizeof(path), "%s/" ID "/debuginfo", f.path);
	expect(stat(path, &st) == 0 && st.st_size == 100 && (st.st_mode & 0777) == 0400);
	expect(kept(&f, id, "debuginfo"));
	expect_eq(store_find(&f.store, STR("../../etc"), "debuginfo"), -ENOENT);
	expect_eq(store_find(&f.store, STR("0011AABB"), "debuginfo"), -ENOENT);
	folder_fini(&f);
}

/* That nobody has a file is remembered, and forgotten in time. */
TEST(misses_age)
{
	const struct timespec old[] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct folder f;
	char path[256];

	folder_init(&f, 0);
	expect_eq(store_deny(&f.store, id, "debuginfo"), 0);
	expect_eq(store_find(&f.store, id, "debuginfo"), -ENODATA);
	snprintf(path, sizeof(path), "%s/" ID "/debuginfo", f.path);
	expect_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	expect_eq(store_find(&f.store, id, "debuginfo"), -ENOENT);
	folder_fini(&f);
}

/* A link in the folder leads nowhere. */
TEST(links_are_not_followed)
{
	struct folder f;
	char path[256];

	folder_init(&f, 0);
	keep(&f, id, "debuginfo", 1);
	snprintf(path, sizeof(path), "%s/" ID "/executable", f.path);
	expect_eq(symlink("/etc/passwd", path), 0);
	expect_eq(store_find(&f.store, id, "executable"), -ENOENT);
	folder_fini(&f);
}

static void make_old(struct folder *f, const char *of, time_t used)
{
	const struct timespec t[] = {{.tv_sec = used}, {.tv_nsec = UTIME_OMIT}};
	char path[256];

	snprintf(path, sizeof(path), "%s/%s/debuginfo", f->path, of);
	expect_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* The bound in bytes holds: what was used least recently goes, with its folder. */
TEST(bounded_in_bytes)
{
	struct folder f;
	char path[256];

	folder_init(&f, 100000);
	keep(&f, STR("0000000001"), "debuginfo", 60000);
	make_old(&f, "0000000001", 1000);
	keep(&f, STR("0000000002"), "debuginfo", 60000);
	make_old(&f, "0000000002", 2000);
	expect_eq(store_clean(&f.store, 3000), 0);
	expect(!kept(&f, STR("0000000001"), "debuginfo"));
	expect(kept(&f, STR("0000000002"), "debuginfo"));
	snprintf(path, sizeof(path), "%s/0000000001", f.path);
	expect(access(path, F_OK) < 0);
	folder_fini(&f);
}

/* What nobody used for a week goes when a cleaning is due, by the settings that lie in the folder.
 */
TEST(old_files_go)
{
	const struct timespec long_ago[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct folder f;
	char path[256];

	folder_init(&f, 0);
	keep(&f, STR("0000000001"), "debuginfo", 10);
	make_old(&f, "0000000001", 1000);
	keep(&f, STR("0000000002"), "debuginfo", 10);
	make_old(&f, "0000000002", 1000000);
	/* The first time only notes when it was. */
	expect_eq(store_clean(&f.store, 1000000), 0);
	expect(kept(&f, STR("0000000001"), "debuginfo"));
	make_old(&f, "0000000001", 1000);
	snprintf(path, sizeof(path), "%s/cache_clean_interval_s", f.path);
	expect_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);
	expect_eq(store_clean(&f.store, 1000000), 0);
	expect(!kept(&f, STR("0000000001"), "debuginfo"));
	expect(kept(&f, STR("0000000002"), "debuginfo"));
	folder_fini(&f);
}

/* --- Sections put together --- */

/* The file reads as any debug file: build id, symbols with their names, sections compressed or not.
 */
TEST(sections_make_a_file)
{
	static const struct {
		Elf64_Chdr head;
		unsigned char data[40];
	} packed = {{ELFCOMPRESS_ZLIB, 0, 1000, 1}, {0x78, 0x9c}};
	const Elf64_Sym symbols[] = {{0},
				     {.st_name = 1,
				      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				      .st_shndx = 7,
				      .st_value = 0x1000,
				      .st_size = 16}};
	_cleanup_(closep) int line = elf_memfd(&packed, sizeof(packed)),
			      symtab = elf_memfd(symbols, sizeof(symbols)),
			      strtab = elf_memfd("\0spin", 6), to = elf_memfd("", 0);
	const struct assemble_section sections[] = {{".debug_line", line},
						    {".debug_line_str", -1},
						    {".symtab", symtab},
						    {".strtab", strtab}};
	struct elf_file file = ELF_FILE_NULL;
	struct elf_symbols table = ELF_SYMBOLS_NULL;
	_cleanup_(buf_free) struct buf name = BUF_NULL;
	struct elf_ids ids;

	expect_eq(assemble(to, id, sections, 4), 0);
	expect_eq(elf_file_open(&file, to, NULL), 0);
	expect_eq(elf_ids_read(&file, &ids), 0);
	expect_str(str_of(ids.gnu_build_id), ID);
	expect_eq(elf_symbols_load(&table, &file, 100, NULL), 0);
	expect_eq(elf_symbols_find(&table, to, 0x1008, &name, NULL), 0);
	expect_str(buf_str(&name), "spin");
	expect(elf_file_section(&file, ".debug_line")->sh_flags & SHF_COMPRESSED);
	expect(!(elf_file_section(&file, ".strtab")->sh_flags & SHF_COMPRESSED));
	expect(!elf_file_section(&file, ".debug_line_str"));
	elf_symbols_free(&table);
	elf_file_close(&file);
}

/* --- Servers --- */

struct server {
	const char *whole, *section; /* answers; NULL: closes the connection without one */
	unsigned int n_whole, n_sections;
};

static void serve(int fd, void *context)
{
	_cleanup_(freep) char *request = malloc(TEST_REQUEST_MAX);
	struct server *s = context;
	bool section;

	if (!request || !test_read_request(fd, request))
		return;
	section = strstr(request, "/section/.") != NULL;
	section ? s->n_sections++ : s->n_whole++;
	if (section ? s->section : s->whole)
		test_say(fd, section ? s->section : s->whole);
}

struct world {
	struct folder folder;
	struct server answers;
	struct test_server *server;
	char urls[256];
	struct debuginfod d;
	struct buf path;
	struct error err;
};

static void world_init(struct world *w, const char *whole, const char *section)
{
	*w = (struct world){.answers = {whole, section, 0, 0}};
	folder_init(&w->folder, 0);
	w->server = test_server_new(serve, &w->answers);
	snprintf(w->urls, sizeof(w->urls), "ima:ignore\t\nhttp://127.0.0.1:%u/",
		 test_server_port(w->server));
	w->d = (struct debuginfod){.urls = str_of(w->urls),
				   .folder = w->folder.path,
				   .max_bytes = 1000,
				   .stall_ms = 10000,
				   .time_ms = 20000};
}

static int world_ask(struct world *w)
{
	buf_clear(&w->path);
	w->err = ERROR_NULL;
	return debuginfod_find(&w->d, id, &w->path, &w->err);
}

static void world_fini(struct world *w)
{
	test_server_free(w->server);
	folder_fini(&w->folder);
	buf_free(&w->path);
}

#define OK(n)     "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " n "\r\n\r\n"
#define NOT_FOUND "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

/* A file is fetched once; then it is here, also when the server is not. */
TEST(fetched_once)
{
	struct world w;

	world_init(&w, OK("4") "abcd", NULL);
	expect_eq(world_ask(&w), 0);
	expect(str_ends(buf_str(&w.path), STR(ID "/debuginfo")));
	expect_eq(world_ask(&w), 0);
	expect_eq(w.answers.n_whole, 1);
	expect(kept(&w.folder, id, "debuginfo"));
	world_fini(&w);
}

/* What no server has is asked for once. */
TEST(absent_is_remembered)
{
	struct world w;

	world_init(&w, NOT_FOUND, NOT_FOUND);
	expect_eq(world_ask(&w), -ENOENT);
	expect_eq(world_ask(&w), -ENOENT);
	expect_eq(w.answers.n_whole, 1);
	world_fini(&w);
}

/* A server that breaks off, or does not answer, leaves nothing behind, and no "there is none". */
TEST(broken_answers_leave_nothing)
{
	static const char *const answers[] = {OK("400") "abcd", NULL,
					      "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct world w;
		int r;

		world_init(&w, answers[i], NULL);
		r = world_ask(&w);
		expect(r < 0 && r != -ENOENT && w.err.text[0]);
		expect_eq(store_find(&w.folder.store, id, "debuginfo"), -ENOENT);
		world_fini(&w);
	}
}

/* A server after another: the second has it. */
TEST(next_server)
{
	struct world w;
	char urls[320];

	world_init(&w, OK("4") "abcd", NULL);
	snprintf(urls, sizeof(urls), "http://127.0.0.1:%u %s", test_unused_port(), w.urls);
	w.d.urls = str_of(urls);
	expect_eq(world_ask(&w), 0);
	world_fini(&w);
}

/* Too large by its own word is not begun, and its sections come instead; where there are none, that
 * is said. */
TEST(large_files_come_in_sections)
{
	struct world w;

	world_init(&w, OK("2000"), OK("4") "abcd");
	expect_eq(world_ask(&w), 0);
	expect(str_ends(buf_str(&w.path), STR("section-.andiron")));
	expect_eq(w.answers.n_sections, 4);
	expect(kept(&w.folder, id, "section-.debug_line") &&
	       kept(&w.folder, id, "section-.strtab"));
	expect(!kept(&w.folder, id, "debuginfo"));
	world_fini(&w);

	world_init(&w, OK("2000"), NOT_FOUND);
	expect_eq(world_ask(&w), -E2BIG);
	world_fini(&w);
}

/* A body that is longer than it may be ends the request where it is, whatever the head said. */
TEST(endless_answers_end)
{
	static char answer[4096];
	struct world w;

	snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%03000d", 0);
	world_init(&w, answer, NOT_FOUND);
	expect_eq(world_ask(&w), -E2BIG);
	expect_eq(store_find(&w.folder.store, id, "debuginfo"), -ENOENT);
	world_fini(&w);
}

/* Redirects in a circle end after ten, and lead to no other protocol. */
TEST(redirects_are_limited)
{
	struct world w;

	world_init(&w,
		   "HTTP/1.1 302 Found\r\nConnection: close\r\n"
		   "Location: /again\r\nContent-Length: 0\r\n\r\n",
		   NULL);
	expect(world_ask(&w) < 0);
	expect_eq(w.answers.n_whole, 11);
	world_fini(&w);

	world_init(&w,
		   "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: file:///etc/passwd\r\n"
		   "Content-Length: 0\r\n\r\n",
		   NULL);
	expect(world_ask(&w) < 0);
	expect_eq(w.answers.n_whole, 1);
	world_fini(&w);
}

/* Without inlined calls a file costs its sections; a server that has none gives all of it. */
TEST(lines_only)
{
	struct world w;

	world_init(&w, OK("4") "abcd", OK("4") "abcd");
	w.d.lines_only = true;
	expect_eq(world_ask(&w), 0);
	expect_eq(w.answers.n_whole, 0);
	world_fini(&w);

	world_init(&w, OK("4") "abcd", NOT_FOUND);
	w.d.lines_only = true;
	expect_eq(world_ask(&w), 0);
	expect(str_ends(buf_str(&w.path), STR("/debuginfo")));
	world_fini(&w);
}

static void serve_nothing(int fd, void *context)
{
	char byte;

	while (recv(fd, &byte, 1, 0) > 0)
		;
}

/* A server that says nothing is given up. */
TEST(silence_ends)
{
	struct folder f;
	struct test_server *server = test_server_new(serve_nothing, NULL);
	struct buf path = BUF_NULL;
	struct error err = ERROR_NULL;
	char url[64];
	struct debuginfod d = {
		.folder = f.path, .max_bytes = 1000, .stall_ms = 200, .time_ms = 20000};

	folder_init(&f, 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", test_server_port(server));
	d.urls = str_of(url);
	expect_eq(debuginfod_find(&d, id, &path, &err), -ETIMEDOUT);
	test_server_free(server);
	folder_fini(&f);
	buf_free(&path);
}

/* Ids and servers that are none are said to be. */
TEST(mistakes)
{
	struct folder f;
	struct buf path = BUF_NULL;
	struct debuginfod d = {.folder = f.path, .max_bytes = 1, .stall_ms = 1, .time_ms = 1000};

	folder_init(&f, 0);
	expect_eq(debuginfod_find(&d, STR("../x"), &path, NULL), -EINVAL);
	expect_eq(debuginfod_find(&d, id, &path, NULL), -EINVAL);
	d.folder = "relative";
	expect_eq(debuginfod_find(&d, id, &path, NULL), -EINVAL);
	folder_fini(&f);
	buf_free(&path);
}
