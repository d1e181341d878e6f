/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the parser. Contract in resolve.h. */
#include "symbolize/resolve.h"

#include "symbolize/parser/answer.h"
#include "symbolize/names/sanitize.h"
#include "symbolize/parser/vdso.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#define MAX_ROUNDS       3 /* a debug link leads to a file, which leads to dwz's */
#define MAX_SPLIT_ROUNDS 4 /* each brings PARSER_SPLITS_MAX files of split units */
#define MAX_CRASHES      2

static int open_one(const struct symbolizer *s, const struct cached_object *o, uint32_t what)
{
	int32_t fd;
	int r = s->cache.objects->open(s->cache.objects_self, o->id, what, &fd);

	return r < 0 ? r : fd;
}

static int open_named(const struct symbolizer *s, const struct cached_object *o, uint32_t what,
		      const char *name)
{
	const struct andiron_objects *objects = s->cache.objects;
	const struct andiron_str str = {name, strlen(name)};
	int32_t fd;

	if (!str.len || !ANDIRON_HAS(objects, andiron_objects, open_named))
		return -ENOENT;
	return objects->open_named(s->cache.objects_self, o->id, what, &str, &fd) < 0 ? -ENOENT
										      : fd;
}

static int open_vdso(struct symbolizer *s)
{
	int r = s->vdso < 0 ? vdso_open(&s->vdso) : 0;
	int fd = r < 0 ? r : fcntl(s->vdso, F_DUPFD_CLOEXEC, 3);

	return r == 0 && fd < 0 ? -errno : fd;
}

static struct str build_id_of(const struct symbolizer *s, const struct cached_object *o)
{
	struct andiron_object_info info = {.size = sizeof(info)};

	if (o->id == CACHE_VDSO || s->cache.objects->info(s->cache.objects_self, o->id, &info) < 0)
		return STR_NULL;
	return (struct str){info.gnu_build_id.ptr, info.gnu_build_id.len};
}

/* A file that was fetched; PARSER_REOPEN where the parser does not know it yet. */
static int open_fetched(struct symbolizer *s, struct cached_object *o, enum tables_file file,
			struct str build_id, uint32_t *flags)
{
	int fd = s->source.open && build_id.n ? s->source.open(s->source.self, build_id) : -ENOENT;

	if (fd >= 0 && !(o->fetched & 1u << file)) {
		*flags |= PARSER_REOPEN;
		o->fetched |= 1u << file;
		s->totals.fetched++;
	}
	return fd;
}

/* Descriptors of the object's files; those that there are not are -1. */
static int open_files(struct symbolizer *s, struct cached_object *o, int fds[TABLES_FILES],
		      uint32_t *flags)
{
	for (unsigned int i = 0; i < TABLES_FILES; i++)
		fds[i] = -1;
	fds[TABLES_FILE] = o->id == CACHE_VDSO ? open_vdso(s) : open_one(s, o, ANDIRON_OPEN_FILE);
	if (fds[TABLES_FILE] < 0 || o->id == CACHE_VDSO)
		return fds[TABLES_FILE] < 0 ? fds[TABLES_FILE] : 0;
	fds[TABLES_DEBUG] = open_one(s, o, ANDIRON_OPEN_DEBUG);
	if (fds[TABLES_DEBUG] < 0)
		fds[TABLES_DEBUG] = open_named(s, o, ANDIRON_OPEN_DEBUG_LINK, o->link);
	if (fds[TABLES_DEBUG] < 0)
		fds[TABLES_DEBUG] = open_fetched(s, o, TABLES_DEBUG, build_id_of(s, o), flags);
	if (s->settings.lines || s->settings.inlines) {
		fds[TABLES_ALT] = open_named(s, o, ANDIRON_OPEN_BUILD_ID, o->alt);
		if (fds[TABLES_ALT] < 0)
			fds[TABLES_ALT] = open_fetched(s, o, TABLES_ALT, str_of(o->alt), flags);
		fds[TABLES_PACKAGE] = open_one(s, o, ANDIRON_OPEN_PACKAGE);
	}
	for (unsigned int i = 0; i < TABLES_FILES; i++)
		fds[i] = fds[i] < 0 ? -1 : fds[i];
	return 0;
}

/* Keeps a text out of the answer; true where it is new. */
static bool learn(char *to, size_t size, struct str text)
{
	if (!text.n || text.n >= size || memchr(text.p, '\0', text.n) || to[0])
		return false;
	memcpy(to, text.p, text.n);
	to[text.n] = '\0';
	return true;
}

