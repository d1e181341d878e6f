/* SPDX-License-Identifier: Apache-2.0 */
/* A process is known by pid, start and exec, and stays known for a while when it has gone, since
 * its frames are named later. Of a library only the addresses of its tables are remembered; the
 * tables are read in each process (vm-structs.h).
 *
 * `describe` may be called by any thread: the table of processes is under a lock. */
#include "jvm/session.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jvm/elf-symbols.h"
#include "jvm/jvm-layout.h"
#include "jvm/names.h"
#include "jvm/process-memory.h"
#include "jvm/vm-structs.h"

#define LIBRARIES 64
#define PROCESSES 512 /* as many as the program's map has room for */
#define TEXT      192

struct library {
	uint64_t object; /* 0: none */
	int is_jvm;
	uint64_t addresses[VM_SYMBOLS];
};

struct process {
	struct andiron_runtime_process key;
	uint32_t id; /* 0: none */
	uint32_t n_claims;
	int set_up, gone, no_zero_bytes;
	uint64_t age;
	struct andiron_runtime_claim claims[JVM_HEAPS];
	char text[TEXT];
};

struct session {
	const struct andiron_objects *objects;
	void *objects_self;
	int processes_map, names_map, sites_map;
	uint32_t last_id;
	uint64_t clock;
	struct library libraries[LIBRARIES];
	pthread_mutex_t lock;
	struct process processes[PROCESSES];
	struct jvm_process record;
	struct names *names;
	char mark[TEXT + 2];
};

static int name_of(void *self, const struct jvm_name_key *key, struct jvm_name *ret)
{
	struct session *s = self;

	return bpf_map_lookup_elem(s->names_map, key, ret);
}

static int site_of(void *self, const struct jvm_site_key *key, struct jvm_site *ret)
{
	struct session *s = self;

	return bpf_map_lookup_elem(s->sites_map, key, ret);
}

int32_t session_new(const struct andiron_objects *objects, void *objects_self,
		    const struct andiron_runtime_map *maps, uint64_t n_maps, void **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	struct names_source source = {s, name_of, site_of};

	if (!s)
		return -ENOMEM;
	s->objects = objects;
	s->objects_self = objects_self;
	s->processes_map = s->names_map = s->sites_map = -1;
	for (uint64_t i = 0; i < n_maps; i++) {
		if (strcmp(maps[i].name, "processes") == 0)
			s->processes_map = maps[i].fd;
		else if (strcmp(maps[i].name, "names") == 0)
			s->names_map = maps[i].fd;
		else if (strcmp(maps[i].name, "sites") == 0)
			s->sites_map = maps[i].fd;
	}
	s->names = names_new(&source);
	if (!s->names || s->processes_map < 0 || s->names_map < 0 || s->sites_map < 0) {
		int32_t error = s->names ? -EINVAL : -ENOMEM;

		names_free(s->names);
		free(s);
		return error;
	}
	pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return 0;
}

void session_close(void *session)
{
	struct session *s = session;

	pthread_mutex_destroy(&s->lock);
	names_free(s->names);
	free(s);
}

/* By its file's name and then by its symbols: 1, 0 or a negative errno. */
static int library_read(const struct andiron_objects *objects, void *objects_self, uint64_t object,
			uint64_t *ret_addresses)
{
	struct andiron_object_info info = {.size = sizeof(info)};
	int32_t fd, r = objects->info(objects_self, object, &info);

	if (r != 0)
		return r;
	if (info.path.len == 0 || !memmem(info.path.ptr, info.path.len, "libjvm", 6))
		return 0;
	r = objects->open(objects_self, object, ANDIRON_OPEN_FILE, &fd);
	if (r != 0)
		return r;
	r = elf_symbols_find(fd, vm_symbols, VM_SYMBOLS, ret_addresses) == VM_SYMBOLS;
	close(fd);
	return r;
}

int32_t session_recognizes(const struct andiron_objects *objects, void *objects_self,
			   uint64_t object)
{
	uint64_t addresses[VM_SYMBOLS];

	return library_read(objects, objects_self, object, addresses);
}

/* Whether an object is a JVM; NULL: perhaps later. */
static const struct library *library_find(struct session *s, uint64_t object)
{
	struct library *l = &s->libraries[object % LIBRARIES];
	int r;

	if (l->object == object)
		return l;
	r = library_read(s->objects, s->objects_self, object, l->addresses);
	l->object = r < 0 ? 0 : object;
	l->is_jvm = r > 0;
	return r < 0 ? NULL : l;
}

