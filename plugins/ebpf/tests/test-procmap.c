/* SPDX-License-Identifier: Apache-2.0 */
/* Executable mappings by question and by text: the same, for this process as it is. */
#include "ebpf/processes/procmap.h"
#include "ebpf/processes/maps.h"

#include "base/clock.h"
#include "base/file.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int no_file(void *context, const struct maps_line *line, char *reopen, size_t n)
{
	return -1;
}

static int open_self(void)
{
	int dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	expect(dir >= 0);
	return dir;
}

static struct mapset *read_set(struct procmap *t, int dir)
{
	struct procmap_pace pace = {0};
	struct buf text = BUF_NULL;
	struct mapset *set;

	expect_eq(procmap_read(t, &pace, dir, &text, 1 << 20), 0);
	set = mapset_parse(buf_str(&text), NULL, no_file, NULL, NULL, NULL);
	expect(set);
	buf_free(&text);
	return set;
}

/* [vsyscall] is in the text for all processes, and in no process's memory. */
static size_t count(const struct mapset *set)
{
	size_t n = 0;

	vec_each (&set->list, m)
		n += !str_is(m->name, "[vsyscall]");
	return n;
}

static void expect_same(const struct mapset *asked, const struct mapset *read)
{
	expect_eq(count(asked), count(read));
	expect_eq(asked->list.n, count(asked));
	for (size_t i = 0; i < asked->list.n; i++) {
		const struct mapping *a = &asked->list.p[i], *b = &read->list.p[i];

		expect_eq(a->start, b->start);
		expect_eq(a->limit, b->limit);
		expect_eq(a->offset, b->offset);
		expect(str_eq(a->name, b->name));
	}
}

/* A file of that name, mapped executable and, if `gone`, deleted. */
static void map_file(const char *name, bool gone)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	expect(fd >= 0 && ftruncate(fd, 8192) == 0);
	expect(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096) != MAP_FAILED);
	close(fd);
	if (gone)
		unlink(name);
}

/* Names that would break a line, deleted files, memory of no file: as the text has it. */
TEST(questions_and_text_agree)
{
	char dir[] = "/tmp/test-procmap-XXXXXX";
	struct procmap asked = {0}, text = {.text_only = true};
	struct mapset *a, *b;
	int self = open_self();

	expect(mkdtemp(dir) && chdir(dir) == 0);
	map_file("plain", false);
	map_file("two\nlines", false);
	map_file("gone", true);
	expect(mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) != MAP_FAILED);
	b = read_set(&text, self);
	a = read_set(&asked, self);
	unlink("plain");
	unlink("two\nlines");
	expect(chdir("/") == 0 && rmdir(dir) == 0);
	close(self);
	if (asked.text_only)
		test_skip("this kernel has no PROCMAP_QUERY; Linux 6.11 has");
	expect_eq(asked.n_texts, 0);
	expect_same(a, b);
	expect_eq(a->exec_pages, b->exec_pages);
	mapset_free(a);
	mapset_free(b);
}

/* exec_vm as the kernel tells it: VmLib is what is not the program itself, VmExe that, in kB. */
static uint64_t kernel_count(void)
{
	struct buf text = BUF_NULL;
	struct str rest;
	uint64_t sum = 0, n;

	expect_eq(file_read(AT_FDCWD, "/proc/self/status", &text, 65536), 0);
	rest = buf_str(&text);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n'), name = str_cut(&line, ':');

		if (!str_is(name, "VmExe") && !str_is(name, "VmLib"))
			continue;
		line = str_trim(line);
		expect(str_u64(str_cut(&line, ' '), &n));
		sum += n;
	}
	buf_free(&text);
	return sum / 4;
}

/* Changed mappings are seen by the kernel's own count, so ours must be the same. */
TEST(pages_of_code_are_counted_as_the_kernel_does)
{
	struct procmap asked = {0};
	struct mapset *set;
	int self = open_self();

	expect(mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) != MAP_FAILED);
	expect(mmap(NULL, 12288, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED);
	for (int way = 0; way < 2; way++) {
		asked.text_only = way == 1;
		set = read_set(&asked, self);
		expect_eq(set->exec_pages, kernel_count());
		mapset_free(set);
	}
	close(self);
}

