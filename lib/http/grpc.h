/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over the client of http.h, as much as unary calls and streams of requests need: a message in
 * its frame, and the status in the trailers. Source: grpc, doc/PROTOCOL-HTTP2.md and
 * doc/statuscodes.md. */
#pragma once

#include "base/buf.h"
#include "http/http.h"

#define GRPC_FRAME_BYTES 5 /* what stands before a message: compressed or not, its length */

#define GRPC_OK                  0
#define GRPC_INVALID_ARGUMENT    3
#define GRPC_DEADLINE_EXCEEDED   4
#define GRPC_ALREADY_EXISTS      6
#define GRPC_PERMISSION_DENIED   7
#define GRPC_RESOURCE_EXHAUSTED  8
#define GRPC_FAILED_PRECONDITION 9
#define GRPC_UNIMPLEMENTED       12
#define GRPC_INTERNAL            13
#define GRPC_UNAVAILABLE         14
#define GRPC_UNAUTHENTICATED     16

#define GRPC_N_HEADERS 2
extern const struct http_header grpc_headers[GRPC_N_HEADERS];

/* What a request asks to see of the answer, in this order from the first on. */
#define GRPC_WANTED "grpc-status", "grpc-message"

/* A frame around what is appended between these two. */
size_t grpc_begin(struct buf *b);
void grpc_end(struct buf *b, size_t start);

/* The frame of an uncompressed message of n bytes, and the n of a frame. */
void grpc_frame(char out[GRPC_FRAME_BYTES], size_t n);
size_t grpc_frame_size(const char frame[GRPC_FRAME_BYTES]);

/* The status of an answer whose request asked for GRPC_WANTED, codes that gRPC does not know as 2,
 * and its message, decoded and cut off, in `text`. -ENOENT: there was none (no answer, another
 * protocol, or it broke off), and `text` says what there was. */
int grpc_status(const struct http_response *response, char *text, size_t n);

/* The message of a unary answer; STR_NULL where there is no whole one, or a compressed one. */
struct str grpc_message(struct str body);
