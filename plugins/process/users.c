/* SPDX-License-Identifier: Apache-2.0 */
/* Names of users. Contract in users.h. */
#include "process/users.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

void users_free(struct users *u)
{
	vec_free(&u->known);
	arena_free(&u->text);
}

static void forget(struct users *u)
{
	u->known.n = 0;
	arena_free(&u->text);
	u->text = ARENA_NULL;
}

/* Names point into one copy of the text, so of equal uids the first of the file is the one at the
 * lower address. */
static int by_uid(const void *a, const void *b)
{
	const struct user *x = a, *y = b;

	return compare(x->uid, y->uid) ?: compare(x->name.p, y->name.p);
}

int users_parse(struct users *u, struct str passwd)
{
	forget(u);
	passwd = arena_str(&u->text, passwd);
	if (!passwd.p)
		return -ENOMEM;
	while (passwd.n) {
		struct str line = str_cut(&passwd, '\n');
		struct str name = str_cut(&line, ':');
		uint64_t uid;

		str_cut(&line, ':');
		if (!name.n || !str_u64(str_cut(&line, ':'), &uid) || uid >= UINT32_MAX)
			continue;
		if (!vec_push(&u->known, ((struct user){(uint32_t)uid, name}))) {
			forget(u);
			return -ENOMEM;
		}
	}
	if (u->known.n)
		qsort(u->known.p, u->known.n, sizeof(*u->known.p), by_uid);
	return 0;
}

void users_refresh(struct users *u, int proc)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	_cleanup_(closep) int fd = openat(proc, "1/root/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	if (st.st_size == u->size && st.st_mtim.tv_sec == u->changed.tv_sec &&
	    st.st_mtim.tv_nsec == u->changed.tv_nsec)
		return;
	/* Of a file that is too large the first part counts. */
	if (file_read_fd(fd, &text, USERS_BYTES_MAX) == -ENOMEM || users_parse(u, buf_str(&text)))
		return;
	u->changed = st.st_mtim;
	u->size = st.st_size;
}

struct str users_name(const struct users *u, uint32_t uid)
{
	size_t low = search_partition(u->known.n, i, u->known.p[i].uid < uid);

	return low < u->known.n && u->known.p[low].uid == uid ? u->known.p[low].name : STR_NULL;
}
