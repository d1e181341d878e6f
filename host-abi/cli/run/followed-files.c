/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in followed-files.h. The host watches a descriptor for good, and which files are
 * followed changes with each plan; so that descriptor is an epoll set that holds the watch's. */
#include "cli/run/followed-files.h"

#include "cli/run/config-watch.h"
#include "host/lang/values/file-content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

int followed_files_init(struct followed_files *ret, struct error *err)
{
	*ret = (struct followed_files){.fd = epoll_create1(EPOLL_CLOEXEC)};
	return ret->fd < 0 ? error_errno(err, -errno, "cannot follow files") : 0;
}

static void forget(struct followed_files *files)
{
	config_watch_free(files->watch);
	files->watch = NULL;
	vec_each (&files->paths, path)
		free(*path);
	vec_free(&files->paths);
	vec_free(&files->hashes);
}

void followed_files_fini(struct followed_files *files)
{
	forget(files);
	if (files->fd > 0)
		close(files->fd);
}

static bool is_same(const struct followed_files *files, const struct plan *plan)
{
	if (files->paths.n != plan->files.n || files->poll_ns != plan->poll_ns)
		return false;
	for (size_t i = 0; i < plan->files.n; i++)
		if (strcmp(files->paths.p[i], plan->files.p[i].path) != 0)
			return false;
	return true;
}

static int follow(struct followed_files *files, const struct plan *plan, struct error *err)
{
	struct epoll_event event = {.events = EPOLLIN};
	int r;

	files->poll_ns = plan->poll_ns;
	vec_each (&plan->files, file) {
		char *copy = strdup(file->path);

		if (!copy || !vec_push(&files->paths, copy)) {
			free(copy);
			return error_set(err, -ENOMEM, "out of memory");
		}
		if (!vec_push(&files->hashes, file->hash))
			return error_set(err, -ENOMEM, "out of memory");
	}
	if (!files->paths.n)
		return 0;
	r = config_watch_new(files->paths.p, files->paths.n, &files->watch, err);
	if (r < 0)
		return r;
	if (epoll_ctl(files->fd, EPOLL_CTL_ADD, config_watch_fd(files->watch), &event) < 0)
		return error_errno(err, -errno, "cannot follow files");
	if (files->poll_ns)
		config_watch_every(files->watch, files->poll_ns);
	/* They were read before they were watched. */
	config_watch_again(files->watch, 1);
	return 0;
}

int followed_files_set(struct followed_files *files, const struct plan *plan, struct error *err)
{
	int r;

	if (is_same(files, plan)) {
		for (size_t i = 0; i < plan->files.n; i++)
			files->hashes.p[i] = plan->files.p[i].hash;
		return 0;
	}
	forget(files);
	r = follow(files, plan, err);
	if (r < 0)
		forget(files);
	return r;
}

bool followed_files_readable(const struct followed_files *files)
{
	for (size_t i = 0; i < files->paths.n; i++)
		if (file_content_hash(files->paths.p[i]) == 0)
			return false;
	return true;
}

bool followed_files_changed(struct followed_files *files)
{
	bool changed = false;

	if (!files->watch || !config_watch_take(files->watch))
		return false;
	for (size_t i = 0; i < files->paths.n; i++) {
		uint64_t hash = file_content_hash(files->paths.p[i]);

		changed |= hash != files->hashes.p[i];
		files->hashes.p[i] = hash;
	}
	return changed;
}

void followed_files_again(struct followed_files *files, int64_t after_ns)
{
	vec_each (&files->hashes, hash)
		*hash = 1; /* none has it but by chance */
	if (files->watch)
		config_watch_again(files->watch, after_ns);
}
