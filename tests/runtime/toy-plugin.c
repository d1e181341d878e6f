/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-toy.so: the toy machine as a language runtime. With TOY_PYTHON, andiron-python.so, it is
 * offered as Python's; with TOY_MISTAKEN, andiron-mistaken.so, with a program that the verifier
 * refuses, with one for another version of the walk, and with two that are mistaken. */
#include "toy.h"

#include <andiron/bpf/walk.h>
#include <andiron/host.h>
#include <andiron/object.h>
#include <andiron/plugin.h>
#include <andiron/runtime.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#ifdef TOY_MISTAKEN
#include "astray.skel.h"
#include "broken.skel.h"
#endif
#include "toy.skel.h"
#pragma GCC diagnostic pop

#define FILES 256

#ifdef TOY_PYTHON
#define FRAME_TYPE "cpython"
#else
#define FRAME_TYPE "toy"
#endif

struct file {
	uint64_t object; /* 0: none */
	GElf_Sym interpret, top;
};

struct service {
	struct andiron_extension objects;
	struct andiron_runtime table;
};

struct session {
	struct service *service;
	int tops, names;
	struct file files[FILES]; /* by object, the last one looked at */
	struct toy_name name;
};

static int32_t session_open(void *self, const struct andiron_runtime_map *maps, uint64_t n,
			    void **ret)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->service = self;
	s->tops = s->names = -1;
	for (uint64_t i = 0; i < n; i++) {
		if (strcmp(maps[i].name, "tops") == 0)
			s->tops = maps[i].fd;
		if (strcmp(maps[i].name, "names") == 0)
			s->names = maps[i].fd;
	}
	*ret = s;
	return 0;
}

static void session_close(void *session)
{
	free(session);
}

static void read_symbols(Elf *elf, Elf_Scn *section, struct file *f)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header))
		return;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);

		if (name && strcmp(name, "toy_interpret") == 0)
			f->interpret = symbol;
		if (name && strcmp(name, "toy_top") == 0)
			f->top = symbol;
	}
}

static void read_file(int fd, struct file *f)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while (elf && (section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
			read_symbols(elf, section, f);
	elf_end(elf);
}

static int32_t read_object(const struct service *service, struct file *f)
{
	const struct andiron_objects *objects = service->objects.table;
	int32_t fd, r = objects->open(service->objects.self, f->object, ANDIRON_OPEN_FILE, &fd);

	if (r != 0)
		return r;
	read_file(fd, f);
	close(fd);
	return 0;
}

/* Whether it has a machine. */
static int32_t recognizes(void *self, uint64_t object)
{
	struct file f = {.object = object};
	int32_t r = read_object(self, &f);

	return r < 0 ? r : f.top.st_size != 0;
}

static const struct file *look_at(struct session *s, uint64_t object)
{
	struct file *f = &s->files[object % FILES];

	if (f->object == object)
		return f;
	*f = (struct file){.object = object};
	read_object(s->service, f);
	return f;
}

/* The machine in a mapping of a file that has one. */
static bool claim_machine(const struct session *s, const struct andiron_runtime_process *process,
			  const struct andiron_runtime_mapping *m, const struct file *f,
			  struct andiron_runtime_claim *ret)
{
	uint64_t bias = m->start - m->address;
	uint64_t from = f->interpret.st_value, to = from + f->interpret.st_size;
	struct toy_process facts = {bias + f->top.st_value, bias + from, bias + to};

	if (from == to || f->top.st_size == 0)
		return false;
	if (s->tops >= 0)
		bpf_map_update_elem(s->tops, &process->pid, &facts, BPF_ANY);
	*ret = (struct andiron_runtime_claim){f->object, from, to};
	return true;
}

/* Its memory for code is of interest where it has a machine, too. */
static int32_t claim(void *session, const struct andiron_runtime_process *process,
		     const struct andiron_runtime_mapping *mappings, uint64_t n,
		     struct andiron_runtime_claim *ret, uint64_t max)
{
	struct session *s = session;
	uint64_t k = 0;

	for (uint64_t i = 0; i < n && k == 0; i++)
		if (mappings[i].object)
			k = claim_machine(s, process, &mappings[i], look_at(s, mappings[i].object),
					  ret);
	for (uint64_t i = 0; i < n && k > 0 && k < max; i++)
		if (!mappings[i].object && mappings[i].limit - mappings[i].start == 4096)
			ret[k++] = (struct andiron_runtime_claim){0, mappings[i].start,
								  mappings[i].limit};
	return (int32_t)k;
}

static void gone(void *session, const struct andiron_runtime_process *process)
{
	struct session *s = session;

	if (s->tops >= 0)
		bpf_map_delete_elem(s->tops, &process->pid);
}

static int32_t resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
		       uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	struct session *s = session;
	struct toy_name_key key = {process->pid, what};

	if (what == TOY_COMPILED) {
		ret[0].function = (struct andiron_str){"inlined", 7};
		ret[1].function = (struct andiron_str){"compiled", 8};
		return 2;
	}
	if (bpf_map_lookup_elem(s->names, &key, &s->name) != 0)
		return -ENOENT;
	ret->function = (struct andiron_str){s->name.text, strnlen(s->name.text, TOY_NAME)};
	ret->file = (struct andiron_str){"program.toy", 11};
	ret->line = (uint32_t)where;
	return 1;
}

