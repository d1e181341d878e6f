/* SPDX-License-Identifier: Apache-2.0 */
/* inotify on every directory that a path leads through. Contract in config-watch.h.
 *
 * A path is walked by hand, name for name and link for link: each directory on the way is watched
 * for the one name that leads on, before that name is looked at. So no change falls between, and a
 * busy directory such as /tmp costs a comparison of names. The file itself is watched, too, for one
 * that is mounted alone: writes into it are told to the directory that it was mounted from. That
 * would not do alone, since who renames over a file leaves the watch on the old one.
 *
 * After each change the way is walked anew, since it may lead elsewhere now. */
#include "cli/run/config-watch.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#define MOMENT_NS     (100 * NS_PER_MSEC) /* who writes several files does so within */
#define LOOK_EVERY_NS (10 * NS_PER_SEC)
#define MAX_LINKS     40 /* the kernel's bound */
#define MAX_SPOTS     5000
#define MAX_READS     64 /* of events in one go */
#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR)
#define FILE_EVENTS IN_CLOSE_WRITE

/* An entry of a watched directory, or a file. Several may share a watch. */
struct spot {
	int wd;
	bool is_file;
	char *path; /* of the directory */
	char *name; /* NULL: every *.alloy */
};

struct config_watch {
	char *const *paths;
	size_t n_paths;
	int epoll_fd, timer_fd, inotify_fd; /* inotify_fd -1: there is none */
	VEC(struct spot) spots;
	int64_t every_ns; /* it is time anyway after so long; 0: never */
	int blind;    /* an errno */
	bool pending; /* a change was seen; the timer says it */
};

/* A path on its way from name to name. */
struct way {
	char at[PATH_MAX];   /* a directory, without links; "" the current one */
	char rest[PATH_MAX]; /* still to go */
	int links;
};

static void spot_fini(struct spot *spot)
{
	free(spot->path);
	free(spot->name);
}

static void watch(struct config_watch *w, struct spot spot, const char *path, const char *name)
{
	if (w->inotify_fd < 0)
		return;
	errno = ENOSPC;
	if (w->spots.n < MAX_SPOTS)
		spot.wd = inotify_add_watch(w->inotify_fd, path,
					    spot.is_file ? FILE_EVENTS : EVENTS);
	if (spot.wd < 0) {
		w->blind = errno;
		return;
	}
	spot.path = str_dup(str_of(path));
	spot.name = name ? str_dup(str_of(name)) : NULL;
	if (spot.path && !spot.name == !name && vec_push(&w->spots, spot))
		return;
	spot_fini(&spot);
	w->blind = ENOMEM;
}

/* Changes of that entry (NULL: of any configuration) are noticed from here on. */
static void watch_entry(struct config_watch *w, const char *dir, const char *name)
{
	watch(w, (struct spot){.wd = -1}, *dir ? dir : ".", name);
}

/* --- The way --- */

/* Takes the next name off the rest. */
static bool next_name(struct way *way, char name[NAME_MAX + 1])
{
	size_t skip = strspn(way->rest, "/"), n = strcspn(way->rest + skip, "/");

	if (n == 0 || n > NAME_MAX)
		return false;
	memcpy(name, way->rest + skip, n);
	name[n] = '\0';
	memmove(way->rest, way->rest + skip + n, strlen(way->rest + skip + n) + 1);
	return true;
}

/* DIR/NAME; false: too long. */
static bool join(char out[PATH_MAX], const char *dir, const char *name)
{
	bool slash = *dir && dir[strlen(dir) - 1] != '/';
	int n = snprintf(out, PATH_MAX, "%s%s%s", dir, slash ? "/" : "", name);

	return n >= 0 && n < PATH_MAX;
}

/* Puts what the link says in front of the rest. */
static bool follow(struct way *way, const char *link)
{
	char to[PATH_MAX], rest[PATH_MAX];
	ssize_t n = readlink(link, to, sizeof(to) - 1);

	if (n <= 0 || ++way->links > MAX_LINKS)
		return false;
	to[n] = '\0';
	memcpy(rest, way->rest, sizeof(rest));
	if (!join(way->rest, to, rest + strspn(rest, "/")))
		return false;
	if (*to == '/')
		memcpy(way->at, "/", 2);
	return true;
}

/* Where a name is missing the way ends: the directory above says when it is there. */
static bool go_on(struct config_watch *w, struct way *way, const char *name)
{
	char entry[PATH_MAX];
	struct stat st;

	if (!join(entry, way->at, name))
		return false;
	if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		watch_entry(w, way->at, name);
	if (lstat(entry, &st) < 0)
		return false;
	if (S_ISLNK(st.st_mode))
		return follow(way, entry);
	memcpy(way->at, entry, sizeof(entry));
	return true;
}

/* Watches the way; true and where it leads to, in `way`, if that is a directory. */
static bool walk(struct config_watch *w, const char *path, struct way *way)
{
	char name[NAME_MAX + 1];
	struct stat st;

	*way = (struct way){.at = ""};
	if (!join(way->rest, "", path))
		return false;
	if (*path == '/')
		memcpy(way->at, "/", 2);
	while (next_name(way, name))
		if (!go_on(w, way, name))
			return false;
	if (lstat(*way->at ? way->at : ".", &st) < 0 || S_ISDIR(st.st_mode))
		return true;
	if (S_ISREG(st.st_mode))
		watch(w, (struct spot){.wd = -1, .is_file = true}, way->at, NULL);
	return false;
}

