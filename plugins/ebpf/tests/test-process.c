/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of processes that are gone before anybody could ask. */
#include "ebpf/tests/test-live.h"

#include "testing/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* Notes a child that was forked, has exited and is waited for. */
static struct process *note_gone(struct live *w)
{
	struct live_child child = live_child(w);

	live_end(&child);
	return processes_note(&w->t, &child.record);
}

/* What the kernel sends of a process with one file, which nobody has opened, where our code is. */
static void take_unknown(struct live *w, struct process *p)
{
	struct sampler_mapped mapped = {
		.n = 1, .total = 1, .key = p->key, .generation = p->generation};
	uint64_t start = (uint64_t)(uintptr_t)&take_unknown & ~UINT64_C(4095);

	mapped.list[0] = (struct sampler_mapping){.start = start, .end = start + 4096, .inode = 1};
	process_take_maps(&w->t, p, &mapped);
	expect(p->maps);
}

static void forget(void *context, const struct process *p)
{
}

/* Nothing is known of a child that is gone; its parent has the same, and so has the next child. */
TEST(children_have_what_their_parent_has)
{
	struct live *w = live_new();
	struct process *child = note_gone(w), *next, *parent;

	process_map(&w->t, child);
	expect(!child->maps);
	parent = processes_parent(&w->t, child, &w->self.key);
	expect(parent && parent->key.tgid == w->self.key.tgid);
	process_map(&w->t, parent);
	live_expect_own(parent);
	process_map(&w->t, child);
	live_expect_own(child);
	expect(!processes_parent(&w->t, child, &w->self.key)); /* nothing more to learn */
	next = note_gone(w);
	process_map(&w->t, next);
	live_expect_own(next);
	live_free(w);
}

/* The same where the kernel tells its mappings as one text, which is not read twice in a moment. */
TEST(parents_are_mapped_by_a_text)
{
	struct live *w = live_new();
	struct process *child = note_gone(w), *parent;

	w->t.procmap.text_only = true; /* as before Linux 6.11 */
	parent = processes_parent(&w->t, child, &w->self.key);
	expect(parent && parent->generation == 0);
	process_map(&w->t, parent);
	live_expect_own(parent);
	live_free(w);
}

/* A program has other mappings than the one that started it. */
TEST(programs_do_not_have_what_their_parent_has)
{
	struct live *w = live_new();
	struct process *child = note_gone(w);

	process_map(&w->t, processes_note(&w->t, &w->self));
	child->generation++;
	process_map(&w->t, child);
	expect(!child->maps);
	expect(!processes_parent(&w->t, child, &w->self.key));
	live_free(w);
}

/* A child that was sampled between fork and exec, and looked at after it, has what its parent has,
 * behind what it has now. */
