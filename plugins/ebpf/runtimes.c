/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See runtimes.h. A claim belongs to a file, not to a process: the store keeps it by file as it does
 * tables, and is told only of what has changed, so that a hundred processes of one interpreter cost one
 * change of views.
 */
#include "runtimes.h"

#include "abi/value.h"
#include "base/error.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES   (64u << 10) /* of the verifier's, its end */
#define MAPS_OF_OWN 32
#define FILES_MAX   1024u /* with claims */

struct runtime {
	char name[RUNTIME_NAME_MAX + 1];
	const struct andiron_runtime *table; /* NULL: not to be used */
	void *self, *session;
	struct bpf_object *object;
	bool overlaps; /* it has been said that it claims another's code */
};

struct claimed {
	struct image *image; /* retained */
	VEC(struct unwind_claim) list;
};

struct runtimes {
	struct runtimes_out out;
	struct runtime list[RUNTIMES_MAX]; /* in slot 1 + index */
	int walks_fd, programs_fd;
	VEC(struct claimed) files;
	VEC(struct unwind_claim) fresh;
	VEC(struct andiron_runtime_mapping) mappings;
	struct andiron_runtime_claim answer[ANDIRON_RUNTIME_CLAIMS];
	char log[LOG_BYTES];
};

static void say(struct runtimes *t, uint32_t level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct runtimes *t, uint32_t level, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	t->out.log(t->out.context, level, text);
}

/* The last lines of what the verifier said, in one, without its statistics and the program's text. */
static void last_lines(const char *log, char *ret, size_t n)
{
	struct str rest = str_trim(str_of(log)), lines[2];
	size_t count = 0, at = 0;

	while (rest.n > 0 && count < 2) {
		size_t newline = str_rfind(rest, '\n');
		struct str line = newline < rest.n ? str_skip(rest, newline + 1) : rest;

		rest = newline < rest.n ? str_trim(str_first(rest, newline)) : STR_NULL;
		if (!str_starts(line, STR("processed ")) && !str_starts(line, STR(";")))
			lines[count++] = str_first(line, 200);
	}
	ret[0] = '\0';
	while (count-- > 0 && at < n) {
		int r = snprintf(ret + at, n - at, "%s%.*s", at ? "; " : "", STR_FMT(lines[count]));

		at += r > 0 ? (size_t)r : 0;
	}
}

static int share_map(struct bpf_object *object, const char *name, int fd, struct error *err)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	int r = map ? bpf_map__reuse_fd(map, fd) : -ENOENT;

	return r == 0 ? 0 :
			error_errno(err, r, "its object cannot share the sampler's map \"%s\"", name);
}

static bool is_shared(const struct bpf_map *map)
{
	struct str name = str_of(bpf_map__name(map));

	return str_is(name, "walks") || str_is(name, "programs");
}

static int check_table(const struct andiron_runtime *table, struct error *err)
{
	if (table->size < sizeof(*table))
		return error_set(err, -EINVAL,
				 "its table has %u bytes, %zu are needed: it was built with headers that were "
				 "never released",
				 table->size, sizeof(*table));
	if (table->walk_version != ANDIRON_WALK_VERSION)
		return error_set(err, -ENOTSUP,
				 "its program was built for version %u of the walk, this sampler has version %u; "
				 "install the plugin that belongs to it",
				 table->walk_version, ANDIRON_WALK_VERSION);
	if (!table->object || !table->program || !table->open || !table->close || !table->claim ||
	    !table->gone || !table->resolve)
		return error_set(err, -EINVAL, "its table lacks a member; the plugin needs to be corrected");
	return 0;
}

/* Loads all programs of the object and finds the one that is called. */
static int load_object(struct runtimes *t, struct runtime *r, struct bpf_program **ret,
		       struct error *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "andiron_runtime",
		    .kernel_log_buf = t->log, .kernel_log_size = sizeof(t->log));
	const struct andiron_runtime *table = r->table;
	struct bpf_program *program;
	char why[512];
	int code;

	t->log[0] = '\0';
	r->object = bpf_object__open_mem(table->object, table->object_bytes, &options);
	if (!r->object)
		return error_errno(err, -errno, "its object cannot be read");
	bpf_object__for_each_program(program, r->object)
		bpf_program__set_type(program, BPF_PROG_TYPE_PERF_EVENT);
	*ret = bpf_object__find_program_by_name(r->object, table->program);
	if (!*ret)
		return error_set(err, -ENOENT, "its object has no program \"%s\"", table->program);
	code = share_map(r->object, "walks", t->walks_fd, err);
	if (code == 0)
		code = share_map(r->object, "programs", t->programs_fd, err);
	if (code != 0)
		return code;
	code = bpf_object__load(r->object);
	if (code == 0)
		return 0;
	last_lines(t->log, why, sizeof(why));
	return why[0] ? error_set(err, code, "the kernel refused its program: %s", why) :
			error_errno(err, code, "the kernel refused its object");
}

