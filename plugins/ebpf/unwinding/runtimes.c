/* SPDX-License-Identifier: Apache-2.0 */
/* See runtimes.h. A claim belongs to a file, not to a process: the store keeps it by file as it
 * does tables, and learns only of changes, so that a hundred processes of one interpreter cost one
 * change of mapping tables. */
#include "ebpf/unwinding/runtimes.h"

#include "abi/value.h"
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MAX 1024u /* with claims */

struct runtime {
	char name[RUNTIME_NAME_MAX + 1];
	const struct andiron_runtime *table; /* NULL: not to be used */
	void *session;
	void *program;
	bool overlaps; /* it has been said that it claims another's code */
};

/* Ascending, and apart from each other. */
struct claims {
	VEC(struct code_claim) list;
};

struct claimed {
	struct mapped_file *file; /* retained */
	VEC(struct code_claim) list;
};

struct runtimes {
	struct runtimes_kernel kernel;
	struct runtimes_out out;
	struct runtime list[RUNTIMES_MAX]; /* in slot 1 + index */
	VEC(struct claimed) files;
	struct claims fresh;     /* of the file at hand */
	struct claims addresses; /* of the process at hand */
	VEC(struct andiron_runtime_mapping) mappings;
	struct andiron_runtime_claim answer[ANDIRON_RUNTIME_CLAIMS];
	struct andiron_runtime_frame frames[ANDIRON_RUNTIME_FRAMES];
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

/* It becomes a name among others, in profiles. */
static bool is_frame_type(const char *type)
{
	size_t n = type ? strnlen(type, RUNTIME_NAME_MAX + 1) : 0;

	for (size_t i = 0; i < n; i++)
		if (!(type[i] >= 'a' && type[i] <= 'z') && !(type[i] >= '0' && type[i] <= '9'))
			return false;
	return n > 0 && n <= RUNTIME_NAME_MAX;
}

static int check_table(const struct andiron_runtime *table, struct error *err)
{
	if (table->size < sizeof(*table))
		return error_set(err, -EINVAL,
				 "its table has %u bytes, %zu are needed: it was built "
				 "with headers that were never released",
				 table->size, sizeof(*table));
	if (table->walk_version != ANDIRON_WALK_VERSION)
		return error_set(err, -ENOTSUP,
				 "its program was built for version %u of the walk, "
				 "this sampler has version %u; install the plugin that "
				 "belongs to it",
				 table->walk_version, ANDIRON_WALK_VERSION);
	if (!table->object || !table->program || !table->open || !table->close || !table->claim ||
	    !table->gone || !table->resolve || !table->describe ||
	    !is_frame_type(table->frame_type))
		return error_set(err, -EINVAL,
				 "its table lacks a member; the plugin needs to be corrected");
	return 0;
}

static void unload(struct runtimes *t, uint32_t slot)
{
	struct runtime *r = &t->list[slot - 1];

	t->kernel.unload(t->kernel.context, slot, r->program);
	r->program = NULL;
	r->table = NULL;
}

/* 0, and the runtime is in use; or why it is not. */
static int load(struct runtimes *t, uint32_t slot, const struct andiron_extension *extension,
		struct error *err)
{
	struct andiron_runtime_map maps[RUNTIMES_MAPS];
	struct runtime *r = &t->list[slot - 1];
	const struct andiron_runtime *table = extension->table;
	int code = check_table(table, err);
	uint64_t n;

	if (code == 0)
		code = t->kernel.load(t->kernel.context, slot, table, &r->program, err);
	if (code != 0)
		return code;
	n = t->kernel.maps(r->program, maps, RUNTIMES_MAPS);
	r->table = table;
	code = table->open(extension->self, maps, n, &r->session);
	if (code == 0)
		return 0;
	unload(t, slot);
	return error_errno(err, code, "it does not begin");
}

static void add(struct runtimes *t, uint32_t slot, const struct runtime_requested *requested)
{
	struct error err = ERROR_NULL;

	memcpy(t->list[slot - 1].name, requested->name, sizeof(requested->name));
	if (!requested->extension.table)
		say(t, ANDIRON_LOG_WARN,
		    "no plugin offers the runtime \"%s\" (" ANDIRON_RUNTIME_PREFIX
		    "%s" ANDIRON_RUNTIME_SUFFIX
		    "): its frames are not shown; install it, or leave it out of "
		    "runtimes",
		    requested->name, requested->name);
	else if (load(t, slot, &requested->extension, &err) != 0)
		say(t, ANDIRON_LOG_WARN,
		    "the runtime \"%s\" is not used, its frames are not shown: %s", requested->name,
		    err.text);
}

struct runtimes *runtimes_new(const struct runtimes_kernel *kernel,
			      const struct runtime_requested *requested, size_t n,
			      const struct runtimes_out *out)
{
	struct runtimes *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->kernel = *kernel;
	t->out = *out;
	for (size_t i = 0; i < n && i < RUNTIMES_MAX; i++)
		add(t, (uint32_t)i + 1, &requested[i]);
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
		r->table->close(r->session);
		unload(t, slot);
	}
	vec_each (&t->files, f) {
		mapped_file_release(f->file);
		vec_free(&f->list);
	}
	vec_free(&t->files);
	vec_free(&t->fresh.list);
	vec_free(&t->addresses.list);
	vec_free(&t->mappings);
	free(t);
}

