/* SPDX-License-Identifier: Apache-2.0 */
/* From a request's bytes to a batch: what is asked of /push.v1.PusherService/Push, of /ingest and
 * of OTLP's /v1development/profiles. Profiles of pprof keep their own bytes; those of OTLP become
 * such, and folded text becomes rows. Plain functions of their input, for workers.
 *
 * Sources: pyroscope, pkg/ingester/pyroscope (what /ingest means); Alloy,
 * internal/component/pyroscope/receive_http (labels). */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include "receive-http/otlp-request.h"

#include <andiron/batch.h>

/* Of a body with Content-Encoding: gzip, and then of all its profiles, with the labels of each. */
#define INTAKE_MAX_RAW ((size_t)48 << 20)

enum intake_api {
	INTAKE_PUSH,
	INTAKE_INGEST,
	INTAKE_OTLP,
};

/* A request; what it does not say is empty. */
struct intake_request {
	enum intake_api api;
	struct str body;
	struct str content_type, content_encoding;
	/* Of /ingest's query. */
	struct str name, from, until, format, sample_rate, spy_name, units, aggregation;
	struct otlp_rejected *rejected; /* of OTLP: is told what was left out */
};

/* Whoever asks. */
struct intake_head {
	uint64_t producer, sequence;
	int64_t now_ns; /* CLOCK_REALTIME */
};

/* Makes the batch: 0 and one reference, or NULL where OTLP has no samples. Or a negative errno and
 * *ret_status, what HTTP calls it, with a text, a sentence for whoever sent it (none: memory is
 * short). */
int intake_read(const struct intake_request *request, const struct intake_head *head,
		const struct andiron_batch **ret, unsigned int *ret_status, struct error *err);
