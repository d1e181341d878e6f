/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler asks for, and a thread that reads what walks have seen. The thread holds `lock`
 * to look into tables, never while it reads a process: that may take as long as the process wants.
 * It holds `reading` in the meantime, so that the memory that it reads is not closed.
 *
 * A thread and not a copy by the BPF program: a line needs a script's source and code's tables,
 * which have no bound that a program could copy. */
#include "runtime-kit/session.h"

#include <andiron/host.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "runtime-kit/names-ring.h"
#include "runtime-kit/object-table.h"
#include "runtime-kit/process-table.h"
#include "runtime-kit/service.h"
#include "runtime-kit/target-memory.h"
#include "v8/frames.h"
#include "v8/learn.h"
#include "v8/mappings.h"

#define FILES      1024u /* that no process uses */
#define GONE       256u  /* processes whose names may be asked for */
#define IDS        256u
#define REGIONS    32u           /* so often a process's list of mappings is read at once, … */
#define REGIONS_NS 100000000ull  /* … and then as often as that */
#define OPEN_NS    1000000000ull /* memory that cannot be opened is tried again as often */
#define BUDGET     400000u       /* reads (memory.h) for one sighting, … */
#define LEARN_NS   1000000000ull /* … and how long it may take */
#define TIME_NS    5000000000ull /* of the thread for a process; half of all time is added */

struct file {
	struct object_entry entry;
	struct v8_binary *binary; /* NULL: it holds no V8 */
};

struct process {
	struct process_entry entry;
	struct process *next; /* of the same hash of its id */
	struct file *file;    /* NULL when it is gone */
	struct v8_binary *binary;
	struct target_memory *memory; /* NULL: it is gone, or not to be read for now */
	struct mappings mappings;
	uint64_t seed, regions_ns, open_ns;
	uint32_t n_regions;           /* readings of its list, */
	uint64_t regions_of;          /* and of which code the last was (mappings_hash) */
	uint64_t left_ns, left_at_ns; /* of the thread's time, and when that was so */
	uint64_t pages[MEMORY_MAPS + MEMORY_NEAR]; /* as v8_memory has them */
};

struct session {
	struct runtime_service *service;
	struct runtime_counts counted;
	int fd_processes, fd_layouts, fd_places, fd_ring;
	struct names_ring *ring;
	struct target_reader *reader;
	pthread_mutex_t reading; /* before `lock` */
	pthread_mutex_t lock;    /* of all that follows */
	struct object_table files;
	struct process_table processes;
	struct process *ids[IDS];
	struct target_memory *retired[GONE + 2]; /* to be closed; a claim adds two */
	uint32_t n_retired;
	struct names *names;
	struct frames frames;
	char text[256];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void file_free(struct file *f)
{
	binary_release(f->binary);
	free(f);
}

static struct process *process_of_id(const struct session *s, uint64_t id)
{
	struct process *p = s->ids[id % IDS];

	while (p && p->entry.id != id)
		p = p->next;
	return p;
}

static void process_free(struct session *s, struct process *p)
{
	struct process **at = &s->ids[p->entry.id % IDS];

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	binary_release(p->binary);
	free(p);
}

/* Needs `reading` and `lock`. */
static void close_retired(struct session *s)
{
	while (s->n_retired > 0)
		target_memory_close(s->retired[--s->n_retired]);
}

/* Takes a process that is gone, or another program, away from the BPF program. */
static void process_retire(struct session *s, struct process *p)
{
	struct process_entry *e;

	bpf_map_delete_elem(s->fd_processes, &p->entry.key.pid);
	if (p->file)
		object_table_release(&p->file->entry);
	p->file = NULL;
	if (p->memory)
		s->retired[s->n_retired++] = p->memory;
	p->memory = NULL;
	while ((e = process_table_excess(&s->processes)) != NULL)
		process_free(s, (struct process *)e);
}

/* Needs `lock`. */
static void session_count(struct session *s)
{
	struct runtime_counts now = {s->processes.n_living, s->names->bytes, s->names->n_evicted,
				     target_reader_stuck(s->reader)};

	runtime_service_count(s->service, &s->counted, &now);
}

/* Closes what can be closed without waiting for the thread, which else does it. */
static void session_unlock(struct session *s)
{
	bool full = s->n_retired >= GONE;

	session_count(s);
	pthread_mutex_unlock(&s->lock);
	/* The thread takes two and a half seconds for a sighting at most. */
	if (full ? pthread_mutex_lock(&s->reading) != 0 : pthread_mutex_trylock(&s->reading) != 0)
		return;
	pthread_mutex_lock(&s->lock);
	close_retired(s);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&s->reading);
}

struct target {
	struct target_memory *memory;
	struct target_reader *reader;
	uint64_t until_ns;
};

