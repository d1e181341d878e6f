/* SPDX-License-Identifier: Apache-2.0 */
/* What the status of a gRPC answer means for what was pushed. */
#ifndef PYROSCOPE_PUSH_PROTOCOLS_GRPC_H
#define PYROSCOPE_PUSH_PROTOCOLS_GRPC_H

#include "pyroscope-push/protocols/classify.h"
#include "http/grpc.h"

/* The request asked for GRPC_WANTED. The answers of a Parca v0.28.0, which says
 * "unknown" and "internal" of what it will never take; of the other codes what gRPC says. */
struct answer classify_grpc(const struct http_response *response);

#endif
