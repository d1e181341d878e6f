/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded states: where a thread of a node stood, and the memory that its walk and the names of
 * its frames have read. A file holds those of one version, behind what its binary says, and is
 * compressed by zstd as one frame:
 *
 *   struct state_file, the sizes of its bytecodes
 *   for each state: struct state_head, struct state_range [], their bytes, the expected text
 *
 * Written by record.c on this machine's kind; read by test-v8-states.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "native.h"

#include "v8/frames.h"
#include "v8/learn.h"
#include "v8/mappings.h"

#define STATE_MAGIC  0x32763876u
#define STATE_RANGES 8192u
#define STATE_BYTES  (8u << 20)
#define STATE_TEXT   (64u << 10)

struct state_file {
	uint32_t magic, n_states, n_sizes, reserved;
	struct v8_binary binary; /* without what it points to */
};

struct state_head {
	uint64_t pc, regs[32];
	struct mappings mappings;
	uint32_t n_ranges, n_bytes, n_text, reserved;
};

struct state_range {
	uint64_t start;
	uint32_t n, at;
};

/* Text of the frames of a pair of words. */
static inline size_t state_frames(struct names *names, const struct frames_process *process,
				  uint64_t what, uint64_t where, char *text, size_t max)
{
	static struct frames frames;
	struct andiron_runtime_frame list[ANDIRON_RUNTIME_FRAMES];
	size_t n = 0;

	frames.list = list;
	frames.max = ANDIRON_RUNTIME_FRAMES;
	frames.n = frames.n_text = 0;
	frames_resolve(&frames, names, process, what, where);
	for (uint32_t i = 0; i < frames.n && n + 1 < max; i++) {
		int r = snprintf(text + n, max - n, "%.*s %.*s:%u:%u\n", (int)list[i].function.len,
				 list[i].function.ptr, (int)list[i].file.len, list[i].file.ptr,
				 list[i].line, list[i].first_line);

		n += r > 0 ? (size_t)r : 0;
	}
	if (frames.n == 0 && n + 2 < max)
		n += (size_t)snprintf(text + n, max - n, "?\n");
	return n;
}

/* A walk of a state, with names: as text, one frame a line. False: it gave up. */
static inline bool state_walk(const struct v8_binary *binary, const struct state_head *head,
			      struct v8_memory *memory, char *text, size_t max)
{
	struct mappings mappings = head->mappings;
	struct frames_process process = {1, binary, mappings.blobs, mappings.n_blobs};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct learning l = {names_new(), &lock, {memory, binary}, 1, 42};
	struct andiron_walk *w = &native.walk;
	struct v8_place_state state;
	size_t n = 0;

	memset(w, 0, sizeof(*w));
	w->pc = head->pc;
	memcpy(w->regs, head->regs, sizeof(w->regs));
	w->exact = w->slot = 1;
	w->known = 0xffff;
	native.memory = memory;
	native.process = (struct v8_process){.process_id = 1, .seed = 42};
	mappings_segments(&mappings, &native.process);
	native.layout = binary->layout;
	native.n_sightings = 0;
	text[0] = '\0';
	v8_walk(0, w);
	for (uint32_t i = 0; i < native.n_sightings; i++)
		learn(&l, &native.sightings[i], &state);
	for (uint32_t i = 0; i + 1 < w->n_words && n < max; i += 2)
		n += state_frames(l.names, &process, w->frames[i] & 0xffffffffffffffull,
				  w->frames[i + 1], text + n, max - n);
	names_free(l.names);
	return w->end == 0;
}
