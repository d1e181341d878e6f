/* SPDX-License-Identifier: Apache-2.0 */
/* The files whose content is in the running configuration (local.file, import.file), and when it
 * has changed. What they held is kept as a hash, so a file that is touched, or written with the
 * same text, changes nothing. */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "host/plan.h"

struct config_watch;

struct followed_files {
	int fd; /* readable when followed_files_changed is to be called; the same for good */
	struct config_watch *watch; /* NULL: there are none */
	int64_t poll_ns;            /* as the plan's */
	VEC(char *) paths;
	VEC(uint64_t) hashes; /* 0: it cannot be read */
};

/* 0 or a negative errno; `ret` can be finished in any case. */
int followed_files_init(struct followed_files *ret, struct error *err);
void followed_files_fini(struct followed_files *files);

/* From here on those of the plan are followed, and what has changed since they were read is found.
 * 0, or a negative errno: none are followed. */
int followed_files_set(struct followed_files *files, const struct plan *plan, struct error *err);

/* Whether all can be read now. */
bool followed_files_readable(const struct followed_files *files);

/* Whether one holds something else than before. */
bool followed_files_changed(struct followed_files *files);

/* Looks again after that time, and takes all for changed. */
void followed_files_again(struct followed_files *files, int64_t after_ns);
