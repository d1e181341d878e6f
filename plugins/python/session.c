/* SPDX-License-Identifier: Apache-2.0 */
/* A claim reads nothing from a process, unless that has code without a file: the interpreter's file
 * says where the runtime is, and the BPF program reads the rest where it walks. So a claim costs
 * little, and holds before the runtime has set up its memory. Names come by the ring, on a thread.
 * It reads the processes' memory only for line tables that are too long for the ring. */
#include "runtime-kit/session.h"

#include "python/binaries.h"
#include "python/layouts.h"
#include "python/names.h"
#include "python/trampolines.h"
#include "runtime-kit/known-ids.h"
#include "runtime-kit/names-ring.h"
#include "runtime-kit/process-table.h"
#include "runtime-kit/service.h"
#include "runtime-kit/target-memory.h"
#include "runtime-kit/text.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define NAMES_BYTES (8u << 20)

struct process {
	struct process_entry entry;
	struct binary *binary;
	uint64_t bias;
	bool asyncio; /* the program is told where its tasks are */
};

struct session {
	struct runtime_service *service;
	struct runtime_counts counts; /* that the service has been told */
	int procs, codes;
	uint64_t seed;
	struct name_cache *names;
	struct names_ring *ring;
	struct target_reader *reader; /* the ring's thread's */
	struct target_reader *claims; /* of `claim`; NULL until a process may have trampolines */
	struct binaries binaries;
	pthread_mutex_t lock; /* of `processes`, for changes and for the ring's thread */
	struct process_table processes;
	char text[TEXT_BYTES(PYTHON_TEXT_MAX) + 32]; /* of a marker */
};

static void forget(struct session *s, uint64_t id)
{
	known_ids_forget(s->codes, PYTHON_CODES, id);
}

/* The living process of a pid, as the ring's thread may ask for it; false: there is none. */
static bool find_living(struct session *s, uint32_t pid, struct andiron_runtime_process *ret)
{
	const struct process_entry *e;

	pthread_mutex_lock(&s->lock);
	e = process_table_living(&s->processes, pid);
	if (e)
		*ret = e->key;
	pthread_mutex_unlock(&s->lock);
	return e != NULL;
}

/* The whole line table of a record that has a part of it, as long as the process lives. NULL, or
 * the caller's to free: what begins with that part. */
static unsigned char *read_table(struct session *s, const struct python_record *r,
				 const unsigned char *part)
{
	struct andiron_runtime_process process;
	struct target_memory *memory = NULL;
	unsigned char *ret;
	int error;

	if (r->all_lines > NAMES_TABLE_MAX || !find_living(s, r->pid, &process))
		return NULL;
	ret = malloc(r->all_lines);
	error = ret ? target_memory_open(s->reader, &process, &memory) : -ENOMEM;
	if (error == 0)
		error = target_memory_read(memory, r->table, ret, r->all_lines);
	target_memory_close(memory);
	if (error == 0 && memcmp(ret, part, r->n_lines) == 0)
		return ret;
	free(ret);
	return NULL;
}

/* A record of the ring. */
static void take_record(void *context, const void *data, size_t size)
{
	struct session *s = context;
	unsigned char *table = NULL;
	struct python_record r;
	uint64_t id;

	if (size < sizeof(r))
		return;
	memcpy(&r, data, sizeof(r));
	if (r.all_lines > r.n_lines && r.n_lines == PYTHON_LINES_MAX &&
	    size >= sizeof(r) + r.n_name + r.n_file + r.n_lines)
		table = read_table(s, &r,
				   (const unsigned char *)data + sizeof(r) + r.n_name + r.n_file);
	if (names_add(s->names, data, size, table) != 0)
		forget(s, r.id);
	while ((id = name_cache_excess(s->names)) != 0)
		forget(s, id);
	free(table);
}

int32_t session_recognizes(void *self, uint64_t object)
{
	return runtime_service_ask(self, object, interpreter_recognized);
}

