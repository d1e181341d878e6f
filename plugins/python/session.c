/* SPDX-License-Identifier: Apache-2.0 */
/* See session.h. Nothing is read from a process: the file says where the runtime is, and the BPF
 * program reads the rest where it walks. So a claim costs little, and holds before the runtime has
 * set up its memory. */
#include "python/session.h"

#include "python/binaries.h"
#include "python/layouts.h"
#include "python/names.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUCKETS 1024u

struct process {
	struct process *next; /* in its bucket */
	struct andiron_runtime_process key;
	struct binary *binary;
	uint64_t bias;
};

struct session {
	int procs, codes;
	uint64_t seed;
	struct ring_buffer *ring;
	struct names *names;
	struct binaries *binaries;
	struct process *processes[BUCKETS];
	char text[192]; /* of a marker */
};

static void forget(void *context, uint64_t id)
{
	bpf_map_delete_elem(((struct session *)context)->codes, &id);
}

/* The whole line table of a record that has a part of it, as long as the process lives. NULL, or
 * the caller's to free: what begins with that part. */
static unsigned char *read_table(const struct python_record *r, const unsigned char *part)
{
	struct iovec here = {malloc(NAMES_TABLE_MAX), r->all_lines};
	struct iovec there = {(void *)(uintptr_t)r->table, r->all_lines};

	if (here.iov_base && r->all_lines <= NAMES_TABLE_MAX &&
	    process_vm_readv((pid_t)r->pid, &here, 1, &there, 1, 0) == (ssize_t)r->all_lines &&
	    memcmp(here.iov_base, part, r->n_lines) == 0)
		return here.iov_base;
	free(here.iov_base);
	return NULL;
}

static int take_record(void *context, void *data, size_t size)
{
	struct session *s = context;
	unsigned char *table = NULL;
	struct python_record r;

	if (size < sizeof(r))
		return 0;
	memcpy(&r, data, sizeof(r));
	if (r.all_lines > r.n_lines && r.n_lines == PYTHON_LINES_MAX &&
	    size >= sizeof(r) + r.n_name + r.n_file + r.n_lines)
		table = read_table(&r, (unsigned char *)data + sizeof(r) + r.n_name + r.n_file);
	if (!names_add(s->names, data, size, table))
		forget(s, r.id);
	free(table);
	return 0;
}

static int map_of(const struct andiron_runtime_map *maps, uint64_t n, const char *name)
{
	for (uint64_t i = 0; i < n; i++)
		if (strcmp(maps[i].name, name) == 0)
			return maps[i].fd;
	return -1;
}

int32_t session_recognizes(void *self, uint64_t object)
{
	const struct andiron_extension *e = self;
	const struct andiron_objects *objects = e->table;
	int32_t fd, r = objects->open(e->self, object, ANDIRON_OPEN_FILE, &fd);

	if (r != 0)
		return r;
	r = interpreter_recognized(fd);
	close(fd);
	return r;
}

