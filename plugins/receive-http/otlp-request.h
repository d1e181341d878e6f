/* SPDX-License-Identifier: Apache-2.0 */
/* A request of OTLP's profiles signal as pprof profiles with labels, which is what writers take.
 * Source: opentelemetry-proto 1.10 and 1.11, profiles/v1development (in development: peers match
 * within about one minor version).
 *
 *  - Each profile becomes one of pprof, under the labels of its resource: k8s.pod.name is
 *    k8s_pod_name. service.name is service_name, and where it is absent, as for servers,
 *    unknown_service:EXECUTABLE. It is found among any number of attributes, and is cut where it
 *    is too long for a label.
 *  - Time that is counted in samples becomes nanoseconds, as servers show it. A profile is named
 *    by its clock: cpu is process_cpu, wall is wall.
 *  - Attributes of samples (thread.name, thread.id, cpu.logical_number) are left out: servers make
 *    a series of each of their values.
 *  - A build id is GNU's, or else Go's. Frames of a runtime without a mapping have one that is
 *    called by their profile.frame.type.
 *
 * The bytes are untrusted. Each index is checked; a profile with one that is wrong is left out, and
 * counted. What a request may make of its bytes is bounded by the limits below. */
#pragma once

#include "receive-http/push-request.h"

#define OTLP_MAX_ENTRIES (1u << 20) /* of the dictionary's tables together */
/* Bytes of entries, as often as they are read: once for each profile, and one byte more for each
 * reference. */
#define OTLP_MAX_WORK (256u << 20)
#define OTLP_MAX_RAW                                                                               \
	(48u << 20) /* of what they become, uncompressed: no more is taken (intake.h) */

struct otlp_rejected {
	uint64_t n;
	struct error why; /* of the first */
};

/* Reads it into an empty request, which borrows from `body`. 0 and what was left out; -ENOMEM; or
 * -EBADMSG or -E2BIG and a text. push_request_fini in any case. O(bytes of the request, and of
 * entries as often as they are read). */
int otlp_request_parse(struct str body, struct push_request *ret, struct otlp_rejected *rejected,
		       struct error *err);