static int same(const struct andiron_runtime_process *a, const struct andiron_runtime_process *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns &&
	       a->exec_generation == b->exec_generation;
}

static struct process *process_find(struct session *s, const struct andiron_runtime_process *key)
{
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct process *p = &s->processes[(key->pid + i) % PROCESSES];

		if (p->id == 0)
			return NULL;
		if (same(&p->key, key))
			return p;
	}
	return NULL;
}

/* A place for a new one: a free one, or that of the one that has gone first. */
static struct process *process_add(struct session *s, const struct andiron_runtime_process *key)
{
	struct process *oldest = NULL;

	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct process *p = &s->processes[(key->pid + i) % PROCESSES];

		if (p->id == 0) {
			oldest = p;
			break;
		}
		if (p->gone && (!oldest || p->age < oldest->age))
			oldest = p;
	}
	if (!oldest)
		return NULL;
	*oldest = (struct process){.key = *key, .id = ++s->last_id, .age = ++s->clock};
	return oldest;
}

/* Claims what a compiler of this process may have made, where nothing is known of it. */
static void unknown_claim(struct process *p, const struct andiron_runtime_mapping *mappings,
			  uint64_t n)
{
	p->n_claims = 0;
	for (uint64_t i = 0; i < n && p->n_claims < JVM_HEAPS; i++)
		if (mappings[i].object == 0)
			p->claims[p->n_claims++] = (struct andiron_runtime_claim){
				0, mappings[i].start, mappings[i].limit};
}

static void text_set(struct session *s, struct process *p, const char *text)
{
	pthread_mutex_lock(&s->lock);
	snprintf(p->text, sizeof(p->text), "%s", text);
	pthread_mutex_unlock(&s->lock);
}

/* 0: the process's JVM is known, or known not to be; -EAGAIN: it is starting. */
static int process_read(struct session *s, struct process *p, int memory, const uint64_t *addresses)
{
	char release[80], text[TEXT];
	const char *missing;
	struct vm_structs vm;
	uint32_t major = 8;
	int error = vm_structs_read(memory, addresses, &vm);

	if (error != 0)
		return error;
	memory_text(memory, release, sizeof(release),
		    vm.values[VM_RELEASE] == VM_ABSENT
			    ? 0
			    : memory_word(memory, vm.values[VM_RELEASE]));
	if (vm.values[VM_CACHE_HEAPS] != VM_ABSENT)
		major = memory_word32(memory, vm.values[VM_MAJOR]);
	memset(&s->record, 0, sizeof(s->record));
	missing = layout_offsets(&vm, major, &s->record.at);
	s->record.id = p->id;
	s->record.known = !missing;
	if (missing) {
		snprintf(text, sizeof(text), "HotSpot %s: not known, no %s", release, missing);
	} else {
		error = layout_code(memory, &vm, &s->record);
		if (error != 0)
			return error;
		snprintf(text, sizeof(text), "HotSpot %s", release);
	}
	p->no_zero_bytes = (s->record.at.flags & JVM_NO_ZERO_BYTES) != 0;
	text_set(s, p, text);
	return 0;
}

/* What of the process is the JVM's, now that s->record says it. */
static int process_claim(struct session *s, struct process *p,
			 const struct andiron_runtime_mapping *mappings, uint64_t n)
{
	if (!s->record.known) {
		unknown_claim(p, mappings, n);
	} else {
		for (uint32_t i = 0; i < s->record.n_heaps; i++)
			p->claims[i] = (struct andiron_runtime_claim){0, s->record.heaps[i].low,
								      s->record.heaps[i].high};
		p->n_claims = s->record.n_heaps;
	}
	if (bpf_map_update_elem(s->processes_map, &p->key.pid, &s->record, BPF_ANY) != 0)
		return -errno;
	p->set_up = s->record.known != 0;
	return 0;
}

static int process_set_up(struct session *s, struct process *p, const struct library *l,
			  uint64_t bias, const struct andiron_runtime_mapping *mappings, uint64_t n)
{
	uint64_t addresses[VM_SYMBOLS];
	int memory = memory_open(p->key.pid), error;

	if (memory < 0)
		return memory;
	for (int i = 0; i < VM_SYMBOLS; i++)
		addresses[i] = l->addresses[i] + bias;
	error = process_read(s, p, memory, addresses);
	close(memory);
	return error != 0 ? error : process_claim(s, p, mappings, n);
}

