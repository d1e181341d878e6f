/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of processes that are gone before anybody could ask: real children of this process,
 * which have its layout because they were only forked.
 */
#include "process.h"

#include "unwind-tables.h"

#include "base/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MAX 64

/* Objects by inode; id is the position plus 1. */
struct world {
	struct andiron_extension objects;
	struct processes t;
	struct stat stats[FILES_MAX];
	uint64_t n;
	bool unreadable; /* no file can be interned */
	struct sampler_process self;
};

static int32_t intern(void *self, int32_t fd, const struct andiron_str *path,
		      const struct andiron_str *reopen, uint64_t *ret_object)
{
	struct world *w = self;
	struct stat st;
	uint64_t i = 0;

	if (w->unreadable)
		return -EACCES;
	expect_eq(fstat(fd, &st), 0);
	while (i < w->n && (w->stats[i].st_ino != st.st_ino || w->stats[i].st_dev != st.st_dev))
		i++;
	expect(i < FILES_MAX);
	w->stats[i] = st;
	w->n = i < w->n ? w->n : i + 1;
	*ret_object = i + 1;
	return 0;
}

static int32_t find(void *self, const struct andiron_object_key *key, uint64_t *ret_object)
{
	return -ENOENT;
}

static int32_t identify(void *self, uint64_t object, const struct andiron_str *gnu_build_id,
			const struct andiron_str *go_build_id, const struct andiron_str *file_id)
{
	return 0;
}

static void release(void *self, uint64_t object)
{
}

static const struct andiron_objects service = {
	.size = sizeof(service), .intern = intern, .find = find, .identify = identify, .release = release};

/* As the kernel side reports a process of ours. */
static struct sampler_process record_of(struct world *w, pid_t pid)
{
	struct sampler_process record = {.type = SAMPLER_RECORD_PROCESS};
	struct proc_info *i = &w->t.info;

	expect_eq(proc_read(w->t.proc, (uint32_t)pid, 0, i), 0);
	record.key = (struct sampler_process_key){.start_ns = i->start_ns, .tgid = i->pid};
	record.parent = w->self.key;
	record.layout = unwind_layout(i->start_code, i->arg_start, i->start_stack);
	return record;
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	expect(w != NULL);
	w->objects = (struct andiron_extension){.self = w, .table = &service};
	expect_eq(processes_init(&w->t, images_new(&w->objects)), 0);
	w->self = record_of(w, getpid());
	return w;
}

static void world_free(struct world *w)
{
	struct images *images = w->t.images;

	processes_fini(&w->t);
	images_free(images);
	free(w);
}

/* Notes a child that was forked, has exited and is waited for. */
static struct process *note_gone(struct world *w)
{
	struct sampler_process record;
	int ends[2];
	pid_t pid;

	expect_eq(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		_exit(read(ends[0], &ends, 1) != 0);
	}
	expect(pid > 0);
	record = record_of(w, pid);
	close(ends[0]);
	close(ends[1]);
	expect_eq(waitpid(pid, NULL, 0), pid);
	return processes_note(&w->t, &record);
}

static void expect_own_maps(const struct process *p)
{
	const struct mapping *m = mapset_find(p->maps, (uint64_t)(uintptr_t)&note_gone);

	expect(p->maps->whole && m && m->image);
}

/* What the kernel sends of a process with one file, which nobody has opened, where our code is. */
static void take_unknown(struct world *w, struct process *p)
{
	struct sampler_mapped mapped = {.n = 1, .total = 1, .key = p->key, .layout = p->layout};
	uint64_t start = (uint64_t)(uintptr_t)&note_gone & ~UINT64_C(4095);

	mapped.list[0] = (struct sampler_mapping){.start = start, .end = start + 4096, .inode = 1};
	process_take_maps(&w->t, p, &mapped);
	expect(p->maps);
}

/* Nothing is known of a child that is gone; its parent has the same, and so has the next child. */
TEST(children_have_what_their_parent_has)
{
	struct world *w = world_new();
	struct process *child = note_gone(w), *next, *parent;

	process_map(&w->t, child);
	expect(!child->maps);
	parent = processes_parent(&w->t, child, &w->self.key);
	expect(parent && parent->key.tgid == w->self.key.tgid);
	process_map(&w->t, parent);
	expect_own_maps(parent);
	process_map(&w->t, child);
	expect_own_maps(child);
	expect(!processes_parent(&w->t, child, &w->self.key)); /* nothing more to learn */
	next = note_gone(w);
	process_map(&w->t, next);
	expect_own_maps(next);
	world_free(w);
}

/* A program has other mappings than the one that started it. */
TEST(programs_do_not_have_what_their_parent_has)
{
	struct world *w = world_new();
	struct process *child = note_gone(w);

	process_map(&w->t, processes_note(&w->t, &w->self));
	child->layout++;
	process_map(&w->t, child);
	expect(!child->maps);
	expect(!processes_parent(&w->t, child, &w->self.key));
	world_free(w);
}

/* A child that was sampled between fork and exec, and looked at after it, has what its parent has, behind
 * what it has now. */
TEST(children_remember_what_they_were)
{
	struct world *w = world_new();
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
	record = record_of(w, pid);
	record.layout = w->self.layout;
	child = processes_note(&w->t, &record);
	process_map(&w->t, child);
	expect(child->maps && child->maps->whole && child->maps->layout != record.layout);
	process_map(&w->t, processes_parent(&w->t, child, &w->self.key));
	process_map(&w->t, child);
	expect_own_maps(child);
	expect(child->maps->layout != record.layout && child->maps->older->layout == record.layout);
	process_map(&w->t, child);
	expect(!child->maps->older->older);
	close(in[1]);
	close(out[0]);
	expect_eq(waitpid(pid, NULL, 0), pid);
	world_free(w);
}

/* A pid that was given to another is no parent. */
TEST(parents_are_known_by_their_start)
{
	struct world *w = world_new();
	struct process *child = note_gone(w);
	struct sampler_process_key other = w->self.key;

	other.start_ns += 1000000000;
	expect(!processes_parent(&w->t, child, &other));
	world_free(w);
}

/* What the kernel knew of a child that is gone gives way to what somebody alive knows better, and
 * stays where nobody does. */
TEST(unknown_files_become_known)
{
	struct world *w = world_new();
	struct process *child = note_gone(w);

	take_unknown(w, child);
	expect(!child->maps->whole);
	expect_str(child->maps->list.p[0].name, MAPS_UNKNOWN_FILE);
	process_map(&w->t, processes_parent(&w->t, child, &w->self.key));
	process_map(&w->t, child);
	expect_own_maps(child);
	world_free(w);
}

/* A process that is there is believed, even if its files cannot be opened. */
TEST(the_living_speak_for_themselves)
{
	struct world *w = world_new();
	struct process *child = note_gone(w), *self = processes_note(&w->t, &w->self);

	process_map(&w->t, self);
	process_map(&w->t, child);
	expect_own_maps(child);
	w->unreadable = true;
	self->stale = true;
	process_map(&w->t, self);
	expect(!self->maps->whole);
	self->stale = false;
	process_map(&w->t, self);
	expect(!self->maps->whole);
	world_free(w);
}
