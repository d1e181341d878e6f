/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's unary calls over plain HTTP/2 (without TLS, and without asking first), as a protocol of
 * http-server/server.h, by libnghttp2. Source: grpc, doc/PROTOCOL-HTTP2.md, doc/statuscodes.md.
 *
 * To its owner a call is a request like any other: POST to the method's path, the message as body,
 * its compression as Content-Encoding (there are no other headers, and no query). An answer's
 * status becomes gRPC's: of 200 the body is the message, of all else it is the text. */
#pragma once

#include "http-server/server.h"

/* gRPC's status for one of HTTP's. A sender of OTLP tries again after "unavailable" and "deadline
 * exceeded"; after "resource exhausted" it does not. */
unsigned int grpc_server_code(unsigned int status);

/* server_options.open; they have no certificate. */
int grpc_server_open(const struct server_options *options, struct server **ret);
