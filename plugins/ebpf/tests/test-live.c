/* SPDX-License-Identifier: Apache-2.0 */
/* See test-live.h. */
#include "ebpf/tests/test-live.h"

#include "bpfwire/unwind-tables.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int32_t intern(void *self, int32_t fd, const struct andiron_str *path,
		      const struct andiron_str *reopen, uint64_t *ret_object)
{
	struct live *w = self;
	struct stat st;
	uint64_t i = 0;

	w->n_opened++;
	if (w->unreadable)
		return -EACCES;
	expect_eq(fstat(fd, &st), 0);
	while (i < w->n && (w->files[i].st_ino != st.st_ino || w->files[i].st_dev != st.st_dev))
		i++;
	expect(i < LIVE_FILES);
	if (i == w->n) {
		w->files[i] = st;
		w->fds[i] = dup(fd);
		w->n++;
	}
	*ret_object = i + 1;
	return 0;
}

static int32_t open_object(void *self, uint64_t object, uint32_t what, int32_t *ret_fd)
{
	struct live *w = self;

	if (what != ANDIRON_OPEN_FILE)
		return -ENOENT;
	*ret_fd = dup(w->fds[object - 1]);
	return 0;
}

static int32_t find(void *self, const struct andiron_object_key *key, uint64_t *ret_object)
{
	return -ENOENT;
}

static int32_t info(void *self, uint64_t object, struct andiron_object_info *ret_info)
{
	const struct live *w = self;

	expect(object <= w->n);
	ret_info->key.device = w->files[object - 1].st_dev;
	ret_info->key.inode = w->files[object - 1].st_ino;
	return 0;
}

static int32_t identify(void *self, uint64_t object, const struct andiron_str *gnu_build_id,
			const struct andiron_str *go_build_id, const struct andiron_str *file_id)
{
	return 0;
}

static void release(void *self, uint64_t object)
{
}

static const struct andiron_objects service = {.size = sizeof(service),
					       .intern = intern,
					       .find = find,
					       .identify = identify,
					       .info = info,
					       .release = release,
					       .open = open_object};

struct sampler_process live_record(struct live *w, pid_t pid)
{
	struct sampler_process record = {.type = SAMPLER_RECORD_PROCESS};
	struct proc_info *i = &w->t.info;

	expect_eq(proc_read(w->t.proc, (uint32_t)pid, 0, i), 0);
	record.key = (struct sampler_process_key){.start_ns = i->start_ns, .tgid = i->pid};
	record.parent = w->self.key;
	record.generation = unwind_generation(i->start_code, i->arg_start, i->start_stack);
	return record;
}

struct live *live_new(void)
{
	struct live *w = calloc(1, sizeof(*w));

	expect(w != NULL);
	w->objects = (struct andiron_extension){.self = w, .table = &service};
	expect_eq(processes_init(&w->t, mapped_files_new(&w->objects)), 0);
	w->self = live_record(w, getpid());
	return w;
}

void live_free(struct live *w)
{
	struct mapped_files *files = w->t.files;

	processes_fini(&w->t);
	mapped_files_free(files);
	for (uint64_t i = 0; i < w->n; i++)
		close(w->fds[i]);
	free(w);
}

struct live_child live_child(struct live *w)
{
	struct live_child child;
	int ends[2];

	expect_eq(pipe(ends), 0);
	child.end = ends[1];
	child.pid = fork();
	if (child.pid == 0) {
		close(ends[1]);
		_exit(read(ends[0], &ends, 1) != 0);
	}
	expect(child.pid > 0);
	close(ends[0]);
	child.record = live_record(w, child.pid);
	return child;
}

void live_end(const struct live_child *child)
{
	close(child->end);
	expect_eq(waitpid(child->pid, NULL, 0), child->pid);
}

void live_expect_own(const struct process *p)
{
	const struct mapping *m = mapset_find(p->maps, (uint64_t)(uintptr_t)&live_expect_own);

	expect(p->maps->whole && m && m->file);
}
