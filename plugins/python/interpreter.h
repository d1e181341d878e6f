/* SPDX-License-Identifier: Apache-2.0 */
/* What a file has of CPython: whether it holds an interpreter, of which version, where its loop and
 * its _PyRuntime are, and what the loop's machine frames look like. */
#pragma once

#include "python/elf-frames.h"
#include "python/tasks.h"
#include "python/wire.h"

#define INTERPRETER_CODES 8u

struct interpreter {
	struct python_layout layout;
	struct tasks tasks;
	uint64_t runtime; /* the file's own address of _PyRuntime; 3.6: of _PyThreadState_Current */
	struct elf_code
		codes[INTERPRETER_CODES]; /* machine code of the loop, the main part first */
	uint32_t n_codes;
	char why[96]; /* what was not found; empty where all was */
};

/* Whether the file has an interpreter: 1, 0 or -ENOMEM; some reads where it has none. */
int interpreter_recognized(int fd);

/* false: the file has no interpreter, which takes some reads to know. Where it has one but
 * something is missing, `layout.kind` is PYTHON_UNKNOWN and `why` says what. At most 50 ms. */
bool interpreter_read(int fd, struct interpreter *ret);
