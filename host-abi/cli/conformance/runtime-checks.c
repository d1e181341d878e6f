/* SPDX-License-Identifier: Apache-2.0 */
/* A language runtime (andiron/runtime.h), without a kernel and without a process that runs the
 * language: what its table and its program must have is looked at as a sampler does, and it is
 * asked about files and a process that are none of its own, in a session that has no maps. Whether
 * the program is one that the verifier takes, and its frames are right, is not known here. */
#include "cli/conformance/part.h"
#include "cli/conformance/process-state.h"

#include "base/cleanup.h"
#include "elf/file.h"

#include <andiron/bpf/walk.h>
#include <andiron/runtime.h>
#include <fcntl.h>
#include <sys/mman.h>

#define MAX_SYMBOLS ((size_t)16 << 20)
#define MAX_TEXT    128
#define NAME_MAX_   32

static bool is_runtime(const char *id)
{
	return str_starts(str_of(id), STR(ANDIRON_RUNTIME_PREFIX));
}

/* --- The table --- */

/* Lower-case letters and digits, and for the name '-' as well. */
static bool is_word(struct str s, bool may_have_hyphens)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
		    !(may_have_hyphens && s.p[i] == '-'))
			return false;
	return s.n > 0 && s.n <= NAME_MAX_;
}

static void check_id(struct trial *t, const char *id)
{
	const struct str suffix = STR(ANDIRON_RUNTIME_SUFFIX);
	struct str name = str_skip(str_of(id), sizeof(ANDIRON_RUNTIME_PREFIX) - 1);

	if (!str_ends(name, suffix) || !is_word(str_first(name, name.n - suffix.n), true))
		trial_fail(t,
			   "\"%.60s\" is no id of a runtime: between \"" ANDIRON_RUNTIME_PREFIX
			   "\" and \"" ANDIRON_RUNTIME_SUFFIX
			   "\" stand at most %d lower-case letters, digits and '-'",
			   id, NAME_MAX_);
}

static bool has_calls(const struct andiron_runtime *r)
{
	return ANDIRON_KNOWS(r, andiron_runtime, describe) && r->recognizes && r->open &&
	       r->close && r->claim && r->gone && r->resolve && r->describe;
}

static bool is_whole(struct trial *t, const struct andiron_runtime *r)
{
	if (!ANDIRON_KNOWS(r, andiron_runtime, describe))
		trial_fail(t, "its table has %u bytes, and ends before `describe`", r->size);
	else if (r->walk_version != ANDIRON_WALK_VERSION)
		trial_fail(t,
			   "its program was built for version %u of the walk, and samplers of "
			   "this andiron have version %u",
			   r->walk_version, ANDIRON_WALK_VERSION);
	else if (!r->object || !r->program || !has_calls(r))
		trial_fail(t, "its table has NULL where something must be");
	else if (!r->frame_type || !is_word(str_of(r->frame_type), false))
		trial_fail(t, "its frame_type is not 1 to %d lower-case letters and digits",
			   NAME_MAX_);
	return !trial_is_over(t);
}

/* --- The program --- */

struct symbols {
	struct buf entries, names;
};

/* Whether there is a symbol of that name and type, in a section that is there. */
static bool has(const struct symbols *s, const char *name, unsigned char type)
{
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= s->entries.n; at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, s->entries.p + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) == type && symbol.st_shndx != SHN_UNDEF &&
		    symbol.st_name < s->names.n && strcmp(s->names.p + symbol.st_name, name) == 0)
			return true;
	}
	return false;
}

static int read_symbols(const struct elf_file *elf, struct symbols *ret)
{
	const Elf64_Shdr *table = elf_file_section_of_type(elf, SHT_SYMTAB);
	int r;

	if (!table || table->sh_link >= elf->n_sections)
		return -ENOENT;
	r = elf_file_read_section(elf, table, MAX_SYMBOLS, &ret->entries);
	if (r == 0)
		r = elf_file_read_section(elf, &elf->sections[table->sh_link], MAX_SYMBOLS,
					  &ret->names);
	return r == 0 ? buf_putc(&ret->names, '\0') : r;
}

