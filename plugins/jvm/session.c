/* SPDX-License-Identifier: Apache-2.0 */
/* Of a library it is remembered where its tables are, and which of their entries are wanted; the
 * tables are read in each process (vm-structs.h). Names come by the program's ring, on a thread of
 * their own, into a cache by id (reports.h). An id that has left the cache is deleted from the map
 * `reported`, so the program reports it again when it is met. */
#include "runtime-kit/session.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "jvm/interpreter-code.h"
#include "jvm/jvm-layout.h"
#include "jvm/line-table.h"
#include "jvm/reports.h"
#include "jvm/vm-structs.h"
#include "runtime-kit/elf-file.h"
#include "runtime-kit/known-ids.h"
#include "runtime-kit/name-cache.h"
#include "runtime-kit/names-ring.h"
#include "runtime-kit/object-table.h"
#include "runtime-kit/process-table.h"
#include "runtime-kit/service.h"
#include "runtime-kit/target-memory.h"

#define LIBRARIES  1024 /* objects of which it is known whether they are one */
#define PROCESSES  512  /* as many as the program's map has room for */
#define GONE       512
#define NAME_BYTES (8u << 20)
#define TEXT       192

/* From its first claim on a JVM may be starting, or its memory not to be had for the moment. */
#define STARTING_NS 30000000000ull
#define GROWING_NS  500000000ull  /* its interpreter is as large as it will be */
#define HINT_NS     100000000ull  /* its library is believed: one that forges has others wait */
#define EARLY_NS    1000000ull    /* since a first claim, which was too early */
#define ODD_NS      5000000000ull /* its tables are not as they should be: they begin empty */

struct library {
	struct object_entry entry;
	int is_jvm;
	uint64_t addresses[VM_SYMBOLS];
	uint64_t interpreter_at, ready_ns; /* of one that was set up, the soonest; 0: none was */
	struct vm_places places;
};

/* The file of one, opened when something of it is needed. */
struct library_file {
	const struct session *session;
	const struct library *library;
	struct elf_file *elf; /* NULL: not open */
	int fd;
};

struct process {
	struct process_entry entry;
	uint64_t seed;
	uint64_t first_ns; /* of its first claim, 0: none yet */
	/* Until it is set up: memory, and place of its interpreter's address; NULL, 0: unknown. */
	struct target_memory *memory;
	uint64_t interpreter_at;
	uint32_t n_claims;
	int set_up, known;
	struct andiron_runtime_claim claims[JVM_HEAPS];
	char text[TEXT];
};

struct session {
	struct runtime_service *service;
	struct runtime_counts counts; /* that the service has been told */
	int processes_map, reported_map;
	struct object_table libraries;
	struct process_table processes;
	struct target_reader *reader;
	struct name_cache *names;
	struct names_ring *ring;
	struct jvm_process record;
	char mark[TEXT + 2];
};

/* Forgets what is needed no longer once it is set up, or gone. */
static void process_rest(struct process *p)
{
	target_memory_close(p->memory);
	p->memory = NULL;
	p->interpreter_at = 0;
}

static void process_free(struct process *p)
{
	process_rest(p);
	free(p);
}

static void forget(struct session *s, uint64_t id)
{
	known_ids_forget(s->reported_map, JVM_REPORTED, id);
}

/* On the ring's thread. */
static void take(void *context, const void *report, size_t n)
{
	struct session *s = context;
	uint64_t id = 0;

	if (report_keep(s->names, report, n, &id) != 0 && id != 0)
		forget(s, id);
	while ((id = name_cache_excess(s->names)) != 0)
		forget(s, id);
}

int32_t session_open(void *self, const struct andiron_runtime_map *maps, uint64_t n, void **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	int reports = runtime_map_of(maps, n, "reports"), error = 0;

	if (!s)
		return -ENOMEM;
	s->service = self;
	s->processes_map = runtime_map_of(maps, n, "processes");
	s->reported_map = runtime_map_of(maps, n, "reported");
	s->reader = target_reader_new(false);
	s->names = name_cache_new(NAME_BYTES);
	if (reports < 0 || s->processes_map < 0 || s->reported_map < 0)
		error = -EINVAL;
	else if (!s->reader || !s->names ||
		 object_table_init(&s->libraries, &s->service->objects, LIBRARIES, 0) != 0 ||
		 process_table_init(&s->processes, PROCESSES, GONE) != 0)
		error = -ENOMEM;
	if (error == 0)
		error = names_ring_open(reports, "jvm names", take, s, &s->ring);
	if (error != 0)
		session_close(s);
	else
		*ret = s;
	return error;
}

