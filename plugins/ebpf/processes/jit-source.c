/* SPDX-License-Identifier: Apache-2.0 */
/* See jit-source.h. */
#include "ebpf/processes/jit-source.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A file's time is the wall clock's, which may be set meanwhile, or a server's. */
#define CLOCKS_APART NS_PER_SEC

/* A file below the process's root, opened so that none can block; -1 without one. */
static int open_below(const struct jit_source_process *p, const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(closep) int root = openat(p->dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* -1 where the path leads to another file than the mapped one. */
static int open_in_root(const struct jit_source_process *p, const struct maps_line *line)
{
	_cleanup_(freep) char *path = str_dup(line->path);
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (!path || path[0] != '/')
		return -1;
	fd = open_below(p, path, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == line->inode ? take_fd(fd) : -1;
}

int jit_source_open_mapped(const struct jit_source_process *p, const struct maps_line *line)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	char name[64];

	snprintf(name, sizeof(name), "map_files/%lx-%lx", (unsigned long)line->start,
		 (unsigned long)line->limit);
	fd = openat(p->dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		fd = open_in_root(p, line);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? take_fd(fd) : -1;
}

/* 0: it is not to be had now. */
static uint32_t read_own_pid(const struct jit_source_process *p)
{
	_cleanup_(buf_free) struct buf status = BUF_NULL;
	static const char field[] = "\nNSpid:";
	uint64_t pid;
	struct str line;
	size_t at;

	if (file_read(p->dir, "status", &status, 16384) < 0)
		return 0;
	at = str_search(buf_str(&status), str_of(field));
	line = str_skip(buf_str(&status), at + sizeof(field) - 1);
	line = str_trim(str_first(line, str_find(line, '\n')));
	line = str_skip(line, str_rfind(line, '\t') < line.n ? str_rfind(line, '\t') + 1 : 0);
	return str_u64(line, &pid) && pid <= UINT32_MAX ? (uint32_t)pid : 0;
}

/* Its pid in its own PID namespace, by which a runtime names files. It is the same for all of its
 * life, and the kernel takes long to write the file that has it. */
static uint32_t own_pid(const struct jit_source_process *p)
{
	if (*p->own_pid == 0)
		*p->own_pid = read_own_pid(p);
	return *p->own_pid ? *p->own_pid : p->pid;
}

/* Whether a descriptor is a regular file of the process's own user. */
static bool is_own(const struct jit_source_process *p, int fd)
{
	struct stat file, process;

	return fd >= 0 && fstat(fd, &file) == 0 && fstat(p->dir, &process) == 0 &&
	       S_ISREG(file.st_mode) && file.st_uid == process.st_uid;
}

void jit_source_put_path(const struct jit_source_process *p, struct str path, char *ret, size_t n)
{
	if (p->own_root)
		snprintf(ret, n, "%.*s", STR_FMT(path));
	else
		snprintf(ret, n, "/proc/%u/root%.*s", p->pid, STR_FMT(path));
}

static struct str base_of(struct str path)
{
	size_t slash = str_rfind(path, '/');

	return slash < path.n ? str_skip(path, slash + 1) : STR("");
}

/* The mapping of its jitdump. */
static bool find_dump(const struct jit_source_process *p, struct str maps, struct maps_line *ret)
{
	char name[32] = "";

	while (maps.n) {
		struct str base;

		if (!maps_parse_line(str_cut(&maps, '\n'), ret) || !ret->executable || !ret->inode)
			continue;
		base = base_of(ret->path);
		if (!str_starts(base, STR("jit-")) || !str_ends(base, STR(".dump")))
			continue;
		if (!name[0])
			snprintf(name, sizeof(name), "jit-%u.dump", own_pid(p));
		if (str_is(base, name))
			return true;
	}
	return false;
}

static int open_dump(const struct jit_source_process *p, const struct maps_line *line)
{
	_cleanup_(closep) int fd = jit_source_open_mapped(p, line);

	return is_own(p, fd) ? take_fd(fd) : -1;
}

static bool is_stale(const struct jit_source_process *p, int fd)
{
	int64_t began = clock_real() - clock_boot() + (int64_t)p->start_ns;
	struct stat st;

	return fstat(fd, &st) != 0 ||
	       st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec < began - CLOCKS_APART;
}

static int open_map(const struct jit_source_process *p, char path[64])
{
	_cleanup_(closep) int fd = -1;

	snprintf(path, 64, "/tmp/perf-%u.map", own_pid(p));
	fd = open_below(p, path, O_NOFOLLOW);
	return is_own(p, fd) && !is_stale(p, fd) ? take_fd(fd) : -1;
}

int jit_source_open(const struct jit_source_process *p, struct str maps, char *reopen, size_t n)
{
	struct maps_line line;
	char path[64];
	int fd = -1;

	if (find_dump(p, maps, &line) && line.path.n < n - 32) {
		jit_source_put_path(p, line.path, reopen, n);
		fd = open_dump(p, &line);
	}
	if (fd < 0) {
		fd = open_map(p, path);
		jit_source_put_path(p, str_of(path), reopen, n);
	}
	return fd;
}

bool jit_source_has_map(const struct jit_source_process *p)
{
	char path[64];
	_cleanup_(closep) int fd = open_map(p, path);

	return fd >= 0;
}
