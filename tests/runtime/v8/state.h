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

#include "v8/names.h"

#define STATE_MAGIC  0x31763876u
#define STATE_RANGES 8192u
#define STATE_BYTES  (8u << 20)
#define STATE_TEXT   (64u << 10)

struct state_file {
	uint32_t magic, n_states, n_sizes, reserved;
	struct v8_binary binary; /* without what it points to */
};

struct state_head {
	uint64_t pc, regs[32];
	struct v8_process process;
	uint32_t n_ranges, n_bytes, n_text, reserved;
};

struct state_range {
	uint64_t start;
	uint32_t n, at;
};

/* A walk of the state at hand, with names: as text, one frame a line. False: it gave up. */
static inline bool state_walk(struct names *names, const struct state_head *head,
			      const struct v8_memory *memory, char *text, size_t max)
{
	struct andiron_walk *w = &native.walk;
	size_t n = 0;

	memset(w, 0, sizeof(*w));
	w->pc = head->pc;
	memcpy(w->regs, head->regs, sizeof(w->regs));
	w->exact = w->slot = 1;
	w->known = 0xffff;
	native.memory = memory;
	native.process = head->process;
	native.layout = names->binary->layout;
	native.n_met = 0;
	memcpy(names->blobs, head->process.blobs, sizeof(names->blobs));
	text[0] = '\0';
	v8_walk(0, w);
	for (uint32_t i = 0; i + 1 < w->n_words; i += 2) {
		uint64_t what = w->frames[i] & 0xffffffffffffffull, where = w->frames[i + 1];
		uint64_t number = V8_NUMBER(what);
		uint32_t kind = (uint32_t)V8_KIND(what), k;
		struct names_function *f = NULL;
		struct names_frame out[NAMES_FRAMES];

		if (kind != V8_STUB && number >= 1 && number <= native.n_met &&
		    names_learn(names, &native.met[number - 1].key,
				kind == V8_INTERPRETED ? native.met[number - 1].bytecode : 0,
				&f) != 0)
			f = NULL;
		k = names_resolve(names, f, what, where, out, NAMES_FRAMES);
		for (uint32_t j = 0; j < k && n + 1 < max; j++) {
			int r = snprintf(text + n, max - n, "%s %s:%u:%u\n", out[j].function,
					 out[j].file, out[j].line, out[j].first_line);

			n += r > 0 ? (size_t)r : 0;
		}
		if (k == 0 && n + 2 < max)
			n += (size_t)snprintf(text + n, max - n, "?\n");
	}
	return w->end == 0;
}