static int open_session(struct runtime *r, struct error *err)
{
	struct andiron_runtime_map maps[MAPS_OF_OWN];
	uint64_t n = 0;
	struct bpf_map *map;
	int code;

	bpf_object__for_each_map(map, r->object)
		if (!is_shared(map) && n < MAPS_OF_OWN)
			maps[n++] = (struct andiron_runtime_map){bpf_map__name(map),
								 bpf_map__fd(map), 0};
	code = r->table->open(r->self, maps, n, &r->session);
	return code == 0 ? 0 : error_errno(err, code, "it does not begin");
}

static void drop(struct runtime *r)
{
	bpf_object__close(r->object);
	r->object = NULL;
	r->table = NULL;
}

static void load(struct runtimes *t, uint32_t slot, const struct runtime_wanted *wanted)
{
	struct runtime *r = &t->list[slot - 1];
	struct error err = ERROR_NULL;
	struct bpf_program *program = NULL;
	int code, fd;

	memcpy(r->name, wanted->name, sizeof(r->name));
	r->table = wanted->extension.table;
	r->self = wanted->extension.self;
	if (!r->table) {
		say(t, ANDIRON_LOG_WARN,
		    "no plugin offers the runtime \"%s\" (" ANDIRON_RUNTIME_PREFIX
		    "%s" ANDIRON_RUNTIME_SUFFIX "): its frames are not shown; install it, or leave it out of "
		    "runtimes",
		    r->name, r->name);
		return;
	}
	code = check_table(r->table, &err);
	if (code == 0)
		code = load_object(t, r, &program, &err);
	if (code == 0)
		code = open_session(r, &err);
	if (code != 0) {
		say(t, ANDIRON_LOG_WARN, "the runtime \"%s\" is not used, its frames are not shown: %s",
		    r->name, err.text);
		drop(r);
		return;
	}
	fd = bpf_program__fd(program);
	if (bpf_map_update_elem(t->programs_fd, &slot, &fd, BPF_ANY) == 0)
		return;
	say(t, ANDIRON_LOG_WARN,
	    "the runtime \"%s\" is not used: the kernel does not take its program for a walk: %s", r->name,
	    strerror(errno));
	r->table->close(r->session);
	drop(r);
}

struct runtimes *runtimes_new(struct session *session, const struct runtime_wanted *wanted,
			      size_t n, const struct runtimes_out *out)
{
	struct runtimes *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->out = *out;
	t->walks_fd = session_walks_fd(session);
	t->programs_fd = session_programs_fd(session);
	for (size_t i = 0; i < n && i < RUNTIMES_MAX; i++)
		load(t, (uint32_t)i + 1, &wanted[i]);
	return t;
}

void runtimes_free(struct runtimes *t)
{
	if (!t)
		return;
	for (uint32_t slot = 1; slot <= RUNTIMES_MAX; slot++) {
		struct runtime *r = &t->list[slot - 1];

		if (!r->table)
			continue;
		bpf_map_delete_elem(t->programs_fd, &slot);
		r->table->close(r->session);
		drop(r);
	}
	vec_each(&t->files, f) {
		image_release(f->image);
		vec_free(&f->list);
	}
	vec_free(&t->files);
	vec_free(&t->fresh);
	vec_free(&t->mappings);
	free(t);
}

static struct andiron_runtime_process process_of(const struct process *p)
{
	return (struct andiron_runtime_process){
		.pid = p->key.tgid,
		.start_ns = p->key.start_ns,
		.layout = p->maps ? p->maps->layout : p->layout,
	};
}

static bool list_mappings(struct runtimes *t, const struct mapset *set)
{
	t->mappings.n = 0;
	vec_each(&set->list, m) {
		struct andiron_runtime_mapping mapping = {m->start, m->limit,
							  mapping_address(m, m->start), 0};

		if (!m->image)
			continue;
		mapping.object = image_object(m->image);
		if (!vec_push(&t->mappings, mapping))
			return false;
	}
	return t->mappings.n > 0;
}

static struct image *image_of(const struct mapset *set, uint64_t object)
{
	vec_each(&set->list, m)
		if (m->image && image_object(m->image) == object)
			return m->image;
	return NULL;
}

static struct claimed *claimed_of(struct runtimes *t, struct image *image)
{
	struct claimed none = {.image = image};

	vec_each(&t->files, f)
		if (f->image == image)
			return f;
	if (t->files.n >= FILES_MAX || !vec_push(&t->files, none))
		return NULL;
	image_retain(image);
	return &t->files.p[t->files.n - 1];
}

