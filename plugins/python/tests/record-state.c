/* SPDX-License-Identifier: Apache-2.0 */
/* Records the memory that the walk of one thread of a living interpreter reads, for test-frames.c:
 *
 *   record-state PID TEXT FILE
 *
 * appends it to FILE, with what is in TEXT. The process is stopped meanwhile. There is no native
 * walk here. Activations of the loop are taken
 * from where the interpreter keeps their anchors; before 3.10, which has none, they are made up. */
#include "python/interpreter.h"

#include "python/tests/world.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pid;
static char text[1 << 16];

static int world_read(void *to, size_t n, uint64_t at)
{
	struct iovec here = {to, n}, there = {(void *)(uintptr_t)at, n}; // NOLINT
	struct state *s = &world.state;

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)n)
		return 1;
	for (uint32_t i = 0; i < s->n_chunks; i++)
		if (world.chunks[i].at == at && world.chunks[i].n == n)
			return 0;
	if (s->n_chunks == WORLD_CHUNKS)
		return 1;
	world.bytes = realloc(world.bytes, s->n_bytes + n);
	memcpy(world.bytes + s->n_bytes, to, n);
	world.chunks[s->n_chunks++] = (struct chunk){at, (uint32_t)n, s->n_bytes};
	s->n_bytes += (uint32_t)n;
	return 0;
}

/* A file of the process, as it is called there. */
static int open_file(const char *name)
{
	char real[800];
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	snprintf(real, sizeof(real), "/proc/%d/root%s", (int)pid, name);
	return fd < 0 ? open(real, O_RDONLY | O_CLOEXEC) : fd;
}

/* A file with asyncio beside the interpreter. */
static void find_asyncio(int fd, const struct interpreter *i)
{
	struct tasks *asyncio = tasks_read(fd);

	if (asyncio && tasks_joined(&i->tasks, asyncio, &world.tasks))
		world.state.proc.asyncio = 1;
	free(asyncio);
}

/* The first file in the process that has an interpreter, and one with asyncio. */
static bool find_files(struct interpreter *ret, uint64_t *ret_bias)
{
	char path[64], line[1024], name[700];
	uint64_t start, offset;
	FILE *maps;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		int fd;

		if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*s %699s", &start, &offset,
			   name) != 3 ||
		    name[0] != '/')
			continue;
		fd = open_file(name);
		if (fd < 0)
			continue;
		if (!found && interpreter_read(fd, ret)) {
			found = true;
			/* The first mapping is that of the file's beginning. */
			*ret_bias = ret->runtime && start >= 0x10000000 ? start - offset : 0;
		}
		if (found && !world.state.proc.asyncio)
			find_asyncio(fd, ret);
		close(fd);
	}
	if (maps)
		fclose(maps);
	return found;
}

static void add_activation(uint64_t anchor)
{
	const struct python_layout *l = &world.state.layout;
	uint32_t n = world.state.n_activations;

	if (n == 64)
		return;
	world.state.activations[n].pc = world.state.proc.bias + l->bodies[0].from + 64;
	world.state.activations[n].sp = anchor - 16;
	world.state.activations[n].fp = anchor + 32;
	world.state.n_activations++;
}

static uint64_t word(uint64_t at)
{
	uint64_t ret = 0;
	struct iovec here = {&ret, 8}, there = {(void *)(uintptr_t)at, 8};

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == 8 ? ret : 0;
}

/* Of the state of the thread. */
static void find_activations(uint64_t thread, uint64_t sp)
{
	const struct python_layout *l = &world.state.layout;
	uint64_t at = word(thread + l->thread_frame);

	if (l->kind == PYTHON_OBJECTS)
		for (; at; at = word(at + l->frame_previous))
			add_activation(sp += 1024);
	if (l->kind == PYTHON_COUNTED || l->kind == PYTHON_CFRAMES) {
		uint64_t previous;

		for (at = word(thread + l->thread_top); at; at = previous) {
			previous = word(at + l->cframe_previous);
			if (previous)
				add_activation(at);
		}
	}
	if (l->kind == PYTHON_ENTRIES)
		for (; at; at = word(at + l->frame_previous))
			if ((word(at + (l->frame_owner & ~7u)) >> (l->frame_owner & 7) * 8 &
			     0xff) >= 3)
				add_activation(at);
}

/* To the thread's state, whose activations become the record's. */
static void find_thread(uint64_t sp)
{
	const struct state *s = &world.state;
	uint64_t thread, interp = word(s->proc.runtime + s->layout.runtime_head);

	if (s->layout.runtime_current)
		interp = word(interp + s->layout.thread_interp);
	thread = word(interp + s->layout.interp_threads);
	while (thread && word(thread + s->layout.thread_id) != s->pointer)
		thread = word(thread + s->layout.thread_next);
	find_activations(thread, sp);
}

static bool write_state(const char *path, const char *from)
{
	struct state *s = &world.state;
	FILE *f = fopen(from, "rb");
	bool done;

	if (!f)
		return false;
	s->n_text = (uint32_t)fread(text, 1, sizeof(text), f);
	fclose(f);
	s->proc.code_type = 0;
	f = fopen(path, "ab");
	if (!f)
		return false;
	done = fwrite(s, sizeof(*s), 1, f) == 1 &&
	       (!s->proc.asyncio || fwrite(&world.tasks, sizeof(world.tasks), 1, f) == 1) &&
	       fwrite(world.chunks, sizeof(*world.chunks), s->n_chunks, f) == s->n_chunks &&
	       fwrite(world.bytes, 1, s->n_bytes, f) == s->n_bytes &&
	       fwrite(text, 1, s->n_text, f) == s->n_text;
	return fclose(f) == 0 && done;
}

int main(int argc, char **argv)
{
	struct user_regs_struct regs;
	struct state *s = &world.state;
	struct interpreter i;
	uint64_t bias;

	if (argc != 4)
		return 2;
	pid = (pid_t)strtol(argv[1], NULL, 10);
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0 || waitpid(pid, NULL, 0) != pid ||
	    ptrace(PTRACE_GETREGS, pid, NULL, &regs) != 0 || !find_files(&i, &bias))
		return 1;
	memcpy(s->magic, s->proc.asyncio ? STATE_MAGIC_TASKS : STATE_MAGIC, 8);
	s->layout = i.layout;
	s->proc.bias = bias;
	s->proc.runtime = bias + i.runtime;
	s->proc.salt = 42;
	s->pointer = regs.fs_base;
	find_thread(regs.rsp);
	world_walk();
	printf("version %x: %u activations, %u words, %u reported, %u bytes\n", s->layout.version,
	       s->n_activations, world.walk.n_words, world.n_reported, s->n_bytes);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return world.walk.end == 0 && write_state(argv[3], argv[2]) ? 0 : 1;
}