static uint32_t intern_clean(struct cached_object *o, struct str text, struct buf *scratch)
{
	struct str clean = text.n ? sanitize_name(text, scratch) : STR("");

	return clean.p ? intern_add(&o->names, clean) : INDEX_NONE;
}

/* The parser's answer is untrusted: texts are cleaned again. */
static int take_frames(struct cached_object *o, struct str *rest, unsigned int n,
		       struct buf *scratch)
{
	for (unsigned int i = 0; i < n; i++) {
		struct answer_frame f;
		struct cached_frame frame;

		if (!answer_frame(rest, &f))
			return -EBADMSG;
		frame = (struct cached_frame){
			.name = intern_clean(o, f.name, scratch),
			.system_name = intern_clean(o, f.linked, scratch),
			.file = intern_clean(o, f.file, scratch),
			.line = f.line,
			.column = f.column,
			.start_line = f.start_line,
		};
		if (frame.name == INDEX_NONE || frame.system_name == INDEX_NONE ||
		    frame.file == INDEX_NONE || !cache_add_frame(o, &frame))
			return -ENOMEM;
	}
	return 0;
}

static int take_addresses(struct cached_object *o, struct str rest, const struct resolve *q)
{
	_cleanup_(buf_free) struct buf scratch = BUF_NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < q->n; i++) {
		struct cached_name name = {.address = q->addresses[i], .demangle = q->demangle};
		struct answer_address a;

		if (!answer_address(&rest, &a) || a.source > FROM_COUNT ||
		    (a.n_frames && a.source == FROM_COUNT) || a.n_frames > PARSER_FRAMES_MAX)
			return -EBADMSG;
		if (a.unread)
			continue;
		name.source = a.source;
		name.function = a.function;
		r = cache_add(o, &name) ? take_frames(o, &rest, a.n_frames, &scratch) : -ENOMEM;
	}
	return r;
}

static unsigned int reason_of(int error)
{
	return error == -EPIPE   ? ASIDE_CRASH
	       : error == -ETIME ? ASIDE_TIME
	       : error == -E2BIG ? ASIDE_MEMORY
				 : ASIDE_BROKEN;
}

/* Counts and says it; `all`: it is not tried again. */
static void set_aside(struct symbolizer *s, struct cached_object *o, bool all,
		      const struct error *why)
{
	struct andiron_object_info info = {.size = sizeof(info)};

	if (all)
		o->state = OBJECT_BROKEN;
	s->totals.set_aside[reason_of(why->code)]++;
	if (s->aside && o->id != CACHE_VDSO &&
	    s->cache.objects->info(s->cache.objects_self, o->id, &info) == 0)
		s->aside(s->context, &info.path, all, why);
}

/* A part costs more than it may; once is enough to say so. */
static void set_part_aside(struct symbolizer *s, struct cached_object *o, int over)
{
	struct error why = ERROR_NULL;

	if (o->over == over || o->over == -ETIME || (over != -ETIME && over != -E2BIG))
		return;
	o->over = over;
	if (over == -ETIME)
		error_set(&why, over, "its debug information takes more than file_steps = %llu",
			  (unsigned long long)s->settings.file_steps);
	else
		error_set(&why, over, "its tables take more memory than file_bytes = %zu",
			  s->settings.file_bytes);
	set_aside(s, o, false, &why);
}

static void make_unavailable(struct cached_object *o, int64_t now_ns)
{
	o->state = OBJECT_UNAVAILABLE;
	o->retry_ns = now_ns + OBJECT_RETRY_NS;
}

/* The parser died. */
static void count_crash(struct symbolizer *s, struct cached_object *o, int64_t now_ns)
{
	struct error why = ERROR_NULL;

	s->totals.crashes++;
	if (++o->crashes < MAX_CRASHES) {
		make_unavailable(o, now_ns);
		return;
	}
	error_set(&why, -EPIPE, "the process that reads files died over it twice");
	set_aside(s, o, true, &why);
}

/* What the answer says is missing, into the next request; false where none of it is there. */
static bool open_splits(const struct symbolizer *s, const struct cached_object *o,
			struct str wanted, struct parser_request *next)
{
	while (wanted.n && next->n_splits < PARSER_SPLITS_MAX) {
		struct str path = str_cut(&wanted, '\0');
		_cleanup_(freep) char *name = str_dup(path);
		int fd = name && str_utf8(path) ? open_named(s, o, ANDIRON_OPEN_SPLIT, name)
						: -ENOENT;

		if (fd >= 0)
			next->splits[next->n_splits++] = fd;
	}
	check(next->n_splits <= PARSER_SPLITS_MAX);
	return next->n_splits > 0;
}

