/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of OTLP, made by hand from the inside out: for tests. */
#pragma once

#include "base/buf.h"
#include "receive-http/otlp-request.h"

/* A label of a profile that was read; STR_NULL: it has none of this name. */
struct str test_otlp_label(const struct push_request *r, size_t profile, const char *name);
/* Appends what was built so far as a field, and begins anew. */
void test_otlp_message(struct buf *b, uint32_t field, struct buf *inner);

/* A profile of one sample, of the stack 1, as a field of its scope; its type is a string's index,
 * or 0. */
void test_otlp_put_profile(struct buf *scope, uint64_t type);
/* Of a resource. */
void test_otlp_put_attribute(struct buf *owner, struct str name, struct str value);
/* n of them: a0, a1, … */
void test_otlp_put_attributes(struct buf *owner, size_t n, struct str value);
/* Appends the resource and its scope to a request, and begins both anew. */
void test_otlp_put_resource(struct buf *body, struct buf *owner, struct buf *scope);
/* A dictionary with the type `off_cpu`, "f" and a stack of n frames, whose location has these bytes
 * besides. */
void test_otlp_put_dictionary(struct buf *body, size_t n, struct str of_location, struct str text);
