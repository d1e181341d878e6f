/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a frame is shown that has no name: by its file and where its function begins,
 * "[libcrypto.so.3 fn 0x1a2b30]", so that all of one function is one box; where that is not known
 * either, by the file alone, "[libcrypto.so.3]". A file that is none keeps its own brackets:
 * "[vdso fn 0xc30]", "[anon]".
 */
#ifndef ABI_UNNAMED_H
#define ABI_UNNAMED_H

#include "base/buf.h"
#include "base/str.h"

/* Replaces what *out held. function 0: it is not known. The file's name is a stranger's, and
 * stays as it is. 0 or -ENOMEM. */
int unnamed_put(struct buf *out, struct str file, uint64_t function);

/* Whether a function's name is one that unnamed_put gives in that file. O(name). */
bool unnamed_is(struct str name, struct str file);

#endif
