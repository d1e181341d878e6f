/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in file-content.h. */
#include "host/lang/values/file-content.h"
#include "host/lang/values/scope.h"
#include "host/lang/import.h"
#include "host/lang/syntax/parse.h"

#include "base/file.h"
#include "base/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)1 << 20)

/* A pipe would be waited for, and a device never ends. 0 or a negative errno. */
static int read_regular(const char *path, struct buf *ret, size_t max)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	if (r == 0)
		r = file_read_fd(fd, ret, max);
	close(fd);
	return r;
}

/* 0 is that of what cannot be read. */
static uint64_t hash_of(struct str text)
{
	uint64_t hash = hash_str(text);

	return hash ? hash : 1;
}

static uint64_t hash_of_file(const char *path)
{
	struct buf text = BUF_NULL;
	/* A module may be the longest of them. */
	uint64_t hash = read_regular(path, &text, PARSE_MAX_SOURCE) < 0 ? 0
									: hash_of(buf_str(&text));

	buf_free(&text);
	return hash;
}

uint64_t file_content_hash(const char *path)
{
	struct dirent **entries = NULL;
	int n = import_list(path, &entries);
	uint64_t hash = 1, file;

	if (n < 0)
		return hash_of_file(path);
	for (int i = 0; i < n; i++) {
		char name[PATH_MAX];

		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		file = hash_of_file(name);
		hash = hash && file ? hash_mix(hash_mix(hash, hash_str(str_of(name))), file) : 0;
		free(entries[i]);
	}
	free(entries);
	return hash;
}

static const char *cause(int r)
{
	if (r == -E2BIG)
		return "it is longer than 1048576 bytes";
	return r == -EINVAL ? "it is no regular file" : strerror(-r);
}

static bool is_secret(struct lang *l, const struct binding *b, bool *ret)
{
	struct andiron_value value;
	bool good;

	*ret = false;
	for (const struct stmt *s = b->file->body; s; s = s->next) {
		if (!str_is(s->name, "is_secret") || !s->value)
			continue;
		if (l->depth + s->value->depth > VALUE_DEPTH_MAX) {
			lang_error(l, s->value->place, NULL,
				   "this value leads through too many others");
			return false;
		}
		l->depth += s->value->depth;
		good = eval(l, s->value, &value);
		l->depth -= s->value->depth;
		if (!good)
			return false;
		if (value.kind != ANDIRON_VALUE_BOOL) {
			lang_error(l, s->value->place, NULL, "is_secret is true or false, not %s",
				   eval_describe(l, &value));
			return false;
		}
		*ret = value.integer;
	}
	return true;
}

bool file_content(struct lang *l, struct binding *b, const struct expr *e)
{
	struct buf text = BUF_NULL;
	struct str copy = STR_NULL, path;
	bool secret;
	int r;

	if (b->value.kind != ANDIRON_VALUE_STRING) {
		lang_error(l, e->place, NULL, "filename is a string, not %s",
			   eval_describe(l, &b->value));
		return false;
	}
	if (b->value.flags & ANDIRON_VALUE_SECRET) {
		lang_error(l, e->place, "convert.nonsensitive(…) says that it may be shown",
			   "filename takes no secret");
		return false;
	}
	path = lang_str(l, (struct str){b->value.string.ptr, b->value.string.len});
	b->path = path.p;
	if (!path.p || !is_secret(l, b, &secret))
		return false;
	r = read_regular(path.p, &text, MAX_BYTES);
	if (r < 0)
		lang_error(l, e->place,
			   r == -ENOENT ? "check the path; the file must be there when the "
					     "configuration is read"
			   : r == -EACCES ? "the agent's user must be able to read it"
					  : NULL,
			   "cannot read the file %s: %s", path.p, cause(r));
	else if (!str_utf8(buf_str(&text)))
		lang_error(l, e->place, NULL, "the file %s is not UTF-8 text", path.p);
	else
		copy = lang_str(l, buf_str(&text));
	b->hash = r < 0 ? 0 : hash_of(buf_str(&text));
	buf_free(&text);
	b->value = eval_value(e, ANDIRON_VALUE_STRING);
	b->value.string = (struct andiron_str){copy.p, copy.n};
	b->value.flags = secret ? ANDIRON_VALUE_SECRET : 0;
	return copy.p;
}
