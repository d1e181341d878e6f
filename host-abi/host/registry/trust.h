/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a plugin file can be changed by somebody whom this process must not obey. What is
 * loaded may do what the process may: if that is more than others may, they must not choose it. */
#pragma once

#include "base/error.h"

#include <sys/stat.h>

enum trust {
	TRUST_ALL,   /* nobody gains by it */
	TRUST_KNOWN, /* root, or with capabilities: nothing that anybody may change */
	TRUST_ROOT,  /* set-id or with a file's capabilities: who started it chose the arguments */
};

/* What this process has to ask for. */
enum trust trust_needed(void);

/* Checks the file, as `st` has it, and all folders above it, links followed: 0; -ENOEXEC and a
 * sentence that names what could be changed, and the command that ends it; or another errno. */
int trust_check(const char *path, const struct stat *st, enum trust needed, struct error *err);
