/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of intake.h. The texts of errors are sentences without an end. */
#pragma once

#include "receive-http/intake.h"
#include "receive-http/series-name.h"

/* A request to /ingest as it is read. */
struct ingest {
	const struct intake_request *request;
	const struct intake_head *head;
	struct str body; /* uncompressed */
	struct str app;
	series_labels labels; /* with service_name */
	int64_t start_ns, end_ns;
	uint64_t sample_rate;
};

/* Rows from folded text; `counted` as in folded.h. */
int intake_folded(const struct ingest *in, bool counted, const struct andiron_batch **ret,
		  struct error *err);

/* "now-10s", or seconds, milliseconds, microseconds or nanoseconds since 1970: CLOCK_REALTIME in
 * ns, from 1970 to 2116, so that whoever adds or subtracts such times cannot overflow; `now` where
 * it is empty, or says nothing or another time. */
int64_t intake_time(struct str text, int64_t now);
