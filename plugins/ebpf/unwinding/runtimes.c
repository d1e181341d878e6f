/* SPDX-License-Identifier: Apache-2.0 */
/* See runtimes.h. */
#include "ebpf/unwinding/runtimes.h"

#include "ebpf/unwinding/code-claims.h"

#include "abi/value.h"
#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A claim that was too early is asked for again each second, so often, and then each minute. */
#define RETRIES_BY_SECOND 10u
#define RETRIES_BY_MINUTE 10u

struct runtime {
	char name[RUNTIME_NAME_MAX + 1];
	const struct andiron_runtime *table; /* NULL: not to be used */
	void *self;
	bool loaded; /* and these two are there: */
	void *session;
	void *program;
	bool postponed; /* it is loaded with the next retries */
	bool said_postponed, said_overlap, said_no_room;
	char unnamed[RUNTIME_NAME_MAX + 3]; /* a function of it that has no name */
};

struct runtimes {
	struct runtimes_kernel kernel;
	struct runtimes_out out;
	struct runtime list[RUNTIMES_MAX]; /* in slot 1 + index */
	struct code_claims claims;
	bool said_full;     /* that there are too many files */
	bool kernel_begun;  /* kernel.begin was called */
	uint32_t n_claimed; /* processes of which code was claimed */
	int64_t due_ns;     /* the next retry of a process; INT64_MAX: there is none */
	struct runtimes_counts counts;
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
	if (!ANDIRON_KNOWS(table, andiron_runtime, describe))
		return error_set(err, -EINVAL,
				 "its table has %u bytes, version 1.0 has %zu: it was built "
				 "with headers that were never released",
				 table->size,
				 offsetof(struct andiron_runtime, describe) + sizeof(void *));
	if (table->walk_version != ANDIRON_WALK_VERSION)
		return error_set(err, -ENOTSUP,
				 "its program was built for version %u of the walk, "
				 "this sampler has version %u; install the plugin that "
				 "belongs to it",
				 table->walk_version, ANDIRON_WALK_VERSION);
	if (!table->object || !table->program || !table->recognizes || !table->open ||
	    !table->close || !table->claim || !table->gone || !table->resolve || !table->describe ||
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
	r->loaded = false;
}

/* Loads its program and opens its session; 0, or the reason. */
static int load(struct runtimes *t, uint32_t slot, struct error *err)
{
	struct andiron_runtime_map maps[RUNTIMES_MAPS];
	struct runtime *r = &t->list[slot - 1];
	int code = t->kernel.load(t->kernel.context, slot, r->table, &r->program, err);
	uint64_t n;

	if (code != 0)
		return code;
	r->loaded = true;
	n = t->kernel.maps(r->program, maps, RUNTIMES_MAPS);
	code = r->table->open(r->self, maps, n, &r->session);
	if (code == 0)
		return 0;
	unload(t, slot);
	return error_errno(err, code, "it does not begin");
}

static void refuse(struct runtimes *t, struct runtime *r, const struct error *err)
{
	r->table = NULL;
	say(t, ANDIRON_LOG_WARN, "the runtime \"%s\" is not used, its frames are not shown: %s",
	    r->name, err->text);
}

static void postpone(struct runtimes *t, struct runtime *r, const struct error *err)
{
	r->postponed = true;
	if (!r->said_postponed)
		say(t, ANDIRON_LOG_WARN,
		    "the runtime \"%s\" cannot be loaded now and is tried again, its frames are "
		    "not shown until then: %s",
		    r->name, err->text);
	r->said_postponed = true;
}

/* What is needed once any runtime is used. */
static void begin(struct runtimes *t)
{
	int code = t->kernel_begun ? 0 : t->kernel.begin(t->kernel.context);

	t->kernel_begun = true;
	if (code != 0)
		say(t, ANDIRON_LOG_WARN,
		    "the kernel refused the program that reports processes at their exec (%s): the "
		    "first sample of a process has no frames of a language runtime, and processes "
		    "of some milliseconds have none at all",
		    strerror(-code));
}

int runtimes_load(struct runtimes *t, uint32_t slot)
{
	struct runtime *r = &t->list[slot - 1];
	struct error err = ERROR_NULL;
	int code;

	if (r->loaded)
		return 0;
	if (!r->table)
		return -ENOENT;
	if (r->postponed)
		return -EAGAIN;
	code = load(t, slot, &err);
	if (code == -EINPROGRESS)
		return code;
	if (code == 0) {
		begin(t);
	} else if (code == -ENOMEM || code == -EAGAIN) {
		postpone(t, r, &err);
		code = -EAGAIN;
	} else {
		refuse(t, r, &err);
	}
	return code;
}

static bool is_loading(const struct runtime *r)
{
	return r->program && !r->loaded;
}

bool runtimes_loading(const struct runtimes *t)
{
	for (size_t i = 0; i < RUNTIMES_MAX; i++)
		if (is_loading(&t->list[i]))
			return true;
	return false;
}

void runtimes_take(struct runtimes *t)
{
	for (uint32_t slot = 1; slot <= RUNTIMES_MAX; slot++)
		if (is_loading(&t->list[slot - 1]))
			runtimes_load(t, slot);
}

static void add(struct runtimes *t, uint32_t slot, const struct runtime_requested *requested)
{
	struct runtime *r = &t->list[slot - 1];
	struct error err = ERROR_NULL;

	memcpy(r->name, requested->name, sizeof(requested->name));
	r->table = requested->extension.table;
	r->self = requested->extension.self;
	if (!r->table)
		say(t, ANDIRON_LOG_WARN,
		    "no plugin offers the runtime \"%s\" (" ANDIRON_RUNTIME_PREFIX
		    "%s" ANDIRON_RUNTIME_SUFFIX
		    "): its frames are not shown; install it, or leave it out of "
		    "runtimes",
		    r->name, r->name);
	else if (check_table(r->table, &err) != 0)
		refuse(t, r, &err);
	else
		snprintf(r->unnamed, sizeof(r->unnamed), "[%s]", r->table->frame_type);
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
	t->due_ns = INT64_MAX;
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

		if (r->loaded)
			r->table->close(r->session);
		if (r->loaded || is_loading(r))
			unload(t, slot);
	}
	code_claims_fini(&t->claims);
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

/* What of a runtime's claims found no place is reported once. */
static void explain_claim(struct runtimes *t, struct runtime *r, int code)
{
	if (code == -EEXIST && !r->said_overlap) {
		r->said_overlap = true;
		say(t, ANDIRON_LOG_WARN,
		    "the runtime \"%s\" claims code that another one has claimed, or more than "
		    "there is room for: those frames are not shown",
		    r->name);
	} else if (code == -ENOSPC && !t->said_full) {
		t->said_full = true;
		say(t, ANDIRON_LOG_WARN,
		    "more than %u files with a language runtime are in use: the frames of those "
		    "beyond are not shown",
		    CODE_CLAIMS_FILES);
	}
}

static bool answered_before(const struct runtimes *t, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (t->answer[j].object == t->answer[i].object)
			return true;
	return false;
}

/* What runtimes say of the file, each once. */
static uint32_t recognized(struct runtimes *t, struct mapped_file *file)
{
	struct mapped_file_runtimes *known = mapped_file_runtimes(file);

	for (uint32_t slot = 1; slot <= RUNTIMES_MAX; slot++) {
		const struct runtime *r = &t->list[slot - 1];
		int32_t yes;

		if (!r->table || known->asked >> slot & 1)
			continue;
		yes = r->table->recognizes(r->self, mapped_file_object(file));
		known->asked |= (uint32_t)(yes >= 0) << slot;
		known->recognized |= (uint32_t)(yes > 0) << slot;
	}
	return known->recognized;
}

/* Bit n: the runtime in slot n may have code in the process. */
static uint32_t slots_of(struct runtimes *t, const struct mapset *set)
{
	uint32_t slots = 0;

	vec_each (&set->list, m)
		if (m->file && !mapping_has_jit_source(m))
			slots |= recognized(t, m->file);
	return slots;
}

static void count_no_room(struct runtimes *t, struct runtime *r)
{
	t->counts.no_room++;
	if (!r->said_no_room)
		say(t, ANDIRON_LOG_WARN,
		    "the runtime \"%s\" has no room for another process or program: frames of "
		    "those beyond are not shown",
		    r->name);
	r->said_no_room = true;
}

/* The runtime's claims on the process whose mappings are listed; how many. */
static uint32_t ask(struct runtimes *t, uint32_t slot, struct process *p)
{
	struct andiron_runtime_process process = process_of(p);
	struct runtime *r = &t->list[slot - 1];
	int64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int32_t n = r->table->claim(r->session, &process, t->mappings.p, t->mappings.n, t->answer,
				    ANDIRON_RUNTIME_CLAIMS);

	t->counts.claims++;
	t->counts.claim_cpu_ns += (uint64_t)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
	p->runtimes.asked |= 1u << slot;
	p->runtimes.retry |= n == -EAGAIN || n == -ENOMEM;
	if (n == -ENOMEM)
		count_no_room(t, r);
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

/* Takes what the runtime in this slot claims. */
static bool take_claims(struct runtimes *t, uint32_t slot, struct process *p, struct unwind *store)
{
	struct claim_answer answer = {t->answer, ask(t, slot, p), slot};
	struct runtime *r = &t->list[slot - 1];

	for (uint32_t i = 0; i < answer.n; i++) {
		struct mapped_file *file = file_of_mapping(p->maps, t->answer[i].object);

		if (file && !answered_before(t, i))
			explain_claim(t, r, code_claims_replace(&t->claims, file, &answer, store));
	}
	if (!claims_insert(&t->addresses, &answer, 0))
		explain_claim(t, r, -EEXIST);
	return answer.n > 0;
}

static void note_due(struct runtimes *t, const struct process *p)
{
	if (p->runtimes.due_ns < t->due_ns)
		t->due_ns = p->runtimes.due_ns;
}

/* When the process is to be asked for again, if some claim was too early. */
static void plan_retry(struct runtimes *t, struct process *p)
{
	struct process_runtimes *r = &p->runtimes;
	int64_t wait;

	if (r->generation != p->maps->generation)
		r->n_retries = 0;
	r->generation = p->maps->generation;
	r->retry &= r->n_retries < RETRIES_BY_SECOND + RETRIES_BY_MINUTE;
	if (!r->retry)
		return;
	wait = (r->n_retries < RETRIES_BY_SECOND ? 1 : 60) * NS_PER_SEC;
	/* All at whole seconds: to load a program, which is tried with each, takes 100 ms. */
	r->due_ns = (clock_mono() + wait + NS_PER_SEC - 1) / NS_PER_SEC * NS_PER_SEC;
	note_due(t, p);
}

static void note_claimed(struct runtimes *t, struct process *p)
{
	/* Once for each program that it executes. */
	if (!p->runtimes.claimed || p->runtimes.watched != p->maps->generation)
		t->kernel.watch(t->kernel.context, &p->key, p->maps->generation);
	p->runtimes.watched = p->maps->generation;
	if (!p->runtimes.claimed && t->n_claimed++ == 0)
		t->kernel.have_walks(t->kernel.context, true);
	p->runtimes.claimed = true;
}

/* Loads those in these slots; *ret are those that are there, *ret_later those to be tried again.
 * False: some are being loaded. */
static bool load_all(struct runtimes *t, uint32_t slots, uint32_t *ret, uint32_t *ret_later)
{
	uint32_t there = 0, later = 0, loading = 0;

	for (uint32_t slot = 1; slot <= RUNTIMES_MAX; slot++) {
		int code = slots >> slot & 1 ? runtimes_load(t, slot) : -ENOENT;

		there |= (uint32_t)(code == 0) << slot;
		later |= (uint32_t)(code == -EAGAIN) << slot;
		loading |= (uint32_t)(code == -EINPROGRESS) << slot;
	}
	*ret = there;
	*ret_later = later;
	return loading == 0;
}

bool runtimes_process(struct runtimes *t, struct process *p, struct unwind *store)
{
	uint32_t there, later;
	bool any = false;

	if (!p->maps || p->maps->claimed || !list_mappings(t, p->maps))
		return true;
	if (!load_all(t, slots_of(t, p->maps), &there, &later))
		return false;
	t->addresses.list.n = 0;
	p->runtimes.retry = later != 0;
	for (uint32_t slot = 1; slot <= RUNTIMES_MAX; slot++)
		any |= there >> slot & 1 && take_claims(t, slot, p, store);
	if (any)
		note_claimed(t, p);
	keep_addresses(t, p->maps);
	p->maps->claimed = true;
	plan_retry(t, p);
	return true;
}

int64_t runtimes_due(const struct runtimes *t)
{
	return t->due_ns;
}

void runtimes_begin_retries(struct runtimes *t)
{
	t->due_ns = INT64_MAX;
	for (size_t i = 0; i < RUNTIMES_MAX; i++)
		t->list[i].postponed = false;
}

bool runtimes_retry(struct runtimes *t, struct process *p, int64_t now_ns)
{
	if (!p->runtimes.retry || !p->maps)
		return false;
	if (p->runtimes.due_ns > now_ns) {
		note_due(t, p);
		return false;
	}
	p->runtimes.n_retries++;
	p->maps->claimed = false;
	return true;
}

bool runtimes_walk(struct runtimes *t, struct process *p, const struct mapset *set,
		   struct unwind *store)
{
	runtimes_process(t, p, store);
	return !set->claimed || set->claims.n > 0 || code_claims_has(&t->claims, set);
}

size_t runtimes_describe(struct runtimes *t, const struct process *p, char *ret, size_t max)
{
	struct andiron_runtime_process process = process_of(p);
	size_t at = 0;
	char text[256];

	for (size_t i = 0; i < RUNTIMES_MAX && p->maps && p->maps->claimed; i++) {
		struct runtime *r = &t->list[i];
		int32_t n = p->runtimes.asked >> (i + 1) & 1
				    ? r->table->describe(r->session, &process, text, sizeof(text))
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
		if (p->runtimes.asked >> (i + 1) & 1)
			t->list[i].table->gone(t->list[i].session, &process);
	if (p->runtimes.claimed && --t->n_claimed == 0)
		t->kernel.have_walks(t->kernel.context, false);
}

const char *runtimes_name(const struct runtimes *t, uint32_t slot)
{
	return slot >= 1 && slot <= RUNTIMES_MAX && t->list[slot - 1].loaded
		       ? t->list[slot - 1].name
		       : NULL;
}

const char *runtimes_frame_type(const struct runtimes *t, uint32_t slot)
{
	return runtimes_name(t, slot) ? t->list[slot - 1].table->frame_type : NULL;
}

static void check_texts(const struct runtime *r, struct andiron_runtime_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (frames[i].function.len == 0 || !str_utf8(abi_str(frames[i].function)))
			frames[i].function = abi_str_of(str_of(r->unnamed));
		if (!str_utf8(abi_str(frames[i].file)))
			frames[i].file = (struct andiron_str){0};
	}
}

uint32_t runtimes_resolve(struct runtimes *t, const struct process *p, const uint64_t words[2],
			  const struct andiron_runtime_frame **ret)
{
	struct andiron_runtime_process process = process_of(p);
	uint32_t slot = (uint32_t)(words[0] >> 56);
	const struct runtime *r;
	int32_t n;

	if (!runtimes_name(t, slot))
		return 0;
	r = &t->list[slot - 1];
	for (uint32_t i = 0; i < ANDIRON_RUNTIME_FRAMES; i++)
		t->frames[i] = (struct andiron_runtime_frame){.size = sizeof(t->frames[i])};
	n = r->table->resolve(r->session, &process, words[0] & 0xffffffffffffff, words[1],
			      t->frames, ANDIRON_RUNTIME_FRAMES);
	if (n <= 0 || n > (int32_t)ANDIRON_RUNTIME_FRAMES) {
		t->frames[0] = (struct andiron_runtime_frame){.size = sizeof(t->frames[0])};
		n = 1;
	}
	check_texts(r, t->frames, (uint32_t)n);
	*ret = t->frames;
	return (uint32_t)n;
}

struct runtimes_counts runtimes_get_counts(const struct runtimes *t)
{
	return t->counts;
}