static void judge_symbols(struct trial *t, const struct andiron_runtime *r,
			  const struct elf_file *elf)
{
	static const char *const shared[] = {"walks", "programs"};
	struct symbols s = {BUF_NULL, BUF_NULL};
	int code = read_symbols(elf, &s);

	if (code < 0)
		trial_fail(t, "the symbols of its program's object cannot be read: %s",
			   strerror(-code));
	else if (!has(&s, r->program, STT_FUNC))
		trial_fail(t, "its object has no program \"%.60s\"", r->program);
	for (size_t i = 0; code == 0 && i < sizeof(shared) / sizeof(shared[0]); i++)
		if (!has(&s, shared[i], STT_OBJECT))
			trial_fail(t, "its object has no map `%s`, by which the sampler calls it",
				   shared[i]);
	buf_free(&s.entries);
	buf_free(&s.names);
}

/* Its bytes as a file, since a file is what our reader reads. */
static int file_of(const struct andiron_runtime *r)
{
	int fd = memfd_create("object", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, r->object, r->object_bytes) != (ssize_t)r->object_bytes) {
		close(fd);
		return -1;
	}
	return fd;
}

static void check_object(struct trial *t, const struct andiron_runtime *r)
{
	_cleanup_(closep) int fd = -1;
	struct elf_file elf = ELF_FILE_NULL;
	struct error err = ERROR_NULL;
	int code;

	trial_doing(t, "read its object");
	fd = file_of(r);
	if (fd < 0) {
		trial_skip(t, "memory for its object: %s", strerror(errno));
		return;
	}
	code = elf_file_open(&elf, fd, &err);
	if (code == 0)
		code = elf_file_load_sections(&elf, &err);
	if (code < 0)
		trial_fail(t, "its object is no file that libbpf reads: %.200s",
			   *err.text ? err.text : strerror(-code));
	else if (elf.machine != EM_BPF)
		trial_fail(t, "its object is not for BPF: compile it with clang -target bpf");
	else
		judge_symbols(t, r, &elf);
	if (code == 0)
		elf_file_close(&elf);
}

/* Creates it, and calls `fn` with each of its runtimes. */
static void each_runtime(struct trial *t, void (*fn)(struct part *p, const char *id,
						     const struct andiron_runtime *r))
{
	const char *const *id = t->component->offers;
	static struct part p;

	while (id && *id && !is_runtime(*id))
		id++;
	if (!id || !*id) {
		trial_other_kind(t);
		return;
	}
	if (!part_open(&p, t, HOST_PLAIN) || !part_create(&p, false))
		return;
	for (; *id && !trial_is_over(t); id++) {
		const struct andiron_runtime *r;

		if (!is_runtime(*id))
			continue;
		trial_doing(t, "extension %.60s", *id);
		r = t->component->extension(p.min->self, *id);
		if (r)
			fn(&p, *id, r);
		else
			trial_fail(t, "it offers %.100s, and has no table for it", *id);
	}
	part_end(&p);
}

static void look_at_program(struct part *p, const char *id, const struct andiron_runtime *r)
{
	check_id(p->t, id);
	if (is_whole(p->t, r))
		check_object(p->t, r);
}

static void check_program(struct trial *t)
{
	each_runtime(t, look_at_program);
}

/* --- Its calls --- */

/* What it says of one file, by descriptor; 0 also where there is no such file here. */
static int32_t recognize(struct part *p, const struct andiron_runtime *r, int fd, const char *path)
{
	const struct andiron_objects *objects = andiron_min_objects_table();
	const struct andiron_str name = {path, strlen(path)}, none = {NULL, 0};
	uint64_t object = 0;
	int32_t answer;

	if (fd < 0 || objects->intern(p->objects, fd, &name, &none, &object) < 0)
		return 0;
	trial_doing(p->t, "recognizes, of %.60s", path);
	answer = r->recognizes(p->min->self, object);
	if (answer > 1)
		trial_fail(p->t, "`recognizes` answers %d, which is neither 1 nor 0 nor an error",
			   answer);
	objects->release(p->objects, object);
	return answer;
}