static void report_counts(struct session *s)
{
	struct name_cache_counts names = name_cache_counts(s->names);

	runtime_service_count(s->service, &s->counts,
			      &(struct runtime_counts){s->processes.n_living, names.bytes,
						       names.n_evicted,
						       target_reader_stuck(s->reader)});
}

void session_close(void *session)
{
	struct session *s = session;
	void *entry;

	names_ring_close(s->ring);
	runtime_service_count(s->service, &s->counts,
			      &(struct runtime_counts){.names_evicted = s->counts.names_evicted});
	name_cache_free(s->names);
	while ((entry = process_table_take(&s->processes)) != NULL)
		process_free(entry);
	while ((entry = object_table_take(&s->libraries)) != NULL)
		free(entry);
	process_table_fini(&s->processes);
	object_table_fini(&s->libraries);
	target_reader_free(s->reader);
	free(s);
}

/* Whether an object is a JVM, by its file's name and then by its symbols: 1, 0 or a negative
 * errno. */
static int library_read(const struct runtime_service *service, uint64_t object,
			uint64_t *ret_addresses)
{
	const struct andiron_objects *objects = service->objects.table;
	struct andiron_object_info info = {.size = sizeof(info)};
	int32_t fd, r = objects->info(service->objects.self, object, &info);
	struct elf_file *file;

	if (r != 0)
		return r;
	if (info.path.len == 0 || !memmem(info.path.ptr, info.path.len, "libjvm", 6))
		return 0;
	r = objects->open(service->objects.self, object, ANDIRON_OPEN_FILE, &fd);
	if (r != 0)
		return r;
	file = malloc(sizeof(*file));
	r = file ? elf_open(file, fd) : -ENOMEM;
	for (int i = 0; i < VM_SYMBOLS && r > 0; i++) {
		struct elf_symbol symbol;

		r = elf_dynamic_symbol(file, vm_symbols[i], &symbol);
		if (r > 0)
			ret_addresses[i] = symbol.address;
	}
	free(file);
	close(fd);
	return r;
}

int32_t session_recognizes(void *self, uint64_t object)
{
	uint64_t addresses[VM_SYMBOLS];

	return library_read(self, object, addresses);
}

/* NULL: it is no JVM, or cannot be read now. */
static struct library *library_find(struct session *s, uint64_t object)
{
	struct library *l = (struct library *)(void *)object_table_find(&s->libraries, object);
	void *entry;

	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return NULL;
		l->is_jvm = library_read(s->service, object, l->addresses);
		if (l->is_jvm < 0 || getrandom(&l->places.key, sizeof(l->places.key), 0) < 0) {
			free(l);
			return NULL;
		}
		object_table_add(&s->libraries, &l->entry, object);
		while ((entry = object_table_excess(&s->libraries)) != NULL)
			free(entry);
	}
	return l->is_jvm ? l : NULL;
}

/* As vm_library has it. */
static bool library_file_read(void *context, uint64_t address, void *ret, size_t n)
{
	struct library_file *f = context;
	const struct andiron_extension *objects = &f->session->service->objects;
	const struct andiron_objects *table = objects->table;

	if (!f->elf) {
		f->elf = malloc(sizeof(*f->elf));
		if (!f->elf || table->open(objects->self, f->library->entry.object,
					   ANDIRON_OPEN_FILE, &f->fd) != 0)
			f->fd = -1;
		else
			elf_open(f->elf, f->fd); /* where it fails there are no segments */
	}
	return f->fd >= 0 && elf_read_all(f->elf, address, ret, n);
}