/* The text of a process is left alone for a time that is in proportion to what its reading took;
 * questions are not. */
TEST(texts_are_paced)
{
	struct procmap text = {.text_only = true};
	struct procmap_pace pace = {0};
	struct buf b = BUF_NULL;
	int self = open_self();
	int64_t start = clock_mono();

	expect_eq(procmap_read(&text, &pace, self, &b, 1 << 20), 0);
	expect(pace.next_ns > start &&
	       pace.next_ns <= start + (clock_mono() - start) * PROCMAP_PACE);
	pace.next_ns += 3600 * (int64_t)1000000000; /* however slow this machine is */
	expect_eq(procmap_read(&text, &pace, self, &b, 1 << 20), -EAGAIN);
	expect_eq(text.n_texts, 1);
	expect_eq(text.n_deferred, 1);
	pace.next_ns = clock_mono();
	expect_eq(procmap_read(&text, &pace, self, &b, 1 << 20), 0);
	expect_eq(text.n_texts, 2);
	buf_free(&b);
	close(self);
}

/* That a reading would say the same is known without one, and that it would not. */
TEST(the_same_is_known_without_names)
{
	struct procmap t = {0};
	struct procmap_pace pace = {0};
	struct buf b = BUF_NULL;
	int self = open_self();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *code = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t before;

	expect(code != MAP_FAILED);
	expect_eq(procmap_read(&t, &pace, self, &b, 1 << 20), 0);
	before = t.asked;
	expect(t.text_only ? before == 0 : before != 0);
	expect_eq(procmap_is(&t, self, before), !t.text_only);
	expect_eq(mprotect(code, page, PROT_READ | PROT_EXEC), 0);
	expect(!procmap_is(&t, self, before));
	expect_eq(munmap(code, page), 0);
	expect_eq(procmap_is(&t, self, before), !t.text_only);
	buf_free(&b);
	close(self);
}

/* What does not fit is cut at a line's end, and said. */
TEST(a_limit_is_kept)
{
	struct procmap asked = {0};
	struct procmap_pace pace = {0};
	struct buf b = BUF_NULL;
	int self = open_self();

	expect_eq(procmap_read(&asked, &pace, self, &b, 300), -E2BIG);
	expect(b.n <= 300);
	if (!asked.text_only)
		expect(b.n > 0 && b.p[b.n - 1] == '\n');
	buf_free(&b);
	close(self);
}

/* A process that has given up its memory has no mappings, whichever way it is asked. */
TEST(the_dead_have_no_mappings)
{
	struct procmap asked = {0}, text = {.text_only = true};
	struct procmap_pace pace = {0};
	struct buf b = BUF_NULL;
	siginfo_t info;
	char path[32];
	pid_t child = fork();
	int dir, r;

	if (child == 0)
		_exit(0);
	expect(child > 0);
	expect_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	snprintf(path, sizeof(path), "/proc/%d", child);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	expect(dir >= 0);
	r = procmap_read(&asked, &pace, dir, &b, 1 << 20);
	expect(r == -ESRCH || r == 0);
	r = procmap_read(&text, &pace, dir, &b, 1 << 20);
	expect(r == -ESRCH || r == 0);
	expect_eq(b.n, 0);
	waitpid(child, NULL, 0);
	r = procmap_read(&asked, &pace, dir, &b, 1 << 20);
	expect(r < 0);
	expect_eq(b.n, 0);
	buf_free(&b);
	close(dir);
}

static int read_once(void *context)
{
	struct procmap asked = {0};
	struct procmap_pace pace = {0};
	struct buf b = BUF_NULL;
	int self = open_self();
	int r = procmap_read(&asked, &pace, self, &b, 1 << 20);

	buf_free(&b);
	close(self);
	return r;
}

TEST(asking_survives_out_of_memory)
{
	test_each_failing_allocation(read_once, NULL);
}