/* This program, a file that is cut off behind its header, one that is empty. */
static void ask_of_files(struct part *p, const struct andiron_runtime *r)
{
	_cleanup_(closep) int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(closep) int cut = memfd_create("cut", MFD_CLOEXEC);
	_cleanup_(closep) int empty = memfd_create("empty", MFD_CLOEXEC);
	char head[sizeof(Elf64_Ehdr)];

	if (recognize(p, r, own, "/usr/bin/andiron") == 1)
		trial_fail(p->t, "`recognizes` says that andiron itself is its runtime");
	if (own >= 0 && cut >= 0 && read(own, head, sizeof(head)) == (ssize_t)sizeof(head) &&
	    write(cut, head, sizeof(head)) == (ssize_t)sizeof(head))
		recognize(p, r, cut, "/tmp/cut");
	recognize(p, r, empty, "/tmp/empty");
}

/* A process that has nothing of it: this one, as if it mapped no code. */
static void ask_of_process(struct part *p, const struct andiron_runtime *r, void *session)
{
	const struct andiron_runtime_process self = {
		.pid = (uint32_t)getpid(), .start_ns = 1, .exec_generation = 1};
	static struct andiron_runtime_claim claims[ANDIRON_RUNTIME_CLAIMS];
	static struct andiron_runtime_frame frames[ANDIRON_RUNTIME_FRAMES];
	char text[MAX_TEXT];
	int32_t n;

	trial_doing(p->t, "claim, of a process without mappings");
	n = r->claim(session, &self, NULL, 0, claims, ANDIRON_RUNTIME_CLAIMS);
	if (n > 0)
		trial_fail(p->t, "`claim` claims code of a process that maps none");
	for (size_t i = 0; i < ANDIRON_RUNTIME_FRAMES; i++)
		frames[i].size = sizeof(frames[i]);
	trial_doing(p->t, "resolve, of words that no program wrote");
	n = r->resolve(session, &self, 0x00ffffffffffffff, UINT64_MAX, frames,
		       ANDIRON_RUNTIME_FRAMES);
	if (n > (int32_t)ANDIRON_RUNTIME_FRAMES)
		trial_fail(p->t, "`resolve` answers %d frames, and was given room for %u", n,
			   ANDIRON_RUNTIME_FRAMES);
	trial_doing(p->t, "describe");
	n = r->describe(session, &self, text, sizeof(text));
	if (n > (int32_t)sizeof(text))
		trial_fail(p->t, "`describe` answers %d bytes, and was given room for %zu", n,
			   sizeof(text));
	trial_doing(p->t, "gone");
	r->gone(session, &self);
}

/* All that it is asked; whether it opens a session without maps. */
static int32_t ask(struct part *p, const struct andiron_runtime *r)
{
	void *session = NULL;
	int32_t code;

	ask_of_files(p, r);
	trial_doing(p->t, "open, without maps");
	code = r->open(p->min->self, NULL, 0, &session);
	if (code > 0)
		trial_fail(p->t, "`open` answers %d, which is neither 0 nor an error", code);
	if (code == 0) {
		ask_of_process(p, r, session);
		trial_doing(p->t, "close");
		r->close(session);
	}
	return code;
}

/* What it keeps of the first round until it is destroyed is its own affair. */
static void look_at_calls(struct part *p, const char *id, const struct andiron_runtime *r)
{
	struct process_usage before, after;
	int32_t code;

	if (!has_calls(r)) {
		trial_skip(p->t, "a whole table, which it has not");
		return;
	}
	ask(p, r);
	process_usage_read(&before);
	code = ask(p, r);
	process_usage_read(&after);
	if (after.n_descriptors > before.n_descriptors)
		trial_fail(p->t, "its calls have left %ld descriptors open",
			   after.n_descriptors - before.n_descriptors);
	if (code < 0)
		trial_figure(p->t, "without a session, which it refuses without maps (%s)",
			     strerror(-code));
}

static void check_calls(struct trial *t)
{
	each_runtime(t, look_at_calls);
}

const struct check runtime_checks[] = {
	{"runtime-calls", "a runtime endures files and processes that are not its own",
	 "it is asked about each file that a process maps, and such files may be damaged",
	 "read with bounds, answer 0 or an error, and close what was opened", SUBJECT_COMPONENT,
	 check_calls},
	{"runtime-program", "a runtime has a whole table, and a program that the sampler can call",
	 "the sampler refuses it, and its frames are not shown",
	 "correct the table; andiron/runtime.h and andiron/bpf/walk.h say what it has",
	 SUBJECT_COMPONENT, check_program},
	{0},
};
