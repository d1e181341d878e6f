/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked for, in which order. Contract in debuginfod.h. */
#include "debuginfod/debuginfod.h"

#include "debuginfod/assemble.h"
#include "debuginfod/servers.h"
#include "debuginfod/store.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define WHOLE "debuginfo"
/* The sections in one file; no server has one of this name. */
#define PARTS "section-.andiron"

/* The first must be there, and the symbols with their texts; else the file is of no use. */
static const char *const section_names[] = {".debug_line", ".debug_line_str", ".symtab", ".strtab"};
#define N_SECTIONS (sizeof(section_names) / sizeof(section_names[0]))

struct finder {
	const struct debuginfod *d;
	struct str id;
	struct store store;
	struct servers servers;
	struct error *err;
};

/* A descriptor of what is kept under a name, fetched where need be. */
static int get(struct finder *f, const char *name, const char *what)
{
	_cleanup_(buf_free) struct buf path = BUF_NULL;
	struct store_draft draft;
	int r = store_find(&f->store, f->id, name);

	if (r != -ENOENT)
		return r == -ENODATA ? -ENOENT : r;
	buf_printf(&path, "/buildid/%.*s/%s", STR_FMT(f->id), what);
	r = path.failed ? -ENOMEM : store_begin(&f->store, f->id, name, &draft);
	if (r < 0)
		return r;
	r = servers_get(&f->servers, buf_str(&path), draft.fd, f->err);
	if (r == 0)
		r = store_keep(&draft, name);
	else
		store_drop(&draft);
	if (r == -ENOENT)
		store_deny(&f->store, f->id, name);
	return r < 0 ? r : store_find(&f->store, f->id, name);
}

static int get_section(struct finder *f, const char *section)
{
	char name[STORE_NAME_MAX], what[STORE_NAME_MAX];

	snprintf(name, sizeof(name), "section-%s", section);
	snprintf(what, sizeof(what), "section/%s", section);
	return get(f, name, what);
}

static int make_parts(struct finder *f, const struct assemble_section *sections)
{
	struct store_draft draft;
	int r = store_begin(&f->store, f->id, PARTS, &draft);

	if (r < 0)
		return r;
	r = assemble(draft.fd, f->id, sections, N_SECTIONS);
	if (r == 0)
		return store_keep(&draft, PARTS);
	store_drop(&draft);
	return error_errno(f->err, r, "cannot put sections together");
}

/* -ENOENT: the servers have no sections of it. */
static int get_parts(struct finder *f)
{
	struct assemble_section sections[N_SECTIONS];
	int kept = store_find(&f->store, f->id, PARTS), r = 0;

	if (kept >= 0) {
		close(kept);
		return 0;
	}
	for (size_t i = 0; i < N_SECTIONS; i++) {
		sections[i] = (struct assemble_section){section_names[i], -1};
		if (r == 0)
			sections[i].fd = get_section(f, section_names[i]);
		if (sections[i].fd < 0 && (i == 0 || sections[i].fd != -ENOENT) && r == 0)
			r = sections[i].fd;
	}
	if (r == 0)
		r = make_parts(f, sections);
	for (size_t i = 0; i < N_SECTIONS; i++)
		closep(&sections[i].fd);
	return r;
}

static int get_whole(struct finder *f)
{
	int fd = get(f, WHOLE, WHOLE);

	closep(&fd);
	return fd < 0 ? fd : 0;
}

static int find(struct finder *f, const char **ret_name)
{
	int r;

	if (f->d->lines_only) {
		*ret_name = PARTS;
		r = get_parts(f);
		if (r != -ENOENT)
			return r;
	}
	*ret_name = WHOLE;
	r = get_whole(f);
	if (r != -E2BIG || f->d->lines_only)
		return r;
	*ret_name = PARTS;
	r = get_parts(f);
	return r == -ENOENT ? -E2BIG : r;
}

int debuginfod_find(const struct debuginfod *d, struct str build_id, struct buf *ret_path,
		    struct error *err)
{
	struct finder f = {.d = d, .id = build_id, .err = err};
	const char *name = WHOLE;
	int r;

	if (!store_is_id(build_id))
		return error_set(err, -EINVAL, "\"%.*s\" is not a build id", STR_FMT(build_id));
	r = store_open(&f.store, d->folder, d->folder_bytes, err);
	if (r < 0)
		return r;
	f.servers = (struct servers){.urls = d->urls,
				     .max_bytes = d->max_bytes,
				     .stall_ms = d->stall_ms,
				     .until_ns = clock_mono() + d->time_ms * NS_PER_MSEC};
	r = servers_init(&f.servers, err);
	if (r == 0) {
		r = find(&f, &name);
		servers_fini(&f.servers);
	}
	store_clean(&f.store, time(NULL));
	store_close(&f.store);
	return r < 0 ? r : buf_printf(ret_path, "%s/%.*s/%s", d->folder, STR_FMT(build_id), name);
}

static bool is_set(const char *value)
{
	return value && value[0] == '/';
}

int debuginfod_folder(struct buf *ret)
{
	const char *path = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME");
	const char *cache = getenv("XDG_CACHE_HOME");

	if (is_set(path))
		return buf_printf(ret, "%s", path);
	if (is_set(home)) {
		size_t at = ret->n;
		int r = buf_printf(ret, "%s/.debuginfod_client_cache%c", home, 0);

		/* Where earlier versions of elfutils kept it. */
		if (r < 0 || access(ret->p + at, F_OK) == 0) {
			ret->n -= r == 0;
			return r;
		}
		ret->n = at;
	}
	if (is_set(cache))
		return buf_printf(ret, "%s/debuginfod_client", cache);
	return is_set(home) ? buf_printf(ret, "%s/.cache/debuginfod_client", home) : -ENOENT;
}
