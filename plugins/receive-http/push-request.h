/* SPDX-License-Identifier: Apache-2.0 */
/* A request to /push.v1.PusherService/Push: series, each with labels and pprof profiles, as
 * protobuf or as JSON. Source: pyroscope, api/push/v1/push.proto; Connect's JSON is protobuf's own
 * mapping. The bytes are untrusted: what they make is bounded by their size and by the limits
 * below. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#define PUSH_MAX_PROFILES      16384u
#define PUSH_MAX_LABELS        65536u
#define PUSH_MAX_SERIES_LABELS 128u

/* Labels [label_start, +n_labels) are its series'. */
struct pushed {
	size_t label_start, n_labels;
	struct str profile;
};

struct push_request {
	VEC(struct target_label) labels;
	VEC(struct pushed) profiles;
	struct arena arena; /* of what JSON had */
	bool named;         /* its labels say service_name as it is to be */
};

/* Reads it into an empty request, which borrows from `body`. 0, -ENOMEM, or -EBADMSG or -E2BIG and
 * a text. push_request_fini in any case. */
int push_request_parse(struct str body, bool json, struct push_request *ret, struct error *err);
void push_request_fini(struct push_request *request);