static int32_t describe(void *session, const struct andiron_runtime_process *process, char *ret,
			uint64_t max)
{
	static const char text[] = "toy 1.0";
	struct session *s = session;
	struct toy_process facts;

	if (bpf_map_lookup_elem(s->tops, &process->pid, &facts) != 0)
		return 0;
	memcpy(ret, text, sizeof(text) - 1);
	return sizeof(text) - 1;
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_runtime *kind, void **ret)
{
	struct service *s = calloc(1, sizeof(*s));
	int32_t r;

	if (!s)
		return -ENOMEM;
	elf_version(EV_CURRENT);
	s->table = *kind;
	s->table.size = sizeof(s->table);
	s->table.recognizes = recognizes;
	s->table.open = session_open;
	s->table.close = session_close;
	s->table.claim = claim;
	s->table.gone = gone;
	s->table.resolve = resolve;
	s->table.describe = describe;
	s->table.frame_type = FRAME_TYPE;
	r = host->extension(instance, ANDIRON_OBJECTS_ID, &s->objects);
	if (r != 0)
		free(s);
	else
		*ret = s;
	return r;
}

/* A kind of the toy: whose object, which program in it, for which version of the walk. */
#define CREATE(name, object_of, program_, version)                                                 \
	static int32_t create_##name(const struct andiron_host *host, uint64_t instance,           \
				     const struct andiron_value *args, void **ret,                 \
				     struct andiron_error *err)                                    \
	{                                                                                          \
		size_t n = 0;                                                                      \
		struct andiron_runtime kind = {.walk_version = (version),                          \
					       .object = object_of##_bpf__elf_bytes(&n),           \
					       .program = (program_)};                             \
                                                                                                   \
		kind.object_bytes = n;                                                             \
		return create(host, instance, &kind, ret);                                         \
	}

#ifdef TOY_MISTAKEN
CREATE(broken, broken, "toy", ANDIRON_WALK_VERSION)
CREATE(old, toy, "toy", ANDIRON_WALK_VERSION - 1)
CREATE(astray, astray, "astray", ANDIRON_WALK_VERSION)
CREATE(silent, astray, "silent", ANDIRON_WALK_VERSION)
#else
CREATE(toy, toy, "toy", ANDIRON_WALK_VERSION)
#endif

static int32_t start(void *self, struct andiron_error *err)
{
	return 0;
}

static void stop(void *self)
{
}

static void destroy(void *self)
{
	free(self);
}

/* Whatever the id: the host is to ask for no other than those in `offers`. */
static const void *extension(void *self, const char *id)
{
	return &((struct service *)self)->table;
}

static const char *const needs[] = {ANDIRON_OBJECTS_ID, NULL};
static const struct andiron_options no_options = {0, sizeof(struct andiron_option), NULL};

#define RUNTIME(name_, create_)                                                                    \
	{                                                                                          \
		.size = sizeof(struct andiron_component),                                          \
		.flags = ANDIRON_COMPONENT_SERVICE | ANDIRON_COMPONENT_NO_LABEL,                   \
		.name = "runtime." name_, .summary = "Frames of the toy machine.",                 \
		.options = &no_options, .needs = needs,                                            \
		.offers =                                                                          \
			(const char *const[]){ANDIRON_RUNTIME_PREFIX name_ ANDIRON_RUNTIME_SUFFIX, \
					      NULL},                                               \
		.create = create_, .start = start, .stop = stop, .destroy = destroy,               \
		.extension = extension,                                                            \
	}

#ifdef TOY_MISTAKEN
static const struct andiron_component broken = RUNTIME("broken", create_broken);
static const struct andiron_component old = RUNTIME("old", create_old);
static const struct andiron_component astray = RUNTIME("astray", create_astray);
static const struct andiron_component silent = RUNTIME("silent", create_silent);

ANDIRON_PLUGIN("mistaken", ANDIRON_VERSION, "Apache-2.0", &broken, &old, &astray, &silent);
#elif defined(TOY_PYTHON)
static const struct andiron_component python = RUNTIME("python", create_toy);

ANDIRON_PLUGIN("python", ANDIRON_VERSION, "Apache-2.0", &python);
#else
static const struct andiron_component toy = RUNTIME("toy", create_toy);

ANDIRON_PLUGIN("toy", ANDIRON_VERSION, "Apache-2.0", &toy);
#endif
