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

/* Gets each profile as a request of OTLP's profiles signal, borrowed. */
typedef int (*cprofiles_fn)(void *context, struct str request);

/* 0; -ENOMEM; -EBADMSG: it is no such chunk, and what stood before has been handed over; or what
 * `fn` has returned, if that is not 0. O(bytes). */
int cprofiles_read(struct str chunk, cprofiles_fn fn, void *context);
