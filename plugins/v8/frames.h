/* SPDX-License-Identifier: Apache-2.0 */
/* The frames that a pair of words stands for, from the cache alone. */
#pragma once

#include <andiron/runtime.h>

#include "v8/binary.h"
#include "v8/names.h"

#define FRAMES_TEXT (32u << 10)

/* Frames, and their texts: the cache may lose what it has as soon as its lock is free. */
struct frames {
	struct andiron_runtime_frame *list; /* innermost first */
	uint32_t n, max;
	uint32_t n_text;
	char text[FRAMES_TEXT];
};

struct frames_process {
	uint64_t process_id;
	const struct v8_binary *binary;
	const struct v8_range *blobs; /* where the builtins are */
	uint32_t n_blobs;
};

/* Appends the frames of a pair of words. */
void frames_resolve(struct frames *ret, struct names *names, const struct frames_process *process,
		    uint64_t what, uint64_t where);