int32_t session_open(void *self, const struct andiron_runtime_map *maps, uint64_t n, void **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	int records = map_of(maps, n, "records"), layouts = map_of(maps, n, "layouts");

	if (!s)
		return -ENOMEM;
	s->procs = map_of(maps, n, "procs");
	s->codes = map_of(maps, n, "codes");
	if (getrandom(&s->seed, sizeof(s->seed), 0) != sizeof(s->seed) || records < 0 ||
	    layouts < 0 || s->procs < 0 || s->codes < 0) {
		session_close(s);
		return -EINVAL;
	}
	s->names = names_new(forget, s);
	s->binaries = binaries_new(self, layouts);
	s->ring = ring_buffer__new(records, take_record, s, NULL);
	if (!s->names || !s->binaries || !s->ring) {
		session_close(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void session_close(void *session)
{
	struct session *s = session;

	for (size_t i = 0; i < BUCKETS; i++)
		while (s->processes[i]) {
			struct process *p = s->processes[i];

			s->processes[i] = p->next;
			free(p);
		}
	ring_buffer__free(s->ring);
	names_free(s->names);
	binaries_free(s->binaries);
	free(s);
}

static struct process **find(struct session *s, uint32_t pid)
{
	struct process **p = &s->processes[pid % BUCKETS];

	while (*p && (*p)->key.pid != pid)
		p = &(*p)->next;
	return p;
}

static void drop(struct session *s, struct process **at)
{
	struct process *p = *at;

	bpf_map_delete_elem(s->procs, &p->key.pid);
	binary_release(p->binary);
	*at = p->next;
	free(p);
}

/* The first file of the process that has an interpreter. */
static struct binary *find_binary(struct session *s, const struct andiron_runtime_mapping *mappings,
				  uint64_t n, uint64_t *ret_bias)
{
	for (uint64_t i = 0; i < n; i++) {
		struct binary *b =
			mappings[i].object ? binaries_find(s->binaries, mappings[i].object) : NULL;

		if (!b || !b->interpreter)
			continue;
		*ret_bias = mappings[i].start - mappings[i].address;
		return b;
	}
	return NULL;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 31;
}

/* Tells the program of it. */
static bool put(struct session *s, const struct process *p)
{
	struct python_proc value = {
		.bias = p->bias,
		.runtime = p->bias + p->binary->interpreter->runtime,
		.salt = mix(mix(mix(s->seed, p->key.pid), p->key.start_ns), p->key.exec_generation),
		.layout = p->binary->layout,
	};

	return bpf_map_update_elem(s->procs, &p->key.pid, &value, BPF_ANY) == 0;
}

static bool is_same(const struct process *p, const struct andiron_runtime_process *key,
		    const struct binary *b, uint64_t bias)
{
	return p->key.start_ns == key->start_ns && p->key.exec_generation == key->exec_generation &&
	       p->binary == b && p->bias == bias;
}

/* The process as it is now; false: the program does not know it. */
static bool note(struct session *s, const struct andiron_runtime_process *key, struct binary *b,
		 uint64_t bias)
{
	struct process **at = find(s, key->pid), *p = *at;

	if (p && is_same(p, key, b, bias))
		return true;
	if (p)
		drop(s, at);
	p = calloc(1, sizeof(*p));
	if (!p || !binary_retain(s->binaries, b)) {
		free(p);
		return false;
	}
	*p = (struct process){
		.next = s->processes[key->pid % BUCKETS], .key = *key, .binary = b, .bias = bias};
	s->processes[key->pid % BUCKETS] = p;
	if (put(s, p))
		return true;
	drop(s, find(s, key->pid));
	return false;
}

int32_t session_claim(void *session, const struct andiron_runtime_process *process,
		      const struct andiron_runtime_mapping *mappings, uint64_t n,
		      struct andiron_runtime_claim *ret, uint64_t max)
{
	struct session *s = session;
	uint64_t bias = 0;
	struct binary *b = find_binary(s, mappings, n, &bias);
	int32_t count = 0;

	ring_buffer__consume(s->ring);
	if (!b) {
		if (*find(s, process->pid))
			drop(s, find(s, process->pid));
		return 0;
	}
	if (!note(s, process, b, bias))
		return -ENOMEM;
	for (uint32_t i = 0; i < b->interpreter->n_codes && (uint64_t)count < max; i++)
		ret[count++] = (struct andiron_runtime_claim){
			b->object, b->interpreter->codes[i].from, b->interpreter->codes[i].to};
	return count;
}

void session_gone(void *session, const struct andiron_runtime_process *process)
{
	struct process **at = find(session, process->pid);

	if (*at && (*at)->key.start_ns == process->start_ns)
		drop(session, at);
}

static const struct interpreter *interpreter_of(struct session *s,
						const struct andiron_runtime_process *process)
{
	const struct process *p = *find(s, process->pid);

	return p ? p->binary->interpreter : NULL;
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

/* What the program could not do, in place of a frame. */
static int32_t resolve_marker(struct session *s, const struct andiron_runtime_process *process,
			      uint64_t marker, struct andiron_runtime_frame *ret)
{
	static const char *const lacks[] = {
		[PYTHON_MARKER_THREAD] = "the thread's state was not found",
		[PYTHON_MARKER_FRAME] = "a frame could not be read",
	};
	char what[160];
	int n = session_describe(s, process, what, sizeof(what) - 1);
	const char *lack = marker == PYTHON_MARKER_THREAD || marker == PYTHON_MARKER_FRAME
				   ? lacks[marker]
				   : NULL;

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
	struct name name;

	if (max == 0)
		return -EINVAL;
	if (what == PYTHON_WHAT_MARKER)
		return resolve_marker(s, process, where, ret);
	if (!names_find(s->names, what, &name)) {
		ring_buffer__consume(s->ring);
		if (!names_find(s->names, what, &name)) {
			forget(s, what);
			return -ENOENT;
		}
	}
	ret->function = (struct andiron_str){name.function, name.n_function};
	ret->file = (struct andiron_str){name.file, name.n_file};
	ret->first_line = name.lines.first_line;
	ret->line = line_at(&name.lines, where & PYTHON_NO_LINE);
	ret->flags = 0;
	return 1;
}