TEST(children_remember_what_they_were)
{
	struct live *w = live_new();
	struct sampler_process record;
	struct process *child;
	int in[2], out[2];
	char byte = 'x';
	pid_t pid;

	expect(pipe(in) == 0 && pipe(out) == 0);
	pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execlp("cat", "cat", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	expect(write(in[1], &byte, 1) == 1 && read(out[0], &byte, 1) == 1); /* it is cat by now */
	record = live_record(w, pid);
	record.generation = w->self.generation;
	child = processes_note(&w->t, &record);
	process_map(&w->t, child);
	expect(child->maps && child->maps->whole && child->maps->generation != record.generation);
	process_map(&w->t, processes_parent(&w->t, child, &w->self.key));
	process_map(&w->t, child);
	live_expect_own(child);
	expect(child->maps->generation != record.generation &&
	       child->maps->older->generation == record.generation);
	process_map(&w->t, child);
	expect(!child->maps->older->older);
	close(in[1]);
	close(out[0]);
	expect_eq(waitpid(pid, NULL, 0), pid);
	live_free(w);
}

/* A pid that was given to another is no parent. */
TEST(parents_are_known_by_their_start)
{
	struct live *w = live_new();
	struct process *child = note_gone(w);
	struct sampler_process_key other = w->self.key;

	other.start_ns += 1000000000;
	expect(!processes_parent(&w->t, child, &other));
	live_free(w);
}

/* What the kernel knew of a child that is gone gives way to what somebody alive knows better, and
 * stays where nobody does. */
TEST(unknown_files_become_known)
{
	struct live *w = live_new();
	struct process *child = note_gone(w);

	take_unknown(w, child);
	expect(!child->maps->whole);
	expect_str(child->maps->list.p[0].name, MAPS_UNKNOWN_FILE);
	process_map(&w->t, processes_parent(&w->t, child, &w->self.key));
	process_map(&w->t, child);
	live_expect_own(child);
	live_free(w);
}

static void expect_jit_source(const struct process *p, uint64_t code)
{
	const struct mapping *m = mapset_find(p->maps, code);

	expect(m && m->file);
	expect_eq(mapping_address(m, code), code);
	expect(!p->lacks_jit_source);
}

/* A JIT source may be gone before its process is: what it named before stays. Mappings that are the
 * same once more are no new set. */
TEST(jit_code_keeps_its_source)
{
	struct live *w = live_new();
	struct process *self = processes_note(&w->t, &w->self), *child;
	char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sampler_mapped mapped = {
		.n = 1, .total = 1, .key = self->key, .generation = self->generation};
	uint64_t at = (uint64_t)(uintptr_t)code + 16;
	const struct mapset *before;
	char path[64];
	int map;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", self->key.tgid);
	map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	expect(code != MAP_FAILED && map >= 0 && dprintf(map, "%lx 10 f\n", (unsigned long)at) > 0);
	close(map);
	process_map(&w->t, self);
	expect_jit_source(self, at);
	child = note_gone(w);
	process_map(&w->t, child);
	expect_jit_source(child, at);
	unlink(path);
	before = self->maps;
	self->stale = true;
	process_map(&w->t, self);
	expect(self->maps == before);
	expect_jit_source(self, at);
	mapped.list[0] =
		(struct sampler_mapping){.start = at & ~UINT64_C(4095), .end = (at | 4095) + 1};
	process_take_maps(&w->t, self, &mapped);
	expect_eq(self->maps->list.n, 1);
	expect_jit_source(self, at);
	/* What a child compiles is its own, and another program's. */
	mapped.key = child->key;
	process_take_maps(&w->t, child, &mapped);
	expect_eq(child->maps->list.n, 1);
	expect(child->lacks_jit_source);
	mapped.key = self->key;
	mapped.generation++;
	process_take_maps(&w->t, self, &mapped);
	expect(self->lacks_jit_source);
	munmap(code, 4096);
	live_free(w);
}

/* A process that is there is believed, even if its files cannot be opened. */
TEST(the_living_speak_for_themselves)
{
	struct live *w = live_new();
	struct process *self = processes_note(&w->t, &w->self);
	struct live_child child = live_child(w);
	struct process *other = processes_note(&w->t, &child.record);

	process_map(&w->t, other);
	live_expect_own(other);
	w->unreadable = true;
	process_map(&w->t, self);
	expect(!self->maps->whole);
	self->stale = false;
	process_map(&w->t, self);
	expect(!self->maps->whole);
	live_end(&child);
	live_free(w);
}

/* Whether the file systems of our files say one device of an open file and of a mapping. */
static bool devices_agree(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char text[4352];
	bool agree = true;

	expect(f);
	while (fgets(text, sizeof(text), f)) {
		struct maps_line line;
		struct stat st;

		text[strcspn(text, "\n")] = '\0';
		if (maps_parse_line(str_of(text), &line) && line.executable && line.inode &&
		    stat(line.path.p, &st) == 0)
			agree &= st.st_dev == line.device;
	}
	fclose(f);
	return agree;
}

/* While a process ends, its mappings may be listed still, and their files not be opened any more:
 * those that were known before stay known, whether they were opened or told by the kernel. */
TEST(the_dying_keep_their_files)
{
	struct live *w = live_new();
	struct process *self = processes_note(&w->t, &w->self);
	const struct mapset *before;

	process_map(&w->t, self);
	live_expect_own(self);
	before = self->maps;
	w->unreadable = true;
	for (int i = 0; i < 1 + devices_agree(); i++) {
		self->stale = true;
		process_map(&w->t, self);
		live_expect_own(self);
		expect(self->maps == before);
		vec_each (&self->maps->list, m)
			m->line = 0; /* as the kernel's list has none */
	}
	live_free(w);
}

/* Another program, or another mapping, does not get them. */
TEST(files_are_kept_of_the_same_mapping_only)
{
	struct live *w = live_new();
	struct process *self = processes_note(&w->t, &w->self);
	struct mapping *own = NULL;

	process_map(&w->t, self);
	w->unreadable = true;
	vec_each (&self->maps->list, m) {
		if (m->start <= (uint64_t)(uintptr_t)&live_expect_own &&
		    m->limit > (uint64_t)(uintptr_t)&live_expect_own)
			own = m;
	}
	expect(own && own->file);
	own->line = 0;
	own->offset += 4096;
	self->stale = true;
	process_map(&w->t, self);
	expect(!self->maps->whole);
	expect(!mapset_find(self->maps, (uint64_t)(uintptr_t)&live_expect_own)->file);
	live_free(w);
}

static int no_file(void *context, const struct maps_line *line, char *reopen, size_t n)
{
	return -1;
}

static struct mapped_file *kept(struct live *w, const struct mapset *before,
				const struct mapping *m, dev_t device, ino_t inode)
{
	char text[200];
	struct mapset *set;
	struct mapped_file *file;

	snprintf(text, sizeof(text), "%llx-%llx r-xp %llx %x:%x %llu /its/name\n",
		 (unsigned long long)m->start, (unsigned long long)m->limit,
		 (unsigned long long)m->offset, major(device), minor(device),
		 (unsigned long long)inode);
	set = mapset_parse(str_of(text), w->t.files, no_file, NULL, NULL, before);
	expect(set && set->list.n == 1);
	file = set->list.p[0].file;
	mapset_free(set);
	return file;
}

/* A file that has the number on another file system is another one. */
TEST(files_are_told_apart_by_device)
{
	struct live *w = live_new();
	struct process *self = processes_note(&w->t, &w->self);
	const struct mapping *own;
	struct stat st;

	process_map(&w->t, self);
	expect(stat("/proc/self/exe", &st) == 0);
	own = mapset_find(self->maps, (uint64_t)(uintptr_t)&live_expect_own);
	expect(own && own->file);
	expect(kept(w, self->maps, own, st.st_dev, st.st_ino) == own->file);
	expect(!kept(w, self->maps, own, makedev(major(st.st_dev), minor(st.st_dev) + 1),
		     st.st_ino));
	expect(!kept(w, self->maps, own, st.st_dev, st.st_ino + 1));
	live_free(w);
}

/* Who comes and goes by the thousand costs as much as one, and nobody is forgotten with another. */
TEST(one_speaks_for_all_of_a_generation)
{
	struct live *w = live_new();
	struct process *self = processes_note(&w->t, &w->self), *child = NULL;
	struct sampler_process record;

	process_map(&w->t, self);
	expect_eq(w->t.generations.n, 1);
	for (uint32_t i = 0; i < 3000; i++) {
		record = w->self;
		record.key.start_ns += (i + 1) * UINT64_C(1000000000); /* gone unread */
		child = processes_note(&w->t, &record);
		process_map(&w->t, child);
		live_expect_own(child);
	}
	expect_eq(w->t.generations.n, 1);
	self->idle_intervals = 10;
	processes_age(&w->t, 4, forget, NULL); /* the one that spoke */
	expect(!processes_find(&w->t, &w->self.key));
	expect_eq(w->t.generations.n, 0);
	process_map(&w->t, child);
	expect_eq(w->t.generations.n, 1);
	record.key.start_ns++;
	child = processes_note(&w->t, &record);
	process_map(&w->t, child);
	live_expect_own(child);
	live_free(w);
}

/* A look at a process that has just begun opens what is new, and nothing where nothing is; what is
 * asked for later is opened again. */
TEST(looks_open_only_what_is_new)
{
	struct live *w = live_new();
	struct process *self = processes_note(&w->t, &w->self);
	const struct mapset *first;
	uint64_t n_opened;
	void *page;

	expect(process_look(&w->t, self));
	live_expect_own(self);
	first = self->maps;
	w->unreadable = true;
	expect(process_look(&w->t, self));
	expect(self->maps == first && !self->stale);
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(page != MAP_FAILED);
	expect(process_look(&w->t, self));
	live_expect_own(self);
	expect(self->maps != first && mapset_find(self->maps, (uint64_t)(uintptr_t)page));
	expect(self->maps->exe.n > 0);
	expect_eq(munmap(page, 4096), 0);
	n_opened = w->n_opened;
	self->stale = true;
	process_map(&w->t, self);
	expect(w->n_opened > n_opened);
	live_free(w);
}

/* A look at a process that compiles finds the map that it has begun to write, although its mappings
 * are the same. */
TEST(looks_find_a_perf_map)
{
	struct live *w = live_new();
	struct process *self = processes_note(&w->t, &w->self);
	char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uint64_t)(uintptr_t)code + 16;
	const struct mapset *first;
	char path[64];
	int map;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", self->key.tgid);
	unlink(path);
	expect(code != MAP_FAILED && process_look(&w->t, self));
	first = self->maps;
	expect(self->lacks_jit_source && self->own_pid == (uint32_t)getpid());
	expect(process_look(&w->t, self));
	expect(self->maps == first);
	map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	expect(map >= 0 && dprintf(map, "%lx 10 f\n", (unsigned long)at) > 0);
	close(map);
	expect(process_look(&w->t, self));
	expect_jit_source(self, at);
	unlink(path);
	munmap(code, 4096);
	live_free(w);
}