static bool target_read(void *context, uint64_t address, void *ret, size_t n)
{
	struct target *t = context;

	return now_ns() < t->until_ns && target_memory_read(t->memory, address, ret, n) == 0;
}

static void target_refresh(void *context)
{
	target_reader_refresh(((struct target *)context)->reader);
}

static void target_announce(void *context, const uint64_t *at, uint32_t n)
{
	struct target *t = context;

	if (now_ns() < t->until_ns)
		target_memory_announce(t->memory, at, n);
}

/* What the process has left of the thread's time. */
static uint64_t time_left(struct process *p, uint64_t now)
{
	uint64_t left = p->left_ns + (now - p->left_at_ns) / 2;

	p->left_ns = left < TIME_NS ? left : TIME_NS;
	p->left_at_ns = now;
	return p->left_ns;
}

static void time_take(struct process *p, uint64_t ns)
{
	p->left_ns -= ns < p->left_ns ? ns : p->left_ns;
	p->left_at_ns += ns;
}

/* Opens the memory of a process that has none: descriptors may have been short, or reads of it
 * slow, for a while. */
static void process_open(struct session *s, struct process *p, uint64_t now)
{
	if (!p->file || p->memory || now < p->open_ns)
		return;
	p->open_ns = now + OPEN_NS;
	if (target_memory_open(s->reader, &p->entry.key, &p->memory) != 0)
		p->memory = NULL;
}

/* Reads what a walk has seen, unless its process is gone. */
static void session_learn(struct session *s, const struct v8_sighting *sighting)
{
	struct v8_place place = v8_place_of(sighting);
	struct v8_place_state state;
	struct target target = {NULL, s->reader, 0};
	struct v8_memory memory = {target_read, target_refresh,  &target,
				   BUDGET,      target_announce, {0}};
	struct learning l = {.names = s->names, .lock = &s->lock, .heap = {&memory, NULL}};
	struct v8_binary *binary;
	struct process *p;
	uint64_t begin = now_ns(), left;
	bool all;

	pthread_mutex_lock(&s->lock);
	close_retired(s);
	p = process_of_id(s, sighting->key.process_id);
	if (p)
		process_open(s, p, begin);
	left = p ? time_left(p, begin) : 0;
	if (left == 0 || !p->memory) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	target.memory = p->memory;
	target.until_ns = begin + (left < LEARN_NS ? left : LEARN_NS);
	binary = p->binary;
	binary->n_users++;
	l.heap.binary = binary;
	l.process_id = p->entry.id;
	l.seed = p->seed;
	l.now_ns = begin;
	memcpy(memory.pages, p->pages, sizeof(p->pages));
	pthread_mutex_unlock(&s->lock);

	target_reader_refresh(s->reader);
	all = learn(&l, sighting, &state);
	if (all || state.header != 0) {
		state.again_ns = now_ns() + (all ? V8_KNOWN_NS : V8_AGAIN_NS);
		bpf_map_update_elem(s->fd_places, &place, &state, BPF_EXIST);
	}

	pthread_mutex_lock(&s->lock);
	p = process_of_id(s, sighting->key.process_id);
	if (p) {
		time_take(p, now_ns() - begin);
		memcpy(p->pages, memory.pages, sizeof(p->pages));
	}
	binary_release(binary);
	session_count(s);
	pthread_mutex_unlock(&s->lock);
}

static void session_take(void *context, const void *record, size_t n)
{
	struct session *s = context;
	struct v8_sighting sighting;

	if (n < sizeof(sighting))
		return;
	memcpy(&sighting, record, sizeof(sighting));
	pthread_mutex_lock(&s->reading);
	session_learn(s, &sighting);
	pthread_mutex_unlock(&s->reading);
}

static int session_begin(struct session *s)
{
	if (s->fd_processes < 0 || s->fd_layouts < 0 || s->fd_places < 0 || s->fd_ring < 0)
		return -EINVAL;
	s->names = names_new();
	s->reader = target_reader_new(true);
	if (!s->names || !s->reader ||
	    object_table_init(&s->files, &s->service->objects, FILES, V8_LAYOUTS) != 0 ||
	    process_table_init(&s->processes, V8_PROCESSES, GONE) != 0)
		return -ENOMEM;
	return names_ring_open(s->fd_ring, "v8-names", session_take, s, &s->ring);
}

int32_t session_recognizes(void *self, uint64_t object)
{
	return runtime_service_ask(self, object, binary_is_v8);
}

int32_t session_open(void *self, const struct andiron_runtime_map *maps, uint64_t n_maps,
		     void **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->reading, NULL);
	s->fd_processes = runtime_map_of(maps, n_maps, "processes");
	s->fd_layouts = runtime_map_of(maps, n_maps, "layouts");
	s->fd_places = runtime_map_of(maps, n_maps, "places");
	s->fd_ring = runtime_map_of(maps, n_maps, "ring");
	s->service = self;
	r = session_begin(s);
	if (r == 0)
		*ret = s;
	else
		session_close(s);
	return r;
}