static void library_file_close(struct library_file *f)
{
	if (f->elf && f->fd >= 0)
		close(f->fd);
	free(f->elf);
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

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* s->record is what the process's JVM says of itself; `at` is interpreter_at, or 0. -EAGAIN: it is
 * starting; -EPROTO: its tables are not as they should be. */
static int process_read(struct session *s, struct process *p, const uint64_t *addresses,
			const struct vm_library *library, uint64_t at)
{
	struct target_memory *memory = p->memory;
	char release[80];
	const char *missing;
	struct vm_structs vm;
	uint32_t major = 8;
	int error;

	/* To read all tables each time that a starting JVM is asked would be most of its cost. */
	if (at != 0 && target_memory_word(memory, at) == 0)
		return -EAGAIN;
	error = vm_structs_read(memory, addresses, library, &vm);
	if (error != 0)
		return error;
	layout_announce(memory, &vm);
	release[0] = ' ';
	if (target_memory_text(memory, target_memory_word(memory, vm.values[VM_RELEASE]),
			       release + 1, sizeof(release) - 1) == 0)
		release[0] = '\0';
	if (vm.values[VM_CACHE_HEAPS] != VM_ABSENT)
		major = target_memory_word32(memory, vm.values[VM_MAJOR]);
	missing = layout_offsets(&vm, major, &s->record.at);
	if (missing) {
		snprintf(p->text, sizeof(p->text), "HotSpot%s: not known, no %s", release, missing);
		return -EPROTO;
	}
	/* Else its entry is not relocated yet. */
	if (vm.values[VM_INTERPRETER] - library->bias <= UINT32_MAX)
		p->interpreter_at = vm.values[VM_INTERPRETER];
#if defined(__x86_64__)
	if (now_ns() - p->first_ns < GROWING_NS && interpreter_code_grows(memory, &vm))
		error = -EAGAIN;
	else
		error = layout_code(memory, &vm, &s->record);
	snprintf(p->text, sizeof(p->text), "HotSpot%s", release);
	s->record.known = error == 0;
#else
	snprintf(p->text, sizeof(p->text), "HotSpot%s: its frames are walked on x86-64 only",
		 release);
#endif
	return error;
}

/* Has p->memory open. One in which nothing is read at `at` is of before an exec. */
static int process_open(struct session *s, struct process *p, uint64_t at)
{
	uint64_t word;

	target_reader_refresh(s->reader);
	if (p->memory && target_memory_read(p->memory, at, &word, sizeof(word)) != 0)
		process_rest(p);
	return p->memory ? 0 : target_memory_open(s->reader, &p->entry.key, &p->memory);
}

/* Of a process that is set up, for others of its library. */
static void library_note(struct library *l, uint64_t interpreter_at, uint64_t age)
{
	l->interpreter_at = interpreter_at;
	if (age >= EARLY_NS && (l->ready_ns == 0 || age < l->ready_ns))
		l->ready_ns = age;
}

/* Sets s->record and p->text. -EAGAIN: it may be there later. */
static int record_read(struct session *s, struct process *p, struct library *l, uint64_t bias)
{
	struct library_file file = {s, l, NULL, -1};
	struct vm_library library = {&l->places, bias, library_file_read, &file};
	uint64_t addresses[VM_SYMBOLS], at = p->interpreter_at, age = now_ns() - p->first_ns;
	int error;

	for (int i = 0; i < VM_SYMBOLS; i++)
		addresses[i] = l->addresses[i] + bias;
	if (at == 0 && l->interpreter_at != 0 && age < HINT_NS)
		at = l->interpreter_at + bias;
	/* It was not set up a moment ago, and no other one has been so soon. */
	if (age >= EARLY_NS && age < HINT_NS && age < l->ready_ns / 2)
		return -EAGAIN;
	error = process_open(s, p, at ? at : addresses[0]);
	if (error != 0) {
		snprintf(p->text, sizeof(p->text), "HotSpot: its memory cannot be read: %s",
			 strerror(-error));
		return error == -ETIMEDOUT || error == -EMFILE || error == -ENFILE ? -EAGAIN
										   : error;
	}
	p->text[0] = '\0';
	error = process_read(s, p, addresses, &library, at);
	library_file_close(&file);
	if (error == 0 && p->interpreter_at != 0)
		library_note(l, p->interpreter_at - bias, age);
	return error;
}

/* How long from the first claim on an error may pass by itself. */
static uint64_t patience_ns(int error)
{
	if (error == -EAGAIN || error == -ENOMEM)
		return STARTING_NS;
	return error == -EPROTO ? ODD_NS : 0;
}

/* 0: there are claims. A process whose memory could not be read is read again by each claim. */
static int process_set_up(struct session *s, struct process *p, struct library *l, uint64_t bias)
{
	uint64_t now = now_ns();
	int error;

	p->first_ns = p->first_ns ? p->first_ns : now;
	memset(&s->record, 0, sizeof(s->record));
	error = record_read(s, p, l, bias);
	if (error == -ESRCH || error == -ENOENT || error == -ECANCELED) {
		process_rest(p);
		return error; /* the process is gone, or the session */
	}
	if (now - p->first_ns < patience_ns(error)) {
		p->text[0] = '\0'; /* not to be said before there is a claim */
		return -EAGAIN;
	}
	process_rest(p);
	if (error != 0 && p->text[0] == '\0')
		snprintf(p->text, sizeof(p->text), "HotSpot: not known, %s",
			 error == -EPROTO ? "its tables cannot be read"
					  : "its interpreter was not found");
	s->record.id = p->entry.id;
	s->record.seed = p->seed;
	if (s->record.known) {
		for (uint32_t i = 0; i < s->record.n_heaps; i++)
			p->claims[i] = (struct andiron_runtime_claim){0, s->record.heaps[i].low,
								      s->record.heaps[i].high};
		p->n_claims = s->record.n_heaps;
	}
	if (bpf_map_update_elem(s->processes_map, &p->entry.key.pid, &s->record, BPF_ANY) != 0)
		return -errno;
	p->known = s->record.known != 0;
	p->set_up = error == 0 || error == -EPROTO;
	return 0;
}

/* The process's entry, or NULL: there is no room. */
static struct process *process_claim(struct session *s,
				     const struct andiron_runtime_process *process, int is_jvm)
{
	void *living = process_table_living(&s->processes, process->pid), *excess;
	struct process_claim c = process_table_claim(&s->processes, process);
	struct process *p = (struct process *)(void *)c.entry;

	if (c.replaced) {
		process_rest(living);
		bpf_map_delete_elem(s->processes_map, &process->pid);
	}
	if (c.revived)
		p->set_up = 0, p->first_ns = 0;
	if (!p && is_jvm) {
		p = calloc(1, sizeof(*p));
		if (p && (getrandom(&p->seed, sizeof(p->seed), 0) != sizeof(p->seed) ||
			  process_table_add(&s->processes, &p->entry, process) != 0)) {
			free(p);
			p = NULL;
		}
	}
	while ((excess = process_table_excess(&s->processes)) != NULL)
		process_free(excess);
	return p;
}

int32_t session_claim(void *session, const struct andiron_runtime_process *process,
		      const struct andiron_runtime_mapping *mappings, uint64_t n,
		      struct andiron_runtime_claim *ret, uint64_t max)
{
	struct session *s = session;
	struct library *l = NULL;
	struct process *p;
	uint64_t bias = 0;
	int error;

	for (uint64_t i = 0; i < n && !l; i++) {
		l = mappings[i].object ? library_find(s, mappings[i].object) : NULL;
		bias = mappings[i].start - mappings[i].address;
	}
	p = process_claim(s, process, l != NULL);
	report_counts(s);
	if (!l)
		return 0;
	if (!p)
		return -ENOMEM;
	error = p->set_up ? 0 : process_set_up(s, p, l, bias);
	if (error != 0)
		return error;
	if (!p->known)
		unknown_claim(p, mappings, n);
	for (uint32_t i = 0; i < p->n_claims && i < max; i++)
		ret[i] = p->claims[i];
	return (int32_t)(p->n_claims < max ? p->n_claims : max);
}

void session_gone(void *session, const struct andiron_runtime_process *process)
{
	struct session *s = session;
	void *gone = process_table_gone(&s->processes, process), *excess;

	if (gone) {
		process_rest(gone);
		bpf_map_delete_elem(s->processes_map, &process->pid);
	}
	while ((excess = process_table_excess(&s->processes)) != NULL)
		process_free(excess);
	report_counts(s);
}

/* What has been reported under an id. The program is asked to report again what is not there. */
static int find(struct session *s, uint64_t id, int is_site, struct name *ret)
{
	if (!name_cache_find(s->names, id, ret)) {
		names_ring_drain(s->ring);
		if (!name_cache_find(s->names, id, ret)) {
			forget(s, id);
			return -ENOENT;
		}
	}
	return (ret->kind == REPORT_SITE) == (is_site != 0) ? 0 : -ENOENT;
}

static int32_t method_resolve(struct session *s, uint64_t id, uint32_t bci,
			      struct andiron_runtime_frame *ret)
{
	struct name name;
	int error = find(s, id, 0, &name);
	uint32_t first = 0, line;

	if (error != 0)
		return error;
	line = line_find(name.table, name.n_table, name.kind == REPORT_METHOD_19,
			 bci == JVM_BCI_NONE ? 0 : bci, &first);
	ret->function = (struct andiron_str){name.function, name.n_function};
	ret->file = (struct andiron_str){name.file, name.n_file};
	ret->line = bci == JVM_BCI_NONE ? 0 : line;
	ret->first_line = first;
	ret->flags = 0;
	return 1;
}

static int32_t mark_set(const char *text, struct andiron_runtime_frame *ret)
{
	ret->function = (struct andiron_str){text, strlen(text)};
	ret->file = (struct andiron_str){"", 0};
	ret->line = ret->first_line = 0;
	ret->flags = ANDIRON_RUNTIME_MARKER;
	return 1;
}

static int32_t site_resolve(struct session *s, uint64_t id, struct andiron_runtime_frame *ret,
			    uint64_t max)
{
	struct report_site site;
	struct name name;
	uint32_t n = 0;

	if (find(s, id, 1, &name) != 0 || report_site(&name, &site) != 0)
		return -ENOENT;
	for (uint32_t i = 0; i < site.n && n < max; i++) {
		if (site.cut && i + 1 == site.n)
			n += (uint32_t)mark_set("[more inlined methods]", &ret[n]);
		if (n < max && method_resolve(s, site.methods[i], site.bcis[i], &ret[n]) < 0) {
			forget(s, id); /* it is read again, and the method with it */
			return -ENOENT;
		}
		n++;
	}
	return n ? (int32_t)n : -ENOENT;
}

static int32_t mark_resolve(struct session *s, const struct andiron_runtime_process *process,
			    uint64_t which, struct andiron_runtime_frame *ret)
{
	const struct process *p =
		(const struct process *)(const void *)process_table_find(&s->processes, process);

	if (which == JVM_MARK_FROZEN)
		return mark_set("[frames in the Java heap]", ret);
	if (!p)
		return -ENOENT;
	snprintf(s->mark, sizeof(s->mark), "[%s]", p->text);
	return mark_set(s->mark, ret);
}

int32_t session_resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
			uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	struct session *s = session;

	if (max == 0)
		return -ENOENT;
	name_cache_begin(s->names);
	switch (JVM_KIND(what)) {
	case JVM_FRAME_METHOD:
		return method_resolve(s, where, (uint32_t)(what & 0xffff), ret);
	case JVM_FRAME_SITE:
		return site_resolve(s, where, ret, max);
	case JVM_FRAME_STUB:
		return method_resolve(s, where, JVM_BCI_NONE, ret);
	case JVM_FRAME_MARK:
		return mark_resolve(s, process, what & 0xffffffff, ret);
	default:
		return -ENOENT;
	}
}

int32_t session_describe(void *session, const struct andiron_runtime_process *process, char *ret,
			 uint64_t max)
{
	struct session *s = session;
	const struct process *p =
		(const struct process *)(const void *)process_table_find(&s->processes, process);
	uint64_t n = p ? strlen(p->text) : 0;

	if (n > max)
		n = max;
	if (n > 0)
		memcpy(ret, p->text, n);
	return (int32_t)n;
}