/* Puts a claim where it belongs; false: it is none, or another stands there. */
static bool insert(struct runtimes *t, struct unwind_claim claim)
{
	size_t at = t->fresh.n;
	struct unwind_claim *p;

	while (at > 0 && t->fresh.p[at - 1].from > claim.from)
		at--;
	p = t->fresh.p;
	if (claim.from >= claim.to || (at > 0 && p[at - 1].to > claim.from) ||
	    (at < t->fresh.n && p[at].from < claim.to) || t->fresh.n >= UNWIND_CLAIMS_MAX)
		return false;
	if (!vec_push(&t->fresh, claim))
		return false;
	p = t->fresh.p;
	memmove(p + at + 1, p + at, (t->fresh.n - 1 - at) * sizeof(*p));
	p[at] = claim;
	return true;
}

/* What the runtime has answered for one object, in place of what it had of it. */
static void replace(struct runtimes *t, uint32_t slot, struct image *image, size_t n,
		    struct unwind *store)
{
	struct claimed *f = claimed_of(t, image);
	struct runtime *r = &t->list[slot - 1];
	uint64_t object = image_object(image);
	bool all = f != NULL;

	t->fresh.n = 0;
	for (size_t i = 0; all && i < f->list.n; i++)
		if (f->list.p[i].slot != slot)
			all = insert(t, f->list.p[i]);
	for (size_t i = 0; f && i < n; i++)
		if (t->answer[i].object == object)
			all &= insert(t, (struct unwind_claim){t->answer[i].from, t->answer[i].to,
							       (uint16_t)slot});
	if (!all && !r->overlaps) {
		r->overlaps = true;
		say(t, ANDIRON_LOG_WARN,
		    "the runtime \"%s\" claims code that another one has claimed, or more than there is "
		    "room for: those frames are not shown",
		    r->name);
	}
	if (!f || (f->list.n == t->fresh.n &&
		   (f->list.n == 0 ||
		    memcmp(f->list.p, t->fresh.p, f->list.n * sizeof(*f->list.p)) == 0)))
		return;
	if (!vec_reserve(&f->list, t->fresh.n) ||
	    unwind_claim(store, image, t->fresh.p, t->fresh.n) != 0)
		return;
	memcpy(f->list.p, t->fresh.p, t->fresh.n * sizeof(*f->list.p));
	f->list.n = t->fresh.n;
}

static bool answered_before(const struct runtimes *t, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (t->answer[j].object == t->answer[i].object)
			return true;
	return false;
}

void runtimes_process(struct runtimes *t, const struct process *p, struct unwind *store)
{
	struct andiron_runtime_process process = process_of(p);

	if (!p->maps || !list_mappings(t, p->maps))
		return;
	for (uint32_t slot = 1; slot <= RUNTIMES_MAX; slot++) {
		struct runtime *r = &t->list[slot - 1];
		int32_t n = r->table ? r->table->claim(r->session, &process, t->mappings.p,
						       t->mappings.n, t->answer,
						       ANDIRON_RUNTIME_CLAIMS) :
				       0;

		if (n > (int32_t)ANDIRON_RUNTIME_CLAIMS)
			n = 0; /* it has written past the end of what it was given, or lies */
		for (int32_t i = 0; i < n; i++) {
			struct image *image = image_of(p->maps, t->answer[i].object);

			if (image && !answered_before(t, (size_t)i))
				replace(t, slot, image, (size_t)n, store);
		}
	}
}

void runtimes_gone(struct runtimes *t, const struct process *p)
{
	struct andiron_runtime_process process = process_of(p);

	for (size_t i = 0; i < RUNTIMES_MAX; i++)
		if (t->list[i].table)
			t->list[i].table->gone(t->list[i].session, &process);
}

const char *runtimes_name(const struct runtimes *t, uint32_t slot)
{
	return slot >= 1 && slot <= RUNTIMES_MAX && t->list[slot - 1].table ?
		       t->list[slot - 1].name :
		       NULL;
}

bool runtimes_resolve(struct runtimes *t, uint32_t slot, const struct process *p, uint64_t what,
		      uint64_t where, struct andiron_runtime_frame *ret)
{
	const struct runtime *r = &t->list[slot - 1];
	struct andiron_runtime_process process = process_of(p);
	struct andiron_runtime_frame frame = {.size = sizeof(frame)};

	if (!runtimes_name(t, slot) ||
	    r->table->resolve(r->session, &process, what & 0xffffffffffffff, where, &frame) != 0 ||
	    frame.function.len == 0 || !str_utf8(abi_str(frame.function)))
		return false;
	if (!str_utf8(abi_str(frame.file)))
		frame.file = (struct andiron_str){0};
	*ret = frame;
	return true;
}
