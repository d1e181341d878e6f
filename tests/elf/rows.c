/* SPDX-License-Identifier: Apache-2.0 */
/* rows --readelf FILE: judges rows against readelf's listings, which it runs. rows --words FILE:
 * judges what elf_rows_read gives out by carrying it out. rows --found FILE: judges rows that are
 * found one by one by those that are read. rows --guesses FILE: judges rows made of code alone by
 * what the file says of it. rows --strict-guesses FILE: the same of rows made as in gaps
 * (rows-code.h). rows --lengths FILE: judges lengths of instructions by objdump, which it runs.
 * rows --bench FILE…: rows, heap and time of each, and of all. */
#include "rows.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "unwind/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

/* Runs readelf or objdump; its output, and its process. */
static FILE *run_tool(const char *how, const char *path, pid_t *ret)
{
	bool disassemble = strcmp(how, "--disassemble") == 0;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return NULL;
	*ret = fork();
	if (*ret == 0) {
		dup2(fds[1], STDOUT_FILENO);
		setenv("LC_ALL", "C", 1);
		if (disassemble)
			execlp("objdump", "objdump", how, "--wide", path, (char *)NULL);
		else
			execlp("readelf", "readelf", how, path, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	return fdopen(fds[0], "re");
}

static int with_tool(const char *how, const char *path, struct elf_file *f, struct verdict *v,
		     int (*judge)(struct elf_file *, FILE *, struct verdict *))
{
	pid_t pid = -1;
	FILE *in = run_tool(how, path, &pid);
	int r = in && pid > 0 ? judge(f, in, v) : -EIO, status = 0;

	if (in)
		fclose(in);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 127)
		r = -ENOENT;
	return r;
}

static int judge_readelf(struct elf_file *f, const char *path, struct verdict *v)
{
	int r = elf_file_load_sections(f, NULL);

	if (r == 0)
		r = with_tool("--debug-dump=frames-interp", path, f, v, judge_rows);
	return r < 0 ? r : with_tool("--debug-dump=frames", path, f, v, judge_operations);
}

static int judge_how(struct elf_file *f, const char *how, const char *path, struct verdict *v)
{
	if (strcmp(how, "--words") == 0)
		return judge_words(f, v);
	if (strcmp(how, "--found") == 0)
		return judge_found(f, v);
	if (strcmp(how, "--guesses") == 0)
		return judge_guesses(f, false, v);
	if (strcmp(how, "--strict-guesses") == 0)
		return judge_guesses(f, true, v);
	if (strcmp(how, "--lengths") == 0)
		return with_tool("--disassemble", path, f, v, judge_lengths);
	return judge_readelf(f, path, v);
}

static int judge(const char *how, const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file f = ELF_FILE_NULL;
	struct error err = ERROR_NULL;
	struct verdict v = {0};
	int r = fd < 0 ? -errno : elf_file_open(&f, fd, &err);

	if (r == 0)
		r = judge_how(&f, how, path, &v);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", v.differences,
	       v.rows, v.functions, v.expressions, v.inexpressible, r < 0 ? strerror(-r) : "ok");
	elf_file_close(&f);
	return r < 0 || v.differences;
}

struct measured {
	uint64_t rows, heap;
	int64_t ns;
};

static int count(void *context, const struct elf_row *row)
{
	struct measured *m = context;

	/* The reader's buffers are all there when the first row comes. */
	if (m->rows++ == 0)
		m->heap = mallinfo2().uordblks + mallinfo2().hblkhd;
	return 0;
}

/* Of the processor, kernel included: what others do meanwhile does not count. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static int bench(const char *path, struct measured *all)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file f = ELF_FILE_NULL;
	struct error err = ERROR_NULL;
	struct elf_rows_stats stats;
	struct measured m = {0};
	uint64_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
	int64_t start;
	int r = fd < 0 ? -errno : elf_file_open(&f, fd, &err);

	start = cpu_ns();
	if (r == 0)
		r = elf_rows_read(&f, NULL, count, &m, &stats, &err);
	m.ns = cpu_ns() - start;
	if (r < 0)
		printf("%s: %s\n", path, err.text);
	else if (m.rows)
		printf("%s: %" PRIu64 " rows of %" PRIu64 " functions in %.2f ms, %.1f M/s; "
		       "heap %" PRIu64 " KiB; %" PRIu64 " inexpressible, %" PRIu64 " broken%s\n",
		       path, m.rows, stats.functions, (double)m.ns / 1e6,
		       (double)m.rows * 1e3 / (double)m.ns, (m.heap - before) / 1024,
		       stats.inexpressible, stats.broken, stats.aux ? ", auxiliary words" : "");
	all->rows += m.rows;
	all->ns += m.ns;
	elf_file_close(&f);
	return r;
}

int main(int argc, char **argv)
{
	struct measured all = {0};

	if (argc == 3 && strcmp(argv[1], "--bench") != 0)
		return judge(argv[1], argv[2]);
	if (argc < 3)
		return 2;
	for (int i = 2; i < argc; i++)
		bench(argv[i], &all);
	printf("# %" PRIu64 " rows in %.1f ms: %.1f M rows/s\n", all.rows, (double)all.ns / 1e6,
	       (double)all.rows * 1e3 / (double)all.ns);
	return 0;
}
