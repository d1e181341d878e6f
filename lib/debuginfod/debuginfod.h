/* SPDX-License-Identifier: Apache-2.0 */
/* Debug files of debuginfod servers (protocol: debuginfod(8) of elfutils), kept in a folder that
 * elfutils' client shares.
 *
 * Of a file that is too large only lines and symbols are fetched: /buildid/ID/section/NAME gives
 * .debug_line, .debug_line_str, .symtab and .strtab. They are put into one ELF file, which reads as
 * any debug file without inlined calls. Servers that know no sections give whole files.
 *
 * Blocks; for a process that does nothing else. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

#define DEBUGINFOD_MAX_BYTES   (UINT64_C(256) << 20)
#define DEBUGINFOD_CACHE_BYTES (UINT64_C(4) << 30)
#define DEBUGINFOD_STALL_MS    30000
#define DEBUGINFOD_TIME_MS     110000

struct debuginfod {
	struct str urls;       /* separated by white space */
	const char *folder;    /* absolute */
	uint64_t max_bytes;    /* of a file, and of a section */
	uint64_t folder_bytes; /* what is kept; 0: not bounded */
	int64_t stall_ms, time_ms;
	bool lines_only; /* inlined calls are not wanted: sections first */
};

/* Finds, or fetches, the debug file of a build id and appends its path to *ret_path. -ENOENT: no
 * server has it; -E2BIG: it is too large, and the server has no sections; -EINVAL: no build id, or
 * no servers; else an errno with a text. What was not there is not asked for again for ten minutes,
 * nor is what is here. */
int debuginfod_find(const struct debuginfod *d, struct str build_id, struct buf *ret_path,
		    struct error *err);

/* The folder that elfutils' client uses, by DEBUGINFOD_CACHE_PATH, XDG_CACHE_HOME and HOME,
 * appended. -ENOENT: none of them is set. */
int debuginfod_folder(struct buf *ret);
