/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files that belong to another are. `reopen` is a path in the host's view: below
 * "/proc/PID/root" for a process with a root of its own, and then nothing outside of that root is
 * opened, wherever links point. Only regular files are.
 *
 * Names and ids come from strangers' files: an id must be hex, a name must not lead into another
 * folder. Whoever parses what is opened compares build id or CRC. Each returns 0, or -ENOENT. A few
 * system calls; a path on a file system that hangs can hang them. */
#pragma once

#include "base/str.h"

#include <stdint.h>

/* /usr/lib/debug/.build-id/ab/cdef….debug of the host, then of the container. */
int debug_file_by_id(const char *reopen, struct str id, int32_t *ret_fd);

/* A debug link: beside the file, in .debug/ there, in /usr/lib/debug/ and the file's folder. */
int debug_file_by_link(const char *reopen, struct str name, int32_t *ret_fd);

/* A split unit's file: ".dwo" at its end, no ".." within; its last part is no link, so that who may
 * only write a name cannot make it mean a file of somebody else's. */
int debug_file_split(const char *reopen, struct str name, int32_t *ret_fd);

/* The file's path and ".dwp". */
int debug_file_package(const char *reopen, int32_t *ret_fd);
