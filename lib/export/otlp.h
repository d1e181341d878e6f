/* SPDX-License-Identifier: Apache-2.0 */
/* A pprof profile as a request of OTLP's profiles signal, which is in development. Source:
 * opentelemetry-proto 1.10, profiles/v1development and collector/profiles/v1development
 * (ExportProfilesServiceRequest).
 *
 *  - Entry 0 of every table is its zero value; no entry is there twice, none
 *    that nothing refers to. Keys of the resource stand inline.
 *  - A CPU profile, nanoseconds in whole periods, is written as counted samples
 *    with their period: all receivers multiply, so totals are the same
 *    whichever way a profile went.
 *  - Each sample type that has values is a profile of its own, as the signal
 *    wants it.
 *  - A build id is "process.executable.build_id.gnu" if it is hexadecimal, ".htlhash" if it says so
 *    (EXPORT_IDS), else Go's.
 *  - A location has "profile.frame.type" (frame-type.h), a sample "thread.name" and "thread.id" by
 *    its labels "comm" and "tid". */
#pragma once

#include "base/buf.h"
#include "pprof/decode.h"

struct otlp_attribute {
	struct str key, text;
	bool is_number; /* `text` is written as an integer */
};

struct otlp_head {
	const struct otlp_attribute *resource; /* keys unique and not empty */
	size_t n_resource;
	struct str scope, version;
	uint64_t id; /* with the profile's time its profile_id: the same for the same bytes */
};

/* Appends the request. 0 or -ENOMEM (out as before). O(size of the profile). */
int otlp_encode(const struct profile *p, const struct otlp_head *head, struct buf *out);
