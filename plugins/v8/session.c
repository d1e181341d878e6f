/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler asks for, under one lock with the thread that reads what walks have met. */
#include "session.h"

#include <andiron/host.h>
#include <andiron/object.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mappings.h"
#include "processes.h"

#define FILES 1024u /* objects whose kind is remembered */

struct file {
	uint64_t object; /* 0: none */
	uint32_t binary; /* V8_LAYOUTS: it holds no V8 */
};

struct session {
	const struct andiron_extension *objects;
	int fd_processes, fd_layouts, fd_ring;
	struct ring_buffer *ring;
	int stop; /* eventfd */
	pthread_t thread;
	pthread_mutex_t lock; /* of all that follows */
	struct file files[FILES];
	struct v8_binary *binaries[V8_LAYOUTS];
	uint32_t n_binaries;
	struct processes processes;
	uint32_t generation;
	char text[256];
};

/* What a walk has met, read now. */
static int session_met(void *context, void *data, size_t n)
{
	struct session *s = context;
	struct names_function *f;
	struct process *p;
	struct v8_met met;

	if (n < sizeof(met))
		return 0;
	memcpy(&met, data, sizeof(met));
	pthread_mutex_lock(&s->lock);
	p = processes_by_generation(&s->processes, met.key.generation);
	if (p && names_learn(&p->names, &met.key, met.bytecode, &f) == 0) {
		processes_add_number(&s->processes, met.number, p, f);
		if (met.code != 0 && met.code != V8_NOWHERE && met.bytecode == 0 && f->valid)
			names_learn_code(&p->names, met.code);
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static void *session_run(void *context)
{
	struct session *s = context;
	struct pollfd fds[2] = {{ring_buffer__epoll_fd(s->ring), POLLIN, 0}, {s->stop, POLLIN, 0}};

	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		if (fds[1].revents)
			break;
		ring_buffer__consume(s->ring);
	}
	return NULL;
}

static int session_begin(struct session *s)
{
	int r;

	if (s->fd_processes < 0 || s->fd_layouts < 0 || s->fd_ring < 0)
		return -EINVAL;
	s->ring = ring_buffer__new(s->fd_ring, session_met, s, NULL);
	s->stop = eventfd(0, EFD_CLOEXEC);
	if (!s->ring || s->stop < 0)
		return -ENOMEM;
	r = pthread_create(&s->thread, NULL, session_run, s);
	if (r == 0)
		pthread_setname_np(s->thread, "v8-names");
	return -r;
}

int32_t session_recognizes(void *self, uint64_t object)
{
	const struct andiron_extension *e = self;
	const struct andiron_objects *objects = e->table;
	int32_t fd, r = objects->open(e->self, object, ANDIRON_OPEN_FILE, &fd);

	if (r != 0)
		return r;
	r = binary_recognized(fd);
	close(fd);
	return r;
}

int32_t session_open(void *self, const struct andiron_runtime_map *maps, uint64_t n_maps,
		     void **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->objects = self;
	s->fd_processes = s->fd_layouts = s->fd_ring = s->stop = -1;
	pthread_mutex_init(&s->lock, NULL);
	for (uint64_t i = 0; i < n_maps; i++) {
		if (strcmp(maps[i].name, "processes") == 0)
			s->fd_processes = maps[i].fd;
		else if (strcmp(maps[i].name, "layouts") == 0)
			s->fd_layouts = maps[i].fd;
		else if (strcmp(maps[i].name, "ring") == 0)
			s->fd_ring = maps[i].fd;
	}
	r = session_begin(s);
	if (r == 0) {
		*ret = s;
		return 0;
	}
	ring_buffer__free(s->ring);
	if (s->stop >= 0)
		close(s->stop);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return r;
}

void session_close(void *session)
{
	struct session *s = session;
	uint64_t one = 1;

	if (write(s->stop, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(s->thread, NULL);
	ring_buffer__free(s->ring);
	close(s->stop);
	processes_fini(&s->processes);
	for (uint32_t i = 0; i < s->n_binaries; i++) {
		binary_fini(s->binaries[i]);
		free(s->binaries[i]);
	}
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Reads a file that was not seen before: its place among the binaries, or V8_LAYOUTS. */
static uint32_t session_read_file(struct session *s, uint64_t object)
{
	const struct andiron_objects *objects = s->objects->table;
	struct v8_binary *b;
	int32_t fd;
	int r;

	if (s->n_binaries == V8_LAYOUTS ||
	    objects->open(s->objects->self, object, ANDIRON_OPEN_FILE, &fd) != 0)
		return V8_LAYOUTS;
	b = malloc(sizeof(*b));
	r = b ? binary_read(b, fd) : -ENOMEM;
	close(fd);
	if (r == 1) {
		b->layout.unknown = b->why[0] != '\0';
		if (bpf_map_update_elem(s->fd_layouts, &s->n_binaries, &b->layout, BPF_ANY) == 0) {
			s->binaries[s->n_binaries] = b;
			return s->n_binaries++;
		}
		binary_fini(b);
	}
	free(b);
	return V8_LAYOUTS;
}

static struct v8_binary *session_binary(struct session *s, uint64_t object, uint32_t *ret_layout)
{
	struct file *f = &s->files[object * 0x9e3779b97f4a7c15ull >> 54];

	if (f->object != object) {
		/* A binary that is known keeps its layout, even if its place here was taken. */
		f->binary = session_read_file(s, object);
		f->object = object;
	}
	*ret_layout = f->binary;
	return f->binary < V8_LAYOUTS ? s->binaries[f->binary] : NULL;
}

static uint64_t add_claims(const struct v8_range *r, uint32_t n, struct andiron_runtime_claim *ret,
			   uint64_t at, uint64_t max)
{
	for (uint32_t i = 0; i < n && at < max; i++)
		if (r[i].to != 0)
			ret[at++] = (struct andiron_runtime_claim){0, r[i].from, r[i].to};
	return at;
}

static int32_t session_claim_locked(struct session *s,
				    const struct andiron_runtime_process *process,
				    const struct andiron_runtime_mapping *mappings, uint64_t n,
				    struct andiron_runtime_claim *ret, uint64_t max)
{
	struct v8_binary *b = NULL;
	struct v8_process known = {0};
	struct process *p;
	uint64_t object = 0, n_claims = 0;

	for (uint64_t i = 0; i < n && !b; i++)
		if (mappings[i].object != 0 && (i == 0 || mappings[i].object != object)) {
			object = mappings[i].object;
			b = session_binary(s, object, &known.layout);
		}
	if (!b)
		return 0;
	p = processes_find(&s->processes, process);
	if (!p)
		p = processes_add(&s->processes, process, ++s->generation, b);
	if (!p)
		return -ENOMEM;
	if (b->blob_bytes == 0)
		return 0; /* nothing to stand on: only said by session_describe */
	mappings_read(&known, process->pid, b, object, mappings, n);
	known.generation = p->generation;
	memcpy(p->names.blobs, known.blobs, sizeof(known.blobs));
	if (bpf_map_update_elem(s->fd_processes, &process->pid, &known, BPF_ANY) != 0)
		return 0;
	ret[n_claims++] = (struct andiron_runtime_claim){object, b->blob, b->blob + b->blob_bytes};
	if (b->spill != 0)
		ret[n_claims++] =
			(struct andiron_runtime_claim){object, b->spill, b->spill + V8_SPILL_BYTES};
	return (int32_t)add_claims(known.code, V8_RANGES, ret, n_claims, max);
}

int32_t session_claim(void *session, const struct andiron_runtime_process *process,
		      const struct andiron_runtime_mapping *mappings, uint64_t n_mappings,
		      struct andiron_runtime_claim *ret, uint64_t max)
{
	struct session *s = session;
	int32_t r;

	pthread_mutex_lock(&s->lock);
	r = session_claim_locked(s, process, mappings, n_mappings, ret, max);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void session_gone(void *session, const struct andiron_runtime_process *process)
{
	struct session *s = session;
	struct v8_process known;
	struct process *p;

	pthread_mutex_lock(&s->lock);
	p = processes_find(&s->processes, process);
	if (p) {
		/* The pid may be another's by now. */
		if (bpf_map_lookup_elem(s->fd_processes, &process->pid, &known) == 0 &&
		    known.generation == p->generation)
			bpf_map_delete_elem(s->fd_processes, &process->pid);
		processes_gone(&s->processes, p);
	}
	pthread_mutex_unlock(&s->lock);
}

static struct andiron_str str_of(const char *text)
{
	return (struct andiron_str){text, strlen(text)};
}

static int32_t describe(const struct v8_binary *b, const char *before, const char *after, char *ret,
			uint64_t max)
{
	int n = snprintf(ret, max, "%sV8 %u.%u.%u.%u%s%s%s", before, b->version[0], b->version[1],
			 b->version[2], b->version[3], b->why[0] ? ": not known, no " : "", b->why,
			 after);

	return n < 0 ? 0 : (int32_t)((uint64_t)n < max ? (uint64_t)n : max - 1);
}

int32_t session_resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
			uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	struct session *s = session;
	struct names_frame frames[NAMES_FRAMES];
	struct names_function *f = NULL;
	const struct numbered *numbered;
	struct process *p;
	uint32_t kind = (uint32_t)V8_KIND(what), n = 0;

	pthread_mutex_lock(&s->lock);
	p = processes_find(&s->processes, process);
	numbered = kind != V8_STUB ? processes_number(&s->processes, V8_NUMBER(what)) : NULL;
	if (numbered) {
		p = numbered->process;
		f = numbered->function;
	}
	if (p && kind == V8_UNKNOWN) {
		ret[0].flags = ANDIRON_RUNTIME_MARKER;
		ret[0].function.len =
			(uint64_t)describe(p->binary, "[", "]", s->text, sizeof(s->text));
		ret[0].function.ptr = s->text;
		n = 1;
	} else if (p) {
		n = names_resolve(&p->names, f, what, where, frames,
				  max < NAMES_FRAMES ? (uint32_t)max : NAMES_FRAMES);
		for (uint32_t i = 0; i < n; i++) {
			ret[i].line = frames[i].line;
			ret[i].first_line = frames[i].first_line;
			ret[i].function = str_of(frames[i].function);
			ret[i].file = str_of(frames[i].file);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return n > 0 ? (int32_t)n : -ENOENT;
}

int32_t session_describe(void *session, const struct andiron_runtime_process *process, char *ret,
			 uint64_t max)
{
	struct session *s = session;
	struct process *p;
	int32_t n = 0;

	pthread_mutex_lock(&s->lock);
	p = processes_find(&s->processes, process);
	if (p)
		n = describe(p->binary, "", "", ret, max);
	pthread_mutex_unlock(&s->lock);
	return n;
}
