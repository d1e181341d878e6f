/* SPDX-License-Identifier: Apache-2.0 */
/* How a frame without a name is shown: by its file and where its function begins,
 * "[libcrypto.so.3 fn 0x1a2b30]", so that a function is one box. Where that is not known, by the
 * file alone, "[libcrypto.so.3]". A name in brackets keeps its own: "[vdso fn 0xc30]", "[anon]". */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* Replaces what *out held. function 0: not known. The file's name is untrusted and stays as it is.
 * 0 or -ENOMEM. */
int unsymbolized_put(struct buf *out, struct str file, uint64_t function);

/* Whether a function's name is one that unsymbolized_put gives in that file. O(name). */
bool unsymbolized_is(struct str name, struct str file);
