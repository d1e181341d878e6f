/* SPDX-License-Identifier: Apache-2.0 */
/* See own-cost.h. The kernel counts per thread, and forgets a thread that has ended; so what each
 * has used since the last look is added up here. */
#include "agents/kit/own-cost.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define STAT_BYTES 4096

DEFINE_CLEANUP(DIR *, closedir);

/* proc(5): "PID (NAME) STATE …", where 11 fields further on are utime and stime. */
static bool read_stat(const char *path, struct buf *b, struct str *ret_name, uint64_t *ret_ticks)
{
	struct str rest, text;
	size_t open, close;
	uint64_t user, kernel;

	buf_clear(b);
	if (file_read(AT_FDCWD, path, b, STAT_BYTES) < 0)
		return false;
	text = buf_str(b);
	open = str_find(text, '(');
	close = str_rfind(text, ')');
	if (close >= text.n || open > close)
		return false;
	*ret_name = (struct str){text.p + open + 1, close - open - 1};
	rest = str_skip(text, close + 2);
	for (int i = 0; i < 11; i++)
		str_cut(&rest, ' ');
	if (!str_u64(str_cut(&rest, ' '), &user) || !str_u64(str_cut(&rest, ' '), &kernel))
		return false;
	*ret_ticks = user + kernel;
	return true;
}

static uint64_t seen(const struct own_cost *c, pid_t id)
{
	for (size_t i = 0; i < c->tasks.n; i++)
		if (c->tasks.p[i].id == id)
			return c->tasks.p[i].ticks;
	return 0;
}

struct look {
	struct own_cost *cost;
	struct own_cost next;
	struct buf stat, children;
};

static int add(struct look *l, pid_t id, uint64_t ticks, uint64_t *sum)
{
	uint64_t before = seen(l->cost, id);

	*sum += ticks >= before ? ticks - before : ticks; /* less: the id is another's by now */
	return vec_push(&l->next.tasks, ((struct own_cost_task){id, ticks})) ? 0 : -ENOMEM;
}

/* Children that a thread has begun; without CONFIG_PROC_CHILDREN there is no such file. */
static int look_at_children(struct look *l, const char *task)
{
	struct str rest, name;
	char path[64];
	uint64_t id, ticks;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", task);
	buf_clear(&l->children);
	if (file_read(AT_FDCWD, path, &l->children, STAT_BYTES) < 0)
		return 0;
	rest = buf_str(&l->children);
	while (rest.n > 0 && r == 0) {
		if (!str_u64(str_cut(&rest, ' '), &id) || id > INT32_MAX)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)id);
		if (read_stat(path, &l->stat, &name, &ticks) && str_starts(name, STR("andiron")))
			r = add(l, (pid_t)id, ticks, &l->next.children);
	}
	return r;
}

/* libandiron's threads, and those of its plugins for language runtimes. */
static bool is_ours(struct str name)
{
	return str_starts(name, STR("andiron")) || str_starts(name, STR("runtime-"));
}

static int look_at_task(struct look *l, const char *task)
{
	struct str name;
	char path[64];
	uint64_t id, ticks;
	int r = 0;

	if (!str_u64(str_of(task), &id) || id > INT32_MAX)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)id);
	if (read_stat(path, &l->stat, &name, &ticks) && is_ours(name))
		r = add(l, (pid_t)id, ticks, &l->next.threads);
	return r < 0 ? r : look_at_children(l, task);
}

int own_cost_look(struct own_cost *c)
{
	struct look l = {.cost = c, .next = {.threads = c->threads, .children = c->children}};
	_cleanup_(closedirp) DIR *dir = opendir("/proc/self/task");
	int r = dir ? 0 : -errno;
	struct dirent *entry;

	while (r == 0 && (entry = readdir(dir)))
		r = look_at_task(&l, entry->d_name);
	if (r == 0) {
		own_cost_free(c);
		*c = l.next;
	} else {
		own_cost_free(&l.next);
	}
	buf_free(&l.stat);
	buf_free(&l.children);
	return r;
}

static uint64_t in_ms(uint64_t ticks)
{
	return ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t own_cost_threads_ms(const struct own_cost *c)
{
	return in_ms(c->threads);
}

uint64_t own_cost_children_ms(const struct own_cost *c)
{
	return in_ms(c->children);
}

void own_cost_free(struct own_cost *c)
{
	vec_free(&c->tasks);
}
