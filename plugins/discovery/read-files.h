/* SPDX-License-Identifier: Apache-2.0 */
/* One reading of all files that some patterns name. */
#pragma once

#include "discovery/target-rows.h"

struct read_file {
	char *path;
	struct target_rows rows;
	char *fault; /* why it has no rows, or NULL */
};

struct read_files {
	VEC(struct read_file) all; /* by path */
	int watch_fd;    /* of inotify, on the folders since before they were read; or -1 */
	int unwatched;   /* folders that could not be watched */
	size_t left_out; /* files beyond FILES_MAX */
};

/* Reads them. What cannot be read or watched is said in *ret. 0 or -ENOMEM. Blocks. */
int read_files(const struct str *patterns, size_t n, struct read_files *ret);
void read_files_free(struct read_files *files);