static bool is_configuration(const char *name)
{
	return *name != '.' && str_ends(str_of(name), STR(".alloy"));
}

/* The files in a directory may be links. */
static void walk_directory(struct config_watch *w, const char *path, const char *real)
{
	struct way way;
	char file[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	watch_entry(w, real, NULL);
	dir = opendir(*real ? real : ".");
	while (dir && (entry = readdir(dir)))
		if (is_configuration(entry->d_name) && join(file, path, entry->d_name))
			walk(w, file, &way);
	if (dir)
		closedir(dir);
}

static bool is_watched(const struct config_watch *w, int wd)
{
	vec_each (&w->spots, spot)
		if (spot->wd == wd)
			return true;
	return false;
}

/* Walks all ways anew; what is on none any more is not watched any longer. */
static void walk_all(struct config_watch *w)
{
	__typeof__(w->spots) old = w->spots;
	struct way way;

	w->spots.p = NULL;
	w->spots.n = w->spots.capacity = 0;
	w->blind = w->inotify_fd < 0 ? w->blind : 0;
	for (size_t i = 0; i < w->n_paths; i++)
		if (walk(w, w->paths[i], &way))
			walk_directory(w, w->paths[i], way.at);
	vec_each (&old, spot) {
		if (!is_watched(w, spot->wd))
			inotify_rm_watch(w->inotify_fd, spot->wd);
		spot_fini(spot);
	}
	vec_free(&old);
}

/* --- What comes --- */

/* A file that is made is empty; who made it closes it, too. One that only got another name is
 * whole, and nobody closes it. */
static bool is_new_file(const struct spot *spot, const struct inotify_event *event)
{
	char path[PATH_MAX];
	struct stat st;

	return event->mask & IN_CREATE && join(path, spot->path, event->name) &&
	       lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1;
}

static bool matters(const struct config_watch *w, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW)
		return true;
	if (event->mask & IN_IGNORED)
		return is_watched(w, event->wd);
	vec_each (&w->spots, spot) {
		if (spot->wd != event->wd)
			continue;
		if (spot->is_file)
			return true;
		if (event->len == 0)
			continue;
		if ((spot->name ? strcmp(spot->name, event->name) == 0
				: is_configuration(event->name)) &&
		    !is_new_file(spot, event))
			return true;
	}
	return false;
}

/* What is left after so many reads is read the next time. */
static bool read_events(const struct config_watch *w)
{
	_Alignas(struct inotify_event) char bytes[4096];
	bool changed = false;

	for (int i = 0; w->inotify_fd >= 0 && i < MAX_READS; i++) {
		ssize_t n = read(w->inotify_fd, bytes, sizeof(bytes));
		const struct inotify_event *event;

		if (n <= 0)
			break;
		for (const char *p = bytes; p < bytes + n; p += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)(const void *)p;
			changed = matters(w, event) || changed;
		}
	}
	return changed;
}

void config_watch_again(struct config_watch *w, int64_t after_ns)
{
	const struct itimerspec at = {
		.it_value = {.tv_sec = after_ns / NS_PER_SEC, .tv_nsec = after_ns % NS_PER_SEC}};

	timerfd_settime(w->timer_fd, 0, &at, NULL);
}

void config_watch_every(struct config_watch *w, int64_t every_ns)
{
	if (!w->every_ns || every_ns < w->every_ns)
		w->every_ns = every_ns;
	if (w->every_ns)
		config_watch_again(w, w->every_ns);
}

bool config_watch_take(struct config_watch *w)
{
	uint64_t n;

	if (read_events(w) && !w->pending) {
		w->pending = true;
		config_watch_again(w, MOMENT_NS);
	}
	if (read(w->timer_fd, &n, sizeof(n)) != sizeof(n))
		return false;
	w->pending = false;
	walk_all(w);
	if (w->blind)
		config_watch_every(w, LOOK_EVERY_NS);
	else
		config_watch_every(w, w->every_ns);
	return true;
}

/* --- The whole --- */

static int add(const struct config_watch *w, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_all(struct config_watch *w)
{
	int r;

	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->epoll_fd < 0 || w->timer_fd < 0)
		return -errno;
	r = add(w, w->timer_fd);
	w->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->inotify_fd < 0)
		w->blind = errno;
	else if (r == 0)
		r = add(w, w->inotify_fd);
	return r;
}

int config_watch_new(char *const *paths, size_t n, struct config_watch **ret, struct error *err)
{
	struct config_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return error_set(err, -ENOMEM, "out of memory");
	w->paths = paths;
	w->n_paths = n;
	w->epoll_fd = w->timer_fd = w->inotify_fd = -1;
	r = open_all(w);
	if (r < 0) {
		config_watch_free(w);
		return error_errno(err, r, "cannot watch the configuration");
	}
	walk_all(w);
	if (w->blind)
		config_watch_every(w, LOOK_EVERY_NS);
	*ret = w;
	return 0;
}

void config_watch_free(struct config_watch *w)
{
	if (!w)
		return;
	vec_each (&w->spots, spot)
		spot_fini(spot);
	vec_free(&w->spots);
	closep(&w->inotify_fd);
	closep(&w->timer_fd);
	closep(&w->epoll_fd);
	free(w);
}

int config_watch_fd(const struct config_watch *w)
{
	return w->epoll_fd;
}

int config_watch_blind(const struct config_watch *w)
{
	return w->blind;
}