static int session_begin(struct session *s, const struct andiron_runtime_map *maps, uint64_t n)
{
	int records = runtime_map_of(maps, n, "records"),
	    layouts = runtime_map_of(maps, n, "layouts"), tasks = runtime_map_of(maps, n, "tasks");

	s->procs = runtime_map_of(maps, n, "procs");
	s->codes = runtime_map_of(maps, n, "codes");
	if (getrandom(&s->seed, sizeof(s->seed), 0) != sizeof(s->seed) || records < 0 ||
	    layouts < 0 || tasks < 0 || s->procs < 0 || s->codes < 0)
		return -EINVAL;
	s->names = name_cache_new(NAMES_BYTES);
	s->reader = target_reader_new(false);
	if (!s->names || !s->reader ||
	    binaries_init(&s->binaries, &s->service->objects, layouts, tasks) != 0 ||
	    process_table_init(&s->processes, PYTHON_PROCS, 0) != 0)
		return -ENOMEM;
	return names_ring_open(records, "python-names", take_record, s, &s->ring);
}

int32_t session_open(void *self, const struct andiron_runtime_map *maps, uint64_t n, void **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->service = self;
	pthread_mutex_init(&s->lock, NULL);
	r = session_begin(s, maps, n);
	if (r != 0)
		session_close(s);
	else
		*ret = s;
	return r;
}

static void process_free(struct process_entry *e)
{
	struct process *p = (struct process *)(void *)e;

	binary_release(p->binary);
	free(p);
}

/* Reports what the session has for the metrics. */
static void report_counts(struct session *s)
{
	struct name_cache_counts names = name_cache_counts(s->names);
	uint64_t n_stuck = target_reader_stuck(s->reader);

	if (s->claims)
		n_stuck += target_reader_stuck(s->claims);
	runtime_service_count(s->service, &s->counts,
			      &(struct runtime_counts){s->processes.n_living, names.bytes,
						       names.n_evicted, n_stuck});
}

void session_close(void *session)
{
	struct session *s = session;
	struct process_entry *e;

	target_reader_end(s->reader);
	names_ring_close(s->ring);
	runtime_service_count(s->service, &s->counts,
			      &(struct runtime_counts){.names_evicted = s->counts.names_evicted});
	while ((e = process_table_take(&s->processes)) != NULL)
		process_free(e);
	process_table_fini(&s->processes);
	binaries_fini(&s->binaries);
	target_reader_free(s->reader);
	target_reader_free(s->claims);
	name_cache_free(s->names);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* The first file of the process that has an interpreter. 1; 0: none has; -EAGAIN: a file could not
 * be read now. */
static int find_binary(struct session *s, const struct andiron_runtime_mapping *mappings,
		       uint64_t n, struct binary **ret, uint64_t *ret_bias)
{
	int r = 0;

	for (uint64_t i = 0; i < n; i++) {
		struct binary *b =
			mappings[i].object ? binaries_find(&s->binaries, mappings[i].object) : NULL;

		if (!b && mappings[i].object)
			r = -EAGAIN;
		if (!b || !b->interpreter)
			continue;
		*ret = b;
		*ret_bias = mappings[i].start - mappings[i].address;
		return 1;
	}
	return r;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 31;
}

/* The salt of ids. Where ids tell names apart by their texts, it is that of the program as it was
 * loaded, so that workers that were forked share ids. Else it is that of the process: what two
 * workers compile after the fork may have the same addresses. */
static uint64_t salt_of(const struct session *s, const struct process *p)
{
	const struct andiron_runtime_process *key = &p->entry.key;
	uint64_t program = mix(mix(s->seed, p->binary->entry.object), p->bias);

	if (p->binary->interpreter->layout.text_hash != PYTHON_NO_FIELD)
		return program;
	return mix(mix(mix(program, key->pid), key->start_ns), key->exec_generation);
}

/* Writes what the program is to know of the process. */
static bool put(struct session *s, const struct process *p)
{
	struct python_proc value = {
		.bias = p->bias,
		.runtime = p->bias + p->binary->interpreter->runtime,
		.salt = salt_of(s, p),
		.layout = p->binary->entry.slot,
		.asyncio = p->asyncio,
	};

	return bpf_map_update_elem(s->procs, &p->entry.key.pid, &value, BPF_ANY) == 0;
}

/* Frees what has gone. */
static void drop_gone(struct session *s)
{
	struct process_entry *e;

	while ((e = process_table_excess(&s->processes)) != NULL)
		process_free(e);
}

/* The entry of the process as it is now; NULL: it has none, and a former one has gone. */
static struct process *find_entry(struct session *s, const struct andiron_runtime_process *key,
				  const struct binary *b, uint64_t bias)
{
	struct process_claim claim = process_table_claim(&s->processes, key);
	struct process *p = (struct process *)(void *)claim.entry;

	if (p && (p->binary != b || p->bias != bias)) {
		process_table_gone(&s->processes, key);
		claim.replaced = true;
		p = NULL;
	}
	if (claim.replaced)
		bpf_map_delete_elem(s->procs, &key->pid);
	drop_gone(s);
	return p;
}

/* Adds a process; NULL: it does not become known to the program. */
static struct process *add_process(struct session *s, const struct andiron_runtime_process *key,
				   struct binary *b, uint64_t bias)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p || !binary_retain(&s->binaries, b)) {
		free(p);
		return NULL;
	}
	p->binary = b;
	p->bias = bias;
	if (process_table_add(&s->processes, &p->entry, key) != 0) {
		process_free(&p->entry);
		return NULL;
	}
	if (put(s, p))
		return p;
	process_table_gone(&s->processes, key);
	drop_gone(s);
	return NULL;
}

