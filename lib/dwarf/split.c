/* SPDX-License-Identifier: Apache-2.0 */
/* Where the bodies of skeletons are. Contract in split.h. */
#include "dwarf/split.h"

#include "base/check.h"
#include "dwarf/dw.h"
#include "dwarf/package.h"

#include <errno.h>
#include <stdlib.h>

void split_fini(struct split *s)
{
	if (s->has_package)
		dwarf_file_close(&s->package);
	vec_each (&s->files, f) {
		dwarf_file_close(*f);
		free(*f);
	}
	vec_each (&s->wanted, w)
		buf_free(&w->path);
	vec_free(&s->files);
	vec_free(&s->wanted);
	vec_free(&s->asked);
}

size_t split_bytes(const struct split *s)
{
	size_t n = dwarf_file_bytes(&s->package) + s->asked.capacity * sizeof(*s->asked.p);

	vec_each (&s->files, f)
		n += sizeof(**f) + dwarf_file_bytes(*f);
	return n;
}

size_t split_n_fds(const struct split *s)
{
	size_t n = dwarf_file_n_fds(&s->package);

	vec_each (&s->files, f)
		n += dwarf_file_n_fds(*f);
	return n;
}

/* As the compiler wrote it: from the folder that it worked in. */
static int path_of(const struct unit *u, struct buf *ret)
{
	int r = die_has(&u->root, DIE_DWO_NAME) ? unit_text(u, &u->root.v[DIE_DWO_NAME], ret)
						: -ENOENT;
	struct buf folder = BUF_NULL;

	if (r == 0 && ret->n && ret->p[0] != '/' && die_has(&u->root, DIE_COMP_DIR))
		r = unit_text(u, &u->root.v[DIE_COMP_DIR], &folder);
	if (r == 0 && folder.n) {
		r = buf_putc(&folder, '/');
		if (r == 0)
			r = buf_append(&folder, ret->p, ret->n);
		if (r == 0) {
			struct buf name = *ret;

			*ret = folder;
			folder = name;
		}
	}
	buf_free(&folder);
	return r < 0 ? r : buf_putc(ret, '\0');
}

/* Once: who has not got it need not be asked for each address. */
static int want(struct split *s, const struct unit *skeleton, uint64_t id)
{
	struct split_wanted w = {.id = id};
	int r;

	if (s->has_package || s->wanted.n >= SPLIT_WANTED_MAX || s->asked.n >= SPLIT_ASKED_MAX)
		return 0;
	vec_each (&s->asked, have)
		if (*have == id)
			return 0;
	r = path_of(skeleton, &w.path);
	if (r == 0 && vec_reserve(&s->wanted, 1) && vec_push(&s->asked, id)) {
		s->wanted.p[s->wanted.n++] = w;
		return 0;
	}
	buf_free(&w.path);
	return r == 0 || r == -ENOMEM ? -ENOMEM : 0;
}

int split_find(struct split *s, const struct unit *skeleton, struct dwarf_file **ret_file,
	       const struct unit_head **ret)
{
	uint64_t id = skeleton->head->type == DW_UT_skeleton
			      ? skeleton->head->dwo_id
			      : die_number(&skeleton->root, DIE_DWO_ID);
	int r;

	*ret_file = &s->package;
	*ret = s->has_package ? package_unit(&s->package, id) : NULL;
	for (size_t i = 0; !*ret && i < s->files.n; i++) {
		*ret_file = s->files.p[i];
		*ret = package_unit(*ret_file, id);
	}
	if (*ret)
		return 0;
	r = want(s, skeleton, id);
	return r < 0 ? r : -EAGAIN;
}

int split_add(struct split *s, int fd)
{
	struct dwarf_file *f = vec_reserve(&s->files, 1) ? malloc(sizeof(*f)) : NULL;
	int r = f ? 0 : -ENOMEM;

	if (r == 0 && s->files.n >= SPLIT_FILES_MAX)
		r = -E2BIG;
	if (r == 0)
		r = dwarf_file_open(f, fd, true, NULL);
	if (r < 0) {
		free(f);
		return r;
	}
	check(s->files.n < s->files.capacity);
	s->files.p[s->files.n++] = f;
	return 0;
}