int32_t session_claim(void *session, const struct andiron_runtime_process *process,
		      const struct andiron_runtime_mapping *mappings, uint64_t n,
		      struct andiron_runtime_claim *ret, uint64_t max)
{
	struct session *s = session;
	const struct library *l = NULL;
	struct process *p;
	uint64_t bias = 0;

	for (uint64_t i = 0; i < n && !(l && l->is_jvm); i++) {
		l = mappings[i].object ? library_find(s, mappings[i].object) : NULL;
		bias = mappings[i].start - mappings[i].address;
	}
	if (!l || !l->is_jvm)
		return 0;
	pthread_mutex_lock(&s->lock);
	p = process_find(s, process);
	if (!p)
		p = process_add(s, process);
	pthread_mutex_unlock(&s->lock);
	if (!p || (!p->set_up && process_set_up(s, p, l, bias, mappings, n) != 0))
		return 0;
	for (uint32_t i = 0; i < p->n_claims && i < max; i++)
		ret[i] = p->claims[i];
	return (int32_t)(p->n_claims < max ? p->n_claims : max);
}

void session_gone(void *session, const struct andiron_runtime_process *process)
{
	struct session *s = session;
	struct process *p;

	pthread_mutex_lock(&s->lock);
	p = process_find(s, process);
	if (p) {
		p->gone = 1;
		bpf_map_delete_elem(s->processes_map, &process->pid);
	}
	pthread_mutex_unlock(&s->lock);
}

static void frame_text(struct andiron_runtime_frame *f, const struct name_text *text)
{
	f->function = (struct andiron_str){text->function, text->n_function};
	f->file = (struct andiron_str){text->file, text->n_file};
	f->line = text->line;
	f->first_line = text->first_line;
	f->flags = 0;
}

static int32_t method_resolve(struct session *s, const struct process *p, uint64_t identity,
			      uint32_t bci, struct andiron_runtime_frame *ret)
{
	struct name_text text;
	int error = names_method(s->names, p->id, identity, bci, p->no_zero_bytes, &text);

	if (error == 0)
		frame_text(ret, &text);
	return error != 0 ? error : 1;
}

static int32_t compiled_resolve(struct session *s, const struct process *p, uint64_t what,
				uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	struct jvm_site_key key = {p->id, (uint32_t)(where >> 32), JVM_ADDRESS(what),
				   (uint32_t)where, 0};
	const struct jvm_site *site = names_site(s->names, &key);
	uint32_t n = 0;

	for (uint32_t i = 0; site && i < site->n && n < max; i++, n++)
		if (method_resolve(s, p, site->methods[i] >> 16,
				   (uint32_t)(site->methods[i] & 0xffff), &ret[n]) < 0)
			return -ENOENT;
	return n ? (int32_t)n : -ENOENT;
}

static int32_t mark_resolve(struct session *s, const struct process *p, uint64_t which,
			    struct andiron_runtime_frame *ret)
{
	if (which == JVM_MARK_FROZEN)
		snprintf(s->mark, sizeof(s->mark), "[frames in the Java heap]");
	else
		snprintf(s->mark, sizeof(s->mark), "[%s]", p->text);
	ret->function = (struct andiron_str){s->mark, strlen(s->mark)};
	ret->file = (struct andiron_str){"", 0};
	ret->line = ret->first_line = 0;
	ret->flags = ANDIRON_RUNTIME_MARKER;
	return 1;
}

int32_t session_resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
			uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	struct session *s = session;
	const struct process *p = process_find(s, process);

	if (!p || max == 0)
		return -ENOENT;
	names_begin(s->names);
	switch (JVM_KIND(what)) {
	case JVM_FRAME_INTERPRETED:
		return method_resolve(s, p, where & 0xffffffffffffull, (uint32_t)(where >> 48),
				      ret);
	case JVM_FRAME_COMPILED:
		return compiled_resolve(s, p, what, where, ret, max);
	case JVM_FRAME_STUB:
		return method_resolve(s, p, where, JVM_BCI_NATIVE, ret);
	case JVM_FRAME_MARK:
		return mark_resolve(s, p, JVM_ADDRESS(what), ret);
	default:
		return -ENOENT;
	}
}

int32_t session_describe(void *session, const struct andiron_runtime_process *process, char *ret,
			 uint64_t max)
{
	struct session *s = session;
	const struct process *p;
	uint64_t n = 0;

	pthread_mutex_lock(&s->lock);
	p = process_find(s, process);
	if (p)
		n = strlen(p->text);
	if (n > max)
		n = max;
	if (p)
		memcpy(ret, p->text, n);
	pthread_mutex_unlock(&s->lock);
	return (int32_t)n;
}
