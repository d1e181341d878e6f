/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that the tests give to frames.h: a process whose memory is what was recorded of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define P_INLINE static inline
#define P_GLOBAL static
#include "python/wire.h"

#include <andiron/bpf/walk.h>

#define WORLD_CHUNKS   8192u
#define WORLD_REPORTED 512u

struct python_scratch;

/* Bytes that a walk has read, and where. */
struct chunk {
	uint64_t at;
	uint32_t n, offset;
};

/* What a file of states holds, for each: this, where tasks are if its magic says so, the chunks,
 * their bytes, and what the interpreter said of its frames. */
struct state {
	char magic[8];
	struct python_layout layout;
	struct python_proc proc;
	uint64_t pointer;
	uint32_t n_activations;
	uint32_t n_chunks, n_bytes, n_text;
	struct {
		uint64_t pc, sp, fp;
	} activations[64];
};

#define STATE_MAGIC       "python01"
#define STATE_MAGIC_TASKS "python02"

static struct world {
	struct state state;
	struct python_tasks tasks;
	struct chunk chunks[WORLD_CHUNKS];
	unsigned char *bytes;
	struct andiron_walk walk;
	struct python_thread thread;
	uint64_t reported[WORLD_REPORTED];
	uint32_t n_reported, n_reads;
	bool fills;                     /* what was not recorded can be read beside what was */
	uint32_t last_call;             /* the call that is the last one of a stack; 0: none is */
	unsigned char records[1 << 20]; /* one behind the other, with their sizes before */
	size_t n_records;
} world;

/* Reads memory; 0, or not. The recorder has one of its own. */
static int world_read(void *to, size_t n, uint64_t at);

#define h_read(to, n, at) world_read(to, n, at)

static struct andiron_walk *h_walk(uint32_t cpu)
{
	return &world.walk;
}

static struct python_scratch *h_scratch(void);

static struct python_proc *h_proc(uint32_t pid)
{
	return pid == 1 ? &world.state.proc : NULL;
}

static const struct python_layout *h_layout(uint32_t index)
{
	return index == 0 ? &world.state.layout : NULL;
}

static const struct python_tasks *h_tasks(uint32_t index)
{
	return index == 0 ? &world.tasks : NULL;
}

static struct python_thread *h_thread(void)
{
	return &world.thread;
}

static uint64_t h_thread_pointer(void)
{
	return world.state.pointer;
}

static bool h_is_reported(uint64_t id)
{
	for (uint32_t i = 0; i < world.n_reported; i++)
		if (world.reported[i] == id)
			return true;
	return false;
}

static int h_report(struct python_scratch *s, uint32_t n);

#include "python/activation.h"

static struct python_scratch scratch;

static struct python_scratch *h_scratch(void)
{
	return &scratch;
}

static int h_report(struct python_scratch *s, uint32_t n)
{
	if (world.n_reported == WORLD_REPORTED || world.n_records + n + 8 > sizeof(world.records))
		return 1;
	world.reported[world.n_reported++] = s->record.id;
	memcpy(world.records + world.n_records, &n, sizeof(n));
	memcpy(world.records + world.n_records + 8, &s->record, sizeof(s->record));
	memcpy(world.records + world.n_records + 8 + sizeof(s->record), s->bytes,
	       n - sizeof(s->record));
	world.n_records += (8 + n + 7) & ~(size_t)7;
	return 0;
}

/* All activations of the state, innermost first, as the sampler would come to them. `known`: which
 * registers the walk has. */
static void world_walk_knowing(uint32_t known)
{
	memset(&world.walk, 0, sizeof(world.walk));
	memset(&world.thread, 0, sizeof(world.thread));
	world.n_reported = world.n_reads = 0;
	world.n_records = 0;
	world.walk.pid = 1;
	world.walk.slot = 3;
	world.walk.known = known;
	world.walk.exact = 1;
	for (uint32_t i = 0; i < world.state.n_activations && world.walk.end == 0; i++) {
		world.walk.pc = world.state.activations[i].pc;
		world.walk.regs[P_SP] = world.state.activations[i].sp;
		world.walk.regs[P_FP] = world.state.activations[i].fp;
		world.walk.native = 0;
		world.walk.switches++;
		world.walk.last = world.walk.switches == world.last_call;
		walk_python(0, &world.walk);
		world.walk.exact = 0;
		if (world.walk.native == ANDIRON_WALK_REST)
			break;
	}
}

static inline void world_walk(void)
{
	world_walk_knowing(~0u);
}
