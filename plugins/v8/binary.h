/* SPDX-License-Identifier: Apache-2.0 */
/* A file that holds a V8: node, libnode, or a program with it. Its version, where its objects keep
 * what we read, where its builtins are and what they are called.
 *
 * Offsets come from the constants that V8 exports for debuggers (`v8dbg_…`). What a version does
 * not export has had its place for all versions from 8.1 to 14, or follows from what is exported;
 * each is looked at when it is used (v8-heap.h). Input is untrusted: bounded reads, bounded
 * tables. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "v8/shared.h"

#define V8_WHY 96

#define V8_COLLECTOR_CALL_BYTES 4u /* the call and the byte behind it */

struct v8_range {
	uint64_t from, to;
};

/* A builtin: [start, the next one's start), from the blob's first byte. */
struct v8_builtin {
	uint32_t start;
	uint32_t name; /* into `names` */
};

struct v8_types {
	uint16_t shared, script, scope, bytecodes, code, stream, bytes, interpreter_data,
		shared_wrapper;
	uint16_t trusted_bytes, wasm_module;
	bool has_stream, has_shared_wrapper, has_trusted_bytes, has_wasm_module;
};

struct v8_binary {
	uint32_t version[4];
	char why[V8_WHY]; /* empty: known. Else what was not found */
	struct v8_layout layout;
	struct v8_types types;

	uint32_t scope_first; /* ScopeInfo: words before its locals */
	uint32_t scope_base;  /* … and where its words begin */
	uint32_t bytecode_data, bytecode_positions;
	uint32_t script_native;   /* Script → what holds its NativeModule; 0: not known */
	uint32_t positions_shift; /* positions.h */
	/* Code: through an InstructionStream, or where its instructions are (stream_code 0). */
	uint32_t stream_code, code_start, code_size, code_header, code_deopt, code_positions;
	uint32_t deopt_inlined, deopt_literals, deopt_optimization, deopt_shared, deopt_inlining;

	uint64_t blob, blob_bytes; /* the embedded builtins, by the file's own addresses */
	uint64_t collector_call;   /* PushAllRegistersAndIterateStack's; 0: not known */
	struct v8_builtin *builtins;
	uint32_t n_builtins;
	char *names;

	uint8_t *sizes; /* of bytecodes: three rows of `n_sizes`, by scale */
	uint32_t n_sizes;
	char marks[V8_MARKS][32]; /* kinds of frames */
	uint32_t n_users;         /* the caller's; binary_release takes one */
};

/* Whether a file holds a V8, in any version: 1 or 0, or -ENOMEM. Microseconds. */
int binary_is_v8(int fd);

/* Reads a file. 1: it holds a V8 (which may be unknown: `why`), 0: it does not, or a negative
 * errno. Some milliseconds of CPU for a V8, microseconds for others. */
int binary_read(struct v8_binary *ret, int fd);
void binary_fini(struct v8_binary *b);
/* Frees one that was allocated, behind its last user; NULL is none. */
void binary_release(struct v8_binary *b);

/* The name of the builtin at an offset in the blob, or NULL. */
const char *binary_builtin(const struct v8_binary *b, uint64_t offset);
