/* SPDX-License-Identifier: Apache-2.0 */
/* Names of users, from the host's passwd file and not through NSS: that may ask a directory server,
 * block for seconds and load libraries of its own into this process, which an agent must not do for
 * a label. In a container the host's file is the one beneath the root of process 1.
 *
 * Source of the format: passwd(5). */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdint.h>
#include <time.h>

#define USERS_BYTES_MAX (1u << 20)

struct user {
	uint32_t uid;
	struct str name;
};

struct users {
	struct arena text;
	VEC(struct user) known; /* by uid, of equal ones the first of the file */
	struct timespec changed;
	int64_t size;
};

#define USERS_NULL ((struct users){.text = ARENA_NULL})

void users_free(struct users *u);

/* Takes over what the text of a passwd file says; lines that are none are skipped. 0 or -ENOMEM
 * (then it knows nothing). O(n log n). */
int users_parse(struct users *u, struct str passwd);

/* Reads the file again if it has changed. `proc` is a descriptor of /proc. May block on the disk.
 * Without a readable file nobody has a name. */
void users_refresh(struct users *u, int proc);

/* STR_NULL if unknown. O(log n). */
struct str users_name(const struct users *u, uint32_t uid);
