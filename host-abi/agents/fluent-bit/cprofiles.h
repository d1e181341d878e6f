/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a chunk of Fluent Bit's profiles signal: values of msgpack as lib/cprofiles writes them
 * (cprof_encode_msgpack.c, whose keys are the same from 4.0 to 5.1). Fluent Bit's own way to OTLP
 * frees what was not allocated, in all of 5.0.0 to 5.1.1, so it cannot be called.
 *
 * What is read is OTLP's model in other words: an entry of a table becomes an entry of the
 * dictionary, and nothing is judged here; the reader of OTLP does that
 * (receive-http/otlp-request.h). The bytes are untrusted. */
#pragma once

#include "base/str.h"

/* Of requests together. A resource stands once in a chunk and in each request of its profiles. */
#define CPROFILES_MAX_BYTES ((size_t)64 << 20)

/* Gets each profile as a request of OTLP's profiles signal, borrowed; or `result` says why one is
 * left out: -EBADMSG, it (or what it stands in) is not as lib/cprofiles writes it; -E2BIG, requests
 * have more than CPROFILES_MAX_BYTES with it. Answers 0, or -ENOMEM, which ends the reading. */
typedef int (*cprofiles_fn)(void *context, int result, struct str request);

/* 0; -ENOMEM; -EBADMSG: it is cut off or no msgpack, and what stood before has been handed over.
 * O(bytes of the chunk and of the requests). */
int cprofiles_read(struct str chunk, cprofiles_fn fn, void *context);