/* Split units' files have no table of files to open them by: they come when the parser has missed
 * them. The last answer is the one that counts. */
static int ask_splits(struct symbolizer *s, struct cached_object *o, const struct resolve *q,
		      struct parser_request *request, struct buf *answer)
{
	int r = 0;

	for (unsigned int round = 0; r == 0 && round < MAX_SPLIT_ROUNDS; round++) {
		struct str rest = buf_str(answer);
		struct answer_tail tail;

		if (!answer_tail(&rest, &tail))
			return -EBADMSG;
		request->n_splits = 0;
		if (!open_splits(s, o, tail.wanted, request))
			return 0;
		r = open_files(s, o, request->fds, &request->flags);
		if (r < 0) {
			parser_request_close(request);
			return -ENOENT;
		}
		request->flags &= ~PARSER_REOPEN;
		buf_clear(answer);
		r = s->port.ask(s->port.self, request, answer);
	}
	return r;
}

static uint32_t wishes(const struct symbolizer *s, const struct cached_object *o)
{
	return (s->settings.lines ? PARSER_LINES : 0) | (s->settings.inlines ? PARSER_INLINES : 0) |
	       (o->over == -ETIME ? PARSER_SYMBOLS : 0);
}

/* One round: 1 where the answer names files that were not at hand. */
static int ask(struct symbolizer *s, struct cached_object *o, const struct resolve *q,
	       uint32_t flags, struct buf *answer)
{
	struct parser_request request = {
		.object = o->id,
		.flags = flags | wishes(s, o),
		.demangle = q->demangle,
		.max_bytes = s->settings.cache_bytes,
		.file_bytes = s->settings.file_bytes,
		.steps = s->settings.file_steps,
		.addresses = q->addresses,
		.n = q->n,
	};
	struct answer_head head;
	struct str rest;
	bool link, alt, has_alt;
	int r = open_files(s, o, request.fds, &request.flags);

	if (r < 0)
		return -ENOENT;
	has_alt = request.fds[TABLES_ALT] >= 0;
	buf_clear(answer);
	r = s->port.ask(s->port.self, &request, answer);
	if (r < 0)
		return r;
	rest = buf_str(answer);
	if (!answer_head(&rest, &head))
		return -EBADMSG;
	link = learn(o->link, sizeof(o->link), head.link);
	alt = learn(o->alt, sizeof(o->alt), head.alt);
	if (head.lacking && s->source.want)
		s->source.want(s->source.self, build_id_of(s, o), q->now_ns);
	/* It is looked for here first, in the next round. */
	if (o->alt[0] && !alt && !has_alt && s->source.want)
		s->source.want(s->source.self, str_of(o->alt), q->now_ns);
	if (link || alt)
		return 1;
	return head.error < 0 ? 0 : ask_splits(s, o, q, &request, answer);
}

static int take(struct symbolizer *s, struct cached_object *o, const struct resolve *q,
		const struct buf *answer)
{
	struct str rest = buf_str(answer);
	struct error why = ERROR_NULL;
	struct answer_tail tail;
	struct answer_head head;

	if (!answer_tail(&rest, &tail) || !answer_head(&rest, &head))
		return -EBADMSG;
	if (head.error < 0) {
		error_set(&why, head.error, "%.*s", head.why.n < 900 ? (int)head.why.n : 900,
			  head.why.p);
		set_aside(s, o, true, &why);
		return 0;
	}
	o->state = OBJECT_READY;
	set_part_aside(s, o, tail.over);
	return head.n == q->n ? take_addresses(o, rest, q) : -EBADMSG;
}

int resolve(struct symbolizer *s, struct cached_object *o, const struct resolve *q)
{
	_cleanup_(buf_free) struct buf answer = {.limit = ANSWER_MAX_BYTES};
	int r = 1;

	if (o->state == OBJECT_BROKEN ||
	    (o->state == OBJECT_UNAVAILABLE && q->now_ns < o->retry_ns))
		return 0;
	for (unsigned int round = 0; r == 1 && round < MAX_ROUNDS; round++)
		r = ask(s, o, q, round ? PARSER_REOPEN : 0, &answer);
	if (r >= 0)
		r = take(s, o, q, &answer);
	if (r == -ENOMEM)
		return r;
	if (r == -EPIPE || r == -EBADMSG)
		count_crash(s, o, q->now_ns);
	else if (r < 0)
		make_unavailable(o, q->now_ns);
	return 0;
}
