/* SPDX-License-Identifier: Apache-2.0 */
/* The requests for a debug file, in order, to each server in turn. See debuginfod.h. */
#include "debuginfod/debuginfod.h"

#include "debuginfod/assemble.h"
#include "debuginfod/store.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "http/polled.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WHOLE "debuginfo"
/* The sections in one file; no server has one of this name. */
#define PARTS "section-.andiron"

/* The first must be there, and the symbols with their texts; else the file is of no use. */
static const char *const section_names[] = {".debug_line", ".debug_line_str", ".symtab", ".strtab"};
#define N_SECTIONS (sizeof(section_names) / sizeof(section_names[0]))

/* Asked one after the other, one request at a time. Does not move: the loop is in it. */
struct servers {
	struct http_polled loop;
	struct str urls; /* as in DEBUGINFOD_URLS; borrowed */
	uint64_t
		max_bytes; /* of a file; a longer one is not begun if the server gives its length */
	int64_t stall_ms;  /* nothing arrives that long: the next server */
	int64_t until_ns;  /* CLOCK_MONOTONIC; nothing is asked after it */
};

struct get {
	bool done;
	int fd;
	int failure; /* of writing */
	int result, status;
	struct error *err;
};

static bool on_data(void *context, struct str piece)
{
	struct get *g = context;

	g->failure = file_write_fd(g->fd, piece.p, piece.n);
	return g->failure == 0;
}

static void on_done(void *context, const struct http_response *response)
{
	struct get *g = context;

	check(!g->done);
	g->done = true;
	g->status = response->status;
	g->result = g->failure ? g->failure : response->result;
	if (response->result)
		error_set(g->err, response->result, "%s", response->error);
}

static int meaning_of(const struct get *g, struct error *err)
{
	if (g->result < 0)
		return g->result;
	if (g->status >= 200 && g->status <= 299)
		return 0;
	/* What a server does not know, and what an older one cannot do. */
	if (g->status == 404 || g->status == 400 || g->status == 405 || g->status == 406)
		return -ENOENT;
	return error_set(err, -EPROTO, "a debuginfod server answered with status %d", g->status);
}

static int request(struct servers *s, struct str url, int fd, struct error *err)
{
	const struct http_config config = {
		.follow_redirects = true, .proxy_from_environment = true, .enable_http2 = true};
	struct get g = {.fd = fd, .err = err};
	int64_t left_ms = (s->until_ns - clock_mono()) / NS_PER_MSEC;
	const struct http_request request = {.method = "GET",
					     .url = url,
					     .timeout_ms = left_ms,
					     .stall_ms = s->stall_ms,
					     .max_response = s->max_bytes,
					     .data = on_data,
					     .done = on_done,
					     .context = &g};
	uint64_t id;
	int r;

	if (left_ms <= 0)
		return error_set(err, -ETIME, "the debuginfod servers took too long");
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = http_send(s->loop.client, &config, &request, &id, err);
	if (r < 0)
		return r;
	/* The request ends by its own limits; these only guard against mistakes of ours. */
	if (!http_polled_until(&s->loop, &g.done, left_ms + 5000)) {
		http_cancel(s->loop.client, id);
		return -ETIME;
	}
	return meaning_of(&g, err);
}

/* "ima:enforcing" and the like stand among the servers, and are none. */
static bool is_server(struct str word)
{
	return str_starts(word, STR("http://")) || str_starts(word, STR("https://"));
}

static struct str next_word(struct str *rest)
{
	size_t n = 0;
	struct str word;

	*rest = str_trim(*rest);
	while (n < rest->n && !memchr(" \t\r\n", rest->p[n], 4))
		n++;
	word = str_first(*rest, n);
	*rest = str_skip(*rest, n);
	return word;
}

/* Writes what the first server that has it gives for `path` ("/buildid/…") to `fd`, instead of what
 * was there. -ENOENT: no server has it; -EINVAL: there are no servers; -E2BIG: it is too large;
 * -ETIME; else the failure of the last server that did not answer, with a text. At most ten
 * redirects, to HTTP and HTTPS only; TLS and proxies are as the environment says. */
static int servers_get(struct servers *s, struct str path, int fd, struct error *err)
{
	int result = -EINVAL;

	for (struct str rest = s->urls; rest.n;) {
		struct str word = next_word(&rest);
		struct buf url = BUF_NULL;
		int r;

		if (!is_server(word))
			continue;
		while (word.n && word.p[word.n - 1] == '/')
			word.n--;
		buf_printf(&url, "%.*s%.*s", STR_FMT(word), STR_FMT(path));
		r = url.failed ? -ENOMEM : request(s, buf_str(&url), fd, err);
		buf_free(&url);
		if (r == 0 || r == -ENOMEM)
			return r;
		/* That one server has not got it says less than that another could not tell. */
		if (r != -ENOENT || result == -EINVAL)
			result = r;
	}
	return result;
}

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
	r = http_polled_init(&f.servers.loop, err);
	if (r == 0) {
		r = find(&f, &name);
		http_polled_fini(&f.servers.loop);
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
