/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a process's addresses are code of V8's: each isolate (the main one, and one for each
 * worker thread) has a region of its own for compiled code, and most also a copy of the builtins
 * in it. */
#pragma once

#include <andiron/runtime.h>

#include <stdbool.h>

#include "v8/binary.h"

#define MAPPINGS_CODE  (ANDIRON_RUNTIME_CLAIMS - 2) /* regions; two claims are the file's */
#define MAPPINGS_BLOBS 64u

struct mappings {
	struct v8_range code[MAPPINGS_CODE];
	struct v8_range blobs[MAPPINGS_BLOBS]; /* the file's, and copies; then ones that are gone */
	struct v8_range collector_call;
	uint32_t n_code, n_blobs;
	uint32_t n_rest; /* of n_code, the last ones: of no region that is known */
	uint32_t n_gone; /* of n_blobs, the last ones */
};

/* Brings *m, which is zero for a new process, up to its executable mappings. A copy of the builtins
 * that is gone is kept until something else is in its place: samples of it are named when the
 * isolate, or the process, may have ended. False: there is code in no region that is known. */
bool mappings_update(struct mappings *m, const struct v8_binary *binary, uint64_t object,
		     const struct andiron_runtime_mapping *list, uint64_t n);

/* Tells one list of executable memory without a file from another. */
uint64_t mappings_hash(const struct andiron_runtime_mapping *list, uint64_t n);

/* Adds regions: what V8 has reserved, of which only a few pages are executable. So the process's
 * own list is read, up to 20,000 lines, a microsecond each. */
void mappings_read_regions(struct mappings *m, uint32_t pid, const struct v8_binary *binary,
			   uint64_t object, const struct andiron_runtime_mapping *list, uint64_t n);

/* Adds what is executable and in no region: the list was not read, or not to its end. */
void mappings_add_rest(struct mappings *m, const struct andiron_runtime_mapping *list, uint64_t n);

/* For the BPF program. Regions that find no room are left out of *m, too. */
void mappings_segments(struct mappings *m, struct v8_process *ret);