static struct andiron_runtime_process process_of(const struct process *p)
{
	return (struct andiron_runtime_process){
		.pid = p->key.tgid,
		.start_ns = p->key.start_ns,
		.exec_generation = p->maps ? p->maps->generation : p->generation,
	};
}

static bool list_mappings(struct runtimes *t, const struct mapset *set)
{
	t->mappings.n = 0;
	vec_each (&set->list, m) {
		bool memory = !m->file || mapping_has_jit_source(m);
		struct andiron_runtime_mapping mapping = {
			m->start, m->limit, memory ? m->start : mapping_address(m, m->start),
			memory ? 0 : mapped_file_object(m->file)};

		if (!vec_push(&t->mappings, mapping))
			return false;
	}
	return t->mappings.n > 0;
}

static struct mapped_file *file_of_mapping(const struct mapset *set, uint64_t object)
{
	vec_each (&set->list, m)
		if (m->file && mapped_file_object(m->file) == object)
			return m->file;
	return NULL;
}

static struct claimed *claimed_of(struct runtimes *t, struct mapped_file *file)
{
	struct claimed none = {.file = file};

	vec_each (&t->files, f)
		if (f->file == file)
			return f;
	if (t->files.n >= FILES_MAX || !vec_push(&t->files, none))
		return NULL;
	mapped_file_retain(file);
	return &t->files.p[t->files.n - 1];
}

/* Puts a claim where it belongs; false: it is none, or another stands there. */
static bool insert(struct claims *to, struct code_claim claim)
{
	size_t at = to->list.n;
	struct code_claim *p;

	while (at > 0 && to->list.p[at - 1].from > claim.from)
		at--;
	p = to->list.p;
	if (claim.from >= claim.to || (at > 0 && p[at - 1].to > claim.from) ||
	    (at < to->list.n && p[at].from < claim.to) || to->list.n >= UNWIND_CLAIMS_MAX)
		return false;
	if (!vec_push(&to->list, claim))
		return false;
	p = to->list.p;
	memmove(p + at + 1, p + at, (to->list.n - 1 - at) * sizeof(*p));
	p[at] = claim;
	return true;
}

static bool is_news(const struct runtimes *t, const struct claimed *f)
{
	const struct code_claim *a = f->list.p, *b = t->fresh.list.p;

	for (size_t i = 0; i < f->list.n && i < t->fresh.list.n; i++)
		if (a[i].from != b[i].from || a[i].to != b[i].to || a[i].slot != b[i].slot)
			return true;
	return f->list.n != t->fresh.list.n;
}

/* Inserts what the runtime has answered for one object, or, with 0, of the process's addresses.
 * What finds no place is reported once. */
static void insert_answers(struct runtimes *t, uint32_t slot, uint64_t object, size_t n,
			   struct claims *to)
{
	struct runtime *r = &t->list[slot - 1];
	bool all = true;

	for (size_t i = 0; i < n; i++)
		if (t->answer[i].object == object)
			all &= insert(to, (struct code_claim){t->answer[i].from, t->answer[i].to,
							      (uint16_t)slot});
	if (all || r->overlaps)
		return;
	r->overlaps = true;
	say(t, ANDIRON_LOG_WARN,
	    "the runtime \"%s\" claims code that another one has claimed, or more than there is "
	    "room for: those frames are not shown",
	    r->name);
}

/* What the runtime has answered for one object, in place of what it had of it. */
static void replace(struct runtimes *t, uint32_t slot, struct mapped_file *file, size_t n,
		    struct unwind *store)
{
	struct claimed *f = claimed_of(t, file);

	t->fresh.list.n = 0;
	if (!f)
		return;
	vec_each (&f->list, c)
		if (c->slot != slot && !insert(&t->fresh, *c))
			return;
	insert_answers(t, slot, mapped_file_object(file), n, &t->fresh);
	n = t->fresh.list.n;
	if (!is_news(t, f) || !vec_reserve(&f->list, n > f->list.n ? n - f->list.n : 0) ||
	    unwind_claim(store, file, t->fresh.list.p, n) != 0)
		return; /* and will be new the next time */
	if (n > 0)
		memcpy(f->list.p, t->fresh.list.p, n * sizeof(*f->list.p));
	f->list.n = n;
}

static bool answered_before(const struct runtimes *t, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (t->answer[j].object == t->answer[i].object)
			return true;
	return false;
}

