/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which fetched files are kept, as elfutils' client lays it out (debuginfod-client.c
 * of elfutils 0.188), so that gdb, perf and debuginfod-find use the same files:
 *
 *   BUILD-ID/debuginfo, BUILD-ID/section-NAME   a file, mode 0400
 *   the same, empty                             no server has it; asked again after cache_miss_s
 *   cache_clean_interval_s, max_unused_age_s, cache_miss_s   seconds, as text; absent: the defaults
 *
 * What nobody has used for max_unused_age_s goes at every cleaning, as with elfutils. Beyond that
 * the folder is bounded in bytes here: what was used least recently goes first. */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <stdint.h>

#define STORE_CLEAN_SECONDS  86400
#define STORE_UNUSED_SECONDS 604800
#define STORE_MISS_SECONDS   600
#define STORE_NAME_MAX       64
#define STORE_ID_MAX         128 /* characters */

struct store {
	int fd;           /* of the folder */
	uint64_t n_bytes; /* what it may hold; 0: not bounded */
};

#define STORE_NULL ((struct store){.fd = -1})

/* A file that is being written. */
struct store_draft {
	int folder, fd;
	char name[STORE_NAME_MAX + 8]; /* of the temporary file */
};

#define STORE_DRAFT_NULL ((struct store_draft){.folder = -1, .fd = -1})

/* Makes the folder, and those that it lies in, where they are not there. */
int store_open(struct store *ret, const char *path, uint64_t n_bytes, struct error *err);
void store_close(struct store *s);

/* Whether it can be one: lower-case hex, of 4 to 64 bytes. */
bool store_is_id(struct str id);

/* A descriptor of a kept file, to close, and notes that it was used. -ENOENT: it is not here;
 * -ENODATA: no server had it when one was asked last. Ids and names are the caller's own. */
int store_find(const struct store *s, struct str id, const char *name);

/* Begins a file; store_keep shows it under its name, store_drop forgets it. Either ends the draft.
 */
int store_begin(const struct store *s, struct str id, const char *name, struct store_draft *ret);
int store_keep(struct store_draft *d, const char *name);
void store_drop(struct store_draft *d);

/* Remembers that no server has it. */
int store_deny(const struct store *s, struct str id, const char *name);

/* Removes what is too old, where that is due, and what is too much. 0 or a negative errno.
 * O(files). */
int store_clean(const struct store *s, int64_t now_seconds);
