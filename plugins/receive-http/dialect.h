/* SPDX-License-Identifier: Apache-2.0 */
/* In what words profiles are sent here, and answered: those of Pyroscope's SDKs, or of OTLP over
 * HTTP or gRPC. */
#pragma once

#include "http-server/server.h"
#include "receive-http/otlp-request.h"

enum dialect { DIALECT_SDK, DIALECT_OTLP, DIALECT_GRPC };

/* To the push API, not to /ingest. */
bool dialect_is_push(const struct server_request *request);
/* Why its head is of no request for here, and what HTTP calls that; NULL: it is of one. */
const char *dialect_fault(enum dialect dialect, const struct server_request *request,
			  unsigned int *ret_status);
void dialect_refuse(enum dialect dialect, struct server_request *request, unsigned int status,
		    const char *why);
/* To OTLP's senders it says what was left out, which is not to be sent again. */
void dialect_accept(enum dialect dialect, struct server_request *request,
		    const struct otlp_rejected *rejected);