/* The runtime's claims on the process whose mappings are listed; how many. */
static uint32_t ask(struct runtimes *t, struct runtime *r, const struct process *p)
{
	struct andiron_runtime_process process = process_of(p);
	int32_t n = r->table->claim(r->session, &process, t->mappings.p, t->mappings.n, t->answer,
				    ANDIRON_RUNTIME_CLAIMS);

	/* Else it has failed, or written past the end of what it was given, or lies. */
	return n > 0 && n <= (int32_t)ANDIRON_RUNTIME_CLAIMS ? (uint32_t)n : 0;
}

/* Addresses of a child that was only forked, and is gone, are those of its parent. */
static void keep_addresses(struct runtimes *t, struct mapset *set)
{
	if (t->addresses.list.n == 0 && set->inherited)
		return;
	vec_free(&set->claims);
	set->claims.p = t->addresses.list.p;
	set->claims.n = t->addresses.list.n;
	set->claims.capacity = t->addresses.list.capacity;
	t->addresses = (struct claims){0};
}

void runtimes_process(struct runtimes *t, const struct process *p, struct unwind *store)
{
	bool any = false;

	if (!p->maps || p->maps->claimed || !list_mappings(t, p->maps))
		return;
	t->addresses.list.n = 0;
	for (uint32_t slot = 1; slot <= RUNTIMES_MAX; slot++) {
		struct runtime *r = &t->list[slot - 1];
		uint32_t n = r->table ? ask(t, r, p) : 0;

		for (uint32_t i = 0; i < n; i++) {
			struct mapped_file *file = file_of_mapping(p->maps, t->answer[i].object);

			if (file && !answered_before(t, i))
				replace(t, slot, file, n, store);
		}
		insert_answers(t, slot, 0, n, &t->addresses);
		any |= n > 0;
	}
	if (any)
		t->kernel.watch(t->kernel.context, &p->key);
	keep_addresses(t, p->maps);
	p->maps->claimed = true;
}

bool runtimes_walk(struct runtimes *t, const struct process *p, const struct mapset *set,
		   struct unwind *store)
{
	runtimes_process(t, p, store);
	if (!set->claimed || set->claims.n > 0)
		return true;
	vec_each (&t->files, f) {
		if (f->list.n == 0)
			continue;
		vec_each (&set->list, m)
			if (m->file == f->file)
				return true;
	}
	return false;
}

size_t runtimes_describe(struct runtimes *t, const struct process *p, char *ret, size_t max)
{
	struct andiron_runtime_process process = process_of(p);
	size_t at = 0;
	char text[256];

	for (size_t i = 0; i < RUNTIMES_MAX && p->maps && p->maps->claimed; i++) {
		struct runtime *r = &t->list[i];
		int32_t n = r->table ? r->table->describe(r->session, &process, text, sizeof(text))
				     : 0;
		struct str s = {text, n > 0 ? (size_t)n : 0};
		size_t joint = at ? 2 : 0;

		if (n <= 0 || s.n > sizeof(text) || !str_utf8(s) || at + joint + s.n >= max)
			continue;
		memcpy(ret + at, "; ", joint);
		memcpy(ret + at + joint, text, s.n);
		at += joint + s.n;
	}
	return at;
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
	return slot >= 1 && slot <= RUNTIMES_MAX && t->list[slot - 1].table ? t->list[slot - 1].name
									    : NULL;
}

const char *runtimes_frame_type(const struct runtimes *t, uint32_t slot)
{
	return runtimes_name(t, slot) ? t->list[slot - 1].table->frame_type : NULL;
}

/* A name that is none, or no text, costs all of its frames. */
static bool are_texts(struct andiron_runtime_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (frames[i].function.len == 0 || !str_utf8(abi_str(frames[i].function)))
			return false;
		if (!str_utf8(abi_str(frames[i].file)))
			frames[i].file = (struct andiron_str){0};
	}
	return true;
}

uint32_t runtimes_resolve(struct runtimes *t, const struct process *p, const uint64_t words[2],
			  const struct andiron_runtime_frame **ret)
{
	struct andiron_runtime_process process = process_of(p);
	uint32_t slot = (uint32_t)(words[0] >> 56);
	const struct runtime *r = &t->list[slot - 1];
	int32_t n;

	if (!runtimes_name(t, slot))
		return 0;
	for (uint32_t i = 0; i < ANDIRON_RUNTIME_FRAMES; i++)
		t->frames[i] = (struct andiron_runtime_frame){.size = sizeof(t->frames[i])};
	n = r->table->resolve(r->session, &process, words[0] & 0xffffffffffffff, words[1],
			      t->frames, ANDIRON_RUNTIME_FRAMES);
	if (n <= 0 || n > (int32_t)ANDIRON_RUNTIME_FRAMES || !are_texts(t->frames, (uint32_t)n))
		return 0;
	*ret = t->frames;
	return (uint32_t)n;
}
