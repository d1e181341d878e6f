/* SPDX-License-Identifier: Apache-2.0 */
/* Reading /proc/PID. Offsets into the text are kept while it grows (it moves) and become slices at
 * the end. Sources: proc(5); a descriptor of a process's directory refers to the process, not to
 * its number. */
#include "proc/process.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define EXITING       0x00000004u /* PF_EXITING in the flags of stat */
#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD */
#define FIELDS        48          /* of stat that are read */
#define STAT_MAX      4096

/* Part of the text, while that may still move. */
struct span {
	size_t start, n;
};

void proc_info_free(struct proc_info *info)
{
	buf_free(&info->text);
}

static uint64_t tick_ns(void)
{
	long hz = sysconf(_SC_CLK_TCK);

	check(hz > 0 && hz <= NS_PER_SEC);
	return (uint64_t)(NS_PER_SEC / hz);
}

bool proc_same_start(uint64_t a_ns, uint64_t b_ns)
{
	uint64_t tick = tick_ns();

	return a_ns / tick == b_ns / tick;
}

/* "PID (COMM) STATE PPID …": the name may hold anything, blanks and brackets
 * too, so the last bracket ends it. Fields are numbered as in proc(5). */
static int parse_stat(struct str text, struct proc_info *ret)
{
	size_t open = str_find(text, '('), close = str_rfind(text, ')');
	uint64_t numbers[FIELDS + 1] = {0};
	bool complete = false;
	struct str rest, comm, state;

	if (open >= close || close == text.n)
		return -EBADMSG;
	comm = str_first(str_skip(text, open + 1), close - open - 1);
	rest = str_trim(str_skip(text, close + 1));
	state = str_cut(&rest, ' ');
	for (int field = 4; field <= FIELDS && rest.n; field++) {
		/* Those before may be negative, or masks that other kernels write otherwise. */
		bool ours = str_u64(str_cut(&rest, ' '), &numbers[field]);

		if (!ours && (field == 4 || field == 9 || field == 22))
			return -EBADMSG;
		if (field == 22)
			complete = true;
	}
	if (!complete || numbers[22] > UINT64_MAX / tick_ns())
		return -EBADMSG;
	ret->parent = (uint32_t)numbers[4];
	ret->kernel_thread = numbers[9] & KERNEL_THREAD;
	ret->exiting = numbers[9] & EXITING;
	ret->start_ns = numbers[22] * tick_ns();
	ret->start_code = numbers[26];
	ret->start_stack = numbers[28];
	ret->arg_start = numbers[48];
	ret->zombie = state.n && (state.p[0] == 'Z' || state.p[0] == 'X');
	memset(ret->comm, 0, sizeof(ret->comm));
	comm = str_first(comm, sizeof(ret->comm) - 1);
	memcpy(ret->comm, comm.p, comm.n);
	return 0;
}

static int read_stat(int dir, struct proc_info *ret)
{
	size_t start = ret->text.n;
	int r = file_read(dir, "stat", &ret->text, STAT_MAX);

	if (!r)
		r = parse_stat(str_skip(buf_str(&ret->text), start), ret);
	ret->text.n = start;
	return r;
}

/* Running out of memory is the only failure: what cannot be read is empty. */
static int add_link(int dir, const char *name, struct buf *text, struct span *ret)
{
	char *room = buf_reserve(text, PROC_TEXT_MAX);
	ssize_t n;

	if (!room)
		return -ENOMEM;
	n = readlinkat(dir, name, room, PROC_TEXT_MAX);
	*ret = (struct span){text->n, n > 0 ? (size_t)n : 0};
	text->n += ret->n;
	return 0;
}

static int add_file(int dir, const char *name, struct buf *text, struct span *ret)
{
	size_t start = text->n;
	int r = file_read(dir, name, text, PROC_TEXT_MAX);

	if (r == -ENOMEM)
		return r;
	*ret = (struct span){start, text->n - start};
	return 0;
}

/* Arguments end with NUL each; behind the last one there is nothing to separate. */
static struct span join_arguments(struct buf *text, struct span all)
{
	char *p = text->p + all.start;

	check(all.start + all.n <= text->n);
	while (all.n && p[all.n - 1] == 0)
		all.n--;
	for (size_t i = 0; i < all.n; i++)
		if (p[i] == 0)
			p[i] = ' ';
	return all;
}

/* The first number after "Uid:", which is the real one. */
static uint32_t parse_uid(struct str status)
{
	while (status.n) {
		struct str line = str_cut(&status, '\n');
		uint64_t uid;

		if (!str_starts(line, STR("Uid:")))
			continue;
		line = str_trim(str_skip(line, 4));
		return str_u64(str_cut(&line, '\t'), &uid) && uid < UINT32_MAX ? (uint32_t)uid
									       : UINT32_MAX;
	}
	return UINT32_MAX;
}

static int read_uid(int dir, struct proc_info *ret)
{
	struct span status;
	int r = add_file(dir, "status", &ret->text, &status);

	if (r)
		return r;
	ret->uid = status.n ? parse_uid((struct str){ret->text.p + status.start, status.n})
			    : UINT32_MAX;
	ret->text.n = status.start;
	return 0;
}

static struct str slice(const struct buf *text, struct span s)
{
	check(s.start + s.n <= text->n || !s.n);
	return s.n ? (struct str){text->p + s.start, s.n} : STR_NULL;
}

/* The stat file last: what was alive then was so in all that was read before. */
static int read_all(int dir, unsigned int what, struct proc_info *ret)
{
	struct span exe = {0}, cwd = {0}, cmdline = {0}, cgroup = {0};
	int r = 0;

	buf_clear(&ret->text);

	if (what & PROC_EXE)
		r = add_link(dir, "exe", &ret->text, &exe);
	if (!r && (what & PROC_CWD))
		r = add_link(dir, "cwd", &ret->text, &cwd);
	if (!r && (what & PROC_CMDLINE))
		r = add_file(dir, "cmdline", &ret->text, &cmdline);
	if (!r && (what & PROC_CGROUP))
		r = add_file(dir, "cgroup", &ret->text, &cgroup);
	if (!r && (what & PROC_UID))
		r = read_uid(dir, ret);
	if (!r)
		r = read_stat(dir, ret);
	if (r)
		return r;
	if (cmdline.n)
		cmdline = join_arguments(&ret->text, cmdline);
	ret->exe = slice(&ret->text, exe);
	ret->cwd = slice(&ret->text, cwd);
	ret->cmdline = slice(&ret->text, cmdline);
	ret->cgroup = slice(&ret->text, cgroup);
	return 0;
}

int proc_read(int proc, uint32_t pid, unsigned int what, struct proc_info *ret)
{
	char name[16];
	_cleanup_(closep) int dir = -1;

	snprintf(name, sizeof(name), "%u", pid);
	dir = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	ret->pid = pid;
	ret->uid = UINT32_MAX;
	ret->exe = ret->cwd = ret->cmdline = ret->cgroup = STR_NULL;
	return read_all(dir, what, ret);
}

int proc_list(int proc, struct proc_pids *pids)
{
	int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	DIR *dir;
	int r = 0;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		uint64_t pid;

		if (!str_u64(str_of(entry->d_name), &pid) || !pid || pid > INT32_MAX)
			continue;
		if (!vec_push(pids, (uint32_t)pid)) {
			r = -ENOMEM;
			break;
		}
	}
	if (!r && errno)
		r = -errno;
	closedir(dir);
	return r;
}