/* In no container is only what says so while it lives: with cgroup v1 one that exits says it of
 * itself, and the others of its cgroup would be sampled no more. */
TEST(who_exits_is_in_no_known_cgroup)
{
	struct live *w = live_new();
	struct process *self = processes_get(&w->t, &w->self.key), *child;
	struct sampler_process_key key;
	struct proc_info info = PROC_INFO_NULL;
	siginfo_t end;
	pid_t pid;

	process_identify(&w->t, self);
	expect(self->known);
	pid = fork();
	if (pid == 0)
		_exit(0);
	expect_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
	expect_eq(proc_read(w->t.proc, (uint32_t)pid, 0, &info), 0);
	key = (struct sampler_process_key){.tgid = (uint32_t)pid, .start_ns = info.start_ns};
	child = processes_get(&w->t, &key);
	process_identify(&w->t, child);
	expect(child->read);
	expect_eq(child->known, child->container[0] != '\0');
	expect_eq(waitpid(pid, NULL, 0), pid);
	proc_info_free(&info);
	live_free(w);
}

/* What was asked of it holds where it was: in another cgroup it may be another container's. */
TEST(who_moves_is_identified_anew)
{
	struct live *w = live_new();
	struct process *self = processes_get(&w->t, &w->self.key);

	process_enter_cgroup(self, 1);
	process_identify(&w->t, self);
	process_enter_cgroup(self, 1);
	expect(self->read && self->known);
	process_enter_cgroup(self, 2);
	expect(!self->read && !self->known);
	process_identify(&w->t, self);
	expect(self->read && self->known);
	live_free(w);
}
