/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in library.h. That it is async-profiler's is seen by the names that it exports: one by
 * which JVMs load an agent, and one of async-profiler's own API, which it has since version 3. */
#include "java/attach/library.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MAX_BYTES (16u << 20)

static const char *const usual[] = {
	"/opt/async-profiler/lib/" LIBRARY_NAME,
	"/usr/local/lib/" LIBRARY_NAME,
	"/usr/lib/" LIBRARY_NAME,
};

static uint16_t machine_of(struct str bytes)
{
	Elf64_Ehdr head;

	if (bytes.n < sizeof(head))
		return 0;
	memcpy(&head, bytes.p, sizeof(head));
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB)
		return 0;
	return head.e_machine;
}

uint16_t library_machine(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[sizeof(Elf64_Ehdr)];

	if (fd < 0 || file_pread(fd, head, sizeof(head), 0) < 0)
		return 0;
	return machine_of((struct str){head, sizeof(head)});
}

static bool has(struct str bytes, const char *word)
{
	return memmem(bytes.p, bytes.n, word, strlen(word) + 1) != NULL;
}

/* --- Whose it is --- */

/* In a folder with the sticky bit others cannot replace what is not theirs. */
static int check_one(const char *path, const struct stat *st, struct error *err)
{
	bool shared = st->st_mode & (S_IWGRP | S_IWOTH) &&
		      !(S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX);

	if (!shared && (st->st_uid == 0 || st->st_uid == geteuid()))
		return 0;
	return error_set(err, -EPERM,
			 "%s can be changed by others than root and the agent's user, so the "
			 "library is not loaded into JVMs; put it where only these two may change "
			 "it and the folders above it, or chown root and chmod go-w %s",
			 path, path);
}

/* The folders of a path without links, from the last to the root. */
static int check_folders(const char *path, struct error *err)
{
	char folder[PATH_MAX], *slash;
	struct stat st;
	int r = 0;

	snprintf(folder, sizeof(folder), "%s", path);
	while (r == 0 && (slash = strrchr(folder, '/'))) {
		const char *name = slash == folder ? "/" : folder;

		*slash = '\0';
		if (stat(name, &st) < 0)
			return error_errno(err, -errno, "cannot look at %s", name);
		r = check_one(name, &st, err);
	}
	return r;
}

/* --- What it is --- */

static int look(struct library *l, const struct stat *st, struct error *err)
{
	struct str bytes = buf_str(&l->bytes);

	l->machine = machine_of(bytes);
	if (!l->machine || !has(bytes, "Agent_OnAttach") || !has(bytes, "asprof_execute"))
		return error_set(err, -EINVAL,
				 "%s is not async-profiler's library (3.0 or later, 64 bits)",
				 l->path);
	l->device = st->st_dev;
	l->inode = st->st_ino;
	return 0;
}

/* The path without links is what JVMs get, too: a link that others can change leads nowhere new. */
static int resolve(struct library *l, struct error *err)
{
	char real[PATH_MAX];

	if (!realpath(l->path, real))
		return error_errno(err, -errno, "cannot open %s", l->path);
	if (strlen(real) >= sizeof(l->path))
		return error_set(err, -ENAMETOOLONG,
				 "%s has more than %zu bytes; put the library elsewhere", real,
				 sizeof(l->path) - 1);
	memcpy(l->path, real, strlen(real) + 1);
	return 0;
}

static int load(struct library *l, struct error *err)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	int r = resolve(l, err);

	if (r < 0)
		return r;
	fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot open %s", l->path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s is not a file", l->path);
	r = check_one(l->path, &st, err);
	if (r == 0)
		r = check_folders(l->path, err);
	if (r < 0)
		return r;
	r = file_read_fd(fd, &l->bytes, MAX_BYTES);
	if (r < 0)
		return error_errno(err, r, "cannot read %s", l->path);
	return look(l, &st, err);
}

static int locate(struct library *l, struct str dist, struct error *err)
{
	struct stat st;

	if (dist.n) {
		snprintf(l->path, sizeof(l->path), "%.*s", STR_FMT(dist));
		if (stat(l->path, &st) == 0 && S_ISDIR(st.st_mode))
			snprintf(l->path, sizeof(l->path), "%.*s/lib/" LIBRARY_NAME, STR_FMT(dist));
		if (stat(l->path, &st) == 0)
			return 0;
		return error_errno(err, -errno,
				   "async-profiler's library is not at %s, where `dist` leads",
				   l->path);
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) {
		snprintf(l->path, sizeof(l->path), "%s", usual[i]);
		if (stat(l->path, &st) == 0)
			return 0;
	}
	return error_set(err, -ENOENT,
			 "async-profiler's library is not here, and none is built in; unpack a "
			 "release of async-profiler (3.0 or later) and name its folder by the "
			 "argument `dist`, or put it at /opt/async-profiler");
}

int library_load(struct library *ret, struct str dist, struct error *err)
{
	struct library l = {.bytes = BUF_NULL};
	int r = locate(&l, dist, err);

	if (r == 0)
		r = load(&l, err);
	if (r < 0)
		library_free(&l);
	else
		*ret = l;
	return r;
}

void library_free(struct library *l)
{
	buf_free(&l->bytes);
}