void session_close(void *session)
{
	struct session *s = session;
	struct process_entry *p;
	struct object_entry *f;

	target_reader_end(s->reader);
	names_ring_close(s->ring);
	while ((p = process_table_take(&s->processes)) != NULL) {
		target_memory_close(((struct process *)p)->memory);
		process_free(s, (struct process *)p);
	}
	process_table_fini(&s->processes);
	while ((f = object_table_take(&s->files)) != NULL)
		file_free((struct file *)f);
	object_table_fini(&s->files);
	close_retired(s);
	target_reader_free(s->reader);
	runtime_service_count(s->service, &s->counted,
			      &(struct runtime_counts){.names_evicted = s->counted.names_evicted});
	names_free(s->names);
	pthread_mutex_destroy(&s->reading);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* What an object is; NULL: it is not to be read at the moment. */
static struct file *session_file(struct session *s, uint64_t object)
{
	struct file *f = (struct file *)object_table_find(&s->files, object);
	struct object_entry *e;
	struct v8_binary *b;
	int fd, r;

	if (f || object_table_open(&s->files, object, &fd) != 0)
		return f;
	b = calloc(1, sizeof(*b));
	f = calloc(1, sizeof(*f));
	r = b && f ? binary_read(b, fd) : -ENOMEM;
	close(fd);
	if (r < 0) {
		free(b);
		free(f);
		return NULL;
	}
	object_table_add(&s->files, &f->entry, object);
	if (r == 1) {
		b->n_users = 1;
		f->binary = b;
	} else {
		free(b);
	}
	while ((e = object_table_excess(&s->files)) != NULL)
		file_free((struct file *)e);
	return f;
}

/* The first object with a V8; NULL: there is none. */
static struct file *session_find(struct session *s, const struct andiron_runtime_mapping *list,
				 uint64_t n)
{
	uint64_t object = 0;

	for (uint64_t i = 0; i < n; i++)
		if (list[i].object != 0 && list[i].object != object) {
			struct file *f = session_file(s, list[i].object);

			if (f && f->binary)
				return f;
			object = list[i].object;
		}
	return NULL;
}

static struct process *process_new(struct session *s, const struct andiron_runtime_process *key)
{
	struct process *p = calloc(1, sizeof(*p)), **ids;

	if (!p || getrandom(&p->seed, sizeof(p->seed), 0) != (ssize_t)sizeof(p->seed) ||
	    process_table_add(&s->processes, &p->entry, key) != 0) {
		free(p);
		return NULL;
	}
	p->left_ns = TIME_NS;
	ids = &s->ids[p->entry.id % IDS];
	p->next = *ids;
	*ids = p;
	return p;
}

/* Lets a process have its file's slot, and its memory open. */
static int process_attach(struct session *s, struct process *p, struct file *f)
{
	int r;

	if (p->file == f)
		return 0;
	r = object_table_retain(&s->files, &f->entry);
	if (r < 0)
		return r;
	if (r == 1)
		bpf_map_update_elem(s->fd_layouts, &f->entry.slot, &f->binary->layout, BPF_ANY);
	if (p->file)
		object_table_release(&p->file->entry);
	p->file = f;
	f->binary->n_users++;
	binary_release(p->binary);
	p->binary = f->binary;
	process_open(s, p, now_ns());
	return 0;
}

static void process_map(struct process *p, const struct andiron_runtime_mapping *list, uint64_t n)
{
	uint64_t object = p->file->entry.object, now = now_ns(), code = mappings_hash(list, n);

	/* The kernel's own code is in no region. */
	if (!mappings_update(&p->mappings, p->binary, object, list, n) && code != p->regions_of &&
	    (p->n_regions < REGIONS || now - p->regions_ns >= REGIONS_NS)) {
		mappings_read_regions(&p->mappings, p->entry.key.pid, p->binary, object, list, n);
		p->regions_ns = now;
		p->regions_of = code;
		p->n_regions++;
	}
	mappings_add_rest(&p->mappings, list, n);
}

/* The claims of a process that is known. */
static int32_t process_claims(struct session *s, struct process *p,
			      struct andiron_runtime_claim *ret, uint64_t max)
{
	struct v8_process known = {
		.layout = p->file->entry.slot,
		.process_id = p->entry.id,
		.seed = p->seed,
	};
	const struct v8_binary *b = p->binary;
	uint64_t object = p->file->entry.object, n = 0, call = b->collector_call;

	mappings_segments(&p->mappings, &known);
	if (bpf_map_update_elem(s->fd_processes, &p->entry.key.pid, &known, BPF_ANY) != 0)
		return -ENOMEM;
	if (b->blob_bytes != 0)
		ret[n++] = (struct andiron_runtime_claim){object, b->blob, b->blob + b->blob_bytes};
	if (call != 0)
		ret[n++] = (struct andiron_runtime_claim){object, call,
							  call + V8_COLLECTOR_CALL_BYTES};
	for (uint32_t i = 0; i < p->mappings.n_code && n < max; i++)
		ret[n++] = (struct andiron_runtime_claim){0, p->mappings.code[i].from,
							  p->mappings.code[i].to};
	return (int32_t)n;
}

static int32_t session_claim_locked(struct session *s,
				    const struct andiron_runtime_process *process,
				    const struct andiron_runtime_mapping *list, uint64_t n,
				    struct andiron_runtime_claim *ret, uint64_t max)
{
	struct process_entry *living = process_table_living(&s->processes, process->pid);
	struct process_claim known = process_table_claim(&s->processes, process);
	struct process *p = (struct process *)known.entry;
	struct file *f;

	if (known.replaced)
		process_retire(s, (struct process *)living);
	f = session_find(s, list, n);
	if (!f) {
		if (p && process_table_gone(&s->processes, process))
			process_retire(s, p);
		return 0;
	}
	if (!p)
		p = process_new(s, process);
	if (!p || process_attach(s, p, f) != 0)
		return -ENOMEM;
	process_map(p, list, n);
	return process_claims(s, p, ret, max);
}

int32_t session_claim(void *session, const struct andiron_runtime_process *process,
		      const struct andiron_runtime_mapping *mappings, uint64_t n_mappings,
		      struct andiron_runtime_claim *ret, uint64_t max)
{
	struct session *s = session;
	int32_t r;

	pthread_mutex_lock(&s->lock);
	r = session_claim_locked(s, process, mappings, n_mappings, ret, max);
	session_unlock(s);
	return r;
}

void session_gone(void *session, const struct andiron_runtime_process *process)
{
	struct session *s = session;
	struct process_entry *e;

	pthread_mutex_lock(&s->lock);
	e = process_table_gone(&s->processes, process);
	if (e)
		process_retire(s, (struct process *)e);
	session_unlock(s);
}

static int32_t describe(const struct v8_binary *b, const char *before, const char *after, char *ret,
			uint64_t max)
{
	int n = snprintf(ret, max, "%sV8 %u.%u.%u.%u%s%s%s", before, b->version[0], b->version[1],
			 b->version[2], b->version[3], b->why[0] ? ": not known, no " : "", b->why,
			 after);

	return n < 0 ? 0 : (int32_t)((uint64_t)n < max ? (uint64_t)n : max - 1);
}

static void session_resolve_locked(struct session *s, const struct andiron_runtime_process *process,
				   uint64_t what, uint64_t where)
{
	struct process *p = (struct process *)process_table_find(&s->processes, process);
	uint32_t kind = (uint32_t)V8_KIND(what);
	const struct names_function *f = NULL;
	struct frames *frames = &s->frames;

	/* A child that was only forked has functions of its parent's. */
	if (kind < V8_STUB)
		f = names_function(s->names, V8_ID(what));
	if (f)
		p = process_of_id(s, f->key.process_id);
	if (!p || !p->binary)
		return;
	if (kind == V8_UNKNOWN) {
		frames->list[0].flags = ANDIRON_RUNTIME_MARKER;
		frames->list[0].function.len =
			(uint64_t)describe(p->binary, "[", "]", s->text, sizeof(s->text));
		frames->list[0].function.ptr = s->text;
		frames->n = 1;
	} else {
		struct frames_process of = {p->entry.id, p->binary, p->mappings.blobs,
					    p->mappings.n_blobs};

		frames_resolve(frames, s->names, &of, what, where);
	}
}

int32_t session_resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
			uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	struct session *s = session;

	pthread_mutex_lock(&s->lock);
	s->frames.list = ret;
	s->frames.max = (uint32_t)max;
	s->frames.n = s->frames.n_text = 0;
	session_resolve_locked(s, process, what, where);
	pthread_mutex_unlock(&s->lock);
	return s->frames.n > 0 ? (int32_t)s->frames.n : -ENOENT;
}

/* What a process has for which there is no room. */
static const struct v8_binary too_many = {.why = "room: too many programs with a V8 run"};

int32_t session_describe(void *session, const struct andiron_runtime_process *process, char *ret,
			 uint64_t max)
{
	struct session *s = session;
	struct process *p;
	int32_t n = 0;

	pthread_mutex_lock(&s->lock);
	p = (struct process *)process_table_find(&s->processes, process);
	if (p && p->binary)
		n = describe(p->binary, "", "", ret, max);
	else if (p)
		n = describe(&too_many, "", "", ret, max);
	pthread_mutex_unlock(&s->lock);
	return n;
}
