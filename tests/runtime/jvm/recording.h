/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of a walk: the registers that it began with, the memory that it has read, and the
 * stack that it found, as text (walk_text). */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <andiron/bpf/walk.h>

#include "jvm/walk/jvm-records.h"

#define RECORDING_MAGIC  0x32766a72u
#define RECORDING_RANGES 4096
#define RECORDING_BYTES  (1u << 20)
#define RECORDING_TEXT   (1u << 18)

struct recording_range {
	uint64_t start;
	uint32_t n, at;
};

struct recording_head {
	uint32_t magic, n_ranges, n_bytes, n_text;
	uint64_t pc, regs[32];
	uint32_t exact, known;
	uint32_t end;           /* 0: the walk came to native code */
	uint32_t process_bytes; /* of struct jvm_process */
};

struct recording {
	struct recording_head head;
	struct recording_range ranges[RECORDING_RANGES];
	uint8_t bytes[RECORDING_BYTES];
};

static inline void recording_start(struct recording *r, const struct andiron_walk *w)
{
	memset(&r->head, 0, sizeof(r->head));
	r->head.magic = RECORDING_MAGIC;
	r->head.pc = w->pc;
	memcpy(r->head.regs, w->regs, sizeof(r->head.regs));
	r->head.exact = w->exact;
	r->head.known = w->known;
}

static inline void recording_add(struct recording *r, uint64_t start, const void *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < r->head.n_ranges; i++)
		if (start >= r->ranges[i].start && start + n <= r->ranges[i].start + r->ranges[i].n)
			return;
	if (r->head.n_ranges == RECORDING_RANGES || r->head.n_bytes + n > RECORDING_BYTES)
		return;
	r->ranges[r->head.n_ranges++] = (struct recording_range){start, n, r->head.n_bytes};
	memcpy(r->bytes + r->head.n_bytes, bytes, n);
	r->head.n_bytes += n;
}

/* 0: all of it is in the recording. */
static inline int recording_get(const struct recording *r, void *to, uint32_t n, uint64_t start)
{
	for (uint32_t i = 0; i < r->head.n_ranges; i++) {
		const struct recording_range *range = &r->ranges[i];

		if (start >= range->start && start - range->start < range->n &&
		    n <= range->n - (start - range->start)) {
			memcpy(to, r->bytes + range->at + (start - range->start), n);
			return 0;
		}
	}
	if (n <= 8)
		return -1;
	/* Its words may have been read one by one. */
	return recording_get(r, to, 8, start) == 0
		       ? recording_get(r, (char *)to + 8, n - 8, start + 8)
		       : -1;
}

/* FOLDER/NUMBER.walk: head, struct jvm_process, ranges, bytes and text. */
static inline void recording_write(struct recording *r, const char *folder,
				   const struct jvm_process *process, const char *text,
				   unsigned number)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%u.walk", folder, number);
	f = fopen(path, "we");
	if (!f)
		return;
	r->head.n_text = (uint32_t)strlen(text);
	r->head.process_bytes = sizeof(*process);
	fwrite(&r->head, sizeof(r->head), 1, f);
	fwrite(process, sizeof(*process), 1, f);
	fwrite(r->ranges, sizeof(*r->ranges), r->head.n_ranges, f);
	fwrite(r->bytes, 1, r->head.n_bytes, f);
	fwrite(text, 1, r->head.n_text, f);
	fclose(f);
}