/* Looks for asyncio, which a program may import at any time, and tells the program of it. Where
 * the map is full, the next claim tries again. */
static void find_asyncio(struct session *s, struct process *p,
			 const struct andiron_runtime_mapping *mappings, uint64_t n)
{
	if (p->asyncio || p->binary->interpreter->tasks.interp_bytes == 0)
		return;
	for (uint64_t i = 0; i < n && !p->asyncio; i++) {
		struct binary *b =
			mappings[i].object ? binaries_find(&s->binaries, mappings[i].object) : NULL;

		p->asyncio = b && b->asyncio && binary_has_asyncio(&s->binaries, p->binary, b);
	}
	if (p->asyncio && !put(s, p))
		p->asyncio = false;
}

/* Trampolines, behind which the loop's callers are. */
static int32_t claim_trampolines(struct session *s, const struct process *p,
				 const struct andiron_runtime_mapping *mappings, uint64_t n,
				 struct andiron_runtime_claim *ret, uint64_t max)
{
	if (p->binary->interpreter->layout.version < 0x030c0000 ||
	    !trampolines_possible(mappings, n))
		return 0;
	if (!s->claims)
		s->claims = target_reader_new(false);
	return s->claims ? trampolines_claim(s->claims, &p->entry.key, mappings, n, ret, max) : 0;
}

int32_t session_claim(void *session, const struct andiron_runtime_process *process,
		      const struct andiron_runtime_mapping *mappings, uint64_t n,
		      struct andiron_runtime_claim *ret, uint64_t max)
{
	struct session *s = session;
	uint64_t bias = 0;
	struct binary *b = NULL;
	int32_t count = 0;
	int found = find_binary(s, mappings, n, &b, &bias);
	struct process *p;

	pthread_mutex_lock(&s->lock);
	p = find_entry(s, process, b, bias);
	if (!p && b)
		p = add_process(s, process, b, bias);
	report_counts(s);
	pthread_mutex_unlock(&s->lock);
	if (!b)
		return found;
	if (!p)
		return -ENOMEM;
	find_asyncio(s, p, mappings, n);
	for (uint32_t i = 0; i < b->interpreter->n_codes && (uint64_t)count < max; i++)
		ret[count++] = (struct andiron_runtime_claim){b->entry.object,
							      b->interpreter->codes[i].from,
							      b->interpreter->codes[i].to};
	count += claim_trampolines(s, p, mappings, n, ret + count, max - (uint64_t)count);
	return count;
}

void session_gone(void *session, const struct andiron_runtime_process *process)
{
	struct session *s = session;

	pthread_mutex_lock(&s->lock);
	if (process_table_gone(&s->processes, process))
		bpf_map_delete_elem(s->procs, &process->pid);
	drop_gone(s);
	report_counts(s);
	pthread_mutex_unlock(&s->lock);
}

static const struct interpreter *interpreter_of(struct session *s,
						const struct andiron_runtime_process *process)
{
	const struct process_entry *e = process_table_find(&s->processes, process);

	return e ? ((const struct process *)(const void *)e)->binary->interpreter : NULL;
}

