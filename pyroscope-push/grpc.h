/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC, as much as a unary call needs: a message in its frame, and what the
 * status in the trailers means. Source: grpc, doc/PROTOCOL-HTTP2.md and
 * doc/statuscodes.md.
 */
#ifndef PUSH_GRPC_H
#define PUSH_GRPC_H

#include "base/buf.h"
#include "classify.h"

#define GRPC_N_HEADERS 2
extern const struct http_header grpc_headers[GRPC_N_HEADERS];

/* A frame around what is appended between these two. */
size_t grpc_begin(struct buf *b);
void grpc_end(struct buf *b, size_t start);

/* The response's first two wanted headers are grpc-status and grpc-message. The
 * answers of a Parca v0.28.0, which says "unknown" and "internal" of what it
 * will never take; of the other codes what gRPC says. */
struct answer classify_grpc(const struct http_response *response);

#endif