int32_t session_describe(void *session, const struct andiron_runtime_process *process, char *ret,
			 uint64_t max)
{
	const struct interpreter *i = interpreter_of(session, process);
	char version[24];
	int n;

	if (!i)
		return 0;
	layout_version_text(&i->layout, version, sizeof(version));
	if (i->why[0] == '\0')
		n = snprintf(ret, max, "CPython %s", version);
	else if (i->layout.version == 0)
		n = snprintf(ret, max, "CPython: not known, not found: %s", i->why);
	else
		n = snprintf(ret, max, "CPython %s: not known, not found: %s", version, i->why);
	return n < 0 ? 0 : (uint64_t)n >= max ? (int32_t)max - 1 : n;
}

/* What stands between a task's frames and those of the one that awaits it. */
static int32_t resolve_note(struct session *s, const char *awaited_by, uint32_t n,
			    struct andiron_runtime_frame *ret)
{
	int used = snprintf(s->text, sizeof(s->text), "[awaited by %.*s]", (int)n, awaited_by);

	ret->function = (struct andiron_str){s->text, (uint64_t)used};
	ret->file = (struct andiron_str){NULL, 0};
	ret->line = ret->first_line = 0;
	ret->flags = ANDIRON_RUNTIME_NOTE;
	return 1;
}

/* What the program could not do, in place of a frame. */
static int32_t resolve_marker(struct session *s, const struct andiron_runtime_process *process,
			      uint64_t marker, struct andiron_runtime_frame *ret)
{
	static const char *const lacks[] = {
		[PYTHON_MARKER_THREAD] = "the thread's state was not found",
		[PYTHON_MARKER_FRAME] = "a frame could not be read",
		[PYTHON_MARKER_ORDER] = "native frames of the outer calls stand together",
		[PYTHON_MARKER_AWAITER] = "who awaits this task could not be read",
		[PYTHON_MARKER_DEPTH] = "a deep recursion, its outer frames are left out",
	};
	char what[160];
	int n = session_describe(s, process, what, sizeof(what) - 1);
	static const char *const awaiters[] = {
		[PYTHON_MARKER_TASK] = "a task",
		[PYTHON_MARKER_SEVERAL] = "several tasks",
		[PYTHON_MARKER_OTHERS] = "more tasks",
		[PYTHON_MARKER_DEEPER] = "coroutines further in",
	};
	const char *awaiter = marker < sizeof(awaiters) / sizeof(*awaiters) ? awaiters[marker]
									    : NULL;
	const char *lack = marker < sizeof(lacks) / sizeof(*lacks) ? lacks[marker] : NULL;

	if (awaiter)
		return resolve_note(s, awaiter, (uint32_t)strlen(awaiter), ret);
	if (n <= 0)
		n = snprintf(what, sizeof(what), "CPython");
	n = snprintf(s->text, sizeof(s->text), "[%.*s%s%s]", n, what, lack ? ": " : "",
		     lack ? lack : "");
	ret->function = (struct andiron_str){s->text, (uint64_t)n};
	ret->file = (struct andiron_str){NULL, 0};
	ret->line = ret->first_line = 0;
	ret->flags = ANDIRON_RUNTIME_MARKER;
	return 1;
}

int32_t session_resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
			uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	struct session *s = session;
	struct line_table lines;
	struct name name;

	if (max == 0)
		return -EINVAL;
	if (what == PYTHON_WHAT_MARKER)
		return resolve_marker(s, process, where, ret);
	name_cache_begin(s->names);
	if (!name_cache_find(s->names, what, &name)) {
		names_ring_drain(s->ring);
		if (!name_cache_find(s->names, what, &name)) {
			forget(s, what);
			return -ENOENT;
		}
	}
	if (name.kind == PYTHON_LINES_TASK)
		return resolve_note(s, name.function, name.n_function, ret);
	lines = names_lines(&name);
	ret->function = (struct andiron_str){name.function, name.n_function};
	ret->file = (struct andiron_str){name.file, name.n_file};
	ret->first_line = name.first_line;
	ret->line = line_at(&lines, where & PYTHON_NO_LINE);
	ret->flags = 0;
	return 1;
}
